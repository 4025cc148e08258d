/* /proc/PID/stat and statm. */
#include "fuzz.h"

#include "proc/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct proc_stat stat;
	int64_t pages = proc_parse_resident(bytes, size);
	CHECK(pages >= -1 && pages <= INT64_MAX / 65536);
	if (!proc_parse_stat(bytes, size, &stat))
		return 0;
	const char *open = memchr(bytes, '(', size), *close = memrchr(bytes, ')', size);
	size_t len = (size_t)(close - open) - 1;
	CHECK(stat.comm_len == (len < sizeof(stat.comm) ? len : sizeof(stat.comm)));
	CHECK(memcmp(stat.comm, open + 1, stat.comm_len) == 0);
	CHECK(stat.state != ' ' && stat.rss_pages >= -1);
	/* Callers add these and multiply pages. */
	const int64_t counts[] = { stat.minor_faults, stat.major_faults, stat.user_ticks,
		stat.system_ticks, stat.waited_user_ticks, stat.waited_system_ticks };
	int64_t sum = stat.rss_pages * 65536;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		CHECK(counts[i] >= 0 && !__builtin_add_overflow(sum, counts[i], &sum));
	char command[256];
	command_text(command, sizeof(command), "", 0, &stat);
	CHECK(command[0] == '[');
	check_safe(command);
	return 0;
}

/* /proc/PID/stat. */
#include "fuzz.h"

#include "proc/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct proc_stat stat;
	if (!proc_parse_stat(bytes, size, &stat))
		return 0;
	CHECK(stat.comm > bytes && stat.comm + stat.comm_len < bytes + size);
	CHECK(stat.comm[-1] == '(' && stat.comm[stat.comm_len] == ')');
	CHECK(!memchr(stat.comm + stat.comm_len + 1, ')',
		size - (size_t)(stat.comm - bytes) - stat.comm_len - 1));
	char command[256];
	proc_command(command, sizeof(command), "", 0, &stat);
	CHECK(command[0] == '[');
	check_safe(command);
	return 0;
}

/* /proc/PID/status, loginuid, smaps, smaps_rollup, io; /proc/meminfo, stat and loadavg. */
#include "fuzz.h"

#include "proc/limits.h"
#include "proc/mappings.h"
#include "proc/proc_parse.h"

static void check_process(const char *bytes, size_t size)
{
	struct proc_status status;
	struct proc_rollup rollup;
	struct proc_io io;
	uint64_t number = 0;
	proc_parse_status(bytes, size, &status);
	CHECK(status.uid >= -1 && status.uid <= UINT32_MAX);
	CHECK(status.uid < 0 || memmem(bytes, size, "Uid:", 4));
	CHECK(status.tgid >= -1 && status.peak_rss_bytes >= -1);
	CHECK(status.processors == -1 || status.processors > 0);
	CHECK(status.voluntary >= -1 && status.involuntary >= -1);
	if (proc_parse_number(bytes, size, &number))
		CHECK(size > 0 && bytes[0] >= '0' && bytes[0] <= '9');
	if (proc_parse_rollup(bytes, size, &rollup))
		CHECK(rollup.rss_bytes >= 0 && rollup.pss_bytes >= 0 && rollup.uss_bytes >= 0 &&
			rollup.swap_bytes >= 0);
	int64_t sum = status.voluntary;
	CHECK(!__builtin_add_overflow(sum, status.involuntary, &sum));
	if (proc_parse_io(bytes, size, &io))
		CHECK(io.read_bytes >= 0 && io.written_bytes >= 0 &&
			!__builtin_add_overflow(io.read_bytes, io.written_bytes, &sum));
}

static void check_mappings(const char *bytes, size_t size)
{
	struct mappings found = { 0 };
	CHECK(mappings_parse(&found, bytes, size) <= size);
	mappings_end(&found);
	char text[64] = { 0 };
	memcpy(text, bytes, size < sizeof(text) - 1 ? size : sizeof(text) - 1);
	CHECK(limits_parse_memory(text) >= -1 && limits_parse_cores(text) >= -1);
	CHECK(found.n <= MAPPINGS_MAX);
	for (size_t i = 0; i < found.n; i++)
		CHECK(found.rows[i].share_bytes >= 0 &&
			found.rows[i].resident_bytes > found.rows[i].share_bytes);
}

static void check_host(const char *bytes, size_t size)
{
	struct proc_memory memory;
	struct proc_cpu cpu;
	int64_t newest = 0;
	if (proc_parse_memory(bytes, size, &memory))
		CHECK(memory.total_bytes >= 0 && memory.used_bytes <= memory.total_bytes);
	if (proc_parse_cpu(bytes, size, &cpu))
		CHECK(cpu.busy_ticks >= 0 && cpu.busy_ticks <= cpu.all_ticks);
	CHECK(proc_parse_boot_time(bytes, size) >= -1);
	if (proc_parse_newest(bytes, size, &newest))
		CHECK(memchr(bytes, ' ', size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_process((const char *)data, size);
	check_mappings((const char *)data, size);
	check_host((const char *)data, size);
	return 0;
}

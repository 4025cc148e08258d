/* /proc/PID/status and /proc/PID/loginuid. */
#include "fuzz.h"

#include "proc/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	uint32_t uid = 0;
	uint64_t number = 0;
	if (proc_parse_uid(bytes, size, &uid))
		CHECK(memmem(bytes, size, "\nUid:", 5));
	if (proc_parse_number(bytes, size, &number))
		CHECK(size > 0 && bytes[0] >= '0' && bytes[0] <= '9');
	return 0;
}

/* A tracking file and a sub-tracking file, as CSV. A line "%%" is between the two. */
#include "fuzz_file.h"
#include "fuzz_subtrack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char between[] = "\n%%\n";
	const uint8_t *at = size ? memmem(data, size, between, strlen(between)) : NULL;
	const uint8_t *marks = at ? at + strlen(between) : data + size;
	char tracking[FUZZ_PATH], sub[FUZZ_PATH];
	fuzz_file_at(tracking, "t.csv", data, at ? (size_t)(at - data) : size);
	fuzz_file_at(sub, "s.csv", marks, size - (size_t)(marks - data));
	analyze(tracking, sub);
	fuzz_file_remove(tracking);
	fuzz_file_remove(sub);
	return 0;
}

/* A tracking file and a sub-tracking file, as SQLite: one file that is both. */
#include "fuzz_file.h"
#include "fuzz_subtrack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[FUZZ_PATH];
	fuzz_file_at(path, "both.sqlite", data, size);
	analyze(path, path);
	fuzz_file_remove(path);
	return 0;
}

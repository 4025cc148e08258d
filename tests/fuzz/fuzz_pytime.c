/* Time stamps in databases of the Python tool. */
#include "fuzz.h"

#include "import/pyfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	int64_t ms = -1;
	if (pyfile_parse_time(text, &ms))
		CHECK(ms >= 0 && ms < INT64_C(10000) * 366 * 86400 * 1000);
	free(text);
	return 0;
}

/* Time stamps in databases of the Python tool. */
#include "fuzz.h"

#include "import/pytime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	int64_t ms = -1;
	if (pytime_parse(text, &ms))
		CHECK(ms >= 0 && ms < INT64_C(10000) * 366 * 86400 * 1000);
	free(text);
	return 0;
}

/* A size of memory on the command line. */
#include "fuzz.h"

#include "base/size.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	int64_t bytes = -1;
	struct err e = { 0 };
	if (size_parse(text, &bytes, &e) != 0) {
		CHECK(e.text[0]);
		check_safe(e.text);
	} else {
		CHECK(bytes >= 0);
		CHECK(*size_text((double)bytes).text);
	}
	free(text);
	return 0;
}

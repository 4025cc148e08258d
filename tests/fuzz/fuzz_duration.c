/* Durations of the command line. */
#include "fuzz.h"

#include "base/duration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct err e = { 0 };
	int64_t ms = -1;
	if (duration_parse(text, &ms, &e) == 0) {
		CHECK(ms >= 0 && ms <= INT64_C(1000) * 366 * 86400 * 1000);
		check_safe(duration_clock(ms).text);
		check_safe(duration_text(ms).text);
	} else {
		CHECK(e.text[0]);
		check_safe(e.text);
	}
	free(text);
	return 0;
}

/* Moments of --since and --until; what is printed of one is read back as the same one. */
#include "fuzz.h"

#include "base/timetext.h"

#define NOW_MS INT64_C(1794528000000)

static void check_moment(int64_t ms)
{
	char iso[40], local[40];
	struct err e = { 0 };
	int64_t again = -1;
	moment_iso(iso, sizeof(iso), ms);
	moment_text(local, sizeof(local), ms, false);
	check_safe(iso);
	check_safe(local);
	if (ms >= 0 && ms % 1000 == 0) { /* dates before 1970 are not taken */
		CHECK(moment_parse(iso, NOW_MS, false, &again, &e) == 0);
		CHECK(again == ms);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	for (int utc = 0; utc < 2; utc++) {
		struct err e = { 0 };
		int64_t ms = -1;
		if (moment_parse(text, NOW_MS, utc, &ms, &e) == 0) {
			check_moment(ms);
		} else {
			CHECK(e.text[0]);
			check_safe(e.text);
		}
	}
	free(text);
	return 0;
}

/* Moments and windows of --since and --until; what is printed of a moment is read back as the
 * same one. */
#include "fuzz.h"

#include "base/period.h"
#include "base/moment.h"

#define NOW_MS INT64_C(1794528000000)

static void check_moment(int64_t ms)
{
	struct err e = { 0 };
	int64_t again = -1;
	struct brief iso = moment_iso(ms);
	check_safe(iso.text);
	check_safe(moment_text(ms, false).text);
	if (ms >= 0 && ms % 1000 == 0) { /* dates before 1970 are not taken */
		CHECK(moment_parse(iso.text, NOW_MS, false, &again, &e) == 0);
		CHECK(again == ms);
	}
}

/* Every period contains its start and is not empty; the window before ends where it begins, or
 * earlier. */
static void check_window(const struct window_words *words, bool utc)
{
	struct window w = { .until_ms = NOW_MS };
	struct err e = { 0 };
	if (period_parse_window(&w, words, NOW_MS, utc, &e) != 0) {
		CHECK(e.text[0]);
		check_safe(e.text);
		return;
	}
	CHECK(w.since_ms < w.until_ms);
	struct window before = period_window_before(&w, utc);
	CHECK(before.until_ms <= w.since_ms);
	CHECK(before.since_ms < before.until_ms);
	if (w.period.unit != PERIOD_NONE)
		CHECK(w.period.from_ms == w.since_ms && w.period.to_ms >= w.until_ms);
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
		check_window(&(struct window_words){ .since = text }, utc);
		check_window(&(struct window_words){ .until = text, .last = "1h" }, utc);
	}
	free(text);
	return 0;
}

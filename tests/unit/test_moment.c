/* Durations and dates of the command line. */
#include "test.h"

#include <time.h>

#include "base/moment.h"

#define NOW_MS 1794528000000LL /* Fri 2026-11-13 00:00:00 UTC */

static void expect_duration(const char *text, int64_t ms)
{
	int64_t got = -1;
	struct err e = { 0 };
	assert_int_equal(duration_parse(text, &got, &e), 0);
	assert_int_equal(got, ms);
}

static void test_durations(void **state)
{
	(void)state;
	expect_duration("200ms", 200);
	expect_duration("30s", 30000);
	expect_duration("5m", 300000);
	expect_duration("1.5h", 5400000);
	expect_duration("7d", 604800000);
	expect_duration("4w", 2419200000);
	expect_duration("0", 0);
	expect_duration("0.1s", 100);
}

static void test_bad_durations(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "5", "s", "-5s", "1e9s", "inf", "nan", "0x10s",
		"5 s", "5s ", "1,5h", "1.2.3s", "5y", "99999999999999999999w", "\x1b[1ms" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t got = -1;
		struct err e = { 0 };
		assert_int_equal(duration_parse(bad[i], &got, &e), ERR_USAGE);
		assert_true(strlen(e.text) > 0);
		assert_null(strchr(e.text, '\x1b'));
	}
}

static void expect_moment(const char *text, const char *iso)
{
	int64_t got = -1;
	struct err e = { 0 };
	if (moment_parse(text, NOW_MS + 3600 * 1000, true, &got, &e) != 0)
		fail_msg("%s: %s", text, e.text);
	assert_string_equal(moment_iso(got).text, iso);
}

static void test_moments(void **state)
{
	(void)state;
	expect_moment("now", "2026-11-13T01:00:00Z");
	expect_moment("1h", "2026-11-13T00:00:00Z");
	expect_moment("today", "2026-11-13T00:00:00Z");
	expect_moment("yesterday", "2026-11-12T00:00:00Z");
	expect_moment("friday", "2026-11-13T00:00:00Z");
	expect_moment("monday", "2026-11-09T00:00:00Z");
	expect_moment("Sat", "2026-11-07T00:00:00Z");
	expect_moment("2026-11-01", "2026-11-01T00:00:00Z");
	expect_moment("2026-11-01T08:30", "2026-11-01T08:30:00Z");
	expect_moment("2026-11-01 08:30:15Z", "2026-11-01T08:30:15Z");
	expect_moment("2026-11-01Z", "2026-11-01T00:00:00Z");
	expect_moment("00:30", "2026-11-13T00:30:00Z");
	expect_moment("01:00", "2026-11-13T01:00:00Z");
	expect_moment("01:00:01", "2026-11-12T01:00:01Z");
	expect_moment("18:00", "2026-11-12T18:00:00Z");
	expect_moment("yesterday 18:00", "2026-11-12T18:00:00Z");
	expect_moment("today 00:15", "2026-11-13T00:15:00Z");
	expect_moment("today 23:00", "2026-11-13T23:00:00Z");
	expect_moment("friday 00:30", "2026-11-13T00:30:00Z");
	expect_moment("friday 08:30", "2026-11-06T08:30:00Z");
	expect_moment("Mon 08:30Z", "2026-11-09T08:30:00Z");
	expect_moment("@1794528000", "2026-11-13T00:00:00Z");
	expect_moment("@1794528000.5", "2026-11-13T00:00:00.500Z");
}

static void test_bad_moments(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "mon day", "2026-13-01", "2026-04-31",
		"2026-11-01T25:00", "2026-11-1", "26-11-01", "@", "@x", "tomorrow?",
		"2026-11-01T08:30:15+01:00", "24:00", "8:30", "08:60", "08:3", "08:30:", "Z",
		"monday08:30", "monday 8", "2026-11-01 ", "today ", "08:30 ", "1970" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t got = -1;
		struct err e = { 0 };
		assert_int_equal(moment_parse(bad[i], NOW_MS, true, &got, &e), ERR_USAGE);
	}
}

static void test_local_time(void **state)
{
	(void)state;
	setenv("TZ", "Europe/Madrid", 1);
	tzset();
	int64_t got = -1;
	struct err e = { 0 };
	assert_int_equal(moment_parse("2026-07-01", NOW_MS, false, &got, &e), 0);
	assert_string_equal(moment_iso(got).text, "2026-06-30T22:00:00Z");
	assert_string_equal(moment_text(got, false).text, "Wed 2026-07-01 00:00");
}

/* Half a second before 1970 is in 1969. */
static void test_before_1970(void **state)
{
	(void)state;
	assert_string_equal(moment_iso(-500).text, "1969-12-31T23:59:59.500Z");
	assert_string_equal(moment_text(-500, true).text, "Wed 1969-12-31 23:59 UTC");
}

static void test_printing(void **state)
{
	(void)state;
	assert_string_equal(duration_clock(3600 * 1000).text, "1:00:00");
	assert_string_equal(
		duration_clock((6 * 86400 + 4 * 3600 + 30 * 60) * 1000LL).text, "6 d 04:30:00");
	assert_string_equal(duration_text(12000000).text, "3 h 20 min");
	assert_string_equal(duration_text(45999).text, "45 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_bad_durations),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_bad_moments),
		cmocka_unit_test(test_local_time),
		cmocka_unit_test(test_before_1970),
		cmocka_unit_test(test_printing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

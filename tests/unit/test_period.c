/* Named periods and windows: in UTC, and in zones whose days are not all 24 hours long. */
#include "test.h"

#include <time.h>

#include "base/period.h"
#include "base/moment.h"

#define NOW_MS 1794571200000LL /* Fri 2026-11-13 12:00:00 UTC */
#define HOUR_MS 3600000LL

static void set_zone(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

static void expect_moment(int64_t ms, const char *iso)
{
	assert_string_equal(moment_iso(ms).text, iso);
}

static void expect_period(const char *text, bool utc, const char *from, const char *to)
{
	struct period p;
	if (!period_parse(&p, text, NOW_MS, utc))
		fail_msg("%s is not a period", text);
	expect_moment(p.from_ms, from);
	expect_moment(p.to_ms, to);
}

static void test_periods(void **state)
{
	(void)state;
	expect_period("today", true, "2026-11-13T00:00:00Z", "2026-11-14T00:00:00Z");
	expect_period("yesterday", true, "2026-11-12T00:00:00Z", "2026-11-13T00:00:00Z");
	expect_period("thisweek", true, "2026-11-09T00:00:00Z", "2026-11-16T00:00:00Z");
	expect_period("LastWeek", true, "2026-11-02T00:00:00Z", "2026-11-09T00:00:00Z");
	expect_period("last-week", true, "2026-11-02T00:00:00Z", "2026-11-09T00:00:00Z");
	expect_period("last week", true, "2026-11-02T00:00:00Z", "2026-11-09T00:00:00Z");
	expect_period("thismonth", true, "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z");
	expect_period("lastmonth", true, "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z");
	expect_period("this-year", true, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
	expect_period("lastyear", true, "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z");
	expect_period("2026-10", true, "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z");
	expect_period("2024-12", true, "2024-12-01T00:00:00Z", "2025-01-01T00:00:00Z");
	expect_period("2026", true, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
}

static void test_what_is_not_a_period(void **state)
{
	(void)state;
	static const char *const others[] = { "", "monday", "2026-13", "2026-00", "2026-1",
		"2026-10-01", "1969", "20261", "2026-", "weeklast", "last", "last-",
		"this--week", "lastday", "this", "7d", "last\tweek" };
	struct period p;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (period_parse(&p, others[i], NOW_MS, true))
			fail_msg("'%s' was taken for a period", others[i]);
}

/* The clock goes back on 25 October and forward on 29 March. */
static void test_local_periods(void **state)
{
	(void)state;
	set_zone("Europe/Madrid");
	expect_period("lastmonth", false, "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z");
	expect_period("2026-03", false, "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z");
	int64_t autumn_ms = 1792929600000LL; /* 2026-10-25 10:00 UTC */
	struct period day = period_at(PERIOD_DAY, autumn_ms, 0, false);
	assert_int_equal(day.to_ms - day.from_ms, 25 * HOUR_MS);
	struct period week = period_at(PERIOD_WEEK, autumn_ms, 0, false);
	assert_int_equal(week.to_ms - week.from_ms, (7 * 24 + 1) * HOUR_MS);
	int64_t spring_ms = 1774778400000LL; /* 2026-03-29 10:00 UTC */
	day = period_at(PERIOD_DAY, spring_ms, 0, false);
	assert_int_equal(day.to_ms - day.from_ms, 23 * HOUR_MS);
}

/* Midnight is skipped in Cairo in spring, and comes twice in Havana in autumn. */
static void test_odd_midnights(void **state)
{
	(void)state;
	struct tm cairo = { .tm_year = 126, .tm_mon = 3, .tm_mday = 24 };
	set_zone("Africa/Cairo");
	expect_moment(moment_day_start(cairo, false), "2026-04-23T22:00:00Z");
	struct tm havana = { .tm_year = 126, .tm_mon = 10, .tm_mday = 1 };
	set_zone("America/Havana");
	expect_moment(moment_day_start(havana, false), "2026-11-01T04:00:00Z");
}

/* A year of days: each ends where the next begins, begins on its date, and not later. */
static void test_days_tile_the_year(void **state)
{
	(void)state;
	static const char *const zones[] = { "UTC", "Europe/Madrid", "America/New_York",
		"America/Havana", "Africa/Cairo", "Asia/Kolkata", "Australia/Lord_Howe",
		"Pacific/Kiritimati", "Pacific/Pago_Pago" };
	for (size_t z = 0; z < sizeof(zones) / sizeof(zones[0]); z++) {
		set_zone(zones[z]);
		struct period day = period_at(PERIOD_DAY, NOW_MS, 0, false);
		for (int i = 0; i < 366; i++) {
			struct tm first = moment_fields(day.from_ms, false);
			struct tm before = moment_fields(day.from_ms - 1, false);
			assert_int_not_equal(first.tm_mday, before.tm_mday);
			struct period next = period_at(PERIOD_DAY, day.from_ms, 1, false);
			assert_int_equal(day.to_ms, next.from_ms);
			day = next;
		}
	}
}

static struct window expect_window(
	struct window_words words, bool utc, const char *since, const char *until)
{
	struct window w = { .until_ms = NOW_MS };
	struct err e = { 0 };
	if (period_parse_window(&w, &words, NOW_MS, utc, &e) != 0)
		fail_msg("%s", e.text);
	expect_moment(w.since_ms, since);
	expect_moment(w.until_ms, until);
	return w;
}

#define SINCE(text) ((struct window_words){ .since = (text) })
#define BETWEEN(from, to) ((struct window_words){ .since = (from), .until = (to) })
#define NOW "2026-11-13T12:00:00Z"

static void test_windows(void **state)
{
	(void)state;
	expect_window(SINCE("2h"), true, "2026-11-13T10:00:00Z", NOW);
	expect_window(SINCE("monday"), true, "2026-11-09T00:00:00Z", NOW);
	expect_window(SINCE("lastweek"), true, "2026-11-02T00:00:00Z", "2026-11-09T00:00:00Z");
	expect_window(SINCE("yesterday"), true, "2026-11-12T00:00:00Z", "2026-11-13T00:00:00Z");
	expect_window(SINCE("today"), true, "2026-11-13T00:00:00Z", NOW);
	expect_window(SINCE("thismonth"), true, "2026-11-01T00:00:00Z", NOW);
	expect_window(BETWEEN("lastweek", "now"), true, "2026-11-02T00:00:00Z", NOW);
	expect_window(BETWEEN("2026-09", "2026-10"), true, "2026-09-01T00:00:00Z",
		"2026-11-01T00:00:00Z");
	expect_window(BETWEEN("2026-09", "thisweek"), true, "2026-09-01T00:00:00Z", NOW);
	expect_window(BETWEEN("2026-11-09", "2026-11-10"), true, "2026-11-09T00:00:00Z",
		"2026-11-10T00:00:00Z");
	expect_window((struct window_words){ .last = "4w" }, true, "2026-10-16T12:00:00Z", NOW);
	expect_window((struct window_words){ .last = "1d", .until = "lastmonth" }, true,
		"2026-10-31T00:00:00Z", "2026-11-01T00:00:00Z");
}

static void test_bad_windows(void **state)
{
	(void)state;
	static const struct {
		struct window_words words;
		const char *says;
	} bad[] = {
		{ { .since = "fortnight" },
			"--since: 'fortnight' is not a time; write a length" },
		{ { .since = "1h", .until = "x\x1b" },
			"--until: 'x\\x1B' is not a time; write" },
		{ { .since = "1h", .last = "1h" }, "--since and --last exclude each other" },
		{ { .last = "lastweek" }, "--last: 'lastweek' is not a duration" },
		{ { .since = "2027" }, "which is not before now, Fri 2026-11-13 12:00 UTC" },
		{ { .since = "1h", .until = "lastweek" },
			"starts at Fri 2026-11-13 11:00 UTC, which is not before --until, Mon "
			"2026-11-09" },
		{ { .last = "0" }, "which is not before now" },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct window w = { .until_ms = NOW_MS };
		struct err e = { 0 };
		assert_int_equal(
			period_parse_window(&w, &bad[i].words, NOW_MS, true, &e), ERR_USAGE);
		if (!strstr(e.text, bad[i].says))
			fail_msg("%s", e.text);
	}
}

static void expect_before(
	struct window_words words, bool utc, const char *since, const char *until)
{
	struct window w = { .until_ms = NOW_MS };
	struct err e = { 0 };
	assert_int_equal(period_parse_window(&w, &words, NOW_MS, utc, &e), 0);
	struct window before = period_window_before(&w, utc);
	expect_moment(before.since_ms, since);
	expect_moment(before.until_ms, until);
}

static void test_the_window_before(void **state)
{
	(void)state;
	expect_before(SINCE("2h"), true, "2026-11-13T08:00:00Z", "2026-11-13T10:00:00Z");
	expect_before(SINCE("lastweek"), true, "2026-10-26T00:00:00Z", "2026-11-02T00:00:00Z");
	expect_before(SINCE("2026-03"), true, "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z");
	expect_before(BETWEEN("lastweek", "now"), true, "2026-10-21T12:00:00Z",
		"2026-11-02T00:00:00Z");
	/* Of a period that is not over, as much of the one before. */
	expect_before(SINCE("today"), true, "2026-11-12T00:00:00Z", "2026-11-12T12:00:00Z");
	expect_before(SINCE("thisweek"), true, "2026-11-02T00:00:00Z", "2026-11-06T12:00:00Z");
	expect_before(SINCE("thismonth"), true, "2026-10-01T00:00:00Z", "2026-10-13T12:00:00Z");
	expect_before(SINCE("2026"), true, "2025-01-01T00:00:00Z", "2025-11-13T12:00:00Z");
}

static void expect_other(const char *since, const char *text, const char *from, const char *to)
{
	struct window w = { .until_ms = NOW_MS };
	struct err e = { 0 };
	assert_int_equal(period_parse_window(&w, &SINCE(since), NOW_MS, true, &e), 0);
	if (period_window_other(&w, text, NOW_MS, true, &e) != 0)
		fail_msg("%s", e.text);
	expect_moment(w.since_ms, from);
	expect_moment(w.until_ms, to);
}

static void test_another_window(void **state)
{
	(void)state;
	expect_other("lastweek", "", "2026-10-26T00:00:00Z", "2026-11-02T00:00:00Z");
	expect_other("lastweek", "2026-09", "2026-09-01T00:00:00Z", "2026-10-01T00:00:00Z");
	expect_other("7d", "2026-09-03", "2026-09-03T00:00:00Z", "2026-09-10T00:00:00Z");
	expect_other("2h", "yesterday 09:00", "2026-11-12T09:00:00Z", "2026-11-12T11:00:00Z");
	expect_other("7d", "thisweek", "2026-11-09T00:00:00Z", NOW);
	expect_other("7d", "1d", "2026-11-12T12:00:00Z", NOW);
	struct window w = { .since_ms = NOW_MS - 1, .until_ms = NOW_MS };
	struct err e = { 0 };
	assert_int_equal(period_window_other(&w, "2027", NOW_MS, true, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "--compare: the window starts at Fri 2027-01-01"));
	assert_int_equal(period_window_other(&w, "x", NOW_MS, true, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "--compare: 'x' is not a time"));
}

static void test_the_month_before_in_local_time(void **state)
{
	(void)state;
	set_zone("Europe/Madrid");
	expect_before(
		SINCE("lastmonth"), false, "2026-08-31T22:00:00Z", "2026-09-30T22:00:00Z");
	/* 13:00 of the 13th, which was summer time in October. */
	expect_before(
		SINCE("thismonth"), false, "2026-09-30T22:00:00Z", "2026-10-13T11:00:00Z");
	/* 31 March at noon: February has no such day. */
	int64_t now_ms = 1774951200000LL;
	struct window w = { .until_ms = now_ms };
	assert_int_equal(period_parse_window(&w, &SINCE("thismonth"), now_ms, true, NULL), 0);
	expect_moment(period_window_before(&w, true).until_ms, "2026-03-01T00:00:00Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_periods),
		cmocka_unit_test(test_what_is_not_a_period),
		cmocka_unit_test(test_local_periods),
		cmocka_unit_test(test_odd_midnights),
		cmocka_unit_test(test_days_tile_the_year),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_bad_windows),
		cmocka_unit_test(test_the_window_before),
		cmocka_unit_test(test_another_window),
		cmocka_unit_test(test_the_month_before_in_local_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

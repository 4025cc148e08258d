/* The size of a year: 12 cards, 1.5 holders each, 30,000 processes, within 31 MB. Fewer days
 * are played; hours and processes grow with the days, the finer slots do not. */
#include "test.h"

#include <stdio.h>

#include "lab_year.h"
#include "store_fixture.h"

/* Of few days the size of a year is less certain: under sanitizers a little more is allowed. */
#if defined(__SANITIZE_ADDRESS__)
enum { DAYS = 16 };
#define MOST_BYTES 31.9e6
#else
enum { DAYS = 40 };
#define MOST_BYTES 31e6
#endif
enum { FINE_DAYS = 14 };

static int64_t pages_of(const struct world *w, const char *names)
{
	char sql[200];
	snprintf(sql, sizeof(sql), "SELECT sum(pgsize) FROM dbstat WHERE name IN (%s)", names);
	return ask(w->path, sql);
}

static void test_a_year_fits(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = NULL;
	struct lab_year lab = { .cards = 12,
		.days = DAYS,
		.lives_per_day = 30000 / 365.0,
		.holders = 1.5,
		.end_s = WORLD_START_MS / 1000,
		.leased = true,
		.seed = 4 };
	if (store_open(&s, w->path, &e) != 0 || lab_year_write(&lab, s, &e) != 0)
		fail_msg("%s", e.text);
	store_close(s);
	double hours = (double)pages_of(w, "'usage_1h', 'holding_1h'") / (DAYS - FINE_DAYS);
	/* All days have these, also those with finer slots. */
	double lives =
		(double)pages_of(w, "'process', 'holding_1d', 'usage_1d', 'heat_1h'") / DAYS;
	double fine = (double)pages_of(w,
		"'usage_5m', 'usage_1m', 'usage_hour', 'holding_5m', 'holding_1m', "
		"'holding_hour'");
	double year = hours * (365 - FINE_DAYS) + lives * 365 + fine;
	double leases =
		(double)pages_of(w, "'reserved_1h'") / (DAYS - FINE_DAYS) * (365 - FINE_DAYS) +
		(double)pages_of(w, "'lease', 'leased_1d'") / DAYS * 365 +
		(double)pages_of(w, "'reserved_5m', 'reserved_1m'");
	double mean = (double)ask(w->path, "SELECT sum(active_ms + idle_held_ms + squatting_ms)"
					   " FROM holding") /
		      (12.0 * DAYS * 86400000);
	/* The played lab is what it says, and a year of it fits. */
	assert_true(mean > 1.0 && mean < 1.9);
	assert_true(lab.lives > 75 * DAYS);
	assert_true(year > 10e6);
	if (year >= MOST_BYTES)
		fail_msg("a year takes %.2f MB", year / 1e6);
	/* Leases take little beside it, although each card always has one, and a quarter of
	 * the time is reserved. */
	assert_true(leases > 0 && leases < 0.07 * year);
	/* Nothing was left behind by the slots that moved. */
	assert_true(
		ask(w->path, "PRAGMA freelist_count") < ask(w->path, "PRAGMA page_count") / 20);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_year_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

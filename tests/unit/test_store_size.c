/* The size of a year: 12 cards, 1.5 holders each, 30,000 processes, within 31 MB. Fewer days
 * are played; hours and processes grow with the days, the finer slots do not. */
#include "test.h"

#include <stdio.h>

#include "lab_year.h"
#include "store_fixture.h"

/* Of few days the size of a year is less certain: a little more is allowed. Sanitizers see the
 * same statements of the store in other tests, and these days only when all tests are wanted.
 */
#if defined(__SANITIZE_ADDRESS__)
enum { ALL_DAYS = 16, DAYS = 0 };
#else
enum { ALL_DAYS = 40, DAYS = 20 };
#endif
enum { FINE_DAYS = 14, SURE_DAYS = 40 };

static int64_t pages_of(const struct world *w, const char *names)
{
	char sql[200];
	snprintf(sql, sizeof(sql), "SELECT sum(pgsize) FROM dbstat WHERE name IN (%s)", names);
	return ask(w->path, sql);
}

static void test_a_year_fits(void **state)
{
	struct world *w = *state;
	const int days = plays_all() ? ALL_DAYS : DAYS;
	const double most_bytes = days < SURE_DAYS ? 31.9e6 : 31e6;
	struct err e = { 0 };
	struct store *s = NULL;
	struct lab_year lab = { .cards = 12,
		.days = days,
		.lives_per_day = 30000 / 365.0,
		.holders = 1.5,
		.end_s = WORLD_START_MS / 1000,
		.leased = true,
		.seed = 4 };
	if (store_open(&s, w->path, &e) != 0 || lab_year_write(&lab, s, &e) != 0)
		fail_msg("%s", e.text);
	store_close(s);
	double hours = (double)pages_of(w, "'usage_1h', 'holding_1h'") / (days - FINE_DAYS);
	/* All days have these, also those with finer slots. */
	double lives =
		(double)pages_of(w, "'process', 'holding_1d', 'usage_1d', 'heat_1h'") / days;
	double fine = (double)pages_of(w,
		"'usage_5m', 'usage_1m', 'usage_hour', 'holding_5m', 'holding_1m', "
		"'holding_hour'");
	double year = hours * (365 - FINE_DAYS) + lives * 365 + fine;
	double leases =
		(double)pages_of(w, "'reserved_1h'") / (days - FINE_DAYS) * (365 - FINE_DAYS) +
		(double)pages_of(w, "'lease', 'leased_1d'") / days * 365 +
		(double)pages_of(w, "'reserved_5m', 'reserved_1m'");
	double mean = (double)ask(w->path, "SELECT sum(active_ms + idle_held_ms + squatting_ms)"
					   " FROM holding") /
		      (12.0 * days * 86400000);
	/* The played lab is what it says, and a year of it fits. */
	assert_true(mean > 1.0 && mean < 1.9);
	assert_true(lab.lives > 75 * days);
	assert_true(year > 10e6);
	if (year >= most_bytes)
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
	if (!plays_all() && DAYS == 0) {
		puts("1..0 # SKIP sanitizers"); /* cmocka's own word for it is "not ok" */
		return 0;
	}
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_year_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a drain says besides its samples: use of a process, clock steps, how long samples hold.
 */
#include "test.h"

#include <math.h>

#include "base/clock.h"
#include "driver/ring.h"
#include "driver/use.h"

static void test_use_of_a_process(void **state)
{
	(void)state;
	const struct process_util utils[] = { { .pid = 7, .sm_pct = 10 },
		{ .pid = 8, .sm_pct = 20, .engine_pct = { 9, NAN, 4, NAN, NAN } },
		{ .pid = 7, .sm_pct = 30, .engine_pct = { 15, NAN, NAN, NAN, NAN } } };
	struct card_reading r = {
		.process_util_known = true, .process_utils = utils, .n_process_utils = 3
	};
	assert_true(reading_process_pct(&r, 7) == 30);
	assert_true(reading_process_pct(&r, 8) == 20);
	assert_true(reading_process_pct(&r, 9) == 0);
	assert_null(reading_process_util(&r, 9));
	assert_true(reading_engine_pct(&r, 8) == 4);
	assert_true(reading_engine_pct(&r, 7) == 0 && reading_engine_pct(&r, 9) == 0);
	r.process_util_known = false;
	assert_true(isnan(reading_process_pct(&r, 7)));
	assert_null(reading_process_util(&r, 7));
}

/* The driver is asked for parts of a drain while it shows something new: several processes used
 * the card, and not as before. */
static void test_when_a_drain_is_read_in_parts(void **state)
{
	(void)state;
	struct util_sample samples[7];
	for (int i = 0; i < 7; i++)
		samples[i] = (struct util_sample){ 1000000 + 100000 * i, 100 };
	struct process_util utils[] = { { .pid = 7, .sm_pct = 40 }, { .pid = 8 } };
	const struct process_part parts[] = { { 0, 1100000, 0 }, { 8, 1100000, 30 },
		{ 0, 1500000, 0 }, { 8, 1500000, 60 } };
	struct card_reading r = { .util_kind = UTIL_RING,
		.samples = samples,
		.n_samples = 7,
		.process_util_known = true,
		.process_utils = utils,
		.n_process_utils = 2 };
	struct use_past past = { 0 };
	assert_int_equal(use_parts(&r, &past), 1); /* one process */
	use_keep(&past, &r);
	utils[1].sm_pct = 20;
	assert_int_equal(use_parts(&r, &past), PROCESS_PARTS);
	assert_int_equal(use_part_us(&r, 1, PROCESS_PARTS), 1100000); /* the longest is first */
	assert_int_equal(use_part_us(&r, 5, PROCESS_PARTS), 1500000);
	r.parts = parts;
	r.n_parts = 4;
	use_keep(&past, &r);
	/* The next drain is compared with the last part. */
	utils[1].sm_pct = 61;
	r.n_parts = 0;
	utils[0].sm_pct = 0;
	assert_int_equal(use_parts(&r, &past), 1);
	utils[0].sm_pct = 40;
	assert_int_equal(use_parts(&r, &past), PROCESS_PARTS);
	use_keep(&past, &r);
	assert_int_equal(use_parts(&r, &past), 1);
	utils[0].sm_pct = 45;
	r.n_samples = 3;
	assert_int_equal(use_parts(&r, &past), 3);
	samples[2].wall_us += 20000000; /* a long drain */
	assert_int_equal(use_parts(&r, &past), 1);
	r.util_kind = UTIL_POLLED;
	samples[2].wall_us -= 20000000;
	assert_int_equal(use_parts(&r, &past), 1);
	use_finish(&past);
}

static void test_a_clock_step_is_reported_once(void **state)
{
	(void)state;
	struct clock_watch w;
	struct moment m = { .wall_us = 1000000000, .boot_us = 5000000, .mono_us = 5000000 };
	clock_watch_start(&w, &m);
	m.wall_us += 40000;
	assert_int_equal(clock_watch_step_us(&w, &m), 0);
	/* Small corrections add up. */
	m.wall_us += 40000;
	assert_int_equal(clock_watch_step_us(&w, &m), 80000);
	assert_int_equal(clock_watch_step_us(&w, &m), 0);
	m.wall_us -= 3600000000;
	assert_int_equal(clock_watch_step_us(&w, &m), -3600000000);
	assert_int_equal(clock_watch_suspend_us(&w, &m), 0);
}

static void test_a_suspend_is_not_a_clock_step(void **state)
{
	(void)state;
	struct clock_watch w;
	struct moment m = { .wall_us = 1000000000, .boot_us = 5000000, .mono_us = 5000000 };
	clock_watch_start(&w, &m);
	m.wall_us += 8000000;
	m.boot_us += 8000000;
	assert_int_equal(clock_watch_suspend_us(&w, &m), 8000000);
	assert_int_equal(clock_watch_suspend_us(&w, &m), 0);
	assert_int_equal(clock_watch_step_us(&w, &m), 0);
}

static void check_hold(enum util_kind kind, int64_t period_us, int64_t hold, int64_t period)
{
	struct ring_hold h = ring_hold_of(kind, period_us, 10000);
	assert_int_equal(h.hold_ms, hold);
	assert_int_equal(h.period_ms, period);
}

static void test_how_long_samples_hold(void **state)
{
	(void)state;
	check_hold(UTIL_RING, 166000, 2000, 166);
	check_hold(UTIL_RING, 0, 2000, 1000);
	check_hold(UTIL_RING, 5000000, 10000, 5000);
	check_hold(UTIL_POLLED, 166000, 16000, 1000);
	check_hold(UTIL_MEAN, 0, 16000, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_use_of_a_process),
		cmocka_unit_test(test_when_a_drain_is_read_in_parts),
		cmocka_unit_test(test_a_clock_step_is_reported_once),
		cmocka_unit_test(test_a_suspend_is_not_a_clock_step),
		cmocka_unit_test(test_how_long_samples_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

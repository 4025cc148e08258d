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
	assert_true(use_of(&r, 7) == 30);
	assert_true(use_of(&r, 8) == 20);
	assert_true(use_of(&r, 9) == 0);
	assert_null(use_record(&r, 9));
	assert_true(use_of_engines(&r, 8) == 4);
	assert_true(use_of_engines(&r, 7) == 0 && use_of_engines(&r, 9) == 0);
	r.process_util_known = false;
	assert_true(isnan(use_of(&r, 7)));
	assert_null(use_record(&r, 7));
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
		cmocka_unit_test(test_a_clock_step_is_reported_once),
		cmocka_unit_test(test_a_suspend_is_not_a_clock_step),
		cmocka_unit_test(test_how_long_samples_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Counters at the edges of a window. */
#include "test.h"

#include <math.h>
#include <stdbool.h>

#include "fleet/survey.h"

static void a_value_between_two_samples_is_on_their_line(void **state)
{
	const struct edge_times times = { .edge = 130, .before = 100, .after = 160 };
	(void)state;
	assert_true(meter_value(10, 40, &times) == 25);
	assert_true(meter_value(10, 10, &times) == 10);
}

static void without_a_sample_after_it_the_one_before_counts(void **state)
{
	const struct edge_times times = { .edge = 130, .before = 100, .after = NAN };
	const struct edge_times known = { .edge = 130, .before = 100, .after = 160 };
	(void)state;
	assert_true(meter_value(10, NAN, &times) == 10);
	assert_true(meter_value(10, 40, &times) == 10);
	assert_true(meter_value(100, 5, &known) == 100); /* another store */
	assert_true(isnan(meter_value(NAN, 5, &known)));
}

static void a_line_is_not_made_longer(void **state)
{
	const struct edge_times late = { .edge = 130, .before = 100, .after = 120 };
	const struct edge_times early = { .edge = 90, .before = 100, .after = 120 };
	(void)state;
	assert_true(meter_value(10, 40, &late) == 40);
	assert_true(meter_value(10, 40, &early) == 10);
}

static void rows_are_found_by_host_and_name(void **state)
{
	struct meters m = { 0 };
	struct err e = { 0 };
	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		meter_add(&m, meter_find(&m, i % 7, i % 2 ? "alice" : "bob", &e), 0, &e)
			->at[METER_FIRST] = i;
	assert_int_equal(m.n, 14);
	assert_true(meter_of(meter_find(&m, 3, "alice", &e), 0)->at[METER_FIRST] == 997);
	assert_true(isnan(meter_of(meter_find(&m, 3, "alice", &e), 1)->at[METER_FIRST]));
	assert_true(meter_of(meter_find(&m, 3, "alice", &e), 1)->lost == 0);
	assert_null(meter_find(&m, 3, "alice", &e)->states[1]);
	assert_string_equal(meter_find(&m, 3, "alice", &e)->name, "alice");
	assert_int_equal(meter_find(&m, 3, "alice", &e)->host, 3);
	meter_finish(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_between_two_samples_is_on_their_line),
		cmocka_unit_test(without_a_sample_after_it_the_one_before_counts),
		cmocka_unit_test(a_line_is_not_made_longer),
		cmocka_unit_test(rows_are_found_by_host_and_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

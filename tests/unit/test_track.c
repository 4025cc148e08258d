/* The rule by which a second of CPU is in one place at a time. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "track/tracker_private.h"

/* A tree by hand: members[1] and [2] are children of [0]. */
struct by_hand {
	struct tree tree;
	struct member members[3];
};

static void set_up(struct by_hand *h)
{
	*h = (struct by_hand){ .tree = { .n = 3 } };
	h->tree.members = h->members;
	for (uint32_t i = 0; i < 3; i++)
		h->members[i] = (struct member){ .parent = i ? 0 : NO_MEMBER, .stat_fd = -1 };
	h->members[0].own[COUNT_USER] = 10;
	h->members[1].own[COUNT_USER] = 2;
	h->members[2].own[COUNT_USER] = 3;
}

static double user(struct by_hand *h, enum track_group group)
{
	double sums[TRACK_GROUPS][COUNTERS];
	tree_sum(&h->tree, sums);
	return sums[group][COUNT_USER];
}

static void test_a_second_is_in_one_place(void **state)
{
	struct by_hand h;
	(void)state;
	set_up(&h);
	assert_float_equal(user(&h, TRACK_COMBINED), 15, 1e-9);
	assert_float_equal(user(&h, TRACK_MAIN), 10, 1e-9);
	/* One ended; its parent was read before it was waited for. */
	h.members[1].gone = true;
	assert_float_equal(user(&h, TRACK_COMBINED), 15, 1e-9);
	/* Now the parent has its time, a little more than was last seen, and that of a child
	 * that nobody saw. */
	h.members[0].waited[COUNT_USER] = 2.5 + 1;
	assert_float_equal(user(&h, TRACK_COMBINED), 16.5, 1e-9);
	assert_float_equal(user(&h, TRACK_DESCENDANTS), 6.5, 1e-9);
	/* The parent was waited for by the owner: exact, and the second child went to it. */
	h.members[0].gone = h.members[0].reaped = h.members[0].final_read = true;
	h.members[0].exact[COUNT_USER] = 10.25 + 3.5;
	h.members[2].gone = h.members[2].reaped = true;
	h.members[2].parent = NO_MEMBER;
	h.members[2].exact[COUNT_USER] = 4;
	assert_float_equal(user(&h, TRACK_COMBINED), 17.75, 1e-9);
	assert_float_equal(user(&h, TRACK_MAIN), 10.25, 1e-9);
}

static void test_what_is_forgotten_still_counts(void **state)
{
	struct by_hand h;
	(void)state;
	set_up(&h);
	h.members[1].parent = 0;
	h.members[2].parent = 1;
	h.members[1].gone = h.members[2].gone = true;
	double before = user(&h, TRACK_COMBINED);
	tree_forget(&h.tree, 1);
	assert_int_equal(h.tree.n, 1);
	assert_int_equal(h.tree.n_forgotten, 2);
	assert_float_equal(user(&h, TRACK_COMBINED), before, 1e-9);
	assert_float_equal(h.tree.others.user_s, 5, 1e-9);
}

static void test_a_process_that_is_not_there(void **state)
{
	struct tracker *t;
	struct err e = { 0 };
	struct tracker_options o = { .interval_ms = 1000 };
	(void)state;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	o.pid = pid;
	assert_int_equal(tracker_open(&t, &o, &e), ERR_WORLD);
}

/* It is there when the processes are listed, and has no memory any more when that is read: what
 * it had is unknown until it is waited for, not zero. */
static void test_a_process_that_ends_while_it_is_looked_at(void **state)
{
	char root[4096];
	struct tracker *t;
	struct err e = { 0 };
	struct rusage usage = { .ru_maxrss = 1 << 20 };
	(void)state;
	snprintf(root, sizeof(root), "%s/tests/roots/login", getenv("GUA_SOURCE_ROOT"));
	struct tracker_options o = { .pid = 4201,
		.interval_ms = 1000,
		.root = root,
		.started_us = 1,
		.subreaper = true };
	assert_int_equal(tracker_open(&t, &o, &e), 0);
	assert_int_equal(tracker_result(t)->ram[TRACK_COMBINED].total_bytes, -1);
	tracker_reaped(t, 4201, 0, &usage);
	assert_int_equal(tracker_result(t)->ram[TRACK_COMBINED].total_bytes, 1 << 30);
	assert_int_equal(tracker_result(t)->ram[TRACK_MAIN].total_bytes, 1 << 30);
	tracker_close(t);
}

static void test_early_looks_then_multiples(void **state)
{
	struct tracker *t;
	struct err e = { 0 };
	struct clock clock;
	(void)state;
	clock_init_real(&clock);
	struct tracker_options o = { .pid = getpid(), .interval_ms = 3600000 };
	int64_t start_us = clock_now(&clock).boot_us;
	assert_int_equal(tracker_open(&t, &o, &e), 0);
	int64_t opened_us = clock_now(&clock).boot_us;
	assert_in_range(
		tracker_next_us(t), start_us + 3600000000 / 16, opened_us + 3600000000 / 16);
	struct track_sample sample;
	assert_true(tracker_sample(t, &sample));
	assert_true(sample.early);
	assert_int_equal(sample.processes, 1);
	assert_int_equal(sample.gpu_ram_bytes[TRACK_COMBINED], -1);
	assert_true(isnan(sample.gpu_sum_pct));
	tracker_stop(t);
	tracker_stop(t);
	const struct track_result *r = tracker_result(t);
	assert_int_equal(r->processes_seen, 1);
	assert_int_equal(r->exit_status, -1);
	assert_false(r->exited);
	assert_false(r->gpu_known);
	tracker_close(t);
	tracker_close(NULL);
}

/* A tracker by hand, of which the first second was a window. */
static struct tracker after_a_second(void)
{
	struct tracker t = { .o = { .interval_ms = 1000 },
		.host = { .cores = 4, .busy_ticks = 60, .all_ticks = 480 },
		.max = { { 10, 10, 10 }, 20 } };
	t.window = (struct cpu_mark){
		.at_s = 1, .cpu_s = { 0.1, 0.1, 0.1 }, .busy_ticks = 20, .all_ticks = 400
	};
	return t;
}

static void test_the_rest_of_the_time_counts_in_maxima(void **state)
{
	struct tracker t = after_a_second();
	(void)state;
	/* Too short for a window: the last one is longer. */
	t.sample_mark = (struct cpu_mark){ .at_s = 1.2, .cpu_s = { 0.3, 0.1, 0.6 } };
	struct cpu_max max = tracker_cpu_max(&t);
	assert_float_equal(max.pct[TRACK_MAIN], 25, 1e-9);
	assert_float_equal(max.pct[TRACK_DESCENDANTS], 10, 1e-9);
	assert_float_equal(max.pct[TRACK_COMBINED], 50, 1e-9);
	assert_float_equal(max.system_pct, 400 * 60 / 480.0, 1e-9);
	/* Long enough. */
	t.sample_mark = (struct cpu_mark){ .at_s = 1.8, .cpu_s = { 0.9, 0.1, 0.9 } };
	max = tracker_cpu_max(&t);
	assert_float_equal(max.pct[TRACK_MAIN], 100, 1e-9);
	assert_float_equal(max.system_pct, 400 * 40 / 80.0, 1e-9);
	/* The complete windows stay as they are. */
	assert_float_equal(t.max.pct[TRACK_MAIN], 10, 1e-9);
}

static void test_a_run_shorter_than_a_window_has_a_maximum(void **state)
{
	struct tracker t = { .o = { .interval_ms = 1000 },
		.host = { .cores = 4, .busy_ticks = -1, .all_ticks = -1 },
		.max = { { NAN, NAN, NAN }, NAN } };
	(void)state;
	t.window.all_ticks = t.window_before.all_ticks = -1;
	t.sample_mark = (struct cpu_mark){ .at_s = 0.02, .cpu_s = { 0.01, 0, 0.01 } };
	struct cpu_max max = tracker_cpu_max(&t);
	assert_float_equal(max.pct[TRACK_MAIN], 50, 1e-9);
	assert_float_equal(max.pct[TRACK_DESCENDANTS], 0, 1e-9);
	assert_true(isnan(max.system_pct));
}

static void test_a_maximum_is_not_below_the_mean(void **state)
{
	(void)state;
	assert_float_equal(tracker_max(3, 2), 3, 0);
	assert_float_equal(tracker_max(2, 3), 3, 0);
	assert_float_equal(tracker_max(NAN, 3), 3, 0);
	assert_float_equal(tracker_max(2, NAN), 2, 0);
	assert_true(isnan(tracker_max(NAN, NAN)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_second_is_in_one_place),
		cmocka_unit_test(test_what_is_forgotten_still_counts),
		cmocka_unit_test(test_a_process_that_is_not_there),
		cmocka_unit_test(test_a_process_that_ends_while_it_is_looked_at),
		cmocka_unit_test(test_early_looks_then_multiples),
		cmocka_unit_test(test_the_rest_of_the_time_counts_in_maxima),
		cmocka_unit_test(test_a_run_shorter_than_a_window_has_a_maximum),
		cmocka_unit_test(test_a_maximum_is_not_below_the_mean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Process lists become stretches of time: which process came and went, when, and how exactly
 * that is known. */
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "driver/source.h"
#include "record/holders.h"

#define MB 1000000LL

/* Lives and one card's stretches; a process starts when the test says. */
struct fixture {
	struct source source;
	int64_t started_ms[16]; /* by pid */
	struct lives lives;
	struct holders holders;
};

static bool describe(struct source *s, uint32_t pid, struct process_id *id)
{
	struct fixture *f = (struct fixture *)s;
	id->start_ticks = (uint64_t)(f->started_ms[pid] / 10 + 1);
	id->started_ms = f->started_ms[pid];
	snprintf(id->user, sizeof(id->user), "user%u", pid / 10);
	return true;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = { 0 };
	assert_int_equal(lives_init(&f->lives, NULL, false, &e), 0);
	f->lives.source = &f->source;
	f->lives.describe = describe;
	assert_int_equal(holders_reserve(&f->holders, 32, &e), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	lives_finish(&f->lives);
	holders_finish(&f->holders);
	free(f);
	return 0;
}

static struct look_window between(int64_t lo_ms, int64_t hi_ms)
{
	return (struct look_window){ .lo_ms = lo_ms, .hi_ms = hi_ms };
}

static uint32_t life(struct fixture *f, uint32_t pid)
{
	return lives_find(&f->lives, pid, true, 1);
}

/* A list of at most one process; pid 0: an empty one. */
static int64_t take(struct fixture *f, uint32_t pid, int64_t mem_bytes, struct look_window w)
{
	struct listed list = { .kind = PROCESS_COMPUTE, .mem_bytes = mem_bytes };
	if (pid)
		list.life = life(f, pid);
	return holders_take(&f->holders, &f->lives, &list, pid != 0, &w);
}

static bool leave(struct fixture *f, uint32_t who, int64_t lo_ms, int64_t hi_ms)
{
	struct look_window w = between(lo_ms, hi_ms);
	return holders_exit(&f->holders, who, &w);
}

static void assert_edge(struct edge e, int64_t lo, int64_t at, int64_t hi)
{
	assert_int_equal(e.lo, lo);
	assert_int_equal(e.at, at);
	assert_int_equal(e.hi, hi);
}

static void assert_is(struct edge e, struct edge expected)
{
	assert_edge(e, expected.lo, expected.at, expected.hi);
}

/* The ring reaches back to 40 s. */
static const struct look_window first = {
	.lo_ms = 40000, .hi_ms = 50000, .first = true, .stalled = true
};

static void test_first_look_at_an_old_process(void **state)
{
	struct fixture *f = *state;
	f->started_ms[1] = 39999;
	take(f, 1, 500 * MB, first);
	const struct holder *h = &f->holders.items[0];
	assert_int_equal(f->holders.n, 1);
	assert_is(h->from, EDGE_ALWAYS);
	assert_is(h->to, EDGE_NEVER);
	assert_true(holders_is_open(h));
	assert_int_equal(h->since_ms, 50000);
	assert_int_equal(h->last_active_ms, -1);
	assert_int_equal(h->mem_bytes, 500 * MB);
	assert_int_equal(h->kind, PROCESS_COMPUTE);
	assert_int_equal(h->own_state, HOLDER_ACTIVE);
	assert_true(isnan(h->sm_pct));
}

/* Younger than what the ring holds: only the look is certain. */
static void test_first_look_at_a_young_process(void **state)
{
	struct fixture *f = *state;
	f->started_ms[1] = 44000;
	take(f, 1, 500 * MB, first);
	assert_edge(f->holders.items[0].from, 44000, 50000, 50000);
	assert_int_equal(f->holders.items[0].since_ms, 50000);
}

/* One that cannot be described has no known start: it may have come just now. */
static void test_first_look_at_an_unknown_start(void **state)
{
	struct fixture *f = *state;
	f->started_ms[1] = -1;
	take(f, 1, 500 * MB, first);
	assert_edge(f->holders.items[0].from, 40000, 50000, 50000);
}

static void test_newcomer_between_two_glances(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(take(f, 0, 0, first), INT64_MAX);
	assert_int_equal(take(f, 1, 500 * MB, between(60000, 61000)), 60000);
	assert_edge(f->holders.items[0].from, 60000, 60500, 61000);
	assert_int_equal(f->holders.items[0].since_ms, 60500);
	/* Nothing new: nothing happens. */
	assert_int_equal(take(f, 1, 500 * MB, between(61000, 62000)), INT64_MAX);
	assert_int_equal(f->holders.n, 1);
}

/* One takes the place of another, with as much memory: not before the first was last active,
 * nor before the second had started. */
static void test_one_takes_the_place_of_another(void **state)
{
	struct fixture *f = *state;
	struct look_window swap = { .lo_ms = 60000, .hi_ms = 90000, .steady = true };
	take(f, 1, 500 * MB, between(50000, 51000));
	f->holders.items[0].last_active_ms = 70000;
	f->started_ms[2] = 65000;
	take(f, 2, 500 * MB, swap);
	assert_edge(f->holders.items[0].to, 70000, 80000, 90000);
	assert_edge(f->holders.items[1].from, 70000, 80000, 90000);
	f->started_ms[3] = 110000;
	swap.lo_ms = 100000;
	swap.hi_ms = 120000;
	take(f, 3, 500 * MB, swap);
	assert_edge(f->holders.items[1].to, 110000, 115000, 120000);
	/* If used memory changed, they need not have met. */
	f->started_ms[4] = 135000;
	take(f, 4, 600 * MB, between(130000, 140000));
	assert_edge(f->holders.items[2].to, 130000, 135000, 140000);
}

static void test_newcomer_that_started_after_the_glance(void **state)
{
	struct fixture *f = *state;
	f->started_ms[1] = 60800;
	assert_int_equal(take(f, 1, 500 * MB, between(60000, 61000)), 60800);
	assert_edge(f->holders.items[0].from, 60800, 60800, 61000);
	/* A start that the clock puts after the look is the look. */
	f->started_ms[2] = 61200;
	take(f, 2, 500 * MB, between(60000, 61000));
	assert_edge(f->holders.items[1].from, 61000, 61000, 61000);
}

static void test_release(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, first);
	assert_int_equal(take(f, 0, 0, between(60000, 61000)), 60000);
	assert_edge(f->holders.items[0].to, 60000, 60500, 61000);
	assert_false(holders_is_open(&f->holders.items[0]));
	/* And again: another stretch of the same life. */
	take(f, 1, 500 * MB, between(70000, 71000));
	assert_int_equal(f->holders.n, 2);
	assert_edge(f->holders.items[1].from, 70000, 70500, 71000);
	assert_int_equal(f->holders.items[1].process, f->holders.items[0].process);
}

static void test_exits(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, first);
	assert_false(leave(f, life(f, 2), 60000, 60000));
	assert_true(leave(f, life(f, 1), 60000, 60000));
	assert_edge(f->holders.items[0].to, 60000, 60000, 60000);
	assert_false(leave(f, life(f, 1), 61000, 61000));
	/* The list that no longer has it does not move its end. */
	assert_int_equal(take(f, 0, 0, between(59500, 60100)), INT64_MAX);
	assert_edge(f->holders.items[0].to, 60000, 60000, 60000);
}

/* A process that holds for `long_ms`, with a glance each second: returns how long it is counted
 * for, on the average of all phases. */
static int64_t counted_of(struct fixture *f, int64_t long_ms)
{
	int64_t sum = 0;
	for (int64_t begin = 5; begin < 1000; begin += 10) {
		int64_t end = 60000 + begin + long_ms;
		f->holders.n = 0;
		if (end < 61000)
			continue; /* not seen */
		take(f, 1, 500 * MB, between(60000, 61000));
		assert_true(leave(f, life(f, 1), end, end));
		sum += end - f->holders.items[0].from.at;
	}
	return sum / 100;
}

/* A process that takes memory some time after its start, with a glance each second: on the
 * average of all phases it counts from when it has memory. */
static void test_programs_that_load(void **state)
{
	struct fixture *f = *state;
	for (int64_t load_ms = 250; load_ms <= 1500; load_ms += 250) {
		int64_t late_ms = 0;
		for (int64_t begin = 60005; begin < 61000; begin += 10) {
			struct process_id *id = &f->lives.entries[life(f, 1)].id;
			id->started_ms = begin - load_ms;
			f->holders.n = 0;
			take(f, 1, 500 * MB, between(60000, 61000));
			late_ms += f->holders.items[0].from.at - begin;
		}
		assert_in_range(late_ms / 100 + 1, 0, 35);
	}
}

/* On the average short processes count as they are, although many are never seen. */
static void test_short_processes(void **state)
{
	struct fixture *f = *state;
	for (int64_t ms = 200; ms <= 1000; ms += 200)
		assert_in_range(counted_of(f, ms), ms - 10, ms + 10);
	for (int64_t ms = 1100; ms <= 6000; ms += 100)
		assert_in_range(counted_of(f, ms), ms - 40, ms + 10);
}

/* One exits, another has as much memory at the next glance: it came when the first left. */
static void test_one_takes_the_place_of_one_that_exited(void **state)
{
	struct fixture *f = *state;
	struct look_window swap = { .lo_ms = 60000, .hi_ms = 61000, .steady = true };
	take(f, 1, 500 * MB, first);
	leave(f, life(f, 1), 60200, 60200);
	take(f, 2, 500 * MB, swap);
	assert_edge(f->holders.items[1].from, 60000, 60200, 61000);
	assert_int_equal(holders_since(&f->holders, 60000).bytes, 1000 * MB);
	assert_int_equal(holders_since(&f->holders, 60200).bytes, 500 * MB);
}

static void test_exit_at_an_unknown_moment(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, first);
	assert_true(leave(f, life(f, 1), 60000, 64000));
	assert_edge(f->holders.items[0].to, 60000, 62000, 64000);
	/* After a stall only sure time counts. */
	struct look_window stalled = between(70000, 90000);
	stalled.stalled = true;
	take(f, 2, 500 * MB, between(65000, 66000));
	assert_true(holders_exit(&f->holders, life(f, 2), &stalled));
	assert_edge(f->holders.items[1].to, 70000, 70000, 90000);
}

static void test_memory_that_changes(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, first);
	f->holders.items[0].last_active_ms = 55000;
	f->holders.items[0].sm_pct = 40;
	f->holders.items[0].own_state = HOLDER_SQUATTING;
	assert_int_equal(take(f, 1, 900 * MB, between(60000, 61000)), 60000);
	const struct holder *h = f->holders.items;
	assert_int_equal(f->holders.n, 2);
	assert_edge(h[0].to, 60000, 60500, 61000);
	assert_is(h[1].from, h[0].to);
	assert_int_equal(h[0].mem_bytes, 500 * MB);
	assert_int_equal(h[1].mem_bytes, 900 * MB);
	assert_true(holders_is_open(&h[1]));
	/* What is known of the process goes on. */
	assert_int_equal(h[1].since_ms, h[0].since_ms);
	assert_int_equal(h[1].last_active_ms, 55000);
	assert_true(h[1].sm_pct > 39 && h[1].sm_pct < 41);
	assert_int_equal(h[1].own_state, HOLDER_SQUATTING);
	/* Both are of one process: it ends once. */
	assert_true(leave(f, h[0].process, 62000, 62000));
	assert_edge(h[0].to, 60000, 60500, 61000);
	assert_is(h[1].from, h[0].to); /* no moment counts twice or not at all */
	assert_edge(h[1].to, 62000, 62000, 62000);
}

/* The windows of two looks may be one, where memory cannot be glanced at. */
static void test_memory_that_changes_twice_in_one_window(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, between(60000, 61000));
	take(f, 1, 900 * MB, between(60000, 61000));
	assert_int_equal(f->holders.n, 1);
	assert_int_equal(f->holders.items[0].mem_bytes, 900 * MB);
}

/* Away at one glance and back at the next: it was away. */
static void test_release_and_hold_at_once(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, first);
	take(f, 0, 0, between(60000, 61000));
	take(f, 1, 500 * MB, between(61000, 62000));
	assert_int_equal(f->holders.n, 2);
	assert_edge(f->holders.items[0].to, 60000, 60500, 61000);
	assert_edge(f->holders.items[1].from, 61000, 61500, 62000);
}

/* One that has been away before may have been away in a stall, too. */
static void test_release_and_hold_in_a_stall(void **state)
{
	struct fixture *f = *state;
	struct look_window stalled = between(70000, 80000);
	stalled.stalled = true;
	take(f, 1, 500 * MB, first);
	take(f, 0, 0, between(60000, 61000));
	take(f, 1, 500 * MB, between(61000, 62000));
	assert_int_equal(take(f, 1, 500 * MB, stalled), 70000);
	assert_int_equal(f->holders.n, 3);
	assert_edge(f->holders.items[1].to, 70000, 70000, 80000);
	assert_edge(f->holders.items[2].from, 70000, 80000, 80000);
	const struct held held[] = { classify_held_at(f->holders.items, 3, 75000, HELD_SURELY),
		classify_held_at(f->holders.items, 3, 75000, HELD_MAYBE) };
	assert_int_equal(held[0].bytes, 0);
	assert_true(held[1].bytes > 0);
}

/* Its exit was seen, and the driver lists it all the same: it goes on holding. */
static void test_a_zombie_that_is_still_listed(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, first);
	f->lives.lives[life(f, 1)].exited_ms = 60000;
	leave(f, life(f, 1), 60000, 60000);
	take(f, 1, 500 * MB, between(59500, 60100));
	assert_int_equal(f->holders.n, 1);
	assert_true(holders_is_open(&f->holders.items[0]));
	take(f, 0, 0, between(70000, 71000));
	assert_edge(f->holders.items[0].to, 70000, 70500, 71000);
}

/* Came after a stall, which counts from the look, and was gone at a list of the same moment. */
static void test_came_and_went_between_the_same_lists(void **state)
{
	struct fixture *f = *state;
	struct look_window stalled = between(60000, 70000);
	stalled.stalled = true;
	take(f, 1, 500 * MB, stalled);
	assert_edge(f->holders.items[0].from, 60000, 70000, 70000);
	take(f, 0, 0, between(69990, 70005));
	const struct holder *h = &f->holders.items[0];
	assert_false(holders_is_open(h));
	assert_true(h->to.at >= h->from.at);
	for (int64_t t = 60000; t < 70010; t++)
		assert_false(classify_holder_counts(h, t));
}

/* After a stall only what is sure counts; what may have been is remembered. */
static void test_stall(void **state)
{
	struct fixture *f = *state;
	struct look_window stalled = between(60000, 80000);
	stalled.stalled = true;
	take(f, 1, 500 * MB, first);
	take(f, 2, 700 * MB, stalled);
	const struct holder *h = f->holders.items;
	assert_int_equal(f->holders.n, 2);
	assert_edge(h[0].to, 60000, 60000, 80000);
	assert_edge(h[1].from, 60000, 80000, 80000);
	assert_int_equal(classify_held_at(h, 2, 70000, HELD_COUNTED).n, 0);
	assert_int_equal(classify_held_at(h, 2, 70000, HELD_SURELY).n, 0);
	assert_int_equal(classify_held_at(h, 2, 70000, HELD_MAYBE).n, 2);
}

static void test_drop(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, first);
	take(f, 2, 500 * MB, between(60000, 61000));
	/* What may have held after the moment is not accounted yet. */
	holders_drop(&f->holders, 60999);
	assert_int_equal(f->holders.n, 2);
	holders_drop(&f->holders, 61000);
	assert_int_equal(f->holders.n, 1);
	assert_int_equal(f->holders.items[0].process, life(f, 2));
	holders_drop(&f->holders, 999999);
	assert_int_equal(f->holders.n, 1);
}

static void test_end_of_a_card(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, first);
	leave(f, life(f, 1), 55000, 55000);
	take(f, 2, 500 * MB, between(60000, 61000));
	holders_end(&f->holders, 65000);
	assert_edge(f->holders.items[0].to, 55000, 55000, 55000);
	assert_edge(f->holders.items[1].to, 65000, 65000, 65000);
}

static void test_restart_after_a_clock_step(void **state)
{
	struct fixture *f = *state;
	take(f, 1, 500 * MB, first);
	take(f, 1, 900 * MB, between(60000, 61000));
	holders_restart(&f->holders);
	assert_int_equal(f->holders.n, 1);
	assert_is(f->holders.items[0].from, EDGE_ALWAYS);
	assert_is(f->holders.items[0].to, EDGE_NEVER);
	assert_int_equal(f->holders.items[0].mem_bytes, 900 * MB);
}

static void test_records_of_the_ended(void **state)
{
	struct fixture *f = *state;
	uint32_t ended = lives_add_ended(&f->lives, 77, 60000, 62000);
	holders_add_ended(&f->holders, &f->lives,
		&(struct listed){ ended, PROCESS_COMPUTE, 300 * MB }, 60000, 62000);
	const struct holder *h = &f->holders.items[0];
	assert_int_equal(f->holders.n, 1);
	assert_edge(h->from, 60000, 60000, 60000);
	assert_edge(h->to, 62000, 62000, 62000);
	assert_int_equal(h->mem_bytes, 300 * MB);
	assert_int_equal(h->since_ms, 60000);
	assert_int_equal(h->user, f->lives.lives[ended].user);
	assert_true(holders_had(&f->holders, &f->lives, 77, 59000, 60000));
	assert_true(holders_had(&f->holders, &f->lives, 77, 62000, 63000));
	assert_false(holders_had(&f->holders, &f->lives, 77, 62001, 63000));
	assert_false(holders_had(&f->holders, &f->lives, 77, 50000, 59999));
	assert_false(holders_had(&f->holders, &f->lives, 78, 60000, 62000));
}

static void test_room(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };
	take(f, 1, 500 * MB, first);
	assert_int_equal(holders_reserve(&f->holders, 1000, &e), 0);
	assert_true(f->holders.cap >= 1001);
	assert_int_equal(f->holders.items[0].mem_bytes, 500 * MB);
	holders_finish(&f->holders);
	holders_finish(&f->holders);
	assert_int_equal(f->holders.n, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_look_at_an_old_process),
		TEST(test_first_look_at_a_young_process),
		TEST(test_first_look_at_an_unknown_start),
		TEST(test_newcomer_between_two_glances),
		TEST(test_one_takes_the_place_of_another),
		TEST(test_newcomer_that_started_after_the_glance),
		TEST(test_release),
		TEST(test_exits),
		TEST(test_release_and_hold_in_a_stall),
		TEST(test_exit_at_an_unknown_moment),
		TEST(test_short_processes),
		TEST(test_programs_that_load),
		TEST(test_one_takes_the_place_of_one_that_exited),
		TEST(test_memory_that_changes),
		TEST(test_memory_that_changes_twice_in_one_window),
		TEST(test_release_and_hold_at_once),
		TEST(test_a_zombie_that_is_still_listed),
		TEST(test_came_and_went_between_the_same_lists),
		TEST(test_stall),
		TEST(test_drop),
		TEST(test_end_of_a_card),
		TEST(test_restart_after_a_clock_step),
		TEST(test_records_of_the_ended),
		TEST(test_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

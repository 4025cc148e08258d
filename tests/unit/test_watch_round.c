/* Results of rounds become accounts: processes that come and go, memory without a process, and
 * the driver's records of ended processes. */
#include "watch_fixture.h"

static void test_a_holder_that_comes_between_two_glances(void **state)
{
	struct fixture *f = *state;
	drain(f, 0, 0);
	glance(f, 1000);
	put_process(f, true);
	glance(f, 2000);
	assert_int_equal(open_holder(f)->from.lo, T0 + 1000);
	assert_int_equal(open_holder(f)->from.at, T0 + 1500);
	put_process(f, false);
	glance(f, 3000);
	drain(f, 5000, 0);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 1000);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 4000);
	assert_int_equal(presence_ms(f, "user100"), 1000);
}

static void test_memory_that_nobody_explains(void **state)
{
	struct fixture *f = *state;
	drain(f, 0, 0);
	glance(f, 1000);
	f->card.mem_used_bytes = 5000 * MB;
	glance(f, 2000);
	assert_string_equal(open_user(f), "_unknown");
	assert_int_equal(open_holder(f)->mem_bytes, 5000 * MB);
	/* A listed process has it. */
	glance(f, 3000);
	f->process.mem_bytes = 5100 * MB;
	put_process(f, true);
	glance(f, 4000);
	assert_string_equal(open_user(f), "user100");
	drain(f, 5000, 0);
	assert_int_equal(presence_ms(f, "_unknown"), 2000);
	assert_int_equal(presence_ms(f, "user100"), 1500);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 3500);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 1500);
}

static void test_little_memory_is_nobody(void **state)
{
	struct fixture *f = *state;
	f->card.mem_used_bytes = 100 * MB;
	drain(f, 0, 0);
	assert_int_equal(n_open(f), 0);
	/* Nor is memory that cannot be read. */
	f->card.mem_used_bytes = -1;
	drain(f, 1000, 0);
	assert_int_equal(n_open(f), 0);
	/* A desktop explains what is used. */
	f->card.mem_used_bytes = 900 * MB;
	f->card.n_processes = 1;
	f->process.kind = PROCESS_GRAPHICS;
	drain(f, 2000, 0);
	assert_int_equal(n_open(f), 0);
}

/* The driver gives memory back a moment after the process has ended. */
static void test_memory_of_one_that_has_just_ended(void **state)
{
	struct fixture *f = *state;
	put_process(f, true);
	drain(f, 0, 0);
	glance(f, 1000);
	uint32_t life = open_holder(f)->process;
	struct look_window ends = { .lo_ms = T0 + 1500, .hi_ms = T0 + 1500 };
	assert_true(holders_exit(&f->watch.cards[0].holders, life, &ends));
	round_want(f->round, 0);
	f->card.n_processes = 0;
	glance(f, 1600);
	assert_int_equal(n_open(f), 0);
	put_process(f, false);
	glance(f, 2000);
	drain(f, 5000, 0);
	assert_int_equal(presence_ms(f, "_unknown"), 0);
	assert_int_equal(presence_ms(f, "user100"), 1500);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 1500);
}

/* Where memory includes what the driver keeps, that is learned from an empty card. */
static void test_the_drivers_own_memory(void **state)
{
	struct fixture *f = *state;
	f->card.mem_includes_reserved = true;
	f->card.mem_used_bytes = 600 * MB;
	drain(f, 0, 0);
	assert_int_equal(n_open(f), 0);
	f->card.mem_used_bytes = 650 * MB;
	glance(f, 1000);
	assert_int_equal(n_open(f), 0);
	f->card.mem_used_bytes = 5000 * MB;
	glance(f, 2000);
	assert_string_equal(open_user(f), "_unknown");
	assert_int_equal(open_holder(f)->mem_bytes, 4400 * MB);
}

/* Never seen empty: it keeps at most a gibibyte, or a fiftieth of a large card. */
static void test_the_drivers_own_memory_has_bounds(void **state)
{
	struct fixture *f = *state;
	f->card.mem_includes_reserved = true;
	f->card.mem_used_bytes = 5000 * MB;
	drain(f, 0, 0);
	assert_int_equal(open_holder(f)->mem_bytes, 5000 * MB - (1LL << 30));
	f->card.id.mem_total_bytes = 192000 * MB;
	f->watch.cards[0].floor_bytes = -1;
	drain(f, 1000, 0);
	assert_int_equal(open_holder(f)->mem_bytes, 5000 * MB - 3840 * MB);
}

static void test_use_without_a_holder_asks_for_a_look(void **state)
{
	struct fixture *f = *state;
	f->card.mem_used_bytes = -1;
	drain(f, 0, 0);
	assert_false(f->round->cards[0].want);
	drain(f, 5000, 50);
	assert_true(f->round->cards[0].want);
	put_process(f, true);
	glance(f, 6000);
	assert_int_equal(n_open(f), 1);
	drain(f, 10000, 50);
	assert_false(f->round->cards[0].want);
}

/* Accounting mode: the driver's record of one that came and went unseen. */
static void test_records_of_the_ended(void **state)
{
	struct fixture *f = *state;
	drain(f, 0, 0);
	f->ended = (struct ended_process){ 77, T0 + 1000, T0 + 3000, 2000 * MB };
	f->card.n_ended = 1;
	drain(f, 5000, 0);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 2000);
	assert_int_equal(presence_ms(f, "_unknown"), 2000);
	/* A record of time that is already accounted is not used again. */
	drain(f, 10000, 0);
	assert_int_equal(presence_ms(f, "_unknown"), 2000);
}

static void test_records_of_those_that_were_seen(void **state)
{
	struct fixture *f = *state;
	drain(f, 0, 0);
	put_process(f, true);
	glance(f, 1000);
	put_process(f, false);
	glance(f, 3000);
	f->ended = (struct ended_process){ 100, T0 + 600, T0 + 2800, 4000 * MB };
	f->card.n_ended = 1;
	drain(f, 5000, 0);
	assert_int_equal(presence_ms(f, "_unknown"), 0);
	assert_int_equal(presence_ms(f, "user100"), 1500);
}

/* What a tick hands to the store: the holders now, and when they were last active. */
static void test_tick(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };
	struct tick t;
	put_process(f, true);
	f->card.process_util_known = true;
	f->util = (struct process_util){ .pid = 100, .sm_pct = 50 };
	f->card.n_process_utils = 1;
	drain(f, 0, 50);
	drain(f, 5000, 50);
	assert_int_equal(watch_tick(&f->watch, &t, T0 + 5000, &e), 0);
	assert_int_equal(t.n_holders, 1);
	assert_int_equal(t.holders[0].mem_bytes, 4000 * MB);
	assert_int_equal(t.holders[0].last_active_ms, T0 + 5000);
	assert_int_equal(t.processes[t.holders[0].process].last_active_ms, T0 + 5000);
	assert_int_equal(t.cards[0].last_seen_ms, T0 + 5000);
	assert_true(t.n_usage > 0 && t.n_holding > 0);
	watch_stored(&f->watch);
	assert_true(ledger_empty(&f->watch.ledger));
	assert_int_equal(f->watch.n_events, 0);
	/* Ended, stored, and not accounted to its end yet: its place is kept. */
	uint32_t place = open_holder(f)->process;
	struct look_window ends = { .lo_ms = T0 + 6000, .hi_ms = T0 + 6000 };
	holders_exit(&f->watch.cards[0].holders, place, &ends);
	f->watch.lives.entries[place].ended_ms = T0 + 6000;
	assert_int_equal(watch_tick(&f->watch, &t, T0 + 6000, &e), 0);
	assert_int_equal(t.n_holders, 0);
	watch_stored(&f->watch);
	assert_true(f->watch.lives.lives[place].used);
	put_process(f, false);
	drain(f, 10000, 0);
	assert_int_equal(presence_ms(f, "user100"), 1000);
	watch_stored(&f->watch);
	assert_false(f->watch.lives.lives[place].used);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_holder_that_comes_between_two_glances),
		TEST(test_memory_that_nobody_explains),
		TEST(test_little_memory_is_nobody),
		TEST(test_memory_of_one_that_has_just_ended),
		TEST(test_the_drivers_own_memory),
		TEST(test_the_drivers_own_memory_has_bounds),
		TEST(test_use_without_a_holder_asks_for_a_look),
		TEST(test_records_of_the_ended),
		TEST(test_records_of_those_that_were_seen),
		TEST(test_tick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

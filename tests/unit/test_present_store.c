/* The present from a store: cards with their state, holders, and whether it is the present. */
#include "test.h"

#include "present/present_store.h"
#include "store_fixture.h"

#define MINUTE_MS 60000LL

/* A recorder that has written one minute. */
static struct store *record(struct world *w)
{
	struct store *s = world_open(w);
	for (int i = 0; i < WORLD_CARDS; i++)
		w->cards[i].listed = true;
	w->cards[0].now.util_pct = 90;
	world_fill(w, WORLD_START_MS / 1000, MINUTE_MS, 1);
	w->tick.at_ms = WORLD_START_MS + MINUTE_MS;
	world_write(w, s);
	return s;
}

static void read_board(struct present *b, const struct world *w, int64_t now_ms)
{
	struct err e = { 0 };
	*b = (struct present){ 0 };
	assert_int_equal(present_store_add(b, w->path, now_ms, 1000, &e), 0);
}

static void test_cards_and_holders(void **state)
{
	struct world *w = *state;
	struct present b;
	struct store *s = record(w);
	read_board(&b, w, WORLD_START_MS + MINUTE_MS + 1000);
	assert_int_equal(b.n_hosts, 1);
	assert_int_equal(b.n_cards, WORLD_CARDS);
	assert_int_equal(b.n_processes, WORLD_PROCESSES);
	assert_int_equal(b.cards[0].state, CARD_ACTIVE);
	assert_int_equal(b.cards[0].state_since_ms, WORLD_START_MS);
	assert_int_equal(b.cards[0].n_processes, 1);
	assert_int_equal(b.cards[1].first_process, 1);
	assert_int_equal(b.cards[1].n_processes, 2);
	assert_string_equal(b.processes[0].id.user, w->processes[0].id.user);
	assert_int_equal(b.processes[0].id.pid, w->processes[0].id.pid);
	present_store_finish(&b);
	store_close(s);
}

static void test_what_is_old_is_not_the_present(void **state)
{
	struct world *w = *state;
	struct present b;
	struct store *s = record(w);
	int64_t tick_ms = WORLD_START_MS + MINUTE_MS;
	read_board(&b, w, tick_ms + 1000);
	bool fresh = !b.hosts[0].stale;
	assert_true(b.hosts[0].running);
	present_store_finish(&b);
	read_board(&b, w, tick_ms + 3600000);
	assert_true(b.hosts[0].stale);
	present_store_finish(&b);
	assert_true(fresh);
	store_close(s);
}

/* A recorder that has ended: its holders are those of its end, with the most that they held. */
static void test_a_recorder_that_ended(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct present b;
	struct store *s = record(w);
	assert_int_equal(store_end_run(s, WORLD_START_MS + MINUTE_MS, "stopped", &e), 0);
	store_close(s);
	read_board(&b, w, WORLD_START_MS + MINUTE_MS + 1000);
	assert_false(b.hosts[0].running);
	assert_true(b.hosts[0].stale);
	assert_int_equal(b.n_cards, WORLD_CARDS);
	assert_int_equal(b.n_processes, WORLD_PROCESSES);
	assert_int_equal(b.processes[0].held_since_ms, -1);
	present_store_finish(&b);
}

static void test_a_store_that_is_missing(void **state)
{
	struct world *w = *state;
	struct present b = { 0 };
	struct err e = { 0 };
	assert_true(present_store_add(&b, w->path, WORLD_START_MS, 100, &e) != 0);
	assert_non_null(strstr(e.text, w->path));
	present_store_finish(&b);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_cards_and_holders),
		WORLD_TEST(test_what_is_old_is_not_the_present),
		WORLD_TEST(test_a_recorder_that_ended),
		WORLD_TEST(test_a_store_that_is_missing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

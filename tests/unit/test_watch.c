/* The recorder's watch when there is no memory: a holder or a sample is never left
 * out. */
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "record/watch.h"

enum { CROWD = 100 }; /* more lives at once than there is room for at first */

static int growths = -1; /* arrays that may still grow; -1: all */

void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);

void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
	if (growths == 0)
		return NULL;
	growths -= growths > 0;
	return __real_reallocarray(old, n, size);
}

static bool describe(struct source *s, uint32_t pid, struct process_id *id)
{
	(void)s;
	id->start_ticks = pid;
	snprintf(id->user, sizeof(id->user), "user%u", pid);
	return true;
}

static struct card_past never_seen(void *context, struct card_id *id)
{
	(void)context;
	(void)id;
	return (struct card_past){ .seen_ms = -1, .idle_held_since_ms = -1 };
}

static void test_all_holders_and_samples_or_none(void **state)
{
	(void)state;
	static const struct source_ops ops = { .name = "fake", .describe = describe };
	static const struct rules rules = RULES_DEFAULT;
	struct card_process processes[CROWD];
	struct util_sample samples[] = { { 1500000, 0 }, { 1700000, 0 } };
	struct card_reading card = { .id.uuid = "GPU-a",
		.util_kind = UTIL_RING,
		.samples = samples,
		.n_samples = 2,
		.own_processes = true,
		.processes_known = true,
		.processes = processes,
		.n_processes = CROWD };
	struct source source = { .ops = &ops, .cards = &card, .n_cards = 1 };
	struct err e = { 0 };
	struct watch w;
	for (uint32_t i = 0; i < CROWD; i++)
		processes[i] = (struct card_process){ 100 + i, PROCESS_COMPUTE, 1 << 20 };
	static const struct watch_pace pace = { .drain_ms = 5000, .stall_ms = 3000 };
	struct round_card looked = { .looked = true, .drained = true };
	struct round round = { .begun_ms = 2000,
		.ended_ms = 2000,
		.glanced = true,
		.look_all = true,
		.cards = &looked,
		.n_cards = 1 };
	/* One array more may grow each time: the holders on the card, their lives ... */
	int allowed = 0;
	for (int rc = ERR_WORLD; rc != 0; allowed++) {
		assert_int_equal(
			watch_init(&w, &(struct watch_options){ .rules = &rules, .pace = pace },
				&e),
			0);
		assert_int_equal(watch_cards(&w, &source, 1000,
					 &(struct watch_past){ never_seen, NULL }, &e),
			0);
		growths = allowed;
		rc = watch_round(&w, &source, &round, &e);
		growths = -1;
		if (rc != 0) {
			assert_int_equal(rc, ERR_WORLD);
			assert_string_equal(e.text, "out of memory");
			assert_int_equal(w.cards[0].holders.n, 0);
			assert_int_equal(w.cards[0].look_ms, -1);
			assert_int_equal(watch_round(&w, &source, &round, &e), 0);
		}
		assert_int_equal(w.cards[0].holders.n, CROWD);
		assert_int_equal(w.cards[0].account.held.at_ms, 1700);
		watch_finish(&w);
	}
	assert_in_range(allowed, 6, 20);
}

/* A store that fails for days on a host where many processes come and go. */
static void test_lives_are_bounded_while_the_store_fails(void **state)
{
	(void)state;
	static const struct rules rules = RULES_DEFAULT;
	static const struct watch_pace pace = { .drain_ms = 5000, .stall_ms = 3000 };
	struct err e = { 0 };
	struct watch w;
	assert_int_equal(
		watch_init(&w, &(struct watch_options){ .rules = &rules, .pace = pace }, &e),
		0);
	size_t n = LEDGER_MAX_ROWS + 100;
	assert_int_equal(lives_reserve(&w.lives, n, &e), 0);
	for (w.lives.n = 0; w.lives.n < n; w.lives.n++) {
		w.lives.lives[w.lives.n] =
			(struct life_watch){ .used = true, .pidfd = -1, .exited_ms = -1 };
		w.lives.entries[w.lives.n] = (struct process_entry){ .ended_ms = 1000 };
	}
	assert_non_null(ledger_holding(&w.ledger, 0, 0, 5));
	watch_unstored(&w);
	assert_true(w.lives.lives[5].used);
	assert_false(w.lives.lives[6].used);
	assert_int_equal(lives_add_ended(&w.lives, 7, 1000, 2000), 0);
	watch_finish(&w);
}

/* A card that is lost after its last look has no readings at the tick. */
static void test_no_readings_of_a_card_that_was_just_lost(void **state)
{
	(void)state;
	static const struct source_ops ops = { .name = "fake" };
	static const struct rules rules = RULES_DEFAULT;
	static const struct watch_pace pace = { .drain_ms = 5000, .stall_ms = 3000 };
	struct card_reading card = {
		.id.uuid = "GPU-a", .processes_known = true, .mem_used_bytes = 1 << 20
	};
	struct source source = { .ops = &ops, .cards = &card, .n_cards = 1 };
	struct round_card looked = { .looked = true, .temperature_c = 40 };
	struct round round = { .begun_ms = 2000,
		.ended_ms = 2000,
		.glanced = true,
		.look_all = true,
		.cards = &looked,
		.n_cards = 1 };
	const struct watch_past past = { never_seen, NULL };
	struct err e = { 0 };
	struct watch w;
	struct tick t;
	assert_int_equal(
		watch_init(&w, &(struct watch_options){ .rules = &rules, .pace = pace }, &e),
		0);
	assert_int_equal(watch_cards(&w, &source, 1000, &past, &e), 0);
	assert_int_equal(watch_round(&w, &source, &round, &e), 0);
	assert_int_equal(watch_tick(&w, &t, 2000, &e), 0);
	assert_int_equal(t.cards[0].now.mem_used_bytes, 1 << 20);
	assert_int_equal(watch_round(&w, &source, &round, &e), 0);
	source_lose_card(&card, 15);
	round.look_all = looked.looked = false;
	assert_int_equal(watch_round(&w, &source, &round, &e), 0);
	assert_int_equal(watch_tick(&w, &t, 3000, &e), 0);
	assert_int_equal(t.cards[0].now.mem_used_bytes, UNKNOWN_BYTES);
	assert_true(isnan(t.cards[0].now.temperature_c));
	watch_finish(&w);
}

/* Used memory is the same at both glances, but not the process: it was held in between. */
static void test_an_exit_and_as_much_memory(void **state)
{
	(void)state;
	static const struct source_ops ops = { .name = "fake", .describe = describe };
	static const struct rules rules = RULES_DEFAULT;
	static const struct watch_pace pace = { .drain_ms = 5000, .stall_ms = 3000 };
	struct card_process process = { 100, PROCESS_COMPUTE, 1 << 30 };
	struct card_reading card = { .id.uuid = "GPU-a",
		.own_processes = true,
		.processes_known = true,
		.processes = &process,
		.n_processes = 1,
		.mem_used_bytes = 1 << 30 };
	struct source source = { .ops = &ops, .cards = &card, .n_cards = 1 };
	struct round_card looked = { .looked = true };
	struct round round = { .begun_ms = 2000,
		.ended_ms = 2000,
		.glanced = true,
		.cards = &looked,
		.n_cards = 1 };
	const struct watch_past past = { never_seen, NULL };
	struct look_window exit = { .lo_ms = 2600, .hi_ms = 2600 };
	struct err e = { 0 };
	struct watch w;
	watch_init(&w, &(struct watch_options){ .rules = &rules, .pace = pace }, &e);
	assert_int_equal(watch_cards(&w, &source, 1000, &past, &e), 0);
	assert_int_equal(watch_round(&w, &source, &round, &e), 0);
	struct watched *card_now = &w.cards[0];
	card_now->exits = holders_exit(&card_now->holders, 0, &exit);
	process.pid = 101;
	round.begun_ms = round.ended_ms = 3000;
	assert_int_equal(watch_round(&w, &source, &round, &e), 0);
	assert_int_equal(card_now->holders.n, 2);
	assert_int_equal(card_now->holders.items[1].from.at, 2600);
	assert_int_equal(card_now->account.steady_from_ms, 2000);
	assert_int_equal(card_now->account.steady_to_ms, 3000);
	assert_int_equal(card_now->account.steady.bytes, 1 << 30);
	watch_finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
						    test_all_holders_and_samples_or_none),
		cmocka_unit_test(test_no_readings_of_a_card_that_was_just_lost),
		cmocka_unit_test(test_an_exit_and_as_much_memory),
		cmocka_unit_test(test_lives_are_bounded_while_the_store_fails) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The recorder's watch when there is no memory: a holder is never left out. */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>

#include "record/watch.h"

enum { CROWD = 100 }; /* more lives at once than there is room for at first */

static bool no_memory;

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	return no_memory ? NULL : __real_realloc(old, size);
}

static bool describe(struct source *s, uint32_t pid, struct process_id *id)
{
	(void)s;
	id->start_ticks = pid;
	snprintf(id->user, sizeof(id->user), "user%u", pid);
	return true;
}

static int64_t never_seen(void *context, const char *uuid)
{
	(void)context;
	(void)uuid;
	return -1;
}

static void test_all_holders_or_none(void **state)
{
	(void)state;
	static const struct source_ops ops = { .name = "fake", .describe = describe };
	static const struct rules rules = RULES_DEFAULT;
	struct card_process processes[CROWD];
	struct card_reading card = { .id.uuid = "GPU-a",
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
	struct round_card looked = { .looked = true };
	struct round round = { .begun_ms = 2000,
		.ended_ms = 2000,
		.glanced = true,
		.look_all = true,
		.cards = &looked,
		.n_cards = 1 };
	assert_int_equal(watch_init(&w, &rules, &pace, NULL, false, &e), 0);
	assert_int_equal(watch_cards(&w, &source, 1000, never_seen, NULL, &e), 0);
	/* Room for the holders on the card, not for their lives. */
	no_memory = true;
	assert_int_equal(watch_round(&w, &source, &round, &e), ERR_WORLD);
	no_memory = false;
	assert_string_equal(e.text, "out of memory");
	assert_int_equal(w.cards[0].holders.n, 0);
	assert_int_equal(w.cards[0].look_ms, -1);
	assert_int_equal(watch_round(&w, &source, &round, &e), 0);
	assert_int_equal(w.cards[0].holders.n, CROWD);
	watch_finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_holders_or_none) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The spells of a watched card: found from its readings, handed to a tick, and continued by the
 * next recorder. */
#include "watch_fixture.h"

#include "record/watch_spells.h"

enum { LEAST_MS = 10000 };

static int setup(void **state)
{
	int rc = watch_setup(state);
	struct fixture *f = *state;
	f->watch.rules.spell_ms = LEAST_MS;
	put_process(f, true);
	return rc;
}

/* Drains each five seconds. */
static void drains(struct fixture *f, int64_t from_ms, int64_t to_ms, double pct)
{
	for (int64_t at_ms = from_ms; at_ms <= to_ms; at_ms += 5000)
		drain(f, at_ms, pct);
}

/* The spells that a tick hands to the store, which takes them. */
static size_t tick(struct fixture *f, int64_t after_ms, const struct spell **spells)
{
	struct err e = { 0 };
	struct tick t;
	assert_int_equal(watch_tick(&f->watch, &t, T0 + after_ms, &e), 0);
	watch_stored(&f->watch);
	*spells = t.spells;
	return t.n_spells;
}

static const struct spell *only(struct fixture *f, int64_t after_ms)
{
	const struct spell *spells;
	assert_int_equal(tick(f, after_ms, &spells), 1);
	return spells;
}

static void test_an_open_spell_is_in_every_tick(void **state)
{
	struct fixture *f = *state;
	drains(f, 0, 5000, 50);
	drains(f, 10000, 30000, 0);
	const struct spell *s = only(f, 30000);
	assert_int_equal(s->how, SPELL_OPEN);
	assert_int_equal(s->begin_ms, T0 + 5000);
	assert_int_equal(s->end_ms, T0 + 30000);
	assert_int_equal(s->idle_held_ms, 25000);
	assert_int_equal(s->mem_peak_kib, 4000 * MB / 1024);
	assert_true(f->watch.lives.entries[s->process].has_spell);
	drains(f, 35000, 40000, 0);
	assert_int_equal(only(f, 40000)->begin_ms, T0 + 5000);
	drains(f, 45000, 45000, 50);
	s = only(f, 45000);
	assert_int_equal(s->how, SPELL_ACTIVE);
	assert_int_equal(s->end_ms, T0 + 40000);
	const struct spell *none;
	assert_int_equal(tick(f, 46000, &none), 0);
}

static void test_a_stretch_that_is_short_is_stored_while_it_goes_on(void **state)
{
	struct fixture *f = *state;
	drains(f, 0, 5000, 0);
	const struct spell *s = only(f, 5000);
	assert_int_equal(spell_idle_ms(s), 5000);
	assert_false(f->watch.lives.entries[s->process].has_spell);
	drains(f, 10000, 10000, 50);
	const struct spell *none;
	assert_int_equal(tick(f, 10000, &none), 0);
}

/* The memory goes first, and the process ends after the next tick. */
static void test_a_process_that_ends_after_its_memory_went(void **state)
{
	struct fixture *f = *state;
	drains(f, 0, 20000, 0);
	uint32_t process = open_holder(f)->process;
	put_process(f, false);
	drains(f, 25000, 30000, 0);
	const struct spell *s = only(f, 30000);
	assert_int_equal(s->how, SPELL_RELEASED);
	f->watch.lives.lives[process].exited_ms = T0 + 29000;
	s = only(f, 35000);
	assert_int_equal(s->how, SPELL_EXITED);
	assert_int_equal(s->end_ms, T0 + 22500); /* between two lists */
	assert_int_equal(tick(f, 40000, &s), 0);
}

/* The process lives on for a while. */
static void test_a_process_that_ends_much_later(void **state)
{
	struct fixture *f = *state;
	drains(f, 0, 20000, 0);
	uint32_t process = open_holder(f)->process;
	put_process(f, false);
	drains(f, 25000, 30000, 0);
	assert_int_equal(only(f, 30000)->how, SPELL_RELEASED);
	f->watch.lives.lives[process].exited_ms = T0 + 34000;
	const struct spell *none;
	assert_int_equal(tick(f, 35000, &none), 0);
}

/* Memory without a process is held by nobody. */
static void test_memory_that_no_process_explains(void **state)
{
	struct fixture *f = *state;
	f->card.n_processes = 0;
	f->card.mem_used_bytes = 5000 * MB;
	drains(f, 0, 20000, 0);
	const struct spell *none;
	assert_int_equal(tick(f, 20000, &none), 0);
	f->card.mem_used_bytes = 0;
	drains(f, 25000, 30000, 0);
	assert_int_equal(tick(f, 30000, &none), 0);
}

/* A lost card: the time is not observed, and the spell goes on. */
static void test_a_lost_card(void **state)
{
	struct fixture *f = *state;
	drains(f, 0, 20000, 0);
	f->card.status = CARD_STATUS_LOST;
	for (int64_t at_ms = 25000; at_ms <= 60000; at_ms += 5000) {
		f->round->drain = true;
		f->card.n_samples = 0;
		make_round(f, at_ms);
	}
	assert_int_equal(only(f, 60000)->end_ms, T0 + 20000);
	f->card.status = CARD_STATUS_OK;
	f->sampled_ms = 70000;
	drains(f, 80000, 90000, 0);
	const struct spell *s = only(f, 90000);
	assert_int_equal(s->begin_ms, T0);
	assert_int_equal(s->end_ms, T0 + 90000);
	assert_int_equal(spell_unobserved_ms(s), 70000 - 200 - 20000);
}

static void test_an_instance_that_is_destroyed(void **state)
{
	struct fixture *f = *state;
	drains(f, 0, 20000, 0);
	f->card.gone = true;
	glance(f, 21000);
	const struct spell *s = only(f, 21000);
	assert_int_equal(s->how, SPELL_RELEASED);
	assert_int_equal(s->end_ms, T0 + 20000);
}

static void test_a_clock_step(void **state)
{
	struct fixture *f = *state;
	drains(f, 0, 20000, 0);
	watch_clock_step(&f->watch, f->round, T0 + 22000, T0 + 3600000);
	f->sampled_ms = 3600000;
	drains(f, 3605000, 3610000, 0);
	const struct spell *s = only(f, 3610000);
	assert_int_equal(s->begin_ms, T0 + 3600000 - 22000);
	assert_int_equal(spell_idle_ms(s), 20000 + 10000);
	assert_int_equal(spell_unobserved_ms(s), 2000);
}

/* What the last recorder left: a stretch of pid 100, whose start time is `start_ticks`. */
static void leave(struct fixture *f, const char *uuid, uint64_t start_ticks)
{
	struct past_spell *past = calloc(1, sizeof(*past));
	*past = (struct past_spell){ .pid = 100,
		.start_ticks = start_ticks,
		.spell = { .begin_ms = T0 - 90000,
			.end_ms = T0 - 60000,
			.idle_held_ms = 30000,
			.mem_peak_kib = -1,
			.energy_mj = -1,
			.stored_end_ms = T0 - 60000 } };
	strcpy(past->uuid, uuid);
	watch_spells_take_past(&f->watch, past, 1);
}

static void test_the_next_recorder_goes_on(void **state)
{
	struct fixture *f = *state;
	leave(f, "GPU-a", 100); /* as describe() in the fixture has it */
	drains(f, 0, 5000, 0);
	const struct spell *s = only(f, 5000);
	assert_int_equal(s->begin_ms, T0 - 90000);
	assert_int_equal(s->idle_held_ms, 35000);
	assert_int_equal(spell_unobserved_ms(s), 60000);
	assert_int_equal(s->stored_end_ms, T0 - 60000);
	assert_int_equal(only(f, 6000)->stored_end_ms, -1);
	assert_int_equal(f->watch.n_past, 0);
}

static void test_the_next_recorder_finds_it_active(void **state)
{
	struct fixture *f = *state;
	leave(f, "GPU-a", 100);
	drains(f, 0, 5000, 80);
	const struct spell *s = only(f, 5000);
	assert_int_equal(s->how, SPELL_ACTIVE);
	assert_int_equal(s->end_ms, T0 - 60000);
	assert_int_equal(spell_unobserved_ms(s), 0);
}

/* Another life of the pid, and another card: what was left is not of this process here. */
static void test_the_next_recorder_finds_another(void **state)
{
	struct fixture *f = *state;
	leave(f, "GPU-a", 99);
	drains(f, 0, 5000, 0);
	assert_int_equal(only(f, 5000)->begin_ms, T0);
	assert_int_equal(f->watch.n_past, 0);
	leave(f, "GPU-b", 100);
	drains(f, 10000, 15000, 0);
	assert_int_equal(only(f, 15000)->begin_ms, T0);
	assert_int_equal(f->watch.n_past, 1); /* that card was not listed yet */
}

#define SPELL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, watch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPELL_TEST(test_an_open_spell_is_in_every_tick),
		SPELL_TEST(test_a_stretch_that_is_short_is_stored_while_it_goes_on),
		SPELL_TEST(test_a_process_that_ends_after_its_memory_went),
		SPELL_TEST(test_a_process_that_ends_much_later),
		SPELL_TEST(test_memory_that_no_process_explains),
		SPELL_TEST(test_a_lost_card),
		SPELL_TEST(test_an_instance_that_is_destroyed),
		SPELL_TEST(test_a_clock_step),
		SPELL_TEST(test_the_next_recorder_goes_on),
		SPELL_TEST(test_the_next_recorder_finds_it_active),
		SPELL_TEST(test_the_next_recorder_finds_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

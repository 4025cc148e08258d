/* Idle stretches from the states of processes: where they begin and end, what is in them. */
#include "test.h"

#include <stdbool.h>

#include "classify/idle_spells.h"

#define T0 1794528000000LL
#define MB 1000000LL
enum { LEAST_MS = 300000 };

/* A card, and the moment up to which pieces were handed over. */
struct card {
	struct spells spells;
	int64_t at_ms;
};

static int setup(void **state)
{
	struct card *c = calloc(1, sizeof(*c));
	idle_spells_init(&c->spells, 3, LEAST_MS);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct card *c = *state;
	idle_spells_finish(&c->spells);
	free(c);
	return 0;
}

static void take(struct card *c, uint32_t process, enum holder_state state, int64_t ms)
{
	idle_spells_take(&c->spells, &(struct spell_piece){ .process = process,
					     .from_ms = T0 + c->at_ms,
					     .to_ms = T0 + c->at_ms + ms,
					     .state = state,
					     .mem_bytes = 4096 * 1024 });
}

/* The whole piece has one process. */
static void piece(struct card *c, uint32_t process, enum holder_state state, int64_t ms)
{
	take(c, process, state, ms);
	idle_spells_piece_end(&c->spells, 0);
	c->at_ms += ms;
}

/* Nothing was observed. */
static void gap(struct card *c, int64_t ms)
{
	c->at_ms += ms;
}

static const struct spell *only_open(const struct card *c)
{
	assert_int_equal(c->spells.open.n, 1);
	return &c->spells.open.items[0].spell;
}

static const struct spell *only_ended(const struct card *c)
{
	assert_int_equal(c->spells.ended.n, 1);
	assert_int_equal(c->spells.open.n, 0);
	return &c->spells.ended.items[0].spell;
}

static void test_a_stretch_grows_piece_by_piece(void **state)
{
	struct card *c = *state;
	piece(c, 7, HOLDER_ACTIVE, 1000);
	piece(c, 7, HOLDER_IDLE_HELD, 200);
	piece(c, 7, HOLDER_SQUATTING, 5000);
	piece(c, 7, HOLDER_IDLE_HELD, 300);
	const struct spell *s = only_open(c);
	assert_int_equal(s->card, 3);
	assert_int_equal(s->process, 7);
	assert_int_equal(s->begin_ms, T0 + 1000);
	assert_int_equal(s->end_ms, T0 + 6500);
	assert_int_equal(s->idle_held_ms, 500);
	assert_int_equal(s->squatting_ms, 5000);
	assert_int_equal(spell_idle_ms(s), 5500);
	assert_int_equal(spell_unobserved_ms(s), 0);
	assert_int_equal(s->mem_peak_kib, 4096);
	assert_int_equal(s->energy_mj, -1);
	assert_int_equal(s->how, SPELL_OPEN);
	assert_int_equal(c->spells.ended.n, 0);
}

/* What ends a stretch that is a spell, and as what. */
static void test_ends(void **state)
{
	static const struct {
		enum holder_state then;
		enum spell_end how;
	} ends[] = { { HOLDER_ACTIVE, SPELL_ACTIVE }, { HOLDER_TRULY_IDLE, SPELL_RELEASED } };
	struct card *c = *state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		int64_t begin_ms = c->at_ms;
		piece(c, 1, HOLDER_IDLE_HELD, LEAST_MS);
		piece(c, 1, ends[i].then, 10);
		const struct spell *s = only_ended(c);
		assert_int_equal(s->how, ends[i].how);
		assert_int_equal(s->begin_ms, T0 + begin_ms);
		assert_int_equal(s->end_ms, T0 + begin_ms + LEAST_MS);
		idle_spells_stored(&c->spells);
		idle_spells_stored(&c->spells);
		assert_int_equal(c->spells.ended.n, 0);
	}
	piece(c, 1, HOLDER_IDLE_HELD, LEAST_MS);
	piece(c, 2, HOLDER_ACTIVE, 10); /* 1 is not there any more */
	assert_int_equal(only_ended(c)->how, SPELL_GONE);
	assert_true(c->spells.ended.items[0].gone);
}

static void test_one_millisecond_less_is_no_spell(void **state)
{
	struct card *c = *state;
	piece(c, 1, HOLDER_IDLE_HELD, LEAST_MS - 1);
	piece(c, 1, HOLDER_ACTIVE, 1);
	assert_int_equal(c->spells.ended.n, 0);
	assert_int_equal(c->spells.open.n, 0);
	piece(c, 1, HOLDER_IDLE_HELD, LEAST_MS - 1);
	piece(c, 1, HOLDER_SQUATTING, 1);
	piece(c, 1, HOLDER_ACTIVE, 1);
	assert_int_equal(only_ended(c)->begin_ms, T0 + LEAST_MS);
}

static void test_a_gap_is_neither_idle_nor_an_end(void **state)
{
	struct card *c = *state;
	piece(c, 1, HOLDER_IDLE_HELD, 200000);
	gap(c, 3600000);
	piece(c, 1, HOLDER_USE_UNKNOWN, 50000);
	piece(c, 1, HOLDER_SQUATTING, 99999);
	assert_int_equal(spell_idle_ms(only_open(c)), 299999);
	assert_int_equal(spell_unobserved_ms(only_open(c)), 3650000);
	assert_int_equal(only_open(c)->begin_ms, T0);
	/* Long, but not idle for long enough. */
	idle_spells_end_all(&c->spells, SPELL_GONE);
	assert_int_equal(c->spells.ended.n, 0);
}

static void test_a_gap_at_the_end_does_not_count(void **state)
{
	static const enum holder_state after[] = { HOLDER_ACTIVE, HOLDER_TRULY_IDLE };
	struct card *c = *state;
	for (size_t i = 0; i < 2; i++) {
		int64_t begin_ms = c->at_ms;
		piece(c, 1, HOLDER_IDLE_HELD, LEAST_MS);
		gap(c, 100000);
		piece(c, 1, HOLDER_USE_UNKNOWN, 1000);
		piece(c, 1, after[i], 166);
		assert_int_equal(only_ended(c)->end_ms, T0 + begin_ms + LEAST_MS);
		assert_int_equal(spell_unobserved_ms(only_ended(c)), 0);
		idle_spells_stored(&c->spells);
		idle_spells_stored(&c->spells);
	}
	int64_t begin_ms = c->at_ms;
	piece(c, 1, HOLDER_IDLE_HELD, LEAST_MS);
	gap(c, 5000);
	idle_spells_piece_end(&c->spells, 0); /* seen again, and it is gone */
	assert_int_equal(only_ended(c)->end_ms, T0 + begin_ms + LEAST_MS);
}

static void test_unknown_use_begins_nothing(void **state)
{
	struct card *c = *state;
	piece(c, 1, HOLDER_USE_UNKNOWN, 1000000);
	assert_int_equal(c->spells.open.n, 0);
}

/* Somebody else is active, so briefly that the state of all is active. */
static void test_a_process_without_use_squats(void **state)
{
	struct card *c = *state;
	struct spell_piece p = { .process = 1,
		.from_ms = T0 + 1000,
		.to_ms = T0 + 1166,
		.state = HOLDER_ACTIVE,
		.unused = true,
		.mem_bytes = -1 };
	piece(c, 1, HOLDER_IDLE_HELD, 1000);
	idle_spells_take(&c->spells, &p);
	idle_spells_piece_end(&c->spells, 0);
	assert_int_equal(only_open(c)->squatting_ms, 166);
	assert_int_equal(only_open(c)->mem_peak_kib, 4096);
	p = (struct spell_piece){ 1, T0 + 1166, T0 + 1332, HOLDER_ACTIVE, false, -1, 0 };
	idle_spells_take(&c->spells, &p);
	assert_int_equal(c->spells.open.n, 0);
}

static void test_processes_are_told_apart(void **state)
{
	struct card *c = *state;
	for (int i = 0; i < 400; i++) {
		take(c, 10, HOLDER_IDLE_HELD, 1000);
		take(c, 20, i == 350 ? HOLDER_ACTIVE : HOLDER_SQUATTING, 1000);
		if (i < 300)
			take(c, 30, HOLDER_IDLE_HELD, 1000);
		idle_spells_piece_end(&c->spells, 0);
		c->at_ms += 1000;
	}
	assert_int_equal(c->spells.open.n, 2);
	assert_int_equal(c->spells.ended.n, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct spell *s = &c->spells.ended.items[i].spell;
		assert_int_equal(s->how, s->process == 20 ? SPELL_ACTIVE : SPELL_GONE);
		assert_int_equal(s->end_ms, T0 + (s->process == 20 ? 350000 : 300000));
	}
}

/* The counter is read at the end of each piece. */
static void metered_piece(struct card *c, int64_t ms, int64_t mj, bool idle)
{
	const int64_t share_ms[] = { ms / 4, ms - ms / 4 };
	for (uint32_t i = 0; i < 2; i++)
		idle_spells_take(
			&c->spells, &(struct spell_piece){ .process = i,
					    .from_ms = T0 + c->at_ms,
					    .to_ms = T0 + c->at_ms + ms,
					    .state = idle ? HOLDER_IDLE_HELD : HOLDER_SQUATTING,
					    .metered_ms = idle ? share_ms[i] : 0 });
	idle_spells_piece_end(&c->spells, idle ? ms : 0);
	idle_spells_energy(&c->spells, mj, idle ? ms : 0);
	c->at_ms += ms;
}

static void test_energy_is_shared(void **state)
{
	struct card *c = *state;
	metered_piece(c, 400000, 40000, true);
	metered_piece(c, 100000, 0, false);
	metered_piece(c, 400000, 20000, true);
	assert_int_equal(c->spells.open.items[0].spell.energy_mj, 15000);
	assert_int_equal(c->spells.open.items[1].spell.energy_mj, 45000);
	/* The last energy comes after the end, and after the end was stored. */
	for (uint32_t i = 0; i < 2; i++)
		idle_spells_take(&c->spells, &(struct spell_piece){ .process = i,
						     .from_ms = T0 + c->at_ms,
						     .to_ms = T0 + c->at_ms + 1000,
						     .state = HOLDER_IDLE_HELD,
						     .metered_ms = 500 });
	idle_spells_piece_end(&c->spells, 1000);
	idle_spells_piece_end(&c->spells, 0);
	assert_int_equal(c->spells.ended.n, 2);
	idle_spells_stored(&c->spells);
	assert_false(c->spells.ended.items[0].changed);
	idle_spells_energy(&c->spells, 100, 1000);
	for (size_t i = 0; i < 2; i++) {
		const struct idle_stretch *item = &c->spells.ended.items[i];
		assert_true(item->changed);
		assert_int_equal(
			item->spell.energy_mj, item->spell.process == 0 ? 15050 : 45050);
	}
	idle_spells_stored(&c->spells);
	assert_int_equal(c->spells.ended.n, 0);
}

static void test_energy_that_is_lost_is_not_guessed(void **state)
{
	struct card *c = *state;
	take(c, 1, HOLDER_IDLE_HELD, 1000); /* no counter */
	idle_spells_piece_end(&c->spells, 0);
	idle_spells_energy(&c->spells, 0, 0);
	assert_int_equal(only_open(c)->energy_mj, -1);
	c->at_ms += 1000;
	idle_spells_take(&c->spells, &(struct spell_piece){ .process = 1,
					     .from_ms = T0 + 1000,
					     .to_ms = T0 + 2000,
					     .state = HOLDER_IDLE_HELD,
					     .metered_ms = 1000 });
	idle_spells_piece_end(&c->spells, 1000);
	idle_spells_energy_lost(&c->spells);
	idle_spells_energy(&c->spells, 5000, 1000);
	assert_int_equal(only_open(c)->energy_mj, -1);
}

/* A counter that forgot a part of the time must not give all energy to the rest. */
static void test_energy_of_forgotten_time(void **state)
{
	struct card *c = *state;
	idle_spells_take(&c->spells, &(struct spell_piece){ .process = 1,
					     .from_ms = T0,
					     .to_ms = T0 + 4000,
					     .state = HOLDER_IDLE_HELD,
					     .metered_ms = 4000 });
	idle_spells_piece_end(&c->spells, 4000);
	idle_spells_energy(&c->spells, 600, 1000);
	assert_int_equal(only_open(c)->energy_mj, 600);
}

static struct spell past_spell(int64_t stored_end_ms)
{
	return (struct spell){ .begin_ms = T0 - 500000,
		.end_ms = T0 - 100000,
		.idle_held_ms = 250000,
		.squatting_ms = 100000,
		.mem_peak_kib = 9000,
		.energy_mj = 70,
		.stored_end_ms = stored_end_ms };
}

static void test_a_stretch_of_an_earlier_run_goes_on(void **state)
{
	struct card *c = *state;
	const struct spell past = past_spell(T0 - 100000);
	idle_spells_restore(&c->spells, &past, 5);
	piece(c, 5, HOLDER_IDLE_HELD, 1000);
	const struct spell *s = only_open(c);
	assert_int_equal(s->begin_ms, T0 - 500000);
	assert_int_equal(s->end_ms, T0 + 1000);
	assert_int_equal(s->idle_held_ms, 251000);
	assert_int_equal(spell_unobserved_ms(s), 150000);
	assert_int_equal(s->mem_peak_kib, 9000);
	assert_int_equal(s->energy_mj, 70);
	assert_int_equal(s->stored_end_ms, T0 - 100000);
	idle_spells_stored(&c->spells);
	assert_int_equal(only_open(c)->stored_end_ms, -1);
}

static void test_a_stretch_of_an_earlier_run_has_ended(void **state)
{
	struct card *c = *state;
	const struct spell past = past_spell(T0 - 100000);
	idle_spells_restore(&c->spells, &past, 5);
	piece(c, 5, HOLDER_ACTIVE, 1000);
	assert_int_equal(only_ended(c)->end_ms, T0 - 100000);
	assert_int_equal(only_ended(c)->how, SPELL_ACTIVE);
	assert_int_equal(only_ended(c)->stored_end_ms, T0 - 100000);
}

/* The clock is behind the end of the stretch: nothing is known of the time between. */
static void test_a_clock_that_was_set_back_between_runs(void **state)
{
	struct card *c = *state;
	const struct spell past = past_spell(-1);
	idle_spells_restore(&c->spells, &past, 5);
	c->at_ms = -200000;
	piece(c, 5, HOLDER_IDLE_HELD, 1000);
	assert_int_equal(only_open(c)->begin_ms, T0 - 600000);
	assert_int_equal(only_open(c)->end_ms, T0 - 199000);
	assert_int_equal(spell_unobserved_ms(only_open(c)), 50000);
}

static void test_a_clock_step_keeps_lengths(void **state)
{
	struct card *c = *state;
	piece(c, 1, HOLDER_IDLE_HELD, 1000);
	gap(c, 500);
	idle_spells_shift(&c->spells, -3600000);
	c->at_ms -= 3600000;
	piece(c, 1, HOLDER_IDLE_HELD, 2000);
	assert_int_equal(only_open(c)->begin_ms, T0 - 3600000);
	assert_int_equal(spell_idle_ms(only_open(c)), 3000);
	assert_int_equal(spell_unobserved_ms(only_open(c)), 500);
}

static void test_spells_that_cannot_be_stored_are_limited(void **state)
{
	struct card *c = *state;
	for (int i = 0; i < SPELLS_MAX_ENDED + 10; i++) {
		piece(c, 1, HOLDER_IDLE_HELD, LEAST_MS);
		piece(c, 1, HOLDER_ACTIVE, 1);
	}
	assert_int_equal(c->spells.ended.n, SPELLS_MAX_ENDED);
	assert_int_equal(c->spells.lost, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_stretch_grows_piece_by_piece),
		TEST(test_ends),
		TEST(test_one_millisecond_less_is_no_spell),
		TEST(test_a_gap_is_neither_idle_nor_an_end),
		TEST(test_a_gap_at_the_end_does_not_count),
		TEST(test_unknown_use_begins_nothing),
		TEST(test_a_process_without_use_squats),
		TEST(test_processes_are_told_apart),
		TEST(test_energy_is_shared),
		TEST(test_energy_that_is_lost_is_not_guessed),
		TEST(test_energy_of_forgotten_time),
		TEST(test_a_stretch_of_an_earlier_run_goes_on),
		TEST(test_a_stretch_of_an_earlier_run_has_ended),
		TEST(test_a_clock_that_was_set_back_between_runs),
		TEST(test_a_clock_step_keeps_lengths),
		TEST(test_spells_that_cannot_be_stored_are_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

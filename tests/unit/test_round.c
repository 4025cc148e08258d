/* What one round asks of the driver: which cards are looked at, and what a fault leaves. */
#include "test.h"

#include <stdbool.h>

#include "base/clock.h"
#include "driver/host/round.h"

#define MB (1LL << 20)
enum { CARDS = 4 };

/* A source that counts what it is asked, and gives what the test set. */
struct fake {
	struct source source;
	struct card_reading cards[CARDS];
	struct clock clock;
	int scans, drains, glances, looks;
	unsigned glanced_what;
	bool looked_all;
	bool looked[CARDS];  /* at the last look */
	bool drained[CARDS]; /* at the last drain */
	bool fail_scan, fail_drain, fail_glance, fail_look;
	size_t appears;	  /* cards there after the next look */
	int64_t takes_us; /* CPU of a glance without energy */
};

static int answer(bool fails, struct err *e, const char *what)
{
	return fails ? err_set(e, ERR_WORLD, "no %s", what) : 0;
}

static int fake_scan(struct source *s, struct err *e)
{
	struct fake *f = (struct fake *)s;
	f->scans++;
	return answer(f->fail_scan, e, "scan");
}

static int fake_drain(struct source *s, const bool *which, struct err *e)
{
	struct fake *f = (struct fake *)s;
	f->drains++;
	for (size_t i = 0; i < s->n_cards; i++)
		f->drained[i] = !which || which[i];
	return answer(f->fail_drain, e, "drain");
}

static int fake_glance(struct source *s, unsigned what, struct err *e)
{
	struct fake *f = (struct fake *)s;
	f->glances++;
	f->glanced_what = what;
	s->energy_cost_us = what & GLANCE_ENERGY ? 70 : 0;
	clock_advance(&f->clock, f->takes_us + s->energy_cost_us);
	return answer(f->fail_glance, e, "glance");
}

static int fake_look(struct source *s, const bool *which, struct err *e)
{
	struct fake *f = (struct fake *)s;
	f->looks++;
	f->looked_all = which == NULL;
	for (size_t i = 0; i < s->n_cards; i++)
		f->looked[i] = !which || which[i];
	if (f->appears)
		s->n_cards = f->appears;
	return answer(f->fail_look, e, "look");
}

static const struct source_ops ops = { .name = "fake",
	.scan = fake_scan,
	.drain = fake_drain,
	.glance = fake_glance,
	.look = fake_look };

struct fixture {
	struct fake fake;
	struct round *round;
};

static int run(struct fixture *f)
{
	struct err e = { 0 };
	f->fake.looks = f->fake.glances = f->fake.drains = f->fake.scans = 0;
	memset(f->fake.looked, 0, sizeof(f->fake.looked));
	return round_run(&f->fake.source, f->round, &e);
}

/* Two cards with memory that were looked at once. */
static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = { 0 };
	clock_init_virtual(&f->fake.clock, 1000);
	f->fake.source.ops = &ops;
	f->fake.source.cards = f->fake.cards;
	f->fake.source.n_cards = 2;
	for (int i = 0; i < CARDS; i++) {
		f->fake.cards[i].mem_used_bytes = 100 * MB;
		f->fake.cards[i].processes_known = true;
	}
	assert_int_equal(round_new(&f->round, &f->fake.clock, &e), 0);
	f->round->drain = true;
	assert_int_equal(run(f), 0);
	assert_true(f->fake.looked[0] && f->fake.looked[1]);
	f->round->drain = false;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	round_free(f->round);
	round_free(NULL);
	clock_finish(&f->fake.clock);
	free(f);
	return 0;
}

/* Runs, and says which of the first two cards must have been looked at. */
static void expect(struct fixture *f, bool one, bool two)
{
	assert_int_equal(run(f), 0);
	assert_true(f->round->glanced);
	assert_int_equal(f->fake.looks, one || two);
	assert_int_equal(f->fake.looked[0], one);
	assert_int_equal(f->fake.looked[1], two);
	assert_int_equal(f->round->cards[0].looked, one);
	assert_int_equal(f->round->cards[1].looked, two);
}

static void test_nothing_new(void **state)
{
	struct fixture *f = *state;
	expect(f, false, false);
	assert_int_equal(f->fake.drains, 0);
	assert_int_equal(f->fake.scans, 0);
	assert_int_equal(f->fake.glances, 1);
	f->round->drain = true;
	expect(f, false, false);
	assert_int_equal(f->fake.drains, 1);
}

static void test_memory_that_changed(void **state)
{
	struct fixture *f = *state;
	f->fake.cards[1].mem_used_bytes += MB;
	expect(f, false, true);
	expect(f, false, false);
	f->fake.cards[0].mem_used_bytes -= 20 * MB;
	expect(f, true, false);
	/* Less than a step since the last look, and then a step in two steps. */
	f->fake.cards[0].mem_used_bytes += (1 << 16) - 1;
	expect(f, false, false);
	f->fake.cards[0].mem_used_bytes += 1;
	expect(f, true, false);
}

static void test_cards_that_are_shared_are_drained_alone(void **state)
{
	struct fixture *f = *state;
	f->round->drain = false;
	f->round->shared = true;
	assert_int_equal(run(f), 0);
	assert_int_equal(f->fake.drains, 0);
	assert_false(f->round->drained);
	f->round->cards[1].shared = true;
	assert_int_equal(run(f), 0);
	assert_int_equal(f->fake.drains, 1);
	assert_true(f->round->drained && f->round->cards[1].drained);
	assert_false(f->fake.drained[0] || f->round->cards[0].drained);
	assert_true(f->fake.drained[1]);
}

static void test_a_card_that_is_wanted(void **state)
{
	struct fixture *f = *state;
	round_want(f->round, 1);
	round_want(f->round, 99);
	expect(f, false, true);
	assert_false(f->round->cards[1].want);
	expect(f, false, false);
	/* A list that could not be read is wanted again. */
	round_want(f->round, 0);
	f->fake.cards[0].processes_known = false;
	expect(f, true, false);
	assert_true(f->round->cards[0].want);
	f->fake.cards[0].processes_known = true;
	expect(f, true, false);
	expect(f, false, false);
}

static void test_a_stranger_in_the_drain(void **state)
{
	struct fixture *f = *state;
	f->fake.cards[0].stranger = true;
	expect(f, false, false); /* of an older drain */
	f->round->drain = true;
	expect(f, true, false);
}

static void test_memory_that_cannot_be_read(void **state)
{
	struct fixture *f = *state;
	f->fake.cards[0].mem_used_bytes = UNKNOWN_BYTES;
	expect(f, true, false);
	expect(f, false, false);
	f->round->drain = true;
	expect(f, true, false);
	f->round->drain = false;
	f->fake.cards[0].mem_used_bytes = 100 * MB;
	expect(f, true, false);
}

static void test_all(void **state)
{
	struct fixture *f = *state;
	f->round->look_all = true;
	expect(f, true, true);
	assert_true(f->fake.looked_all);
	f->round->scan = true;
	expect(f, true, true);
	assert_int_equal(f->fake.scans, 1);
}

static void test_a_card_that_comes_back(void **state)
{
	struct fixture *f = *state;
	f->fake.cards[0].status = CARD_STATUS_LOST;
	f->fake.cards[0].mem_used_bytes += 50 * MB;
	expect(f, false, false);
	f->fake.cards[0].mem_used_bytes -= 50 * MB;
	f->fake.cards[0].status = CARD_STATUS_OK;
	expect(f, true, false);
	expect(f, false, false);
}

static void test_a_card_that_is_new(void **state)
{
	struct fixture *f = *state;
	f->fake.source.n_cards = 3;
	assert_int_equal(run(f), 0);
	assert_int_equal(f->round->n_cards, 3);
	assert_true(f->fake.looked[2] && f->round->cards[2].looked);
	assert_false(f->fake.looked[0] || f->fake.looked[1]);
}

static void test_cards_that_appear_in_the_look(void **state)
{
	struct fixture *f = *state;
	f->round->look_all = true;
	f->fake.appears = 4;
	expect(f, true, true);
	assert_int_equal(f->round->n_cards, 4);
	assert_true(f->round->cards[3].looked);
	f->round->look_all = false;
	expect(f, false, false);
}

static void test_energy_once(void **state)
{
	struct fixture *f = *state;
	run(f);
	assert_int_equal(f->fake.glanced_what, GLANCE_MEMORY);
	f->round->energy = true;
	run(f);
	assert_int_equal(f->fake.glanced_what, GLANCE_MEMORY | GLANCE_ENERGY);
	f->round->drain = true; /* which has it */
	run(f);
	assert_int_equal(f->fake.glanced_what, GLANCE_MEMORY);
}

static void test_costs(void **state)
{
	struct fixture *f = *state;
	f->fake.takes_us = 30;
	f->round->energy = true;
	run(f);
	assert_int_equal(f->round->cost_us, 30);
	assert_int_equal(f->round->energy_cost_us, 70);
	f->round->energy = false;
	run(f);
	assert_int_equal(f->round->cost_us, 30);
	assert_int_equal(f->round->energy_cost_us, 0);
}

/* What was drained is not lost for a fault that came after it. */
static void test_a_glance_that_fails_after_a_drain(void **state)
{
	struct fixture *f = *state;
	f->round->drain = true;
	f->fake.fail_glance = true;
	round_want(f->round, 0);
	assert_int_equal(run(f), 0);
	assert_false(f->round->glanced);
	assert_false(f->round->cards[0].looked);
	assert_true(f->round->cards[0].want);
	f->fake.fail_glance = false;
	f->fake.fail_look = true;
	assert_int_equal(run(f), 0);
	assert_false(f->round->glanced);
	assert_false(f->round->cards[0].looked);
	assert_true(f->round->cards[0].want);
	f->fake.fail_look = false;
	expect(f, true, false);
}

static void test_a_driver_that_fails(void **state)
{
	struct fixture *f = *state;
	f->fake.fail_glance = true;
	assert_int_equal(run(f), ERR_WORLD);
	f->round->drain = true;
	f->fake.fail_drain = true;
	assert_int_equal(run(f), ERR_WORLD);
	assert_int_equal(f->fake.glances, 0);
	f->round->scan = true;
	f->fake.fail_scan = true;
	assert_int_equal(run(f), ERR_WORLD);
	assert_int_equal(f->fake.drains, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_new),
		TEST(test_memory_that_changed),
		TEST(test_cards_that_are_shared_are_drained_alone),
		TEST(test_a_card_that_is_wanted),
		TEST(test_a_stranger_in_the_drain),
		TEST(test_memory_that_cannot_be_read),
		TEST(test_all),
		TEST(test_a_card_that_comes_back),
		TEST(test_a_card_that_is_new),
		TEST(test_cards_that_appear_in_the_look),
		TEST(test_energy_once),
		TEST(test_costs),
		TEST(test_a_glance_that_fails_after_a_drain),
		TEST(test_a_driver_that_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Joules by state: bursts do not leak into the idle time beside them, and nothing is lost. */
#include "test.h"

#include <math.h>
#include <stdbool.h>

#include "classify/energy.h"

#define T0 1794528000000LL /* a full minute */
#define PIECE_MS 100

struct fixture {
	struct energy_split split;
	struct ledger ledger;
	uint64_t seed;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = { 0 };
	assert_int_equal(ledger_init(&f->ledger, &e), 0);
	energy_reset(&f->split);
	f->seed = 42;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	ledger_finish(&f->ledger);
	free(f);
	return 0;
}

/* The sums of a state over all slots; CARD_STATES: of all states. */
static struct usage_sum sum_of(const struct fixture *f, enum card_state state)
{
	size_t n = 0;
	struct usage_sum sum = { 0 };
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++) {
		if (state != CARD_STATES && rows[i].state != state)
			continue;
		sum.energy_mj += rows[i].energy_mj;
		sum.energy_ms += rows[i].energy_ms;
	}
	return sum;
}

static double watts(struct usage_sum sum)
{
	return (double)sum.energy_mj / (double)sum.energy_ms;
}

static void piece(
	struct fixture *f, int64_t from_ms, int64_t to_ms, enum card_state state, double pct)
{
	energy_piece(&f->split,
		&(struct energy_piece){ .slot = ledger_slot(&f->ledger, T0 + from_ms),
			.from_ms = T0 + from_ms,
			.to_ms = T0 + to_ms,
			.state = state,
			.util_pct = pct });
}

static void divide(struct fixture *f, int64_t covered_ms)
{
	energy_divide(&f->split, 0, T0 + covered_ms, &f->ledger);
}

static int64_t random_between(struct fixture *f, int64_t lo, int64_t hi)
{
	f->seed = f->seed * 6364136223846793005u + 1442695040888963407u;
	return lo + (int64_t)((f->seed >> 33) % (uint64_t)(hi - lo + 1));
}

/* A card that computes for `on_ms` of each `period_ms`, at 400 W, and else draws 50 W. */
struct bursts {
	int64_t on_ms, period_ms;
};

static int64_t joules_mj(const struct bursts *b, int64_t at_ms)
{
	int64_t whole = at_ms / b->period_ms, rest = at_ms % b->period_ms;
	int64_t on_ms = whole * b->on_ms + (rest < b->on_ms ? rest : b->on_ms);
	return 400 * on_ms + 50 * (at_ms - on_ms);
}

/* Plays it: energy is read at jittered seconds, and time is accounted every five. Returns the
 * moment of the last reading. */
static int64_t play(struct fixture *f, const struct bursts *b, int64_t length_ms)
{
	int64_t covered_ms = 0, read_ms = 0;
	for (int64_t at_ms = 0; at_ms < length_ms; at_ms += random_between(f, 800, 1200)) {
		energy_read(&f->split, T0 + at_ms, (double)joules_mj(b, at_ms));
		read_ms = at_ms;
		if (at_ms - covered_ms < 5000)
			continue;
		for (; covered_ms + PIECE_MS <= at_ms; covered_ms += PIECE_MS) {
			bool on = covered_ms % b->period_ms < b->on_ms;
			piece(f, covered_ms, covered_ms + PIECE_MS,
				on ? CARD_ACTIVE : CARD_IDLE_HELD, on ? 90 : 0);
		}
		divide(f, covered_ms);
	}
	return read_ms;
}

static void expect_bursts(struct fixture *f, const struct bursts *b)
{
	play(f, b, 600000);
	struct usage_sum idle = sum_of(f, CARD_IDLE_HELD), active = sum_of(f, CARD_ACTIVE);
	assert_true(fabs(watts(idle) - 50) < 0.03 * 50);
	assert_true(fabs(watts(active) - 400) < 0.03 * 400);
	/* Conserved exactly: all that the counter grew up to the reading that was reached. */
	int64_t upto_ms = f->split.points[0].at_ms - T0;
	assert_true(upto_ms > 590000);
	assert_int_equal(idle.energy_mj + active.energy_mj, joules_mj(b, upto_ms));
	assert_int_equal(idle.energy_ms + active.energy_ms, upto_ms);
}

static void test_two_seconds_of_ten(void **state)
{
	expect_bursts(*state, &(struct bursts){ 2000, 10000 });
}

static void test_three_seconds_of_seven(void **state)
{
	expect_bursts(*state, &(struct bursts){ 3000, 7000 });
}

/* What a card does in each cycle of 40 s, and what it draws. After use it cools down: it still
 * draws more while it is idle. */
static const struct phase {
	int64_t to_ms;
	enum card_state state;
	int64_t watts;
} phases[] = {
	{ 9000, CARD_TRULY_IDLE, 35 },
	{ 12000, CARD_IDLE_HELD, 60 },
	{ 13500, CARD_ACTIVE, 400 },
	{ 14500, CARD_IDLE_HELD, 230 },
	{ 22000, CARD_IDLE_HELD, 60 },
	{ 24000, CARD_ACTIVE, 300 },
	{ 24300, CARD_IDLE_HELD, 180 },
	{ 25000, CARD_TRULY_IDLE, 155 },
	{ 31000, CARD_TRULY_IDLE, 35 },
	{ 40000, CARD_IDLE_HELD, 60 },
};

static const struct phase *phase_at(int64_t at_ms)
{
	const struct phase *p = phases;
	while (p->to_ms <= at_ms % 40000)
		p++;
	return p;
}

/* Plays the phases for ten minutes, with readings that are this far apart, and expects the
 * idle powers and nothing else in the idle states. */
static void expect_levels(struct fixture *f, int64_t least_ms, int64_t most_ms)
{
	int64_t covered_ms = 0, mj = 0, counted_ms = 0;
	for (int64_t at_ms = 0; at_ms < 600000; at_ms += random_between(f, least_ms, most_ms)) {
		for (; counted_ms < at_ms; counted_ms++)
			mj += phase_at(counted_ms)->watts;
		energy_read(&f->split, T0 + at_ms, (double)mj);
		for (; covered_ms + PIECE_MS <= at_ms; covered_ms += PIECE_MS) {
			enum card_state state = phase_at(covered_ms)->state;
			piece(f, covered_ms, covered_ms + PIECE_MS, state,
				state == CARD_ACTIVE ? 90 : 0);
		}
		divide(f, covered_ms);
	}
	assert_true(fabs(watts(sum_of(f, CARD_IDLE_HELD)) - 60) < 0.02 * 60);
	assert_true(fabs(watts(sum_of(f, CARD_TRULY_IDLE)) - 35) < 0.02 * 35);
}

static void test_held_and_empty_cards_draw_different_power(void **state)
{
	expect_levels(*state, 800, 1200);
}

static void test_levels_with_rare_readings(void **state)
{
	expect_levels(*state, 2500, 3500);
}

/* A demonstration: a sample each 20 s says what the card did then. Use that ends between two of
 * them is energy of an idle period, and the card is never idle for two of them. */
static void test_samples_that_are_far_apart(void **state)
{
	struct fixture *f = *state;
	const int64_t apart_ms = 20000;
	double mj = 0;
	energy_read(&f->split, T0, 0);
	for (int64_t at_ms = 0; at_ms < 36000000; at_ms += 2 * apart_ms) {
		/* Use for a period and a part of the next. */
		int64_t more_ms = random_between(f, 0, apart_ms);
		const int64_t used_ms[] = { apart_ms, more_ms };
		for (int k = 0; k < 2; k++) {
			int64_t from_ms = at_ms + k * apart_ms;
			mj += 400. * (double)used_ms[k] + 60. * (double)(apart_ms - used_ms[k]);
			energy_read(&f->split, T0 + from_ms + apart_ms, floor(mj));
			piece(f, from_ms, from_ms + apart_ms,
				k == 0 ? CARD_ACTIVE : CARD_IDLE_HELD, k == 0 ? 90 : 0);
			divide(f, from_ms + apart_ms);
		}
	}
	double idle_w = watts(sum_of(f, CARD_IDLE_HELD));
	/* By time it would be 230 W. It is as good as the period with the least use so far. */
	assert_true(fabs(idle_w - 60) < 0.1 * 60);
	assert_true(fabs((double)sum_of(f, CARD_STATES).energy_mj - mj) < 2);
}

/* What a card draws above its idle power in the second after use is energy of the use, also if
 * the counter was read in between; after that second it is not. */
static void test_cooling_belongs_to_the_use(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0, 0);
	energy_read(&f->split, T0 + 2000, 120000);
	energy_read(&f->split, T0 + 3000, 180000);
	energy_read(&f->split, T0 + 4000, 580000);
	energy_read(&f->split, T0 + 5000, 780000);
	energy_read(&f->split, T0 + 6000, 880000);
	piece(f, 0, 3000, CARD_IDLE_HELD, 0);
	piece(f, 3000, 4000, CARD_ACTIVE, 90);
	piece(f, 4000, 6000, CARD_IDLE_HELD, 0);
	divide(f, 6000);
	assert_int_equal(sum_of(f, CARD_IDLE_HELD).energy_mj, 180000 + 60000 + 100000);
	assert_int_equal(sum_of(f, CARD_ACTIVE).energy_mj, 400000 + 140000);
	assert_int_equal(sum_of(f, CARD_ACTIVE).energy_ms, 1000);
}

/* Never a whole second without a burst: what idling costs is not known, and split by time. */
static void test_idle_power_that_was_never_seen(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0, 0);
	energy_read(&f->split, T0 + 1000, 100000);
	piece(f, 0, 600, CARD_ACTIVE, 80);
	piece(f, 600, 1000, CARD_IDLE_HELD, 0);
	divide(f, 1000);
	assert_int_equal(sum_of(f, CARD_ACTIVE).energy_mj, 60000);
	assert_int_equal(sum_of(f, CARD_IDLE_HELD).energy_mj, 40000);
	/* After a second to cool down and a second of idling it is known. */
	energy_read(&f->split, T0 + 2000, 130000);
	energy_read(&f->split, T0 + 3000, 160000);
	energy_read(&f->split, T0 + 4000, 260000);
	piece(f, 1000, 3600, CARD_IDLE_HELD, 0);
	piece(f, 3600, 4000, CARD_ACTIVE, 80);
	divide(f, 4000);
	assert_int_equal(sum_of(f, CARD_IDLE_HELD).energy_mj, 40000 + 60000 + 18000);
	assert_int_equal(sum_of(f, CARD_ACTIVE).energy_mj, 60000 + 82000);
}

/* A driver that counts energy rarely: a second without growth is not a card that draws nothing.
 * The card is never idle for long, so that nothing better is learned later. */
static void test_a_counter_that_stands_still(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0, 0);
	energy_read(&f->split, T0 + 500, 0);
	piece(f, 0, 500, CARD_IDLE_HELD, 0);
	divide(f, 500);
	energy_read(&f->split, T0 + 1500, 100000);
	piece(f, 500, 900, CARD_IDLE_HELD, 0);
	piece(f, 900, 1500, CARD_ACTIVE, 80);
	divide(f, 1500);
	assert_int_equal(sum_of(f, CARD_IDLE_HELD).energy_mj, 40000);
	assert_int_equal(sum_of(f, CARD_ACTIVE).energy_mj, 60000);
}

/* More than the second had is never given away. */
static void test_idle_power_above_the_mean(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0, 0);
	energy_read(&f->split, T0 + 1000, 90000);
	energy_read(&f->split, T0 + 2000, 130000);
	piece(f, 0, 1500, CARD_TRULY_IDLE, 0);
	piece(f, 1500, 2000, CARD_ACTIVE, 50);
	divide(f, 2000);
	assert_int_equal(sum_of(f, CARD_TRULY_IDLE).energy_mj, 90000 + 20000);
	assert_int_equal(sum_of(f, CARD_ACTIVE).energy_mj, 20000);
}

static void test_active_time_is_weighted_by_utilisation(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0, 0);
	energy_read(&f->split, T0 + 1000, 50000);
	energy_read(&f->split, T0 + 2000, 275000);
	piece(f, 0, 1500, CARD_IDLE_HELD, 0);
	piece(f, 1500, 1750, CARD_ACTIVE, 20);
	piece(f, 1750, 2000, CARD_ACTIVE, 80);
	divide(f, 2000);
	assert_int_equal(sum_of(f, CARD_IDLE_HELD).energy_mj, 75000);
	assert_int_equal(sum_of(f, CARD_ACTIVE).energy_mj, 200000);
}

static void test_a_counter_that_goes_back(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0, 100000);
	energy_read(&f->split, T0 + 1000, 150000);
	piece(f, 0, 1000, CARD_IDLE_HELD, 0);
	divide(f, 1000);
	energy_read(&f->split, T0 + 2000, 3000);
	energy_read(&f->split, T0 + 3000, 53000);
	piece(f, 1000, 3000, CARD_IDLE_HELD, 0);
	divide(f, 3000);
	assert_int_equal(sum_of(f, CARD_STATES).energy_mj, 100000);
	assert_int_equal(sum_of(f, CARD_STATES).energy_ms, 2000);
}

static void test_a_counter_that_is_not_there(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0, 100000);
	energy_read(&f->split, T0 + 1000, 150000);
	piece(f, 0, 1000, CARD_IDLE_HELD, 0);
	divide(f, 1000);
	energy_read(&f->split, T0 + 2000, NAN);
	piece(f, 1000, 2000, CARD_IDLE_HELD, 0);
	divide(f, 2000);
	assert_int_equal(f->split.n_pieces, 0);
	energy_read(&f->split, T0 + 3000, 900000);
	piece(f, 2000, 4000, CARD_IDLE_HELD, 0);
	energy_read(&f->split, T0 + 4000, 950000);
	divide(f, 4000);
	/* The growth over the hole is not guessed. */
	assert_int_equal(sum_of(f, CARD_STATES).energy_mj, 100000);
	assert_int_equal(sum_of(f, CARD_STATES).energy_ms, 2000);
}

static void test_readings_wait_for_time(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0, 0);
	energy_read(&f->split, T0 + 1000, 50000);
	piece(f, 0, 999, CARD_IDLE_HELD, 0);
	divide(f, 999);
	assert_int_equal(sum_of(f, CARD_STATES).energy_ms, 0);
	piece(f, 999, 1300, CARD_IDLE_HELD, 0);
	divide(f, 1300);
	assert_int_equal(sum_of(f, CARD_STATES).energy_mj, 50000);
	assert_int_equal(sum_of(f, CARD_STATES).energy_ms, 1000);
	/* Two readings at one moment are one. */
	energy_read(&f->split, T0 + 1000, 50001);
	assert_int_equal(f->split.n_points, 1);
}

static void test_slots_get_their_part(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0 + 59500, 0);
	energy_read(&f->split, T0 + 60500, 1001);
	piece(f, 59000, 60000, CARD_IDLE_HELD, 0);
	piece(f, 60000, 61000, CARD_IDLE_HELD, 0);
	divide(f, 61000);
	size_t n = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].slot + 60, rows[1].slot);
	assert_int_equal(rows[0].energy_ms, 500);
	assert_int_equal(rows[1].energy_ms, 500);
	assert_int_equal(rows[0].energy_mj + rows[1].energy_mj, 1001);
	assert_in_range(rows[0].energy_mj, 500, 501);
}

/* Readings that find no room are joined: the total stays. */
static void test_more_readings_than_room(void **state)
{
	struct fixture *f = *state;
	for (int64_t i = 0; i <= 3 * ENERGY_POINTS; i++)
		energy_read(&f->split, T0 + i * 1000, (double)(i * 50000));
	assert_int_equal(f->split.n_points, ENERGY_POINTS);
	assert_int_equal(f->split.points[0].at_ms, T0);
	piece(f, 0, 3 * ENERGY_POINTS * 1000LL, CARD_IDLE_HELD, 0);
	divide(f, 3 * ENERGY_POINTS * 1000LL);
	assert_int_equal(sum_of(f, CARD_STATES).energy_mj, 3 * ENERGY_POINTS * 50000LL);
	assert_int_equal(sum_of(f, CARD_STATES).energy_ms, 3 * ENERGY_POINTS * 1000LL);
}

/* Stretches that find no room: no joule is invented, and power stays what it was. */
static void test_more_pieces_than_room(void **state)
{
	struct fixture *f = *state;
	const int64_t n = 3 * ENERGY_PIECES;
	for (int64_t i = 0; i <= n / 10; i++)
		energy_read(&f->split, T0 + i * 1000, (double)(i * 50000));
	for (int64_t i = 0; i < n; i++)
		piece(f, i * 100, (i + 1) * 100, CARD_ACTIVE, i % 2 ? 50 : 60);
	assert_int_equal(f->split.n_pieces, ENERGY_PIECES);
	divide(f, n * 100);
	struct usage_sum sum = sum_of(f, CARD_ACTIVE);
	assert_true(sum.energy_mj <= n / 10 * 50000);
	assert_true(sum.energy_ms > 0);
	assert_true(fabs(watts(sum) - 50) < 0.03 * 50);
}

static void test_unobserved_time_has_energy(void **state)
{
	struct fixture *f = *state;
	energy_read(&f->split, T0, 0);
	energy_read(&f->split, T0 + 2000, 100000);
	piece(f, 0, 1000, CARD_ACTIVE, 50);
	piece(f, 1000, 2000, CARD_UNOBSERVED, 0);
	divide(f, 2000);
	assert_int_equal(sum_of(f, CARD_ACTIVE).energy_mj, 50000);
	assert_int_equal(sum_of(f, CARD_UNOBSERVED).energy_mj, 50000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_two_seconds_of_ten),
		TEST(test_three_seconds_of_seven),
		TEST(test_held_and_empty_cards_draw_different_power),
		TEST(test_levels_with_rare_readings),
		TEST(test_samples_that_are_far_apart),
		TEST(test_cooling_belongs_to_the_use),
		TEST(test_idle_power_that_was_never_seen),
		TEST(test_a_counter_that_stands_still),
		TEST(test_idle_power_above_the_mean),
		TEST(test_active_time_is_weighted_by_utilisation),
		TEST(test_a_counter_that_goes_back),
		TEST(test_a_counter_that_is_not_there),
		TEST(test_readings_wait_for_time),
		TEST(test_slots_get_their_part),
		TEST(test_more_readings_than_room),
		TEST(test_more_pieces_than_room),
		TEST(test_unobserved_time_has_energy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

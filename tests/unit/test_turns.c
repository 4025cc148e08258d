/* When each process used the card during a drain, worked out by hand; and for processes that
 * take turns at random, whose samples and means are made from what they did. */
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "classify/turns.h"

enum { SAMPLES = 6 };

/* A drain of six samples, 100 ms each. */
static struct turn_card card(const double pct[SAMPLES])
{
	struct turn_card c = { .to_ms = { 1000 } };
	for (int i = 0; i < SAMPLES; i++)
		turns_add(&c, 1000 + 100 * (i + 1), pct[i]);
	return c;
}

static struct turn_use use(double mean_pct, double last_pct)
{
	return (struct turn_use){
		.mean_pct = mean_pct, .last_pct = last_pct, .last_mean_pct = NAN
	};
}

static void expect(const struct turn_use *u, double from_ms, double to_ms, double pct)
{
	if (isinf(from_ms) || isinf(to_ms))
		assert_true(isinf(from_ms) == isinf(u->turn.from_ms) &&
			    isinf(to_ms) == isinf(u->turn.to_ms));
	if (!isinf(from_ms))
		assert_float_equal(u->turn.from_ms, from_ms, 5);
	if (!isinf(to_ms))
		assert_float_equal(u->turn.to_ms, to_ms, 5);
	assert_float_equal(u->turn.pct, pct, 2);
}

static void test_both_all_the_time(void **state)
{
	(void)state;
	struct turn_card c = card((double[]){ 70, 70, 70, 70, 70, 70 });
	struct turn_use u[] = { use(30, 30), use(40, 40) };
	turns_find(&c, u, 2);
	expect(&u[0], -INFINITY, INFINITY, 30);
	expect(&u[1], -INFINITY, INFINITY, 40);
	assert_float_equal(u[1].turn.last_pct, 40, 0.1);
	assert_float_equal(u[1].turn.mean_pct, 40, 0.1);
}

/* One stops and the other begins, at 1200 ms. */
static void test_a_change_of_hands(void **state)
{
	(void)state;
	struct turn_card c = card((double[]){ 80, 80, 30, 30, 30, 30 });
	struct turn_use u[] = { use(80 * 2 / 6., 80), use(30 * 4 / 6., 0) };
	turns_find(&c, u, 2);
	expect(&u[0], -INFINITY, 1200, 80);
	expect(&u[1], 1200, INFINITY, 30);
	assert_float_equal(u[0].turn.last_pct, 0, 0);
}

/* The card does the same all the time: only what they did before tells them apart. */
static void test_a_change_of_hands_at_the_same_level(void **state)
{
	(void)state;
	struct turn_card c = card((double[]){ 50, 50, 50, 50, 50, 50 });
	struct turn_use u[] = { use(50 / 3., 50), use(100 / 3., 0) };
	turns_find(&c, u, 2);
	expect(&u[0], -INFINITY, 1200, 50);
	expect(&u[1], 1200, INFINITY, 50);
}

/* An edge within a sample: the level from before says where. */
static void test_an_edge_within_a_sample(void **state)
{
	(void)state;
	struct turn_card c = card((double[]){ 90, 90, 66, 30, 30, 30 });
	struct turn_use u[] = { use(60 * 2.6 / 6, 60), use(30, 30) };
	turns_find(&c, u, 2);
	expect(&u[0], -INFINITY, 1260, 60);
	expect(&u[1], -INFINITY, INFINITY, 30);
}

/* Together they would use more than there is. */
static void test_a_full_card(void **state)
{
	(void)state;
	struct turn_card c = card((double[]){ 80, 80, 80, 100, 100, 100 });
	struct turn_use u[] = { use(80, 80), use(30, 0) };
	turns_find(&c, u, 2);
	expect(&u[0], -INFINITY, INFINITY, 80);
	expect(&u[1], 1300, INFINITY, 60);
	/* Nobody knows how much of the card it would use alone. */
	assert_true(isnan(u[1].turn.last_pct));
}

static void test_pieces(void **state)
{
	(void)state;
	struct turn_card c = { .to_ms = { 0 }, .least_ms = 250 };
	turns_add(&c, 100, 50);
	turns_add(&c, 100, 90); /* of no length */
	turns_add(&c, 200, 51);
	turns_add(&c, 300, 50);
	turns_add(&c, 400, 50);
	turns_add(&c, 500, 0);
	assert_int_equal(c.n, 3);
	assert_float_equal(c.to_ms[1], 300, 0);
	assert_true(fabs(c.pct[0] - 151 / 3.) < 0.001);
	for (int i = 0; i < 2 * TURNS_PIECES; i++)
		turns_add(&c, 600 + i, i % 2 ? 90 : 10);
	assert_int_equal(c.n, TURNS_PIECES);
	assert_float_equal(c.to_ms[c.n], 600 + 2 * TURNS_PIECES - 1, 0);
}

/* Two processes that begin or end once in an hour of drains of a second: the time that is found
 * for each is that of its use, but for what a full card hides. */
static void test_turns_at_random(void **state)
{
	(void)state;
	enum { DRAINS = 3600, STEPS = 120 };
	unsigned seed = 1;
	double pct[2] = { 60, 0 }, found_ms[2] = { 0 }, true_ms[2] = { 0 }, off_ms = 0;
	struct turn_use u[2] = { use(0, 60), use(0, 0) };
	for (int drain = 0; drain < DRAINS; drain++) {
		double sample[SAMPLES] = { 0 }, mean[2] = { 0 }, on_ms[2] = { 0 };
		int turn_at[2] = { rand_r(&seed) % (4 * STEPS), rand_r(&seed) % (4 * STEPS) };
		for (int k = 0; k < STEPS; k++) {
			for (int i = 0; i < 2; i++) {
				if (k == turn_at[i])
					pct[i] = pct[i] > 0 ? 0 : 15 + rand_r(&seed) % 86;
				mean[i] += pct[i] / STEPS;
				on_ms[i] += pct[i] > 0 ? 600. / STEPS : 0;
			}
			sample[k * SAMPLES / STEPS] +=
				fmin(100, pct[0] + pct[1]) * SAMPLES / STEPS;
		}
		if (!(mean[0] > 0 && mean[1] > 0)) {
			for (int i = 0; i < 2; i++)
				u[i].turn = (struct turn){ .last_pct = pct[i],
					.mean_pct = mean[i] };
		} else {
			struct turn_card c = card(sample);
			for (int i = 0; i < 2; i++)
				u[i] = (struct turn_use){ .mean_pct = mean[i],
					.last_pct = u[i].turn.last_pct,
					.last_mean_pct = u[i].turn.mean_pct };
			turns_find(&c, u, 2);
			for (int i = 0; i < 2; i++) {
				double ms = fmin(u[i].turn.to_ms, 1600) -
					    fmax(u[i].turn.from_ms, 1000);
				true_ms[i] += on_ms[i];
				found_ms[i] += ms;
				off_ms += fabs(ms - on_ms[i]) / 2;
			}
		}
	}
	for (int i = 0; i < 2; i++) {
		assert_true(true_ms[i] > 200000);
		assert_true(fabs(found_ms[i] - true_ms[i]) < 0.03 * true_ms[i]);
	}
	assert_true(off_ms < 0.025 * (true_ms[0] + true_ms[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_all_the_time),
		cmocka_unit_test(test_a_change_of_hands),
		cmocka_unit_test(test_a_change_of_hands_at_the_same_level),
		cmocka_unit_test(test_an_edge_within_a_sample),
		cmocka_unit_test(test_a_full_card),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_turns_at_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

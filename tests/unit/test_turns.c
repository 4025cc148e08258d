/* When each process used the card, from its use in the parts of a drain: worked out by hand,
 * and for processes that take turns at random, whose means are made from what they did. */
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "classify/turns.h"

enum { PARTS = 6, PART_MS = 100, BEGIN_MS = 1000 };
#define ACTIVE_PCT 10

static const double nothing[COVER_BESIDE] = { 0, 0 };

/* Six parts, 100 ms each. */
static struct turn_parts six_parts(void)
{
	struct turn_parts parts = { .from_us = BEGIN_MS * 1000, .n = PARTS };
	for (int64_t i = 0; i < PARTS; i++)
		parts.to_us[i] = (BEGIN_MS + (i + 1) * PART_MS) * 1000;
	return parts;
}

static struct turn in_part(const double pct[PARTS], const double *before, size_t at)
{
	struct turn_parts parts = six_parts();
	return turns_in_part(&parts, pct, before, at, ACTIVE_PCT);
}

static void expect(struct turn turn, double from_ms, double to_ms, double pct)
{
	if (isinf(from_ms))
		assert_true(isinf(turn.from_ms) && (from_ms > 0) == (turn.from_ms > 0));
	else
		assert_float_equal(turn.from_ms, from_ms, 0.01);
	if (isinf(to_ms))
		assert_true(isinf(turn.to_ms));
	else
		assert_float_equal(turn.to_ms, to_ms, 0.01);
	assert_float_equal(turn.pct, pct, 0.01);
}

/* Use from 1140 to 1430 ms, at 50 %. */
static void test_edges_lie_within_parts(void **state)
{
	(void)state;
	const double pct[PARTS] = { 0, 30, 50, 50, 15, 0 };
	struct turn_parts parts = six_parts();
	expect(in_part(pct, nothing, 0), INFINITY, INFINITY, 0);
	expect(in_part(pct, nothing, 1), 1140, INFINITY, 50);
	expect(in_part(pct, nothing, 2), -INFINITY, INFINITY, 50);
	expect(in_part(pct, nothing, 4), -INFINITY, 1430, 50);
	expect(turns_in_all(&parts, pct, nothing, ACTIVE_PCT), 1140, 1430, 50);
}

/* The first part is compared with the drain before. */
static void test_use_goes_on_from_before(void **state)
{
	(void)state;
	const double pct[PARTS] = { 20, 0, 0, 0, 0, 0 }, before[] = { 80, 80 };
	struct turn_parts parts = six_parts();
	expect(in_part(pct, before, 0), -INFINITY, 1025, 80);
	expect(turns_in_all(&parts, pct, before, ACTIVE_PCT), -INFINITY, 1025, 80);
}

/* Use that was there before stays without a begin, however many parts it goes on for. */
static void test_use_goes_on_for_several_parts(void **state)
{
	(void)state;
	const double pct[PARTS] = { 80, 80, 80, 20, 0, 0 }, before[] = { 80, 80 };
	struct turn_parts parts = six_parts();
	expect(turns_in_all(&parts, pct, before, ACTIVE_PCT), -INFINITY, 1325, 80);
}

/* Nothing is known of what comes after the last part. */
static void test_the_last_part(void **state)
{
	(void)state;
	expect(in_part((double[PARTS]){ 80, 80, 80, 80, 80, 79 }, nothing, 5), -INFINITY,
		INFINITY, 79);
	expect(in_part((double[PARTS]){ 80, 80, 80, 80, 80, 20 }, nothing, 5), -INFINITY, 1525,
		80);
	/* It may be short and high or long and low. */
	expect(in_part((double[PARTS]){ 0, 0, 0, 0, 0, 25 }, nothing, 5), 1550, INFINITY, 50);
}

/* Less than what counts as use still counts together with the use of others. */
static void test_a_little_use_is_a_turn(void **state)
{
	(void)state;
	const double pct[PARTS] = { 0, 4, 4, 4, 4, 4 };
	struct turn_parts parts = six_parts();
	expect(in_part(pct, nothing, 2), -INFINITY, INFINITY, 4);
	expect(turns_in_all(&parts, pct, nothing, ACTIVE_PCT), INFINITY, INFINITY, 0);
}

static void test_parts_are_differences_of_means(void **state)
{
	(void)state;
	struct turn_parts parts = six_parts();
	double pct[PARTS];
	/* 60 % in the third and fourth part. */
	turns_divide(&parts, (double[PARTS]){ 20, 24, 30, 20, 0, 0 }, pct);
	for (int i = 0; i < PARTS; i++)
		assert_float_equal(pct[i], i == 2 || i == 3 ? 60 : 0, 0.01);
	/* Always 33.4 %, which is rounded. */
	turns_divide(&parts, (double[PARTS]){ 33, 33, 33, 33, 33, 33 }, pct);
	for (int i = 0; i < PARTS; i++)
		assert_float_equal(pct[i], 33, 0.01);
	/* A difference as small as the rounding is none, and nothing is above 100 %. */
	turns_divide(&parts, (double[PARTS]){ 51, 60, 75, 99, 100, 100 }, pct);
	assert_float_equal(pct[0], 6, 0.01);
	turns_divide(&parts, (double[PARTS]){ 50, 60, 75, 100, 100, 99 }, pct);
	assert_float_equal(pct[0], 0, 0);
	assert_float_equal(pct[4], 100, 0);
}

/* Random turns of at least three parts: the time found is that of the use. */
static void test_random_turns(void **state)
{
	(void)state;
	struct turn_parts parts = six_parts();
	double most_ms = 0, sum_ms = 0;
	srand(7);
	for (int run = 0; run < 1000; run++) {
		double from = rand() % 250, to = from + 300 + rand() % 50;
		double level = 20 + rand() % 80, since[PARTS], pct[PARTS];
		for (int i = 0; i < PARTS; i++) {
			double begin = fmax(from, i * PART_MS);
			double use = to > begin ? (to - begin) * level : 0;
			since[i] = round(use / ((PARTS - i) * PART_MS));
		}
		turns_divide(&parts, since, pct);
		struct turn turn = turns_in_all(&parts, pct, nothing, ACTIVE_PCT);
		double off = fmax(turn.from_ms, BEGIN_MS) - BEGIN_MS - from;
		double end = fmin(turn.to_ms, BEGIN_MS + PARTS * PART_MS) - BEGIN_MS - to;
		most_ms = fmax(most_ms, fmax(fabs(off), fabs(end)));
		sum_ms += end - off;
	}
	assert_true(most_ms < PART_MS + 1);
	assert_true(fabs(sum_ms / 1000) < 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges_lie_within_parts),
		cmocka_unit_test(test_use_goes_on_from_before),
		cmocka_unit_test(test_use_goes_on_for_several_parts),
		cmocka_unit_test(test_the_last_part),
		cmocka_unit_test(test_a_little_use_is_a_turn),
		cmocka_unit_test(test_parts_are_differences_of_means),
		cmocka_unit_test(test_random_turns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

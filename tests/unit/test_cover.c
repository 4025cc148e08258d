/* How much of a sample's period was use: worked out by hand, and for all the ways in which a
 * stretch of use can lie across periods. */
#include "test.h"

#include <math.h>
#include <stdbool.h>

#include "classify/cover.h"

#define ACTIVE 10

static struct cover cover(double a, double b, double c, double d, double e)
{
	const double around[] = { a, b, c, d, e };
	return cover_of(around, ACTIVE);
}

static void expect(struct cover c, double from, double part)
{
	assert_float_equal(c.part, part, 1e-9);
	if (part > 0)
		assert_float_equal(c.from, from, 1e-9);
}

static void test_inside_and_outside(void **state)
{
	(void)state;
	expect(cover(80, 80, 80, 80, 80), 0, 1);
	expect(cover(80, 30, 20, 90, 90), 0, 1);
	expect(cover(0, 0, 0, 0, 0), 0, 0);
	expect(cover(9, 9, 9, 9, 9), 0, 0);
	assert_float_equal(cover(9, 9, 9, 9, 9).unused_pct, 9, 0);
	assert_float_equal(cover(80, 30, 20, 90, 90).used_pct, 20, 0);
}

static void test_edges(void **state)
{
	(void)state;
	expect(cover(0, 0, 40, 80, 80), 0.5, 0.5);
	expect(cover(80, 80, 20, 0, 0), 0, 0.25);
	/* Below the threshold, beside a stretch. */
	expect(cover(0, 0, 6, 80, 80), 1 - 0.075, 0.075);
	expect(cover(80, 80, 6, 0, 0), 0, 0.075);
	expect(cover(0, 6, 80, 80, 80), 0, 1);
	expect(cover(80, 80, 80, 6, 0), 0, 1);
	/* More than the level inside. */
	expect(cover(0, 0, 90, 80, 80), 0, 1);
	/* A card that always shows 5 %. */
	expect(cover(5, 5, 5, 80, 80), 0, 0);
	expect(cover(5, 5, 42.5, 80, 80), 0.5, 0.5);
	assert_float_equal(cover(5, 5, 42.5, 80, 80).used_pct, 80, 1e-9);
	assert_float_equal(cover(5, 5, 42.5, 80, 80).unused_pct, 5, 1e-9);
}

/* No sample inside tells the level: 100. */
static void test_short_stretches(void **state)
{
	(void)state;
	expect(cover(0, 0, 40, 0, 0), 0.3, 0.4);
	expect(cover(0, 0, 40, 30, 0), 0.6, 0.4);
	expect(cover(0, 40, 30, 0, 0), 0, 0.3);
	expect(cover(0, 0, 6, 30, 0), 0.94, 0.06);
	expect(cover(0, 6, 30, 0, 0), 0, (30 - 0) / 100.);
	expect(cover(0, 0, 6, 0, 0), 0, 0);
	expect(cover(80, 80, 8, 80, 80), 0, 0.1);
}

static void test_unknown_neighbours(void **state)
{
	(void)state;
	expect(cover(NAN, NAN, 40, NAN, NAN), 0, 1);
	expect(cover(NAN, NAN, 6, NAN, NAN), 0, 0);
	expect(cover(NAN, NAN, 40, 0, 0), 0, 1);
	expect(cover(0, 0, 40, NAN, NAN), 0, 1);
	expect(cover(0, 0, 40, 80, NAN), 0.5, 0.5);
	expect(cover(0, 0, NAN, 0, 0), 0, 0);
	assert_true(isnan(cover(0, 0, NAN, 0, 0).unused_pct));
}

enum { PERIODS = 12 };

/* Samples of use of `level` from one moment to another, in periods. */
static void make_samples(double samples[PERIODS], double level, double from, double to)
{
	for (int i = 0; i < PERIODS; i++) {
		double begin = from > i ? from : i, end = to < i + 1 ? to : i + 1;
		samples[i] = end > begin ? level * (end - begin) : 0;
	}
}

/* All stretches that are long enough to show their level are found exactly; short ones are if
 * their level is 100. Use is never lost: parts times levels are the samples. */
static void test_every_position(void **state)
{
	(void)state;
	for (double level = 20; level <= 100; level += 16)
		for (double from = 3; from < 4; from += 0.0625)
			for (double length = 0.125; length < 5; length += 0.125) {
				double samples[PERIODS], sum = 0;
				make_samples(samples, level, from, from + length);
				for (int i = 2; i + 2 < PERIODS; i++) {
					struct cover c = cover_of(samples + i - 2, ACTIVE);
					double pct = c.part * c.used_pct;
					if (c.part < 1)
						pct += (1 - c.part) * c.unused_pct;
					assert_float_equal(pct, samples[i], 1e-9);
					assert_true(c.from >= 0 && c.from + c.part < 1 + 1e-9);
					sum += c.part;
				}
				if (length >= 3 || level == 100)
					/* Less than the threshold in both periods. */
					assert_true(fabs(sum - length) <=
						    (length < 0.2 ? length : 1e-9));
			}
}

/* How often a sample that is read at a random moment is use: more often than there was use. */
static void test_excess(void **state)
{
	(void)state;
	const double step = 1.0 / 1024, length = 3;
	for (double level = 20; level <= 100; level += 20) {
		double seen = 0;
		for (double end = 0; end < length + 1; end += step)
			if (level * fmin(fmin(end, 1), length + 1 - end) >= ACTIVE)
				seen += step;
		assert_float_equal((seen - length), cover_excess(level, ACTIVE), 0.003);
	}
	assert_float_equal(cover_excess(15, ACTIVE), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inside_and_outside),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_short_stretches),
		cmocka_unit_test(test_unknown_neighbours),
		cmocka_unit_test(test_every_position),
		cmocka_unit_test(test_excess),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

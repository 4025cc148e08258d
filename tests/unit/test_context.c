/* What a bare context is, and how it is learned. */
#include "test.h"

#include "classify/context.h"

#define MIB (1LL << 20)

static void test_the_range(void **state)
{
	(void)state;
	assert_false(context_may_be(-1));
	assert_false(context_may_be(CONTEXT_LEAST_BYTES - 1));
	assert_true(context_may_be(CONTEXT_LEAST_BYTES));
	assert_true(context_may_be(CONTEXT_MOST_BYTES));
	assert_false(context_may_be(CONTEXT_MOST_BYTES + 1));
}

static void test_a_holder_is_compared_with_the_floor(void **state)
{
	(void)state;
	assert_int_equal(context_judge(PROCESS_COMPUTE, 400 * MIB, -1), CONTEXT_ABOUT);
	assert_int_equal(context_judge(PROCESS_COMPUTE, 400 * MIB, 320 * MIB), CONTEXT_ONLY);
	assert_int_equal(context_judge(PROCESS_COMPUTE, 401 * MIB, 320 * MIB), CONTEXT_ABOUT);
	assert_int_equal(context_judge(PROCESS_COMPUTE, 900 * MIB, 800 * MIB), CONTEXT_MORE);
	assert_int_equal(context_judge(PROCESS_COMPUTE, -1, 320 * MIB), CONTEXT_MORE);
	assert_int_equal(context_judge(PROCESS_MPS, 400 * MIB, 400 * MIB), CONTEXT_MORE);
}

static void test_the_least_idle_process_is_the_floor(void **state)
{
	(void)state;
	struct context_floors f = { 0 };
	struct err e = { 0 };
	assert_int_equal(context_floor(&f, "T4"), -1);
	const int64_t seen[] = { 500 * MIB, 300 * MIB, 400 * MIB, 20 * MIB, 2000 * MIB, -1 };
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		assert_int_equal(context_learn_idle(&f, "T4", seen[i], &e), 0);
	assert_int_equal(context_floor(&f, "T4"), 300 * MIB);
	assert_int_equal(context_floor(&f, "L4"), -1);
	context_finish(&f);
}

static void test_several_lives_must_agree(void **state)
{
	(void)state;
	struct context_floors f = { 0 };
	struct context_lives lives = { 0 };
	struct err e = { 0 };
	const struct {
		const char *name;
		int64_t bytes;
	} lived[] = {
		{ "A100", 10 * MIB }, /* out of the range: no lesson */
		{ "A100", 100 * MIB },
		{ "A100", 400 * MIB },
		{ "A100", 410 * MIB },
		{ "A100", 420 * MIB },
		{ "A100", 430 * MIB },
		{ "T4", 100 * MIB },
		{ "T4", 101 * MIB },
	};
	for (size_t i = 0; i < sizeof(lived) / sizeof(lived[0]); i++)
		assert_int_equal(
			context_learn_life(&f, &lives, lived[i].name, lived[i].bytes, &e), 0);
	assert_int_equal(context_floor(&f, "A100"), 400 * MIB);
	assert_int_equal(context_floor(&f, "T4"), -1);
	context_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_range),
		cmocka_unit_test(test_a_holder_is_compared_with_the_floor),
		cmocka_unit_test(test_the_least_idle_process_is_the_floor),
		cmocka_unit_test(test_several_lives_must_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

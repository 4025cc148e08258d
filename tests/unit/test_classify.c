/* The definitions of the states, one by one. */
#include "test.h"

#include <math.h>
#include <stdbool.h>

#include "classify/classify.h"

static const struct rules rules = RULES_DEFAULT;
#define MB 1000000LL

static struct holder held_since_ever(uint32_t user, int64_t mem_bytes, double sm_pct)
{
	return (struct holder){
		.user = user,
		.mem_bytes = mem_bytes,
		.sm_pct = sm_pct,
		.from_ms = INT64_MIN,
		.to_ms = INT64_MAX,
	};
}

static void test_card_states(void **state)
{
	(void)state;
	struct held none = { 0 }, limit = { .bytes = 100 * MB, .n = 1 };
	struct held more = { .bytes = 100 * MB + 1, .n = 1 },
		    unknown = { .unknown = true, .n = 1 };
	assert_int_equal(classify_card(10, none, &rules), CARD_ACTIVE);
	assert_int_equal(classify_card(100, more, &rules), CARD_ACTIVE);
	assert_int_equal(classify_card(9.99, none, &rules), CARD_TRULY_IDLE);
	assert_int_equal(classify_card(0, limit, &rules), CARD_TRULY_IDLE);
	assert_int_equal(classify_card(0, more, &rules), CARD_IDLE_HELD);
	assert_int_equal(classify_card(0, unknown, &rules), CARD_IDLE_HELD);
}

static void test_holders_add_up(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 60 * MB, 0), held_since_ever(1, 50 * MB, 0) };
	struct held held = held_at(h, 2, 0);
	assert_int_equal(held.bytes, 110 * MB);
	assert_int_equal(held.n, 2);
	assert_int_equal(classify_card(0, held, &rules), CARD_IDLE_HELD);
	/* Together they hold the card idle, but neither holds more than the threshold itself.
	 */
	assert_int_equal(
		classify_holder(h, 2, 0, CARD_IDLE_HELD, 0, &rules), HOLDER_TRULY_IDLE);
	h[0].to_ms = -1;
	assert_int_equal(held_at(h, 2, 0).n, 1);
	h[1].from_ms = 1;
	assert_int_equal(held_at(h, 2, 0).n, 0);
}

static void test_idle_holder(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 8000 * MB, 0), held_since_ever(1, 50 * MB, 0),
		held_since_ever(1, 51 * MB, 0), held_since_ever(2, -1, 0) };
	assert_int_equal(classify_holder(h, 4, 0, CARD_IDLE_HELD, 0, &rules), HOLDER_IDLE_HELD);
	assert_int_equal(classify_holder(h, 4, 1, CARD_IDLE_HELD, 0, &rules), HOLDER_IDLE_HELD);
	assert_int_equal(classify_holder(h, 4, 3, CARD_IDLE_HELD, 0, &rules), HOLDER_IDLE_HELD);
}

static void expect_use(
	struct holder *h, size_t n, struct use_since use, const enum holder_state *expected)
{
	classify_use(h, n, &use, &rules);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(classify_holder(h, n, i, CARD_ACTIVE, 0, &rules), expected[i]);
}

static void test_squatter(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 8000 * MB, 90),
		held_since_ever(1, 8000 * MB, 0) };
	struct use_since use = { true, 90, 1 };
	expect_use(h, 2, use, (enum holder_state[]){ HOLDER_ACTIVE, HOLDER_SQUATTING });
}

static void test_without_process_use_all_share_the_card(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 8000 * MB, NAN),
		held_since_ever(1, 8000 * MB, NAN) };
	struct use_since use = { false, 90, 1 };
	expect_use(h, 2, use, (enum holder_state[]){ HOLDER_ACTIVE, HOLDER_ACTIVE });
}

static void test_nobody_squats_on_himself(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(7, 8000 * MB, 90),
		held_since_ever(7, 500 * MB, 0) };
	struct use_since use = { true, 90, 1 };
	expect_use(h, 2, use, (enum holder_state[]){ HOLDER_ACTIVE, HOLDER_ACTIVE });
}

static void test_a_burst_is_not_idle(void **state)
{
	(void)state;
	/* 100 % in a twentieth of the samples: a mean of 5 %, below the threshold. */
	struct holder h[] = { held_since_ever(0, 8000 * MB, 5),
		held_since_ever(1, 8000 * MB, 0) };
	struct use_since use = { true, 5, 0.05 };
	expect_use(h, 2, use, (enum holder_state[]){ HOLDER_ACTIVE, HOLDER_SQUATTING });
}

static void test_small_uses_that_add_up(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 8000 * MB, 8),
		held_since_ever(1, 8000 * MB, 8), held_since_ever(2, 8000 * MB, 8) };
	struct use_since use = { true, 24, 1 };
	expect_use(h, 3, use,
		(enum holder_state[]){ HOLDER_ACTIVE, HOLDER_ACTIVE, HOLDER_ACTIVE });
}

static void test_squatting_beside_a_desktop(void **state)
{
	(void)state;
	/* The card is busy with something that is no holder. */
	struct holder h[] = { held_since_ever(0, 8000 * MB, 0) };
	struct use_since use = { true, 40, 1 };
	expect_use(h, 1, use, (enum holder_state[]){ HOLDER_SQUATTING });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_card_states),
		cmocka_unit_test(test_holders_add_up),
		cmocka_unit_test(test_idle_holder),
		cmocka_unit_test(test_squatter),
		cmocka_unit_test(test_without_process_use_all_share_the_card),
		cmocka_unit_test(test_nobody_squats_on_himself),
		cmocka_unit_test(test_a_burst_is_not_idle),
		cmocka_unit_test(test_small_uses_that_add_up),
		cmocka_unit_test(test_squatting_beside_a_desktop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

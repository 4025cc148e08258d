/* Policy: what is judged, when, and what must never happen. */
#include "test.h"

#include <stdio.h>

#include "policy_fixture.h"

/* Sanitizers make it ten times as slow. */
#ifdef __SANITIZE_ADDRESS__
enum { HISTORIES = 8000 };
#else
enum { HISTORIES = 100000 };
#endif

static void test_random_histories(void **state)
{
	struct policy_checked sum = { 0 };
	(void)state;
	for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
		const char *wrong = policy_check_random(seed, &sum);
		if (wrong)
			fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
	}
	/* Nothing is proved by histories in which nothing happens. */
	assert_true(sum.ends > HISTORIES / 20 && sum.would_ends > HISTORIES / 10);
	assert_true(sum.recovered > HISTORIES / 10 && sum.kept > HISTORIES / 100);
	assert_true(sum.exempt > HISTORIES / 10 && sum.blind > HISTORIES / 10);
	assert_true(sum.quiet > HISTORIES / 100);
	assert_true(sum.renewed > HISTORIES / 2000);
	assert_true(sum.reborn > HISTORIES / 2000);
	assert_true(sum.joined > HISTORIES / 2000);
	assert_true(sum.held > HISTORIES / 200);
}

/* Histories beyond those above that were once judged wrongly. */
static void test_histories_that_were_wrong(void **state)
{
	/* An old process was in use beside a newer one when its session had ended on paper. */
	static const uint64_t seeds[] = { 1001562 };
	struct policy_checked sum = { 0 };
	(void)state;
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		assert_null(policy_check_random(seeds[i], &sum));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histories_that_were_wrong),
		cmocka_unit_test(test_random_histories),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

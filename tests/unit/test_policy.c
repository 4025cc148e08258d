/* Policy: what is judged, when, and what must never happen. */
#include "test.h"

#include <stdio.h>

#include "policy/judge.h"
#include "policy_fixture.h"

/* Sanitizers make it ten times as slow. */
#ifdef __SANITIZE_ADDRESS__
enum { ALL_HISTORIES = 8000, HISTORIES = 4000 };
#else
enum { ALL_HISTORIES = 100000, HISTORIES = 20000 };
#endif

static void test_random_histories(void **state)
{
	const size_t histories = plays_all() ? ALL_HISTORIES : HISTORIES;
	struct policy_checked sum = { 0 };
	(void)state;
	for (uint64_t seed = 1; seed <= histories; seed++) {
		const char *wrong = policy_check_random(seed, &sum);
		if (wrong)
			fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
	}
	/* Nothing is proved by histories in which nothing happens. */
	assert_true(sum.ends > histories / 20 && sum.would_ends > histories / 10);
	assert_true(sum.recovered > histories / 10 && sum.kept > histories / 100);
	assert_true(sum.exempt > histories / 10 && sum.blind > histories / 10);
	assert_true(sum.quiet > histories / 100);
	assert_true(sum.renewed > histories / 2000);
	assert_true(sum.reborn > histories / 2000);
	assert_true(sum.joined > histories / 2000);
	assert_true(sum.held > histories / 200);
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

/* The stage after a notice counts from its delivery, not from the pass that saw it; time that
 * nobody saw in between does not count. */
static void test_counts_from_the_delivery(void **state)
{
	enum { S = 1000 };
	const int64_t now_ms = INT64_C(1794528000000);
	struct config_rule rule = { .name = "only",
		.warn_ms = 60 * S,
		.again_ms = AT_NEVER,
		.final_ms = 60 * S,
		.end_ms = 180 * S,
		.level = "end" };
	const struct config config = { .policy_rules = { &rule, 1 } };
	struct idle_blind blind = { .from_ms = now_ms - 30 * S, .to_ms = now_ms - 20 * S };
	const struct idle_session session = { .key = "a", .user = "ann", .use = USE_BATCH };
	struct idle_session blinded = session;
	struct idle_history history = { .present = true, .blinds = &blind, .n_blinds = 1 };
	const struct policy policy = {
		.config = &config, .history = &history, .enforce = true, .may_end = true
	};
	struct session_facts facts = { .session = &session,
		.holds = true,
		.observed = true,
		.idle = true,
		.idle_since_ms = now_ms - 110 * S,
		.clock_ms = 100 * S,
		.kept_until_ms = -1,
		.delivered_ms = now_ms - 40 * S };
	const struct policy_state warned = { .stage = STAGE_WARN,
		.level = LEVEL_END,
		.idle_since_ms = facts.idle_since_ms,
		.stage_ms = now_ms - 45 * S,
		.delivered_ms = -1,
		.rule = "only" };
	(void)state;
	blinded.blinds.n = 1;
	/* The last reading was 10 s ago, with the clock at 100 s: 70 s when it was delivered.
	 */
	history.last_tick_ms = now_ms - 10 * S;
	struct verdict v = judge(&policy, &facts, &warned, now_ms);
	assert_int_equal(v.hold, HOLD_EARLY);
	assert_int_equal(v.next, STAGE_FINAL);
	assert_int_equal(v.state.delivered_ms, facts.delivered_ms);
	assert_int_equal(v.state.next_clock_ms, 130 * S);
	facts.session = &blinded;
	assert_int_equal(judge(&policy, &facts, &warned, now_ms).state.next_clock_ms, 140 * S);
	/* After the last reading, time goes on. */
	facts.delivered_ms = now_ms - 4 * S;
	assert_int_equal(judge(&policy, &facts, &warned, now_ms).state.next_clock_ms, 166 * S);
}

/* A forecast looks at a month, and need not judge each of its minutes. */
static void test_hours_of_calendars(void **state)
{
	enum { MIN = 60000, HOUR = 60 * MIN };
	const int64_t begin_ms = INT64_C(1794528000000); /* a full hour */
	struct config_hours working[] = { { 127, 9 * 60, 17 * 60 + 30 } },
			    quiet[] = { { 127, 0, 7 * 60 + 5 }, { 127, 22 * 60, 24 * 60 } };
	const struct config config = { .calendar = { .hours = working, .n_hours = 1 },
		.quiet = { .hours = quiet, .n_hours = 2 } };
	const struct policy policy = { .config = &config, .utc = true };
	size_t changes = 0, steps = 0;
	(void)state;
	for (int64_t at_ms = begin_ms + 1234; at_ms < begin_ms + 31LL * 24 * HOUR; steps++) {
		int64_t next_ms = rules_next_hours(&policy, at_ms);
		assert_true(next_ms > at_ms && next_ms % MIN == 0);
		/* Nothing changes before that. */
		assert_int_equal(
			rules_is_quiet(&policy, at_ms), rules_is_quiet(&policy, next_ms - 1));
		changes += rules_is_quiet(&policy, at_ms) != rules_is_quiet(&policy, next_ms);
		at_ms = next_ms;
	}
	assert_int_equal(changes, 2 * 31);
	assert_int_equal(steps, 31 * 26);
	int64_t free_ms = rules_after_quiet(&policy, begin_ms - begin_ms % (24LL * HOUR) + 1);
	assert_int_equal(free_ms % (24LL * HOUR), 7 * HOUR + 5 * MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histories_that_were_wrong),
		cmocka_unit_test(test_random_histories),
		cmocka_unit_test(test_counts_from_the_delivery),
		cmocka_unit_test(test_hours_of_calendars),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

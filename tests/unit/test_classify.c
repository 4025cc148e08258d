/* The definitions of the states of a card, a user and a process, one by one. */
#include "test.h"

#include <math.h>
#include <stdbool.h>

#include "classify/classify.h"
#include "model/reading.h"

static const struct rules rules = RULES_DEFAULT;
#define MB 1000000LL
#define SAMPLES 100 /* of a drain ... */
#define STEP_MS 50  /* ... of five seconds */

/* Each holder of a test is a process of its own unless the test says otherwise. */
static struct holder held_since_ever(
	uint32_t process, uint32_t user, int64_t mem_bytes, double sm_pct)
{
	return (struct holder){
		.process = process,
		.user = user,
		.mem_bytes = mem_bytes,
		.sm_pct = sm_pct,
		.from = EDGE_ALWAYS,
		.to = EDGE_NEVER,
	};
}

/* A drain in which the card is at `pct` in the samples from the first to before the last, and
 * does nothing in the others. */
struct drained {
	struct util_sample samples[SAMPLES];
	struct use_since use;
};

static struct drained drained(double pct, int first, int last)
{
	struct drained d;
	for (int i = 0; i < SAMPLES; i++)
		d.samples[i] = (struct util_sample){ (int64_t)i * STEP_MS * 1000,
			i >= first && i < last ? pct : 0 };
	d.use = classify_use_of_samples(d.samples, SAMPLES, true, NULL, &rules);
	return d;
}

static void classify(struct holder *h, size_t n, const struct drained *d)
{
	struct use_since use = d->use; /* made of another copy of the samples */
	use.samples = d->samples;
	classify_use(h, n, &use, &rules);
}

/* What both levels are while the card is active. */
static void expect_use(struct holder *h, size_t n, const struct drained *d,
	const enum holder_state *own, const enum holder_state *user)
{
	classify(h, n, d);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(classify_holder(CARD_ACTIVE, h[i].own_state), own[i]);
		assert_int_equal(classify_holder(CARD_ACTIVE, h[i].user_state), user[i]);
	}
}

#define STATES(...) ((const enum holder_state[]){ __VA_ARGS__ })

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

static void test_use_that_cannot_be_read(void **state)
{
	(void)state;
	struct held none = { 0 }, little = { .bytes = 1, .n = 1 };
	assert_int_equal(classify_card(NAN, none, &rules), CARD_TRULY_IDLE);
	assert_int_equal(classify_card(NAN, little, &rules), CARD_USE_UNKNOWN);
	assert_int_equal(classify_holder(CARD_USE_UNKNOWN, HOLDER_ACTIVE), HOLDER_USE_UNKNOWN);
	/* Nobody is judged by samples that say nothing. */
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 90),
		held_since_ever(1, 1, 8000 * MB, 0) };
	struct drained d = drained(NAN, 0, SAMPLES);
	expect_use(h, 2, &d, STATES(HOLDER_ACTIVE, HOLDER_ACTIVE),
		STATES(HOLDER_ACTIVE, HOLDER_ACTIVE));
}

static void test_kinds_that_hold(void **state)
{
	(void)state;
	struct rules all = rules;
	all.count_graphics = true;
	assert_true(classify_is_holder(PROCESS_COMPUTE, &rules));
	assert_true(classify_is_holder(PROCESS_COMPUTE | PROCESS_GRAPHICS, &rules));
	assert_true(classify_is_holder(PROCESS_MPS, &rules));
	assert_false(classify_is_holder(PROCESS_GRAPHICS, &rules));
	assert_true(classify_is_holder(PROCESS_GRAPHICS, &all));
}

static void test_two_small_holders_hold_the_card_together(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 60 * MB, 0),
		held_since_ever(1, 1, 60 * MB, 0) };
	struct held held = classify_held_at(h, 2, 0, HELD_COUNTED);
	assert_int_equal(held.bytes, 120 * MB);
	assert_int_equal(held.n, 2);
	assert_int_equal(classify_card(9, held, &rules), CARD_IDLE_HELD);
	assert_int_equal(classify_holder(CARD_IDLE_HELD, HOLDER_ACTIVE), HOLDER_IDLE_HELD);
	assert_int_equal(classify_holder(CARD_IDLE_HELD, HOLDER_SQUATTING), HOLDER_IDLE_HELD);
	assert_int_equal(classify_holder(CARD_TRULY_IDLE, HOLDER_ACTIVE), HOLDER_TRULY_IDLE);
	h[0].to = edge_exactly(-1);
	assert_int_equal(classify_held_at(h, 2, 0, HELD_COUNTED).n, 1);
	h[1].from = edge_exactly(1);
	assert_int_equal(classify_held_at(h, 2, 0, HELD_COUNTED).n, 0);
}

static void test_edges(void **state)
{
	(void)state;
	struct edge even = edge_between(1000, 2000), odd = edge_between(1000, 1001);
	struct edge none = edge_between(2000, 2000), wrong = edge_between(3000, 2000);
	assert_int_equal(even.lo, 1000);
	assert_int_equal(even.at, 1500);
	assert_int_equal(even.hi, 2000);
	assert_int_equal(odd.at, 1000);
	assert_int_equal(none.lo, 2000);
	assert_int_equal(none.hi, 2000);
	assert_int_equal(wrong.lo, 2000);
	assert_int_equal(wrong.at, 2000);
}

static void test_who_held_surely_and_who_may_have(void **state)
{
	(void)state;
	struct holder h = held_since_ever(0, 0, 8000 * MB, 0);
	h.from = edge_between(1000, 2000);
	h.to = edge_between(5000, 6000);
	static const struct {
		int64_t at_ms;
		bool counted, surely, maybe;
	} cases[] = { { 999, false, false, false }, { 1000, false, false, true },
		{ 1499, false, false, true }, { 1500, true, false, true },
		{ 2000, true, true, true }, { 4999, true, true, true },
		{ 5000, true, false, true }, { 5500, false, false, true },
		{ 6000, false, false, false } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t at_ms = cases[i].at_ms;
		assert_int_equal(
			classify_held_at(&h, 1, at_ms, HELD_COUNTED).n, cases[i].counted);
		assert_int_equal(
			classify_held_at(&h, 1, at_ms, HELD_SURELY).n, cases[i].surely);
		assert_int_equal(classify_held_at(&h, 1, at_ms, HELD_MAYBE).n, cases[i].maybe);
		assert_int_equal(classify_holder_counts(&h, at_ms), cases[i].counted);
	}
}

static void test_unknown_memory_is_held(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, -1, 0), held_since_ever(1, 1, 50 * MB, 0) };
	struct held held = classify_held_at(h, 2, 0, HELD_COUNTED);
	assert_true(held.unknown);
	assert_int_equal(held.bytes, 50 * MB);
	assert_int_equal(classify_card(0, held, &rules), CARD_IDLE_HELD);
}

static void test_the_busiest_leads_its_user(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 7, 1, 10), held_since_ever(1, 7, 1, 60),
		held_since_ever(2, 7, 1, 60), held_since_ever(3, 8, 1, NAN) };
	classify_leads(h, 4, 0);
	assert_true(!h[0].leads && h[1].leads && !h[2].leads && h[3].leads);
	/* Holders that are not there lead no user. */
	h[1].to = edge_exactly(0);
	classify_leads(h, 4, 0);
	assert_true(!h[0].leads && !h[1].leads && h[2].leads && h[3].leads);
}

static void test_squatter(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 90),
		held_since_ever(1, 1, 8000 * MB, 0) };
	struct drained d = drained(90, 0, SAMPLES);
	expect_use(h, 2, &d, STATES(HOLDER_ACTIVE, HOLDER_SQUATTING),
		STATES(HOLDER_ACTIVE, HOLDER_SQUATTING));
}

static void test_without_process_use_all_share_the_card(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, NAN),
		held_since_ever(1, 1, 8000 * MB, NAN) };
	struct drained d = drained(90, 0, SAMPLES);
	d.use.known = false;
	expect_use(h, 2, &d, STATES(HOLDER_ACTIVE, HOLDER_ACTIVE),
		STATES(HOLDER_ACTIVE, HOLDER_ACTIVE));
}

/* An idle process beside its owner's training holds idle itself; its owner does not. */
static void test_nobody_squats_on_himself(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 7, 8000 * MB, 90),
		held_since_ever(1, 7, 4000 * MB, 0), held_since_ever(2, 7, 50 * MB, 0),
		held_since_ever(3, 7, -1, 0) };
	struct drained d = drained(90, 0, SAMPLES);
	expect_use(h, 4, &d,
		STATES(HOLDER_ACTIVE, HOLDER_IDLE_HELD, HOLDER_TRULY_IDLE, HOLDER_IDLE_HELD),
		STATES(HOLDER_ACTIVE, HOLDER_ACTIVE, HOLDER_ACTIVE, HOLDER_ACTIVE));
}

static void test_a_user_squats_with_all_processes(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 90),
		held_since_ever(1, 1, 4000 * MB, 0), held_since_ever(2, 1, 4000 * MB, 1) };
	struct drained d = drained(90, 0, SAMPLES);
	expect_use(h, 3, &d, STATES(HOLDER_ACTIVE, HOLDER_SQUATTING, HOLDER_SQUATTING),
		STATES(HOLDER_ACTIVE, HOLDER_SQUATTING, HOLDER_SQUATTING));
}

/* The use of a user's processes adds up: 6 % and 6 % are a user at work. */
static void test_a_user_is_the_sum_of_their_processes(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 80),
		held_since_ever(1, 1, 4000 * MB, 6), held_since_ever(2, 1, 4000 * MB, 6) };
	struct drained d = drained(92, 0, SAMPLES);
	classify(h, 3, &d);
	assert_int_equal(h[1].user_state, HOLDER_ACTIVE);
	assert_int_equal(h[2].user_state, HOLDER_ACTIVE);
}

static void test_a_burst_is_not_idle(void **state)
{
	(void)state;
	/* 100 % in an eighth of the samples: a mean of 12 %, of which another needs 1.2. */
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 12),
		held_since_ever(1, 1, 8000 * MB, 0), held_since_ever(2, 2, 8000 * MB, 2) };
	struct drained d = drained(100, 40, 52);
	expect_use(h, 3, &d, STATES(HOLDER_ACTIVE, HOLDER_SQUATTING, HOLDER_ACTIVE),
		STATES(HOLDER_ACTIVE, HOLDER_SQUATTING, HOLDER_ACTIVE));
}

/* Below a tenth of active samples a whole percent is more than the threshold: not judged. */
static void test_too_little_to_judge(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 5),
		held_since_ever(1, 1, 8000 * MB, 0) };
	struct drained d = drained(100, 0, 5);
	expect_use(h, 2, &d, STATES(HOLDER_ACTIVE, HOLDER_ACTIVE),
		STATES(HOLDER_ACTIVE, HOLDER_ACTIVE));
}

/* 4 s of 20 s, at any phase against the drains, in whole percents. */
static void test_a_sole_user_never_squats(void **state)
{
	(void)state;
	const int period = 4 * SAMPLES, burst = 80; /* of 20 s and 4 s, in samples */
	for (int phase = 0; phase < period; phase++) {
		for (int drain = 0; drain < 4; drain++) {
			struct drained d;
			int active = 0;
			for (int i = 0; i < SAMPLES; i++) {
				bool on = (phase + drain * SAMPLES + i) % period < burst;
				d.samples[i] =
					(struct util_sample){ (int64_t)i * STEP_MS * 1000,
						on ? 100 : 0 };
				active += on;
			}
			d.use = classify_use_of_samples(d.samples, SAMPLES, true, NULL, &rules);
			struct holder h = held_since_ever(
				0, 0, 8000 * MB, floor(100. * active / SAMPLES));
			expect_use(&h, 1, &d, STATES(HOLDER_ACTIVE), STATES(HOLDER_ACTIVE));
		}
	}
}

/* One that was there for a tenth of the drain and used 20 % of the card meanwhile: a mean of
 * 2 %, and no squatter. Its neighbour that was there for all of it with the same mean is one.
 */
static void test_a_short_life_is_judged_over_its_own_part(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 80),
		held_since_ever(1, 1, 8000 * MB, 2), held_since_ever(2, 2, 8000 * MB, 2) };
	h[1].from = edge_exactly(1000);
	h[1].to = edge_exactly(1500);
	struct drained d = drained(84, 0, SAMPLES);
	expect_use(h, 3, &d, STATES(HOLDER_ACTIVE, HOLDER_ACTIVE, HOLDER_SQUATTING),
		STATES(HOLDER_ACTIVE, HOLDER_ACTIVE, HOLDER_SQUATTING));
}

/* One that computes before another comes is not made a squatter by the other's use. */
static void test_one_after_the_other(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 50),
		held_since_ever(1, 1, 8000 * MB, 50) };
	h[0].to = h[1].from = edge_exactly(2500);
	struct drained d = drained(100, 0, SAMPLES);
	expect_use(h, 2, &d, STATES(HOLDER_ACTIVE, HOLDER_ACTIVE),
		STATES(HOLDER_ACTIVE, HOLDER_ACTIVE));
}

/* A process whose memory changed has two stretches, and each carries its whole use. */
static void test_two_stretches_are_one_process(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 4000 * MB, 6),
		held_since_ever(0, 0, 8000 * MB, 6), held_since_ever(1, 1, 8000 * MB, 80) };
	h[0].to = h[1].from = edge_exactly(2500);
	struct drained d = drained(86, 0, SAMPLES);
	expect_use(h, 3, &d, STATES(HOLDER_SQUATTING, HOLDER_SQUATTING, HOLDER_ACTIVE),
		STATES(HOLDER_SQUATTING, HOLDER_SQUATTING, HOLDER_ACTIVE));
	/* Nor does it explain twice what the card did: a desktop used the other half. */
	struct holder two[] = { h[0], h[1], held_since_ever(2, 2, 8000 * MB, 0) };
	two[0].sm_pct = two[1].sm_pct = 8;
	d = drained(20, 0, SAMPLES);
	classify(two, 3, &d);
	assert_int_equal(two[2].user_state, HOLDER_SQUATTING);
}

static void test_small_uses_that_add_up(void **state)
{
	(void)state;
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 8),
		held_since_ever(1, 1, 8000 * MB, 8), held_since_ever(2, 2, 8000 * MB, 8) };
	struct drained d = drained(24, 0, SAMPLES);
	expect_use(h, 3, &d, STATES(HOLDER_ACTIVE, HOLDER_ACTIVE, HOLDER_ACTIVE),
		STATES(HOLDER_ACTIVE, HOLDER_ACTIVE, HOLDER_ACTIVE));
}

static void test_squatting_beside_a_desktop(void **state)
{
	(void)state;
	/* The card is busy with something that is no holder. */
	struct holder h[] = { held_since_ever(0, 0, 8000 * MB, 0) };
	struct drained d = drained(40, 0, SAMPLES);
	expect_use(h, 1, &d, STATES(HOLDER_SQUATTING), STATES(HOLDER_SQUATTING));
}

static void test_what_is_latched(void **state)
{
	(void)state;
	struct drained d = drained(100, 0, SAMPLES);
	assert_true(classify_is_latched(d.samples, SAMPLES, 0, &rules));
	assert_true(classify_is_latched(d.samples, SAMPLES, rules.held_mem_bytes, &rules));
	assert_false(classify_is_latched(d.samples, SAMPLES, rules.held_mem_bytes + 1, &rules));
	assert_false(classify_is_latched(d.samples, SAMPLES, -1, &rules));
	assert_false(classify_is_latched(d.samples, 0, 0, &rules));
	d.samples[SAMPLES - 1].util_pct = 95;
	assert_true(classify_is_latched(d.samples, SAMPLES, 0, &rules));
	d.samples[SAMPLES - 1].util_pct = 94;
	assert_false(classify_is_latched(d.samples, SAMPLES, 0, &rules));
	d.samples[SAMPLES - 1].util_pct = NAN;
	assert_false(classify_is_latched(d.samples, SAMPLES, 0, &rules));
}

static void test_what_the_driver_may_keep_for_itself(void **state)
{
	(void)state;
	struct card_reading r = { .mem_used_bytes = 600 * MB };
	r.id.mem_total_bytes = 80000 * MB;
	assert_int_equal(classify_reserve_bytes(&r), 0);
	r.mem_includes_reserved = true;
	assert_int_equal(classify_reserve_bytes(&r), 600 * MB);
	r.mem_used_bytes = 5000 * MB;
	assert_int_equal(classify_reserve_bytes(&r), 1600 * MB);
	r.id.mem_total_bytes = -1;
	assert_int_equal(classify_reserve_bytes(&r), 1LL << 30);
}

static void test_use_of_samples(void **state)
{
	(void)state;
	struct drained d = drained(80, 0, 25);
	assert_true(d.use.known);
	assert_true(fabs(d.use.mean_pct - 20) < 1e-9);
	assert_true(fabs(d.use.active_part - 0.25) < 1e-9);
	struct use_since none = classify_use_of_samples(NULL, 0, false, NULL, &rules);
	assert_false(none.known);
	assert_true(none.mean_pct == 0 && none.active_part == 0);
}

/* The only process that used the card did so when the drain began: its turn has no begin. */
static void test_a_turn_that_began_before(void **state)
{
	(void)state;
	struct drained d = drained(80, 0, SAMPLES / 2);
	struct holder h = held_since_ever(0, 0, 1000 * MB, 40);
	h.to = edge_between(SAMPLES / 2 * STEP_MS, SAMPLES * STEP_MS);
	d.use.samples = d.samples;
	classify_turns(&h, 1, &d.use, &rules);
	assert_true(isinf(h.turn.from_ms) && h.turn.from_ms < 0);
	assert_true(h.turn.to_ms >= (SAMPLES / 2 - 1) * STEP_MS &&
		    h.turn.to_ms <= SAMPLES / 2 * STEP_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_card_states),
		cmocka_unit_test(test_use_that_cannot_be_read),
		cmocka_unit_test(test_kinds_that_hold),
		cmocka_unit_test(test_two_small_holders_hold_the_card_together),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_who_held_surely_and_who_may_have),
		cmocka_unit_test(test_unknown_memory_is_held),
		cmocka_unit_test(test_the_busiest_leads_its_user),
		cmocka_unit_test(test_squatter),
		cmocka_unit_test(test_without_process_use_all_share_the_card),
		cmocka_unit_test(test_nobody_squats_on_himself),
		cmocka_unit_test(test_a_user_squats_with_all_processes),
		cmocka_unit_test(test_a_user_is_the_sum_of_their_processes),
		cmocka_unit_test(test_a_burst_is_not_idle),
		cmocka_unit_test(test_too_little_to_judge),
		cmocka_unit_test(test_a_sole_user_never_squats),
		cmocka_unit_test(test_a_short_life_is_judged_over_its_own_part),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_two_stretches_are_one_process),
		cmocka_unit_test(test_small_uses_that_add_up),
		cmocka_unit_test(test_squatting_beside_a_desktop),
		cmocka_unit_test(test_what_is_latched),
		cmocka_unit_test(test_what_the_driver_may_keep_for_itself),
		cmocka_unit_test(test_use_of_samples),
		cmocka_unit_test(test_a_turn_that_began_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

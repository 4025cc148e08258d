/* Samples to sums: nothing lost, nothing twice, nothing invented. */
#include "test.h"

#include <math.h>
#include <stdbool.h>

#include "classify/account.h"

static const struct rules rules = RULES_DEFAULT;
#define MB 1000000LL
#define T0 1794528000000LL /* a full minute */

struct fixture {
	struct account account;
	struct ledger ledger;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = { 0 };
	assert_int_equal(ledger_init(&f->ledger, &e), 0);
	account_start(&f->account, 0, -1);
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

static int64_t sum_ms(const struct fixture *f, enum card_state state)
{
	size_t n = 0;
	int64_t ms = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++)
		ms += rows[i].state == state ? rows[i].ms : 0;
	return ms;
}

static int64_t sum_energy(const struct fixture *f)
{
	size_t n = 0;
	int64_t mj = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++)
		mj += rows[i].energy_mj;
	return mj;
}

/* Sums over holding rows of one process, all states. */
struct holder_time {
	int64_t ms, presence_ms, share_ms;
};

static struct holder_time sum_holding(const struct fixture *f, uint32_t process)
{
	size_t n = 0;
	struct holder_time sum = { 0 };
	const struct holding_sum *rows = ledger_holding_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++) {
		if (rows[i].process != process)
			continue;
		for (int state = 0; state < HOLDER_STATES; state++) {
			sum.ms += rows[i].ms[state];
			sum.presence_ms += rows[i].presence_ms[state];
		}
		sum.share_ms += rows[i].active_share_ms + rows[i].idle_share_ms;
	}
	return sum;
}

static void drain(struct fixture *f, const struct util_sample *samples, size_t n,
	struct holder *holders, size_t n_holders, double energy_mj)
{
	struct account_drain d = {
		.samples = samples,
		.n_samples = n,
		.hold_ms = 2000,
		.use_known = n_holders && !isnan(holders[0].sm_pct),
		.energy_mj = energy_mj,
	};
	account_drain(&f->account, &d, holders, n_holders, &rules, &f->ledger);
}

static struct util_sample at(int64_t after_ms, double pct)
{
	return (struct util_sample){ (T0 + after_ms) * 1000, pct };
}

static struct holder holder(uint32_t process, uint32_t user, int64_t mem, double sm)
{
	return (struct holder){ .process = process,
		.user = user,
		.mem_bytes = mem,
		.sm_pct = sm,
		.from_ms = INT64_MIN,
		.to_ms = INT64_MAX,
		.last_active_ms = -1 };
}

static void test_each_sample_lasts_until_the_next(void **state)
{
	struct fixture *f = *state;
	struct util_sample s[] = { at(0, 0), at(167, 50), at(333, 0), at(500, 0) };
	drain(f, s, 4, NULL, 0, NAN);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 167 + 167);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 166);
	account_flush(&f->account, T0 + 600, NULL, 0, &rules, &f->ledger);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 167 + 167 + 100);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 0);
}

static void test_a_late_sample_leaves_a_gap(void **state)
{
	struct fixture *f = *state;
	struct util_sample first[] = { at(0, 50) }, second[] = { at(10000, 50) };
	drain(f, first, 1, NULL, 0, NAN);
	drain(f, second, 1, NULL, 0, NAN);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 2000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 8000);
}

static void test_blind_time_is_unobserved(void **state)
{
	struct fixture *f = *state;
	struct util_sample first[] = { at(0, 50) };
	drain(f, first, 1, NULL, 0, NAN);
	account_blind(&f->account, T0 + 5000, &f->ledger);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 0);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 5000);
}

static void test_slots_are_cut(void **state)
{
	struct fixture *f = *state;
	struct util_sample s[] = { at(59900, 50), at(60100, 50) };
	drain(f, s, 2, NULL, 0, NAN);
	size_t n = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].slot, T0 / 1000);
	assert_int_equal(rows[0].ms, 100);
	assert_int_equal(rows[1].slot, T0 / 1000 + 60);
	assert_int_equal(rows[1].ms, 100);
	assert_int_equal(rows[1].util_pct_ms, 5000);
}

static void test_shares_add_up_and_presence_counts_once(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 3000 * MB, 0), holder(1, 0, 3000 * MB, 0),
		holder(2, 1, 1000 * MB, 0) };
	struct util_sample s[] = { at(0, 0), at(333, 0), at(1000, 0) };
	drain(f, s, 3, h, 3, NAN);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 1000);
	struct holder_time a = sum_holding(f, 0), b = sum_holding(f, 1), c = sum_holding(f, 2);
	assert_int_equal(a.share_ms + b.share_ms + c.share_ms, 1000);
	assert_in_range(c.share_ms, 142, 144); /* a seventh of the memory */
	assert_int_equal(a.presence_ms + b.presence_ms, 1000);
	assert_int_equal(c.presence_ms, 1000);
	assert_int_equal(b.ms, 1000);
}

static void test_active_seconds_are_split_by_use(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 75), holder(1, 1, 9000 * MB, 25),
		holder(2, 2, 9000 * MB, 0) };
	struct util_sample s[] = { at(0, 100), at(1000, 100) };
	drain(f, s, 2, h, 3, NAN);
	assert_int_equal(sum_holding(f, 0).share_ms, 750);
	assert_int_equal(sum_holding(f, 1).share_ms, 250);
	assert_int_equal(sum_holding(f, 2).share_ms, 0);
	assert_int_equal(h[0].last_active_ms, T0 + 1000);
	assert_int_equal(h[2].last_active_ms, -1);
}

static void test_energy_is_conserved(void **state)
{
	struct fixture *f = *state;
	struct util_sample one[] = { at(0, 0), at(500, 90) },
			   two[] = { at(1300, 0), at(2000, 0) };
	drain(f, one, 2, NULL, 0, 1000.5);
	drain(f, two, 2, NULL, 0, 1778.9);
	assert_int_equal(sum_energy(f), 778);
	/* A counter that is not there adds nothing, and the growth over the hole is not
	 * guessed. */
	struct util_sample three[] = { at(2500, 0) }, four[] = { at(3000, 0) };
	drain(f, three, 1, NULL, 0, NAN);
	drain(f, four, 1, NULL, 0, 9000);
	assert_int_equal(sum_energy(f), 778);
}

static void test_an_ended_holder_counts_until_its_end(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0) };
	h[0].to_ms = T0 + 500;
	struct util_sample s[] = { at(0, 0), at(500, 0), at(1000, 0) };
	drain(f, s, 3, h, 1, NAN);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 500);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 500);
	assert_int_equal(sum_holding(f, 0).ms, 500);
}

static void test_a_restart_goes_on_where_it_was(void **state)
{
	struct fixture *f = *state;
	account_start(&f->account, 0, T0 + 400);
	struct util_sample s[] = { at(167, 50), at(333, 0), at(500, 0), at(1000, 50) };
	drain(f, s, 4, NULL, 0, NAN);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 600);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 0);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 0);
}

static void test_random_time_always_adds_up(void **state)
{
	struct fixture *f = *state;
	uint64_t seed = 42;
	int64_t now = 0;
	struct holder h[] = { holder(0, 0, 500 * MB, 3), holder(1, 1, 20 * MB, 60) };
	account_start(&f->account, 0, T0);
	for (int round = 0; round < 2000; round++) {
		struct util_sample s[8];
		size_t n = 0;
		for (; n < 8; n++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			now += (int64_t)(seed >> 33) % (n == 3 ? 4000 : 400);
			s[n] = at(now, (double)((seed >> 20) % 101));
		}
		drain(f, s, n, h, 2, NAN);
		if (round % 7 == 0)
			account_blind(&f->account, T0 + (now += 123), &f->ledger);
	}
	account_flush(&f->account, T0 + now, h, 2, &rules, &f->ledger);
	int64_t all = 0;
	for (int i = 0; i < CARD_STATES; i++)
		all += sum_ms(f, (enum card_state)i);
	assert_int_equal(all, now);
	int64_t shares = sum_holding(f, 0).share_ms + sum_holding(f, 1).share_ms;
	assert_int_equal(shares, sum_ms(f, CARD_ACTIVE) + sum_ms(f, CARD_IDLE_HELD));
}

/* Months without a store: the ledger stays bounded and keeps every second. */
static void test_ledger_folds_and_keeps_sums(void **state)
{
	struct fixture *f = *state;
	int64_t days = 30, ms = 0;
	for (int64_t minute = 0; minute < days * 1440; minute++) {
		for (uint32_t card = 0; card < 4; card++) {
			struct usage_sum *u = ledger_usage(&f->ledger, T0 / 1000 + minute * 60,
				card, (enum card_state)(minute % 3));
			assert_non_null(u);
			u->ms += 60000;
			ms += 60000;
		}
	}
	int64_t all = 0;
	for (int i = 0; i < CARD_STATES; i++)
		all += sum_ms(f, (enum card_state)i);
	assert_int_equal(all, ms);
	assert_true(f->ledger.usage.cap <= LEDGER_MAX_ROWS);
	assert_int_equal(f->ledger.dropped_ms, 0);
	ledger_clear(&f->ledger);
	assert_true(ledger_empty(&f->ledger));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_sample_lasts_until_the_next),
		TEST(test_a_late_sample_leaves_a_gap),
		TEST(test_blind_time_is_unobserved),
		TEST(test_slots_are_cut),
		TEST(test_shares_add_up_and_presence_counts_once),
		TEST(test_active_seconds_are_split_by_use),
		TEST(test_energy_is_conserved),
		TEST(test_an_ended_holder_counts_until_its_end),
		TEST(test_a_restart_goes_on_where_it_was),
		TEST(test_random_time_always_adds_up),
		TEST(test_ledger_folds_and_keeps_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

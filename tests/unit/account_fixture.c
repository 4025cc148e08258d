/* Feeds and reads an account. */
#include "account_fixture.h"

static const struct rules rules = RULES_DEFAULT;

int account_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = { 0 };
	assert_int_equal(ledger_init(&f->ledger, &e), 0);
	account_start(&f->account, 0, T0);
	*state = f;
	return 0;
}

int account_teardown(void **state)
{
	struct fixture *f = *state;
	ledger_finish(&f->ledger);
	free(f);
	return 0;
}

int64_t sum_ms(const struct fixture *f, enum card_state state)
{
	size_t n = 0;
	int64_t ms = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++)
		ms += rows[i].state == state ? rows[i].ms : 0;
	return ms;
}

int64_t sum_energy(const struct fixture *f)
{
	size_t n = 0;
	int64_t mj = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++)
		mj += rows[i].energy_mj;
	return mj;
}

int64_t sum_unsure(const struct fixture *f)
{
	size_t n = 0;
	int64_t ms = 0, ms2 = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++) {
		ms += rows[i].unsure_ms;
		ms2 += rows[i].unsure_ms2;
	}
	return ms + llround(sqrt((double)ms2));
}

int64_t sum_state(const struct fixture *f, uint32_t process, enum holder_state state)
{
	size_t n = 0;
	int64_t ms = 0;
	const struct holding_sum *rows = ledger_holding_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++)
		ms += rows[i].process == process ? rows[i].ms[state] : 0;
	return ms;
}

struct holder_time sum_holding(const struct fixture *f, uint32_t process)
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

struct account_drain ring(const struct util_sample *samples, size_t n)
{
	return (struct account_drain){ .samples = samples,
		.n_samples = n,
		.hold = { .hold_ms = 2000, .period_ms = 200 },
		.sm_active_pct = NAN };
}

struct account_scene scene(struct fixture *f, struct holder *holders, size_t n)
{
	return (struct account_scene){
		.holders = holders, .n = n, .rules = &rules, .ledger = &f->ledger
	};
}

void drain_as(
	struct fixture *f, struct account_drain d, struct holder *holders, size_t n_holders)
{
	double sm_pct[8];
	struct account_scene on = scene(f, holders, n_holders);
	for (size_t i = 0; i < n_holders; i++)
		sm_pct[i] = holders[i].sm_pct;
	d.use_known = n_holders && !isnan(holders[0].sm_pct);
	d.sm_pct = sm_pct;
	account_drain(&f->account, &d, &on);
}

void drain(struct fixture *f, const struct util_sample *samples, size_t n,
	struct holder *holders, size_t n_holders)
{
	drain_as(f, ring(samples, n), holders, n_holders);
}

void flush(struct fixture *f, int64_t after_ms, struct holder *holders, size_t n)
{
	struct account_scene on = scene(f, holders, n);
	account_flush(&f->account, T0 + after_ms, &on);
}

void blind(struct fixture *f, int64_t after_ms, struct holder *holders, size_t n)
{
	struct account_scene on = scene(f, holders, n);
	account_blind(&f->account, T0 + after_ms, &on);
}

struct util_sample at(int64_t after_ms, double pct)
{
	return (struct util_sample){ (T0 + after_ms) * 1000, pct };
}

struct holder holder(uint32_t process, uint32_t user, int64_t mem, double sm)
{
	return (struct holder){ .process = process,
		.user = user,
		.mem_bytes = mem,
		.sm_pct = sm,
		.from = EDGE_ALWAYS,
		.to = EDGE_NEVER,
		.last_active_ms = -1 };
}

/* Samples to sums. */
#include "classify/account.h"

#include <math.h>

/* Enough for the holders of one card; more are accounted without a share. */
enum { MAX_SHARERS = 1024 };

void account_start(struct account *a, uint32_t card, int64_t from_ms)
{
	*a = (struct account){
		.card = card,
		.started = from_ms >= 0,
		.covered_ms = from_ms,
		.energy_mj = NAN,
	};
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Remembers where the time of this drain went, for its energy. */
static void note_piece(struct account *a, int64_t slot, enum card_state state, int64_t ms)
{
	for (size_t i = 0; i < a->n_pieces; i++) {
		if (a->pieces[i].slot == slot && a->pieces[i].state == state) {
			a->pieces[i].ms += ms;
			return;
		}
	}
	if (a->n_pieces < ACCOUNT_PIECES)
		a->pieces[a->n_pieces++] = (struct account_piece){ slot, state, ms };
}

static void add_usage(struct account *a, int64_t slot, enum card_state state, int64_t ms,
	double util_pct, struct ledger *ledger)
{
	struct usage_sum *sum = ledger_usage(ledger, slot, a->card, state);
	if (!sum) {
		ledger->dropped_ms += ms;
		return;
	}
	sum->ms += ms;
	if (state != CARD_UNOBSERVED)
		sum->util_pct_ms += llround(util_pct * (double)ms);
	note_piece(a, slot, state, ms);
}

/* A holder's weight in the split of a card's second: SM use of an active one, memory of a held
 * one. Falls back to equal parts when the weights say nothing. */
static double share_weight(const struct holder *h, enum card_state state, bool use_known)
{
	if (state == CARD_ACTIVE && use_known)
		return isnan(h->sm_pct) ? 0 : h->sm_pct;
	return h->mem_bytes < 0 ? 0 : (double)h->mem_bytes;
}

/* How a stretch of time is split among the holders that count in it. */
struct split {
	double total_weight;
	size_t n;
	bool by_weight;
	double running; /* weight handed out so far */
	size_t done;
	int64_t given_ms;
};

static struct split split_start(const struct holder *holders, size_t n, int64_t at_ms,
	enum card_state state, bool use_known)
{
	struct split s = { .by_weight = true };
	for (size_t i = 0; i < n && i < MAX_SHARERS; i++) {
		if (!holder_counts(&holders[i], at_ms))
			continue;
		double weight = share_weight(&holders[i], state, use_known);
		bool unknown = !(state == CARD_ACTIVE && use_known) && holders[i].mem_bytes < 0;
		s.by_weight = s.by_weight && !unknown;
		s.total_weight += weight;
		s.n++;
	}
	s.by_weight = s.by_weight && s.total_weight > 0;
	return s;
}

/* The next holder's part. Cumulative rounding: the parts add up to `ms` exactly. */
static int64_t split_next(struct split *s, const struct holder *h, enum card_state state,
	bool use_known, int64_t ms)
{
	s->done++;
	s->running += share_weight(h, state, use_known);
	double part =
		s->by_weight ? s->running / s->total_weight : (double)s->done / (double)s->n;
	int64_t upto = s->done == s->n ? ms : min64(ms, llround(part * (double)ms));
	int64_t mine = upto - s->given_ms;
	s->given_ms = upto;
	return mine;
}

/* Whether `holders[i]` leads its user: the first of the user's holders that count. */
static bool leads(const struct holder *holders, size_t i, int64_t at_ms)
{
	for (size_t k = 0; k < i; k++)
		if (holders[k].user == holders[i].user && holder_counts(&holders[k], at_ms))
			return false;
	return true;
}

static void add_holding(struct account *a, int64_t slot, const struct holder *h,
	enum holder_state state, int64_t ms, int64_t presence_ms, int64_t share_ms,
	struct ledger *ledger)
{
	struct holding_sum *sum = ledger_holding(ledger, slot, a->card, h->process);
	if (!sum)
		return;
	bool active = state == HOLDER_ACTIVE || state == HOLDER_SQUATTING;
	sum->ms[state] += ms;
	sum->presence_ms[state] += presence_ms;
	*(active ? &sum->active_share_ms : &sum->idle_share_ms) += share_ms;
	if (!isnan(h->sm_pct)) {
		int64_t add = llround(h->sm_pct * (double)ms);
		sum->sm_pct_ms = sum->sm_pct_ms < 0 ? add : sum->sm_pct_ms + add;
	}
	int64_t kib = h->mem_bytes < 0 ? -1 : (h->mem_bytes + 1023) / 1024;
	if (kib > sum->mem_peak_kib)
		sum->mem_peak_kib = kib;
}

/* One stretch within one slot with one utilisation. */
static void account_piece(struct account *a, int64_t from_ms, int64_t to_ms,
	struct holder *holders, size_t n, const struct rules *rules, struct ledger *ledger)
{
	int64_t ms = to_ms - from_ms, slot = ledger_slot(ledger, from_ms);
	enum card_state state =
		classify_card(a->pending_pct, held_at(holders, n, from_ms), rules);
	add_usage(a, slot, state, ms, a->pending_pct, ledger);
	struct split split = split_start(holders, n, from_ms, state, a->use.known);
	for (size_t i = 0; i < n; i++) {
		struct holder *h = &holders[i];
		if (!holder_counts(h, from_ms))
			continue;
		enum holder_state own = classify_holder(holders, n, i, state, from_ms, rules);
		bool shares = state != CARD_TRULY_IDLE && i < MAX_SHARERS;
		int64_t share = shares ? split_next(&split, h, state, a->use.known, ms) : 0;
		int64_t presence = leads(holders, i, from_ms) ? ms : 0;
		add_holding(a, slot, h, own, ms, presence, share, ledger);
		bool self = !a->use.known || (!isnan(h->sm_pct) && h->sm_pct > 0);
		if (own == HOLDER_ACTIVE && self)
			h->last_active_ms = to_ms;
	}
}

/* Cuts a stretch at slot boundaries. */
static void account_observed(struct account *a, int64_t to_ms, struct holder *holders, size_t n,
	const struct rules *rules, struct ledger *ledger)
{
	while (a->covered_ms < to_ms) {
		int64_t slot_end =
			(ledger_slot(ledger, a->covered_ms) + ledger->slot_seconds) * 1000;
		int64_t end = min64(to_ms, slot_end);
		account_piece(a, a->covered_ms, end, holders, n, rules, ledger);
		a->observed_ms += end - a->covered_ms;
		a->covered_ms = end;
	}
}

static void account_unobserved(struct account *a, int64_t to_ms, struct ledger *ledger)
{
	while (a->covered_ms < to_ms) {
		int64_t slot = ledger_slot(ledger, a->covered_ms);
		int64_t end = min64(to_ms, (slot + ledger->slot_seconds) * 1000);
		add_usage(a, slot, CARD_UNOBSERVED, end - a->covered_ms, 0, ledger);
		a->unobserved_ms += end - a->covered_ms;
		a->covered_ms = end;
	}
}

/* Everything up to `to_ms`: the pending sample as far as it holds, then nothing. */
static void account_until(struct account *a, int64_t to_ms, struct holder *holders, size_t n,
	const struct rules *rules, struct ledger *ledger)
{
	if (a->pending)
		account_observed(a, min64(to_ms, a->pending_to_ms), holders, n, rules, ledger);
	account_unobserved(a, to_ms, ledger);
}

static struct use_since summarise(const struct account_drain *d, const struct rules *rules)
{
	struct use_since use = { .known = d->use_known };
	size_t active = 0;
	for (size_t i = 0; i < d->n_samples; i++) {
		use.mean_pct += d->samples[i].util_pct;
		active += d->samples[i].util_pct >= rules->active_util_pct;
	}
	if (d->n_samples) {
		use.mean_pct /= (double)d->n_samples;
		use.active_part = (double)active / (double)d->n_samples;
	}
	return use;
}

/* The counter's growth since the last drain goes to the time accounted since, by length: within
 * one drain it is not known which second used more. Nothing accounted: it waits. */
static void split_energy(struct account *a, double energy_mj, struct ledger *ledger)
{
	int64_t total_ms = 0, done_ms = 0, given = 0;
	for (size_t i = 0; i < a->n_pieces; i++)
		total_ms += a->pieces[i].ms;
	bool known = !isnan(energy_mj) && !isnan(a->energy_mj) && energy_mj >= a->energy_mj;
	if (total_ms == 0 && known)
		return;
	int64_t grown = known ? (int64_t)energy_mj - (int64_t)a->energy_mj : 0;
	for (size_t i = 0; known && i < a->n_pieces; i++) {
		const struct account_piece *p = &a->pieces[i];
		done_ms += p->ms;
		int64_t upto = (int64_t)((double)grown * ((double)done_ms / (double)total_ms));
		struct usage_sum *sum = ledger_usage(ledger, p->slot, a->card, p->state);
		if (sum) {
			sum->energy_mj += upto - given;
			sum->energy_ms += p->ms;
		}
		given = upto;
	}
	a->energy_mj = energy_mj;
	a->n_pieces = 0;
}

void account_drain(struct account *a, const struct account_drain *d, struct holder *holders,
	size_t n_holders, const struct rules *rules, struct ledger *ledger)
{
	a->use = summarise(d, rules);
	classify_use(holders, n_holders, &a->use, rules);
	for (size_t i = 0; i < d->n_samples; i++) {
		const struct util_sample *s = &d->samples[i];
		int64_t at_ms = s->wall_us / 1000;
		if (!a->started) {
			a->started = true;
			a->covered_ms = at_ms;
		}
		/* A sample from before what is covered only says how it went on from there. */
		if (at_ms > a->covered_ms)
			account_until(a, at_ms, holders, n_holders, rules, ledger);
		a->pending = true;
		a->pending_pct = s->util_pct;
		a->pending_to_ms = at_ms + d->hold_ms;
	}
	split_energy(a, d->energy_mj, ledger);
}

void account_flush(struct account *a, int64_t to_ms, struct holder *holders, size_t n_holders,
	const struct rules *rules, struct ledger *ledger)
{
	if (a->pending && to_ms > a->covered_ms)
		account_until(a, to_ms, holders, n_holders, rules, ledger);
}

void account_blind(struct account *a, int64_t to_ms, struct ledger *ledger)
{
	a->pending = false;
	a->energy_mj = NAN;
	a->n_pieces = 0;
	if (!a->started) {
		a->started = true;
		a->covered_ms = to_ms;
	}
	account_unobserved(a, to_ms, ledger);
	a->n_pieces = 0;
}

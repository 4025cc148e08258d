/* Turns samples into sums: cuts time into pieces, finds the state of each, and adds it to the
 * ledger. */
#include "classify/account.h"

#include <math.h>

/* A card that was idle-held before and after a pause of this length was so all the time. */
#define PAUSE_MS 10000

/* Enough for the holders of one card; further ones are accounted without a share. */
enum { MAX_SHARERS = 1024 };

void account_start(struct account *a, uint32_t card, int64_t from_ms)
{
	*a = (struct account){
		.card = card,
		.started = from_ms >= 0,
		.covered_ms = from_ms,
		.sm_active_pct = NAN,
		.unlisted_ms = INT64_MAX,
		.idle_held_since_ms = -1,
	};
	energy_reset(&a->energy);
}

void account_not_before(struct account *a, int64_t seen_ms)
{
	a->covered_ms = seen_ms;
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A stretch within one slot and one state. */
struct slot_part {
	int64_t slot, from_ms, to_ms, ms;
	enum card_state state;
	int64_t unsure_ms; /* at most this much of it is in another state */
};

/* Notes since when the card is idle-held. */
static void note_idle_held(struct account *a, const struct slot_part *p)
{
	bool seen = p->state != CARD_UNOBSERVED;
	a->pause_ms = seen ? 0 : a->pause_ms + p->ms;
	if ((seen && p->state != CARD_IDLE_HELD) || a->pause_ms > PAUSE_MS)
		a->idle_held_since_ms = -1;
	else if (seen && a->idle_held_since_ms < 0)
		a->idle_held_since_ms = p->from_ms;
}

static void add_usage(struct account *a, const struct slot_part *p, struct ledger *ledger)
{
	note_idle_held(a, p);
	struct usage_sum *sum = ledger_usage(ledger, p->slot, a->card, p->state);
	bool seen = p->state != CARD_UNOBSERVED && !isnan(a->pending_pct);
	if (!sum) {
		ledger->dropped_ms += p->ms;
		return;
	}
	sum->ms += p->ms;
	sum->unsure_ms += p->unsure_ms;
	if (seen)
		sum->util_pct_ms += llround(a->pending_pct * (double)p->ms);
	if (p->state != CARD_UNOBSERVED && !isnan(a->sm_active_pct)) {
		sum->sm_active_pct_ms += llround(a->sm_active_pct * (double)p->ms);
		sum->sm_active_ms += p->ms;
	}
	energy_piece(&a->energy, &(struct energy_piece){ p->slot, p->from_ms, p->to_ms,
					 p->state, seen ? a->pending_pct : 0 });
}

/* Returns a holder's weight when the time of a card is split: SM use on an active card if it is
 * known, otherwise memory. split_start() chooses equal parts if a memory is unknown or all
 * weights are 0. */
static double share_weight(const struct holder *h, enum card_state state, bool use_known)
{
	if (state == CARD_ACTIVE && use_known)
		return isnan(h->sm_pct) ? 0 : h->sm_pct;
	return h->mem_bytes < 0 ? 0 : (double)h->mem_bytes;
}

/* How a stretch of time is split among the holders that count. */
struct split {
	enum card_state state;
	bool use_known;
	int64_t ms;
	double total_weight;
	size_t n;
	bool by_weight;
	double running; /* weight handed out so far */
	size_t done;
	int64_t given_ms;
};

static struct split split_start(
	const struct account_scene *on, const struct slot_part *p, bool use_known)
{
	struct split s = {
		.state = p->state, .use_known = use_known, .ms = p->ms, .by_weight = true
	};
	for (size_t i = 0; i < on->n && i < MAX_SHARERS; i++) {
		const struct holder *h = &on->holders[i];
		if (!holder_counts(h, p->from_ms))
			continue;
		bool unknown = !(s.state == CARD_ACTIVE && use_known) && h->mem_bytes < 0;
		s.by_weight = s.by_weight && !unknown;
		s.total_weight += share_weight(h, s.state, use_known);
		s.n++;
	}
	s.by_weight = s.by_weight && s.total_weight > 0;
	return s;
}

/* Returns the next holder's part. Rounding is cumulative: the parts add up exactly to the
 * whole. */
static int64_t split_next(struct split *s, const struct holder *h)
{
	s->done++;
	s->running += share_weight(h, s->state, s->use_known);
	double part =
		s->by_weight ? s->running / s->total_weight : (double)s->done / (double)s->n;
	int64_t upto = s->done == s->n ? s->ms : min64(s->ms, llround(part * (double)s->ms));
	int64_t mine = upto - s->given_ms;
	s->given_ms = upto;
	return mine;
}

/* Whether the driver reports the use of processes, and this one had none. */
static bool is_unused(const struct account *a, const struct holder *h)
{
	return a->use_known && !(h->sm_pct > 0);
}

/* Hands the piece to the spells. */
static void add_to_spells(const struct account *a, const struct slot_part *p,
	const struct holder *h, int64_t share_ms, const struct account_scene *on)
{
	bool metered = p->state == CARD_IDLE_HELD && energy_is_metered(&a->energy, p->from_ms);
	const struct spell_piece piece = { .process = h->process,
		.from_ms = p->from_ms,
		.to_ms = p->to_ms,
		.state = classify_holder(p->state, h->own_state),
		.unused = is_unused(a, h),
		.mem_bytes = h->mem_bytes,
		.metered_ms = metered ? share_ms : 0 };
	spells_take(on->spells, &piece);
}

static void add_holding(struct account *a, const struct slot_part *p, size_t i,
	int64_t share_ms, struct account_scene *on)
{
	struct holder *h = &on->holders[i];
	struct holding_sum *sum = ledger_holding(on->ledger, p->slot, a->card, h->process);
	enum holder_state own = classify_holder(p->state, h->own_state);
	if (own == HOLDER_ACTIVE && !is_unused(a, h))
		h->last_active_ms = p->to_ms;
	if (on->spells)
		add_to_spells(a, p, h, share_ms, on);
	if (!sum)
		return;
	sum->ms[own] += p->ms;
	if (holder_leads(on->holders, on->n, i, p->from_ms))
		sum->presence_ms[classify_holder(p->state, h->user_state)] += p->ms;
	if (p->state == CARD_ACTIVE)
		sum->active_share_ms += share_ms;
	else if (p->state == CARD_IDLE_HELD)
		sum->idle_share_ms += share_ms;
	if (!isnan(h->sm_pct)) {
		int64_t add = llround(h->sm_pct * (double)p->ms);
		sum->sm_pct_ms = sum->sm_pct_ms < 0 ? add : sum->sm_pct_ms + add;
	}
	if (h->uses_engine)
		sum->engine_ms += p->ms;
	int64_t kib = h->mem_bytes < 0 ? -1 : (h->mem_bytes + 1023) / 1024;
	if (kib > sum->mem_peak_kib)
		sum->mem_peak_kib = kib;
}

static enum card_state state_at(
	double util_pct, int64_t at_ms, enum sureness sure, const struct account_scene *on)
{
	return classify_card(util_pct, held_at(on->holders, on->n, at_ms, sure), on->rules);
}

static bool is_unsure(double util_pct, int64_t at_ms, const struct account_scene *on)
{
	return state_at(util_pct, at_ms, HELD_SURELY, on) !=
	       state_at(util_pct, at_ms, HELD_MAYBE, on);
}

/* Whether one process may have gone and another may have come at the same moment: then the card
 * may have been empty or held for the whole stretch. */
static bool may_change_hands(const struct account_scene *on, int64_t at_ms)
{
	for (size_t i = 0; i < on->n; i++) {
		const struct holder *gone = &on->holders[i];
		if (at_ms < gone->to.lo || at_ms >= gone->to.hi)
			continue;
		for (size_t k = 0; k < on->n; k++) {
			const struct holder *new = &on->holders[k];
			if (new->process != gone->process &&new->from.lo <= at_ms &&
				at_ms < new->from.hi)
				return true;
		}
	}
	return false;
}

/* Finds the state of a stretch, and how much of it is uncertain. */
static void judge(const struct account *a, struct slot_part *p, const struct account_scene *on)
{
	int64_t at_ms = p->from_ms;
	bool unsure = is_unsure(a->pending_pct, at_ms, on);
	bool stalled = at_ms >= a->stall_from_ms && at_ms < a->stall_to_ms;
	p->state = state_at(a->pending_pct, at_ms, HELD_COUNTED, on);
	bool unlisted = at_ms >= a->unlisted_ms && p->state != CARD_ACTIVE;
	/* The middle of the possible moments is used, so at most half of the time is wrong. */
	bool whole = a->doubtful || (unsure && may_change_hands(on, at_ms));
	p->unsure_ms = whole ? p->ms : unsure ? (p->ms + 1) / 2 : 0;
	if (a->pending_suspect || unlisted || (unsure && stalled)) {
		p->state = CARD_UNOBSERVED;
		p->unsure_ms = 0;
	}
}

/* Accounts one stretch within one slot, with one utilisation and the same holders. */
static void account_piece(
	struct account *a, int64_t from_ms, int64_t to_ms, struct account_scene *on)
{
	struct slot_part p = { .slot = ledger_slot(on->ledger, from_ms),
		.from_ms = from_ms,
		.to_ms = to_ms,
		.ms = to_ms - from_ms };
	judge(a, &p, on);
	add_usage(a, &p, on->ledger);
	if (p.state == CARD_UNOBSERVED) {
		a->unobserved_ms += p.ms;
		return;
	}
	a->observed_ms += p.ms;
	struct split split = split_start(on, &p, a->use_known);
	for (size_t i = 0; i < on->n; i++) {
		if (!holder_counts(&on->holders[i], from_ms))
			continue;
		int64_t share = i < MAX_SHARERS ? split_next(&split, &on->holders[i]) : 0;
		add_holding(a, &p, i, share, on);
	}
	bool metered = p.state == CARD_IDLE_HELD && energy_is_metered(&a->energy, p.from_ms);
	if (on->spells)
		spells_piece_end(on->spells, metered ? p.ms : 0);
}

/* Divides the energy up to covered_ms, among states and spells. */
static void divide_energy(struct account *a, struct account_scene *on)
{
	struct energy_idle idle = energy_divide(&a->energy, a->card, a->covered_ms, on->ledger);
	if (on->spells && idle.any)
		spells_energy(on->spells, idle.mj, idle.ms);
}

/* Returns the next moment after `at_ms` at which a holder comes or goes, or may do so. */
static int64_t next_change(const struct account_scene *on, int64_t at_ms, int64_t next_ms)
{
	for (size_t i = 0; i < on->n; i++) {
		const struct holder *h = &on->holders[i];
		const int64_t moments[] = { h->from.lo, h->from.at, h->from.hi, h->to.lo,
			h->to.at, h->to.hi };
		for (size_t k = 0; k < sizeof(moments) / sizeof(moments[0]); k++)
			if (moments[k] > at_ms && moments[k] < next_ms)
				next_ms = moments[k];
	}
	return next_ms;
}

/* Prepares the spells for time from covered_ms on. Returns the next reading of the energy
 * counter: time is cut there, so that a spell's part of each interval is known. */
static int64_t next_energy(struct account *a, struct account_scene *on)
{
	if (!on->spells)
		return INT64_MAX;
	if (energy_was_broken(&a->energy))
		spells_energy_lost(on->spells);
	if (energy_is_due(&a->energy, a->covered_ms))
		divide_energy(a, on);
	return energy_next_ms(&a->energy, a->covered_ms);
}

/* Cuts a stretch at slot boundaries and where holders change. */
static void account_observed(struct account *a, int64_t to_ms, struct account_scene *on)
{
	while (a->covered_ms < to_ms) {
		int64_t slot_end =
			(ledger_slot(on->ledger, a->covered_ms) + on->ledger->slot_seconds) *
			1000;
		int64_t end = next_change(on, a->covered_ms, min64(to_ms, slot_end));
		end = min64(end, next_energy(a, on));
		if (a->covered_ms < a->stall_from_ms)
			end = min64(end, a->stall_from_ms);
		else if (a->covered_ms < a->stall_to_ms)
			end = min64(end, a->stall_to_ms);
		if (a->covered_ms < a->unlisted_ms)
			end = min64(end, a->unlisted_ms);
		account_piece(a, a->covered_ms, end, on);
		a->covered_ms = end;
	}
}

static void account_unobserved(struct account *a, int64_t to_ms, struct ledger *ledger)
{
	while (a->covered_ms < to_ms) {
		int64_t slot = ledger_slot(ledger, a->covered_ms);
		int64_t end = min64(to_ms, (slot + ledger->slot_seconds) * 1000);
		int64_t ms = end - a->covered_ms;
		add_usage(a,
			&(struct slot_part){ slot, a->covered_ms, end, ms, CARD_UNOBSERVED, 0 },
			ledger);
		a->unobserved_ms += ms;
		a->covered_ms = end;
	}
}

/* Accounts everything up to `to_ms`: the pending sample as long as it lasts, the rest as
 * unobserved. */
static void account_until(struct account *a, int64_t to_ms, struct account_scene *on)
{
	if (a->pending)
		account_observed(
			a, to_ms <= a->pending_to_ms ? to_ms : a->pending_short_ms, on);
	account_unobserved(a, to_ms, on->ledger);
}

static bool differs(double a_pct, double b_pct, const struct rules *rules)
{
	return (a_pct >= rules->active_util_pct) != (b_pct >= rules->active_util_pct);
}

/* Accounts up to the next sample. If the state changed between two polled readings, the moment
 * is not known: the middle is used, and half of the time between can be wrong. */
static void account_to_sample(struct account *a, const struct util_sample *next,
	const struct account_drain *d, struct account_scene *on)
{
	int64_t at_ms = next->wall_us / 1000;
	bool changed = d->polled && a->pending && at_ms <= a->pending_to_ms &&
		       differs(a->pending_pct, next->util_pct, on->rules);
	if (changed)
		at_ms = a->pending_ms + (at_ms - a->pending_ms) / 2;
	a->doubtful = changed;
	if (at_ms > a->covered_ms)
		account_until(a, at_ms, on);
	a->doubtful = false;
}

static void take_sample(struct account *a, const struct util_sample *s,
	const struct account_drain *d, struct account_scene *on)
{
	int64_t at_ms = s->wall_us / 1000;
	if (!a->started) {
		a->started = true;
		if (at_ms > a->covered_ms)
			a->covered_ms = at_ms;
	}
	/* A sample from before covered_ms accounts only for the time after covered_ms. */
	account_to_sample(a, s, d, on);
	a->pending = true;
	a->pending_suspect = d->suspect;
	a->pending_pct = s->util_pct;
	a->pending_ms = at_ms;
	a->pending_to_ms = at_ms + d->hold_ms;
	a->pending_short_ms = at_ms + d->period_ms;
}

void account_drain(struct account *a, const struct account_drain *d, struct account_scene *on)
{
	/* The last sample of the previous drain is judged by the use of that drain. */
	if (d->n_samples && a->pending)
		account_to_sample(a, &d->samples[0], d, on);
	if (d->n_samples) {
		struct use_since use =
			use_of_samples(d->samples, d->n_samples, d->use_known, on->rules);
		a->use_known = d->use_known;
		a->sm_active_pct = d->sm_active_pct;
		for (size_t i = 0; i < on->n; i++) {
			on->holders[i].sm_pct = d->sm_pct[i];
			on->holders[i].uses_engine = d->uses_engine && d->uses_engine[i];
		}
		classify_use(on->holders, on->n, &use, on->rules);
	}
	for (size_t i = 0; i < d->n_samples; i++)
		take_sample(a, &d->samples[i], d, on);
	divide_energy(a, on);
}

void account_energy(struct account *a, int64_t at_ms, double energy_mj)
{
	energy_read(&a->energy, at_ms, energy_mj);
}

void account_stall(struct account *a, int64_t from_ms, int64_t to_ms)
{
	a->stall_from_ms = from_ms;
	a->stall_to_ms = to_ms;
}

void account_unlisted(struct account *a, int64_t from_ms)
{
	a->unlisted_ms = from_ms;
}

void account_doubt(struct account *a, int64_t from_ms, const struct account_scene *on)
{
	int64_t to_ms = min64(a->covered_ms, a->unlisted_ms), unsure_ms = 0;
	double idle_pct = isnan(a->pending_pct) ? NAN : 0;
	while (a->started && from_ms < to_ms) {
		int64_t end = next_change(on, from_ms, to_ms);
		unsure_ms += is_unsure(idle_pct, from_ms, on) ? end - from_ms : 0;
		from_ms = end;
	}
	if (unsure_ms == 0)
		return;
	int64_t slot = ledger_slot(on->ledger, a->covered_ms > 0 ? a->covered_ms - 1 : 0);
	struct usage_sum *sum = ledger_usage(on->ledger, slot, a->card, CARD_TRULY_IDLE);
	if (sum)
		sum->unsure_ms += unsure_ms;
}

void account_flush(struct account *a, int64_t to_ms, struct account_scene *on)
{
	if (a->pending && to_ms > a->covered_ms)
		account_until(a, to_ms, on);
	divide_energy(a, on);
}

void account_blind(struct account *a, int64_t to_ms, struct account_scene *on)
{
	if (!a->started) {
		a->started = true;
		a->covered_ms = to_ms;
	}
	if (to_ms > a->covered_ms) {
		if (a->pending)
			account_observed(a, min64(to_ms, a->pending_short_ms), on);
		account_unobserved(a, to_ms, on->ledger);
		a->pending = false;
	}
	divide_energy(a, on);
	energy_read(&a->energy, to_ms, NAN);
}

/* Adds stretches of time to the holders of a card: their states, shares, spells and leases. */
#include "classify/account_holders.h"

/* Largest number of holders that share the time of one card; further ones get no share. */
enum { MAX_SHARERS = 1024 };

/* Returns a holder's weight when the time of a card is split: SM use on an active card if it is
 * known, otherwise memory. split_start() chooses equal parts if a memory is unknown or all
 * weights are 0. */
static double share_weight(const struct holder *h, enum card_state state, bool use_known)
{
	if (state == CARD_ACTIVE && use_known)
		return h->now_pct;
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
	const struct account_scene *on, const struct account_part *p, bool use_known)
{
	struct split s = {
		.state = p->state, .use_known = use_known, .ms = p->ms, .by_weight = true
	};
	for (size_t i = 0; i < on->n && i < MAX_SHARERS; i++) {
		const struct holder *h = &on->holders[i];
		if (!classify_holder_counts(h, p->from_ms))
			continue;
		bool unknown = !(s.state == CARD_ACTIVE && use_known) && h->mem_bytes < 0;
		s.by_weight = s.by_weight && !unknown;
		s.total_weight += share_weight(h, s.state, use_known);
		s.n++;
	}
	s.by_weight = s.by_weight && s.total_weight > 0;
	return s;
}

/* Returns the next holder's part. Rounding is cumulative: the parts add up to the whole. */
static int64_t split_next(struct split *s, const struct holder *h)
{
	s->done++;
	s->running += share_weight(h, s->state, s->use_known);
	double part =
		s->by_weight ? s->running / s->total_weight : (double)s->done / (double)s->n;
	int64_t upto = account_whole(part * (double)s->ms);
	upto = s->done == s->n || upto > s->ms ? s->ms : upto;
	int64_t mine = upto - s->given_ms;
	s->given_ms = upto;
	return mine;
}

/* Whether the driver reports the use of processes, and this one had none. */
static bool is_unused(const struct account *a, const struct holder *h)
{
	return a->use_known && !(h->sm_pct > 0);
}

static void add_holding(struct account *a, const struct account_part *p, size_t i,
	int64_t share_ms, struct account_scene *on)
{
	struct holder *h = &on->holders[i];
	struct holding_sum *sum = ledger_holding(on->ledger, p->slot, a->card, h->process);
	enum holder_state own = classify_holder(p->state, h->own_state);
	bool unused = is_unused(a, h);
	if (own == HOLDER_ACTIVE && !unused)
		h->last_active_ms = p->to_ms;
	if (on->spells) {
		const struct spell_piece piece = { .process = h->process,
			.from_ms = p->from_ms,
			.to_ms = p->to_ms,
			.state = own,
			.unused = unused,
			.mem_bytes = h->mem_bytes,
			.metered_ms = p->metered ? share_ms : 0 };
		idle_spells_take(on->spells, &piece);
	}
	if (!sum)
		return;
	sum->ms[own] += p->ms;
	if (h->leads)
		sum->presence_ms[classify_holder(p->state, h->user_state)] += p->ms;
	if (p->state == CARD_ACTIVE)
		sum->active_share_ms += share_ms;
	else if (p->state == CARD_IDLE_HELD)
		sum->idle_share_ms += share_ms;
	if (!isnan(h->sm_pct)) {
		int64_t add = account_whole(h->sm_pct * (double)p->ms);
		sum->sm_pct_ms = sum->sm_pct_ms < 0 ? add : sum->sm_pct_ms + add;
	}
	if (h->uses_engine)
		sum->engine_ms += p->ms;
	int64_t own_pct = isnan(h->own_pct) ? 0 : (int64_t)h->own_pct;
	sum->own_unknown_ms += isnan(h->own_pct) ? p->ms : 0;
	if (own_pct > sum->sm_max_pct)
		sum->sm_max_pct = own_pct;
	int64_t kib = h->mem_bytes < 0 ? -1 : (h->mem_bytes + 1023) / 1024;
	if (kib > sum->mem_peak_kib)
		sum->mem_peak_kib = kib;
}

/* The leases that a holder's process uses. That takes comparing texts, so it is remembered. */
static uint64_t leases_of(struct holder *h, const struct account_scene *on)
{
	if (h->leases_version == on->leases_version)
		return h->leases;
	h->leases = 0;
	for (size_t i = 0; i < on->n_leases && i < LEASED_MAX; i++)
		if (on->is_used_by(on->context, on->leases[i].lease, h->process))
			h->leases |= UINT64_C(1) << i;
	h->leases_version = on->leases_version;
	return h->leases;
}

void account_holders_add(struct account *a, struct account_scene *on)
{
	const struct account_part p = a->later;
	if (p.ms == 0)
		return;
	a->later.ms = 0;
	struct split split = split_start(on, &p, a->use_known);
	struct leased_piece leased = { .card = a->card,
		.slot = p.slot,
		.from_ms = p.from_ms,
		.to_ms = p.to_ms,
		.free = p.free,
		.use_unknown = p.state == CARD_USE_UNKNOWN };
	bool has_lease = on->n_leases && a->leased.counts;
	for (size_t i = 0; i < on->n; i++) {
		if (!classify_holder_counts(&on->holders[i], p.from_ms))
			continue;
		int64_t share = i < MAX_SHARERS ? split_next(&split, &on->holders[i]) : 0;
		add_holding(a, &p, i, share, on);
		if (has_lease && !leased.free) {
			/* A lease whose process keeps the card active, or holds it, is used. */
			struct holder *h = &on->holders[i];
			enum holder_state own = classify_holder(p.state, h->own_state);
			if (own == HOLDER_ACTIVE)
				leased.active |= leases_of(h, on);
			else if (own != HOLDER_TRULY_IDLE)
				leased.held |= leases_of(h, on);
		}
	}
	if (has_lease)
		leased_add(on->leases, &a->leased, &leased, on->ledger);
	if (on->spells)
		idle_spells_piece_end(on->spells, p.metered ? p.ms : 0);
}

void account_holders_put_off(
	struct account *a, const struct account_part *p, struct account_scene *on)
{
	struct account_part *last = &a->later;
	if (last->ms && last->to_ms == p->from_ms && last->slot == p->slot &&
		last->state == p->state && last->metered == p->metered) {
		last->to_ms = p->to_ms;
		last->ms += p->ms;
		return;
	}
	account_holders_add(a, on);
	*last = *p;
}

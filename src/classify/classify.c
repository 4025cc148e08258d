/* Finds the states of cards, users and processes. */
#include "classify/classify.h"

/* The driver reports the use of a process in whole percents. */
#define ROUNDING_PCT 0.5
/* How much the driver may reserve for itself if it does not report this: this much, or a
 * fiftieth of the card. */
#define RESERVE_BYTES (1LL << 30)
/* If all samples of a card without processes are at least this high, the card repeats its last
 * reading. */
#define LATCHED_PCT 95

bool classify_is_holder(unsigned kind, const struct rules *rules)
{
	return rules->count_graphics || (kind & (PROCESS_COMPUTE | PROCESS_MPS));
}

static bool holds(const struct holder *h, int64_t at_ms, enum sureness sure)
{
	if (sure == HELD_SURELY)
		return h->from.hi <= at_ms && at_ms < h->to.lo;
	if (sure == HELD_MAYBE)
		return h->from.lo <= at_ms && at_ms < h->to.hi;
	return classify_holder_counts(h, at_ms);
}

/* Whether the two are one moment, which may be `at_ms`. */
static bool may_be_edge(const struct edge *a, const struct edge *b, int64_t at_ms)
{
	return a->lo == b->lo && a->at == b->at && a->hi == b->hi && a->lo <= at_ms &&
	       at_ms < a->hi;
}

/* If the memory of this process changed and `at_ms` may belong to this stretch or to the one
 * before or after it: returns that other stretch. NULL: there is none. */
static const struct holder *other_side(
	const struct holder *holders, size_t n, const struct holder *h, int64_t at_ms)
{
	bool near = (h->from.lo <= at_ms && at_ms < h->from.hi) ||
		    (h->to.lo <= at_ms && at_ms < h->to.hi);
	for (size_t i = 0; near && i < n; i++) {
		const struct holder *other = &holders[i];
		if (other != h && other->process == h->process &&
			(may_be_edge(&h->from, &other->to, at_ms) ||
				may_be_edge(&h->to, &other->from, at_ms)))
			return other;
	}
	return NULL;
}

/* Whether `a` has more memory than `b`. If they are equal, the first in the array wins. */
static bool has_more(const struct holder *a, const struct holder *b)
{
	int64_t a_bytes = a->mem_bytes < 0 ? INT64_MAX : a->mem_bytes;
	int64_t b_bytes = b->mem_bytes < 0 ? INT64_MAX : b->mem_bytes;
	return a_bytes > b_bytes || (a_bytes == b_bytes && a < b);
}

/* As holds(), but a process that changed its memory at an unknown moment held memory all the
 * time: at least the smaller amount, and at most the larger. */
static bool holds_among(const struct holder *holders, size_t n, const struct holder *h,
	int64_t at_ms, enum sureness sure)
{
	const struct holder *other =
		sure == HELD_COUNTED ? NULL : other_side(holders, n, h, at_ms);
	if (!other)
		return holds(h, at_ms, sure);
	const struct holder *before = may_be_edge(&h->to, &other->from, at_ms) ? h : other;
	const struct holder *after = before == h ? other : h;
	if (sure == HELD_MAYBE)
		return has_more(h, other) && before->from.lo <= at_ms && at_ms < after->to.hi;
	return has_more(other, h) && before->from.hi <= at_ms && at_ms < after->to.lo;
}

void classify_held_add(struct held *held, int64_t mem_bytes)
{
	held->n++;
	held->unknown |= mem_bytes < 0;
	held->bytes += mem_bytes > 0 ? mem_bytes : 0;
}

struct held classify_held_at(
	const struct holder *holders, size_t n, int64_t at_ms, enum sureness sure)
{
	struct held held = { 0 };
	for (size_t i = 0; i < n; i++) {
		if (holds_among(holders, n, &holders[i], at_ms, sure))
			classify_held_add(&held, holders[i].mem_bytes);
	}
	return held;
}

static double known_or_zero(double x)
{
	return isnan(x) ? 0 : x;
}

void classify_leads(struct holder *holders, size_t n, int64_t at_ms)
{
	for (size_t i = 0; i < n; i++) {
		struct holder *h = &holders[i];
		h->leads = classify_holder_counts(h, at_ms);
		for (size_t k = 0; h->leads && k < i; k++) {
			struct holder *other = &holders[k];
			if (other->user != h->user || !other->leads)
				continue;
			h->leads = known_or_zero(h->sm_pct) > known_or_zero(other->sm_pct);
			other->leads = !h->leads;
		}
	}
}

static bool is_much(struct held held, const struct rules *rules)
{
	return held.unknown || held.bytes > rules->held_mem_bytes;
}

enum card_state classify_card(double util_pct, struct held held, const struct rules *rules)
{
	if (isnan(util_pct))
		return held.n > 0 ? CARD_USE_UNKNOWN : CARD_TRULY_IDLE;
	if (util_pct >= rules->active_util_pct)
		return CARD_ACTIVE;
	return is_much(held, rules) ? CARD_IDLE_HELD : CARD_TRULY_IDLE;
}

int64_t classify_reserve_bytes(const struct card_reading *r)
{
	int64_t fiftieth = r->id.mem_total_bytes / 50;
	int64_t most = fiftieth > RESERVE_BYTES ? fiftieth : RESERVE_BYTES;
	if (!r->mem_includes_reserved)
		return 0;
	return r->mem_used_bytes < most ? r->mem_used_bytes : most;
}

bool classify_may_be_latched(double util_pct)
{
	return util_pct >= LATCHED_PCT;
}

bool classify_is_latched(const struct util_sample *samples, size_t n, int64_t used_bytes,
	const struct rules *rules)
{
	if (n == 0 || used_bytes < 0 || used_bytes > rules->held_mem_bytes)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!classify_may_be_latched(samples[i].util_pct))
			return false;
	return true;
}

/* How much of a sample's period was use, as far as the drain shows. */
static struct cover cover_at(const struct use_since *use, size_t i, const struct rules *rules)
{
	double around[2 * COVER_BESIDE + 1];
	for (size_t k = 0; k < sizeof(around) / sizeof(around[0]); k++) {
		size_t at = i + k;
		bool there = at >= COVER_BESIDE && at - COVER_BESIDE < use->n_samples;
		around[k] = at < COVER_BESIDE ? use->before[at]
			    : there	      ? use->samples[at - COVER_BESIDE].util_pct
					      : (double)NAN;
	}
	return cover_of(around, rules->active_util_pct);
}

/* Where the period of the first sample begins: all are about as long. */
static int64_t first_begin_us(const struct util_sample *samples, size_t n)
{
	int64_t period_us = n > 1 ? samples[1].wall_us - samples[0].wall_us : 0;
	return n ? samples[0].wall_us - period_us : 0;
}

struct use_since classify_use_of_samples(const struct util_sample *samples, size_t n,
	bool known, const struct use_before *before, const struct rules *rules)
{
	struct use_since use = { .samples = samples,
		.n_samples = n,
		.known = known,
		.since_us = before ? before->wall_us : first_begin_us(samples, n) };
	for (size_t i = 0; i < COVER_BESIDE; i++)
		use.before[i] = before ? before->pct[i] : NAN;
	for (size_t i = 0; i < n; i++) {
		use.mean_pct += samples[i].util_pct;
		use.active_part += cover_at(&use, i, rules).part;
	}
	if (n) {
		use.mean_pct /= (double)n;
		use.active_part /= (double)n;
	}
	return use;
}

static int64_t begin_us_of(const struct use_since *use, size_t i)
{
	return i > 0 ? use->samples[i - 1].wall_us : use->since_us;
}

/* The middle of the part of a sample's period that was use. */
static int64_t middle_ms(const struct use_since *use, size_t i, const struct cover *cover)
{
	int64_t begin_us = begin_us_of(use, i), length_us = use->samples[i].wall_us - begin_us;
	return (begin_us + llround((cover->from + cover->part / 2) * (double)length_us)) / 1000;
}

static bool is_first_stretch(const struct holder *holders, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (holders[k].process == holders[i].process)
			return false;
	return true;
}

/* Whether a holder came or went between the two moments, by those that count. */
static bool has_edge(const struct holder *holders, size_t n, int64_t after_ms, int64_t upto_ms)
{
	for (size_t i = 0; i < n; i++) {
		const int64_t at_ms[] = { holders[i].from.at, holders[i].to.at };
		for (size_t k = 0; k < 2; k++)
			if (at_ms[k] > after_ms && at_ms[k] <= upto_ms)
				return true;
	}
	return false;
}

/* Sets for each holder the part of the samples in which it was there and the card active. */
static void find_parts(struct holder *holders, size_t n, const struct use_since *use,
	const struct rules *rules)
{
	double one = use->n_samples ? 1 / (double)use->n_samples : 0;
	int64_t since_ms = use->since_us / 1000;
	int64_t upto_ms = use->n_samples ? use->samples[use->n_samples - 1].wall_us / 1000 : 0;
	for (size_t i = 0; i < n; i++)
		holders[i].use = (struct holder_use){ .first = is_first_stretch(holders, i) };
	if (use->n_samples && !has_edge(holders, n, since_ms, upto_ms)) {
		classify_leads(holders, n, upto_ms);
		for (size_t i = 0; i < n; i++) {
			bool counts = classify_holder_counts(&holders[i], upto_ms);
			holders[i].use.own_part = counts ? use->active_part : 0;
			holders[i].use.lead_part = holders[i].leads ? use->active_part : 0;
		}
		return;
	}
	for (size_t k = 0; k < use->n_samples; k++) {
		struct cover cover = cover_at(use, k, rules);
		int64_t at_ms = middle_ms(use, k, &cover);
		if (!(cover.part > 0))
			continue;
		classify_leads(holders, n, at_ms);
		for (size_t i = 0; i < n; i++) {
			if (!classify_holder_counts(&holders[i], at_ms))
				continue;
			holders[i].use.own_part += one * cover.part;
			if (holders[i].leads)
				holders[i].use.lead_part += one * cover.part;
		}
	}
}

/* Adds up over the stretches of each process and over the processes of each user. */
static void find_users(struct holder *holders, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct holder_use *use = &holders[i].use;
		for (size_t k = 0; k < n; k++) {
			const struct holder *other = &holders[k];
			if (other->process == holders[i].process)
				use->process_part += other->use.own_part;
			if (other->user != holders[i].user)
				continue;
			use->user_part += other->use.lead_part;
			use->user_pct += other->use.first ? known_or_zero(other->sm_pct) : 0;
		}
	}
}

static bool reaches(double pct, double part, const struct rules *rules)
{
	return pct > 0 && pct >= rules->active_util_pct * part;
}

/* Whether another user, or processes that are not holders, kept the card active. The driver
 * rounds the use of each process to a percent. */
static bool somebody_else(const struct holder *self, const struct holder *holders, size_t n,
	const struct use_since *use, const struct rules *rules)
{
	double explained = 0;
	for (size_t i = 0; i < n; i++) {
		if (holders[i].use.first)
			explained += known_or_zero(holders[i].sm_pct) + ROUNDING_PCT;
		if (holders[i].user != self->user &&
			reaches(holders[i].use.user_pct, holders[i].use.user_part, rules))
			return true;
	}
	return reaches(use->mean_pct - explained, use->active_part, rules);
}

static bool is_busy(const struct holder *h, const struct rules *rules)
{
	return reaches(known_or_zero(h->sm_pct), h->use.process_part, rules);
}

static enum holder_state user_when_active(const struct holder *self,
	const struct holder *holders, size_t n, const struct use_since *use,
	const struct rules *rules)
{
	if (reaches(self->use.user_pct, self->use.user_part, rules))
		return HOLDER_ACTIVE;
	return somebody_else(self, holders, n, use, rules) ? HOLDER_SQUATTING : HOLDER_ACTIVE;
}

static enum holder_state own_when_active(const struct holder *self,
	const struct holder *holders, size_t n, const struct rules *rules)
{
	bool much = self->mem_bytes < 0 || self->mem_bytes > rules->held_mem_bytes;
	if (is_busy(self, rules))
		return HOLDER_ACTIVE;
	if (self->user_state == HOLDER_SQUATTING)
		return HOLDER_SQUATTING;
	/* Whether another process of the same user kept the card active. */
	for (size_t i = 0; i < n; i++)
		if (holders[i].user == self->user && holders[i].process != self->process &&
			is_busy(&holders[i], rules))
			return much ? HOLDER_IDLE_HELD : HOLDER_TRULY_IDLE;
	return HOLDER_ACTIVE;
}

void classify_use(struct holder *holders, size_t n, const struct use_since *use,
	const struct rules *rules)
{
	/* Below this much active time, rounding to whole percents hides the use of processes.
	 */
	bool judged =
		use->known && use->active_part * rules->active_util_pct >= 2 * ROUNDING_PCT;
	if (judged) {
		find_parts(holders, n, use, rules);
		find_users(holders, n);
	}
	for (size_t i = 0; i < n; i++)
		holders[i].now_pct = known_or_zero(holders[i].sm_pct);
	for (size_t i = 0; i < n; i++)
		holders[i].user_state =
			judged ? user_when_active(&holders[i], holders, n, use, rules)
			       : HOLDER_ACTIVE;
	for (size_t i = 0; i < n; i++)
		holders[i].own_state = judged ? own_when_active(&holders[i], holders, n, rules)
					      : HOLDER_ACTIVE;
}

/* From the first use of the card since the last drain to the last. */
static struct turn whole_turn(const struct use_since *use, const struct rules *rules)
{
	struct turn turn = TURN_NONE;
	turn.pct = use->mean_pct;
	for (size_t i = 0; i < use->n_samples; i++) {
		struct cover cover = cover_at(use, i, rules);
		double begin_ms = (double)begin_us_of(use, i) / 1000;
		double length_ms = (double)use->samples[i].wall_us / 1000 - begin_ms;
		double to = cover.from + cover.part;
		if (!(cover.part > 0))
			continue;
		if (turn.from_ms > 0 && isinf(turn.from_ms)) /* -INFINITY is a begin */
			turn.from_ms = i == 0 && cover.from <= 0
					       ? -INFINITY
					       : begin_ms + cover.from * length_ms;
		turn.to_ms = i + 1 == use->n_samples && to >= 1 ? INFINITY
								: begin_ms + to * length_ms;
	}
	return turn;
}

/* Whether a holder came or went since then. */
static bool has_moved(const struct holder *holders, size_t n, int64_t since_ms)
{
	for (size_t i = 0; i < n; i++)
		if (holders[i].from.hi > since_ms || holders[i].to.hi < INT64_MAX)
			return true;
	return false;
}

void classify_turns(struct holder *holders, size_t n, const struct use_since *use,
	const struct rules *rules)
{
	double rest_pct = use->mean_pct;
	size_t users = 0;
	uint32_t user = 0;
	for (size_t i = 0; i < n; i++) {
		holders[i].turn = TURN_NONE;
		if (!(holders[i].sm_pct > 0) || !is_first_stretch(holders, i))
			continue;
		rest_pct -= holders[i].sm_pct + ROUNDING_PCT;
		user = holders[i].process;
		users++;
	}
	if (!use->known || users != 1 || rest_pct > ROUNDING_PCT ||
		!has_moved(holders, n, use->since_us / 1000))
		return;
	struct turn turn = whole_turn(use, rules);
	for (size_t i = 0; i < n; i++)
		if (holders[i].process == user)
			holders[i].turn = turn;
}

/* Whether the list at that moment was the first to show it. */
static bool is_shown_at(const struct edge *e, int64_t list_ms)
{
	return e->lo < e->hi && e->hi == list_ms;
}

static void narrow(struct edge *e, double lo_ms, double hi_ms)
{
	int64_t lo = lo_ms > (double)e->lo ? llround(lo_ms) : e->lo;
	int64_t hi = hi_ms < (double)e->hi ? llround(hi_ms) : e->hi;
	*e = lo <= hi ? edge_between(lo, hi) : edge_exactly(lo / 2 + hi / 2);
}

void classify_swap(struct holder *holders, size_t n, int64_t list_ms)
{
	double went_ms = -INFINITY, came_ms = INFINITY;
	for (size_t i = 0; i < n; i++) {
		const struct holder *h = &holders[i];
		if (is_shown_at(&h->to, list_ms) && isfinite(h->turn.to_ms))
			went_ms = fmax(went_ms, h->turn.to_ms);
		if (is_shown_at(&h->from, list_ms) && isfinite(h->turn.from_ms))
			came_ms = fmin(came_ms, h->turn.from_ms);
	}
	for (size_t i = 0; i < n; i++) {
		if (is_shown_at(&holders[i].to, list_ms))
			narrow(&holders[i].to, went_ms, came_ms);
		if (is_shown_at(&holders[i].from, list_ms))
			narrow(&holders[i].from, went_ms, came_ms);
	}
}

int64_t classify_next_turn_ms(const struct holder *holders, size_t n, int64_t at_ms)
{
	int64_t next_ms = INT64_MAX;
	for (size_t i = 0; i < n; i++) {
		const double edges[] = { holders[i].turn.from_ms, holders[i].turn.to_ms };
		for (size_t k = 0; k < 2; k++)
			if (edges[k] > (double)at_ms && edges[k] < (double)next_ms)
				next_ms = llround(edges[k]) > at_ms ? llround(edges[k])
								    : at_ms + 1;
	}
	return next_ms;
}

double classify_now(struct holder *holders, size_t n, int64_t at_ms)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		struct holder *h = &holders[i];
		/* Edges are rounded to milliseconds. */
		bool on = h->turn.from_ms < (double)at_ms + 0.5 &&
			  (double)at_ms + 0.5 <= h->turn.to_ms;
		h->use.first = is_first_stretch(holders, i);
		h->now_pct = on ? h->turn.pct : 0;
		sum += h->use.first ? h->now_pct : 0;
	}
	for (size_t i = 0; !(sum > 0) && i < n; i++)
		holders[i].now_pct = holders[i].sm_pct > 0 ? 100 : 0;
	return sum;
}

void classify_moment(
	struct holder *holders, size_t n, bool unexplained, const struct rules *rules)
{
	double least = rules->active_util_pct;
	bool somebody = unexplained;
	for (size_t i = 0; i < n; i++) {
		double pct = 0;
		for (size_t k = 0; k < n; k++)
			if (holders[k].user == holders[i].user && holders[k].use.first)
				pct += holders[k].now_pct;
		holders[i].use.user_pct = pct;
		somebody |= holders[i].use.user_pct >= least;
	}
	for (size_t i = 0; i < n; i++) {
		struct holder *h = &holders[i];
		bool active = h->use.user_pct >= least;
		h->user_state = active || !somebody ? HOLDER_ACTIVE : HOLDER_SQUATTING;
		bool much = h->mem_bytes < 0 || h->mem_bytes > rules->held_mem_bytes;
		bool idle = active && h->now_pct < least;
		h->own_state = !idle  ? h->user_state
			       : much ? HOLDER_IDLE_HELD
				      : HOLDER_TRULY_IDLE;
	}
}

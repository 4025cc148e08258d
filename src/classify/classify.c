/* The three states of a card and the four of a holder. */
#include "classify/classify.h"

#include <math.h>

#include "model/reading.h"

bool is_holder(unsigned kind, const struct rules *rules)
{
	return rules->count_graphics || (kind & (PROCESS_COMPUTE | PROCESS_MPS));
}

bool holder_counts(const struct holder *h, int64_t at_ms)
{
	return h->from_ms <= at_ms && at_ms < h->to_ms;
}

static void hold(struct held *held, const struct holder *h)
{
	held->n++;
	if (h->mem_bytes < 0)
		held->unknown = true;
	else
		held->bytes += h->mem_bytes;
}

struct held held_at(const struct holder *holders, size_t n, int64_t at_ms)
{
	struct held held = { 0 };
	for (size_t i = 0; i < n; i++)
		if (holder_counts(&holders[i], at_ms))
			hold(&held, &holders[i]);
	return held;
}

struct held held_by_user(const struct holder *holders, size_t n, uint32_t user, int64_t at_ms)
{
	struct held held = { 0 };
	for (size_t i = 0; i < n; i++)
		if (holders[i].user == user && holder_counts(&holders[i], at_ms))
			hold(&held, &holders[i]);
	return held;
}

enum card_state classify_card(double util_pct, struct held held, const struct rules *rules)
{
	if (util_pct >= rules->active_util_pct)
		return CARD_ACTIVE;
	if (held.unknown || held.bytes > rules->held_mem_bytes)
		return CARD_IDLE_HELD;
	return CARD_TRULY_IDLE;
}

static double known_or_zero(double x)
{
	return isnan(x) ? 0 : x;
}

/* SM use of one user's holders together, mean since the last drain. */
static double use_of(uint32_t user, const struct holder *holders, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		if (holders[i].user == user)
			sum += known_or_zero(holders[i].sm_pct);
	return sum;
}

/* Whether somebody who is not the user of holder `self` reached `limit_pct`. */
static bool somebody_else(const struct holder *self, const struct holder *holders, size_t n,
	double mean_pct, double limit_pct)
{
	double explained = 0;
	for (size_t i = 0; i < n; i++) {
		explained += known_or_zero(holders[i].sm_pct);
		if (holders[i].user != self->user && holders[i].user_pct >= limit_pct)
			return true;
	}
	return mean_pct - explained >= limit_pct;
}

static enum holder_state state_when_active(const struct holder *self,
	const struct holder *holders, size_t n, const struct use_since *use,
	const struct rules *rules)
{
	if (!use->known || use->active_part <= 0)
		return HOLDER_ACTIVE;
	/* The means cover idle samples too. Who computed did so in the active ones: a burst of
	 * 100 % in a twentieth of the time has a mean of 5 % and is not idle. */
	double limit_pct = rules->active_util_pct * use->active_part;
	if (self->user_pct >= limit_pct)
		return HOLDER_ACTIVE;
	bool other = somebody_else(self, holders, n, use->mean_pct, limit_pct);
	return other ? HOLDER_SQUATTING : HOLDER_ACTIVE;
}

void classify_use(struct holder *holders, size_t n, const struct use_since *use,
	const struct rules *rules)
{
	for (size_t i = 0; i < n; i++)
		holders[i].user_pct = use_of(holders[i].user, holders, n);
	for (size_t i = 0; i < n; i++)
		holders[i].when_active = state_when_active(&holders[i], holders, n, use, rules);
}

enum holder_state classify_holder(const struct holder *holders, size_t n, size_t i,
	enum card_state card, int64_t at_ms, const struct rules *rules)
{
	if (card == CARD_ACTIVE)
		return holders[i].when_active;
	struct held own = held_by_user(holders, n, holders[i].user, at_ms);
	bool much = own.unknown || own.bytes > rules->held_mem_bytes;
	return much ? HOLDER_IDLE_HELD : HOLDER_TRULY_IDLE;
}

/* Judges all sessions, then applies the breaker and the limits. */
#include "policy/pass.h"

#include <stdlib.h>
#include <string.h>

#define HOUR_MS INT64_C(3600000)

/* Takes an end back: the session stays as it was before the pass. */
static void hold_end(struct pass *p, size_t i, enum policy_hold why)
{
	struct verdict *v = &p->verdicts[i];
	v->state = p->states[i];
	v->state.clock_ms = p->facts[i].clock_ms;
	v->step = STEP_NONE;
	v->renewed = false;
	v->hold = why;
}

/* A new final notice is not sent either while the breaker or a limit would hold the end again.
 */
static bool wants_end(const struct verdict *v)
{
	return v->step == STEP_END || v->renewed;
}

static void all_cards(const struct pass *p, struct card_set *set)
{
	size_t n = p->policy->history ? p->policy->history->n_cards : 0;
	*set = (struct card_set){ { 0 } };
	for (size_t i = 0; i < n && i < CARD_WORDS * 64; i++)
		set->bits[i / 64] |= UINT64_C(1) << i % 64;
}

/* Bad data looks like many idle sessions at once. A single session is never too many: on a
 * small host it would be a large part of all. */
static bool is_too_much(struct pass *p)
{
	struct card_set hit = { { 0 } }, all;
	p->n_due = 0;
	for (size_t i = 0; i < p->n; i++) {
		if (!wants_end(&p->verdicts[i]))
			continue;
		p->n_due++;
		card_set_add(&hit, &p->facts[i].cards);
	}
	if (p->n_due < 2)
		return false;
	all_cards(p, &all);
	if (!card_set_empty(&all) && card_set_equal(&hit, &all))
		return true;
	int64_t sessions = p->count_sessions(p->context);
	return (double)p->n_due * 100 >
	       p->policy->config->policy.breaker_pct * (double)sessions;
}

struct due {
	size_t index;
	int64_t clock_ms;
	const char *key;
};

/* The longest idle first; of two, the one whose name comes first. */
static int compare_due(const void *a, const void *b)
{
	const struct due *x = a, *y = b;
	if (x->clock_ms != y->clock_ms)
		return x->clock_ms > y->clock_ms ? -1 : 1;
	return strcmp(x->key, y->key);
}

static int64_t count_past(const struct pass *p, const char *user, int64_t within_ms)
{
	int64_t n = 0;
	for (size_t i = 0; i < p->n_past; i++)
		n += p->now_ms - p->past[i].at_ms < within_ms &&
		     (!user || strcmp(p->past[i].user, user) == 0);
	return n;
}

/* Of the sessions that are due, in this order, those before `end` that are still to be ended,
 * of a user or of all. */
static int64_t count_chosen(
	const struct pass *p, const struct due *due, size_t end, const char *user)
{
	int64_t n = 0;
	for (size_t i = 0; i < end; i++)
		n += wants_end(&p->verdicts[due[i].index]) &&
		     (!user || strcmp(p->facts[due[i].index].session->user, user) == 0);
	return n;
}

static void apply_limits(struct pass *p, struct due *due, size_t n)
{
	const struct config_policy *limits = &p->policy->config->policy;
	if (n)
		qsort(due, n, sizeof(*due), compare_due);
	for (size_t i = 0; i < n; i++) {
		const char *user = p->facts[due[i].index].session->user;
		if (count_past(p, NULL, HOUR_MS) + count_chosen(p, due, i, NULL) >=
			limits->ends_per_hour)
			hold_end(p, due[i].index, HOLD_HOST_LIMIT);
		else if (count_past(p, user, 24 * HOUR_MS) + count_chosen(p, due, i, user) >=
			 limits->ends_per_user_day)
			hold_end(p, due[i].index, HOLD_USER_LIMIT);
	}
}

static size_t collect(const struct pass *p, struct due *due)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (wants_end(&p->verdicts[i]))
			due[n++] = (struct due){ i, p->facts[i].clock_ms,
				p->facts[i].session->key };
	return n;
}

bool pass_run(struct pass *p)
{
	struct due *due = malloc((p->n + 1) * sizeof(*due));
	if (!due)
		return false;
	for (size_t i = 0; i < p->n; i++)
		p->verdicts[i] = judge(p->policy, &p->facts[i], &p->states[i], p->now_ms);
	p->tripped = is_too_much(p);
	for (size_t i = 0; i < p->n && p->tripped; i++)
		if (wants_end(&p->verdicts[i]))
			hold_end(p, i, HOLD_BREAKER);
	apply_limits(p, due, collect(p, due));
	for (size_t i = 0; i < p->n; i++)
		p->states[i] = p->verdicts[i].state;
	free(due);
	return true;
}

/* Judges all sessions, then applies the breaker and the limits. */
#include "policy/pass.h"

#include <stdlib.h>
#include <string.h>

#define HOUR_MS INT64_C(3600000)

/* Length of a slot in the store, which is the resolution of idle clocks. */
#define SLOT_MS INT64_C(60000)

/* Undoes a step: the session stays as it was before the pass. */
static void hold(struct pass *p, size_t i, enum policy_hold why)
{
	struct verdict *v = &p->verdicts[i];
	v->state = p->states[i];
	if (v->state.stage != STAGE_NONE)
		judge_note_clock(&v->state, p->policy, &p->facts[i], p->now_ms);
	v->step = STEP_NONE;
	v->renewed = false;
	v->hold = why;
}

/* A new final notice is not sent either while a limit would delay the end again. */
static bool wants_end(const struct verdict *v)
{
	return v->step == STEP_END || v->renewed;
}

/* Whether the idle clock grew by more than the time since it was noted. Clocks with
 * different limits of use (another rule or configuration) are not compared, and neither is a
 * clock that went back, although the time of day may have gone back further. */
static bool jumped(const struct pass *p, size_t i)
{
	const struct policy_state *old = &p->states[i];
	const struct session_facts *f = &p->facts[i];
	int64_t passed_ms = p->now_ms > old->clock_at_ms ? p->now_ms - old->clock_at_ms : 0;
	return judge_was_warned(old->stage) && old->clock_at_ms >= 0 &&
	       old->idle_below == f->idle_below && f->observed && f->idle &&
	       f->clock_ms - old->clock_ms > passed_ms + SLOT_MS;
}

/* The breaker: a single clock may be wrong for its own reasons, but when several are, the
 * data cannot be trusted, and nobody is warned or ended until a person has looked. */
static void apply_breaker(struct pass *p)
{
	p->n_jumped = 0;
	for (size_t i = 0; i < p->n; i++)
		p->n_jumped += jumped(p, i);
	p->tripped = !p->stopped && p->n_jumped > 1;
	if (!p->stopped && !p->tripped)
		return;
	for (size_t i = 0; i < p->n; i++)
		if (p->verdicts[i].step == STEP_WARN || p->verdicts[i].step == STEP_END)
			hold(p, i, HOLD_BREAKER);
}

struct due {
	size_t index;
	int64_t clock_ms;
	const char *key;
};

/* Longest idle first, then by name. */
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

/* Counts the sessions before `end` in the order of due sessions that are still to be ended,
 * of one user or of all. */
static int64_t count_chosen(
	const struct pass *p, const struct due *due, size_t end, const char *user)
{
	int64_t n = 0;
	for (size_t i = 0; i < end; i++)
		n += wants_end(&p->verdicts[due[i].index]) &&
		     (!user || strcmp(p->facts[due[i].index].session->user, user) == 0);
	return n;
}

/* How many sessions may be ended in this pass: a fraction of all, and at least one. */
static int64_t most_in_a_pass(const struct pass *p, size_t n)
{
	if (n < 2)
		return 1;
	double part = p->policy->config->policy.breaker_pct *
		      (double)p->count_sessions(p->context) / 100;
	return part < 1 ? 1 : (int64_t)part;
}

static void apply_limits(struct pass *p, struct due *due, size_t n)
{
	const struct config_policy *limits = &p->policy->config->policy;
	int64_t most = most_in_a_pass(p, n);
	if (n)
		qsort(due, n, sizeof(*due), compare_due);
	for (size_t i = 0; i < n; i++) {
		const char *user = p->facts[due[i].index].session->user;
		if (count_past(p, NULL, HOUR_MS) + count_chosen(p, due, i, NULL) >=
			limits->ends_per_hour)
			hold(p, due[i].index, HOLD_HOST_LIMIT);
		else if (count_past(p, user, 24 * HOUR_MS) + count_chosen(p, due, i, user) >=
			 limits->ends_per_user_day)
			hold(p, due[i].index, HOLD_USER_LIMIT);
		else if (count_chosen(p, due, i, NULL) >= most)
			hold(p, due[i].index, HOLD_PASS_LIMIT);
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
	apply_breaker(p);
	apply_limits(p, due, collect(p, due));
	for (size_t i = 0; i < p->n; i++)
		p->states[i] = p->verdicts[i].state;
	free(due);
	return true;
}

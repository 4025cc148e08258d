/* Judges sessions: the stage and the next step of each, then the breaker and the limits of a
 * whole pass. */
#include "policy/judge.h"

const char *const policy_hold_texts[POLICY_HOLDS] = {
	[HOLD_NOTHING] = "a step was taken",
	[HOLD_NOT_IDLE] = "it is not idle",
	[HOLD_UNOBSERVED] = "nothing was recorded recently, so its idle clock is stopped",
	[HOLD_USE_UNKNOWN] = "the driver does not report which process uses its card, so its "
			     "idle clock is stopped",
	[HOLD_NO_RULE] = "no rule matches",
	[HOLD_EXEMPT] = "it is exempt",
	[HOLD_KEPT] = "its user keeps it",
	[HOLD_EARLY] = "it has not been idle for long enough",
	[HOLD_QUIET] = "it is within quiet hours or on a holiday",
	[HOLD_UNDELIVERED] = "its last notice has not been delivered yet",
	[HOLD_LAST] = "the rule does nothing further",
	[HOLD_ENDING] = "it is being ended, or has been",
	[HOLD_COMPUTING] = "it computes on the CPU",
	[HOLD_HOST_LIMIT] = "the hourly limit of ended sessions on this host is reached",
	[HOLD_USER_LIMIT] = "the daily limit of ended sessions of this user is reached",
	[HOLD_PASS_LIMIT] = "the limit of ended sessions in one pass is reached; those idle "
			    "for longest come first",
	[HOLD_BREAKER] = "the breaker has stopped everything, until 'gua enforce release'",
};

bool judge_was_warned(enum policy_stage stage)
{
	return stage >= STAGE_WARN && stage <= STAGE_FINAL;
}

/* Clears the stages; the session starts again at its first warning. */
static void clear_stages(struct verdict *v, enum policy_step step)
{
	bool warned = judge_was_warned(v->state.stage) || v->state.stage == STAGE_COMPUTING;
	char rule[RULE_NAME_CAP];
	v->step = warned ? step : STEP_NONE;
	v->would = v->state.level == LEVEL_OBSERVE;
	str_copy(rule, sizeof(rule), v->state.rule);
	v->state = POLICY_STATE_NONE;
	str_copy(v->state.rule, sizeof(v->state.rule), rule);
}

/* What the rule may do now; one that only observes goes through all stages without acting. */
static enum policy_level level_now(const struct policy *p, const struct config_rule *rule)
{
	enum policy_level level = rules_level(rule);
	if (!p->enforce || level == LEVEL_OBSERVE)
		return LEVEL_OBSERVE;
	return level == LEVEL_END && p->may_end ? LEVEL_END : LEVEL_WARN;
}

/* Finds the stage after the present one, and the idle time at which it comes. */
static void find_next(struct verdict *v, bool may_end)
{
	const struct rules_times *t = &v->times;
	enum policy_stage stage = v->state.stage;
	v->next = STAGE_NONE;
	if (stage == STAGE_NONE)
		v->next = STAGE_WARN, v->next_clock_ms = t->warn_ms;
	else if (stage == STAGE_WARN && t->again_ms != AT_NEVER)
		v->next = STAGE_AGAIN, v->next_clock_ms = t->again_ms;
	else if ((stage == STAGE_WARN || stage == STAGE_AGAIN) && may_end)
		v->next = STAGE_FINAL, v->next_clock_ms = t->final_ms;
	else if (stage == STAGE_FINAL && may_end)
		v->next = STAGE_ENDING, v->next_clock_ms = t->end_ms;
	if (v->next == STAGE_NONE)
		v->next_clock_ms = -1;
	else if (stage != STAGE_NONE && v->state.next_clock_ms > v->next_clock_ms)
		v->next_clock_ms = v->state.next_clock_ms;
}

int64_t judge_stage_at(const struct rules_times *t, enum policy_stage stage)
{
	return stage == STAGE_WARN    ? t->warn_ms
	       : stage == STAGE_AGAIN ? t->again_ms
	       : stage == STAGE_FINAL ? t->final_ms
				      : t->end_ms;
}

/* The time of the last reading, up to which clocks run: it may be some time ago. */
static int64_t seen_until(const struct policy *p, int64_t now_ms)
{
	const struct idle_history *h = p->history;
	return h && h->present && h->last_tick_ms < now_ms ? h->last_tick_ms : now_ms;
}

/* The idle clock of a session at a moment near the present, such as the delivery of a notice
 * between two passes. Time after the last reading counts as observed. */
static int64_t clock_then(
	const struct policy *p, const struct session_facts *f, int64_t now_ms, int64_t then_ms)
{
	const struct idle_history *h = p->history;
	int64_t seen_ms = seen_until(p, now_ms);
	if (then_ms > now_ms) /* the time of day was set back */
		then_ms = now_ms;
	int64_t clock_ms = f->clock_ms + then_ms - seen_ms;
	if (h && then_ms < seen_ms)
		clock_ms += idle_history_blind(h, f->session, then_ms, seen_ms);
	return clock_ms > 0 ? clock_ms : 0;
}

/* Notes that the notice of the present stage was delivered when the clock was at `clock_ms`.
 * From then on the time counts that the rule sets between this stage and the next, however late
 * the notice was. Only a warning late by at most two passes does not delay the next stage. */
static void note_delivery(
	struct verdict *v, const struct policy *p, int64_t delivered_ms, int64_t clock_ms)
{
	v->state.delivered_ms = delivered_ms;
	v->state.next_clock_ms = 0;
	if (v->next == STAGE_NONE)
		return;
	int64_t apart_ms =
		judge_stage_at(&v->times, v->next) - judge_stage_at(&v->times, v->state.stage);
	int64_t late_ms = clock_ms - judge_stage_at(&v->times, v->state.stage);
	if (v->next != STAGE_ENDING && late_ms <= 2 * p->config->policy.interval_ms)
		return;
	v->state.next_clock_ms = clock_ms + (apart_ms > 0 ? apart_ms : 0);
	if (v->state.next_clock_ms > v->next_clock_ms)
		v->next_clock_ms = v->state.next_clock_ms;
}

static void advance(struct verdict *v, const struct policy *p, const struct session_facts *f,
	int64_t now_ms)
{
	bool end = v->next == STAGE_ENDING;
	v->step = end ? STEP_END : STEP_WARN;
	v->would = v->state.level == LEVEL_OBSERVE;
	v->hold = HOLD_NOTHING;
	v->state.stage = end && v->would ? STAGE_ENDED : v->next;
	v->state.stage_ms = now_ms;
	v->state.idle_since_ms = f->idle_since_ms;
	if (!end) /* at the end, the delivery of the final notice stays */
		v->state.delivered_ms = -1;
	v->state.next_clock_ms = 0;
	str_copy(v->state.rule, sizeof(v->state.rule), v->rule->name);
	if (v->would && !end) {
		/* When the rule only observes, every notice counts as delivered at once. */
		find_next(v, v->ends);
		note_delivery(v, p, now_ms, f->clock_ms);
	}
}

/* An end this much later than the final notice announced needs a new one. */
#define LATE_LEAST_MS INT64_C(60000)

/* Whether the end was delayed (by quiet hours, a limit, the breaker, a silent driver, or
 * because gua enforce was stopped) for longer than the time from the final notice to the
 * end: the user no longer expects it. */
static bool is_outdated(const struct verdict *v, const struct policy *p, int64_t now_ms)
{
	int64_t final_ms = v->times.end_ms - v->times.final_ms;
	int64_t late_ms = now_ms - v->state.delivered_ms - final_ms;
	/* An end in the next regular pass is not late. */
	return v->next == STAGE_ENDING && late_ms > LATE_LEAST_MS && late_ms > final_ms &&
	       late_ms > 2 * p->config->policy.interval_ms;
}

/* Whether the final notice announced a later end than now. A clock that grew faster than
 * time, through a new limit of use or a wrong reading, does not bring the end forward. */
static bool is_promised_later(const struct verdict *v, int64_t now_ms)
{
	int64_t since_ms = now_ms - v->state.delivered_ms;
	return v->next == STAGE_ENDING && since_ms >= 0 &&
	       since_ms < v->times.end_ms - v->times.final_ms;
}

/* Whether the next stage is not due yet. The final notice goes out in the last pass before
 * its time, so that the end, a fixed time after it, is not late. */
static bool is_early(
	const struct verdict *v, const struct policy *p, const struct session_facts *f)
{
	int64_t early_ms = v->next == STAGE_FINAL ? p->config->policy.interval_ms - 1 : 0;
	return f->clock_ms + (early_ms > 0 ? early_ms : 0) < v->next_clock_ms;
}

/* A session that is exempt, kept, in use or gone loses its stages. True: it is one of these. */
static bool is_spared(struct verdict *v, const struct policy *p, const struct session_facts *f,
	int64_t now_ms)
{
	/* A session that would have been ended stays ended: in reality it would not come
	 * back. */
	bool on_paper = v->state.stage == STAGE_ENDED && v->state.level == LEVEL_OBSERVE;
	if (!f->holds && !on_paper) {
		v->hold = HOLD_NOT_IDLE;
		clear_stages(v, STEP_RELEASED);
	} else if (v->state.stage == STAGE_ENDING || v->state.stage == STAGE_ENDED) {
		v->hold = HOLD_ENDING;
	} else if (f->exemption || rules_find_exemption(p, f, now_ms)) {
		v->hold = HOLD_EXEMPT;
		clear_stages(v, STEP_EXEMPT);
	} else if (f->kept_until_ms > now_ms) {
		v->hold = HOLD_KEPT;
		clear_stages(v, STEP_KEPT);
	} else if (!f->idle) {
		v->hold = HOLD_NOT_IDLE;
		clear_stages(v, STEP_RECOVERED);
	} else if (v->state.stage != STAGE_NONE && f->idle_since_ms > v->state.idle_since_ms) {
		/* It was used between two passes. */
		v->hold = HOLD_NOT_IDLE;
		clear_stages(v, STEP_RECOVERED);
	} else if (v->state.stage == STAGE_FAILED) {
		v->hold = HOLD_ENDING;
	} else {
		return false;
	}
	return true;
}

/* Goes on to the next stage, or sets the reason why not. */
static void take_stage(struct verdict *v, const struct policy *p, const struct session_facts *f,
	int64_t now_ms)
{
	if (v->next == STAGE_NONE)
		v->hold = HOLD_LAST;
	else if (is_early(v, p, f) || is_promised_later(v, now_ms))
		v->hold = HOLD_EARLY;
	else if (rules_is_quiet(p, now_ms))
		v->hold = HOLD_QUIET;
	else if (is_outdated(v, p, now_ms)) {
		v->next = STAGE_FINAL;
		v->renewed = true;
		v->state.round++;
		advance(v, p, f, now_ms);
	} else
		advance(v, p, f, now_ms);
}

static struct verdict judge_observed(const struct policy *p, const struct session_facts *f,
	const struct policy_state *state, int64_t now_ms)
{
	struct verdict v = { .state = *state, .next_clock_ms = -1 };
	if (f->holds && f->idle) {
		v.rule = rules_find(p, f, now_ms);
		if (v.rule)
			v.times = rules_times(v.rule, f->session);
	}
	/* A Jupyter kernel that its server restarted has the same name as the one that was
	 * ended. While the clock is 0, one of the old processes may be in use. */
	v.reborn = (v.state.stage == STAGE_ENDED || v.state.stage == STAGE_FAILED) &&
		   f->clock_ms > 0 && f->born_ms > v.state.stage_ms;
	if (v.reborn)
		v.state = POLICY_STATE_NONE;
	/* What was only observed does not count once the rules are enforced. */
	if (v.rule && v.state.level == LEVEL_OBSERVE && level_now(p, v.rule) != LEVEL_OBSERVE)
		v.state = POLICY_STATE_NONE;
	if (is_spared(&v, p, f, now_ms))
		return v;
	if (!v.rule) {
		v.hold = HOLD_NO_RULE;
		clear_stages(&v, STEP_NONE);
		return v;
	}
	if (v.state.stage == STAGE_COMPUTING && f->computes) {
		v.hold = HOLD_COMPUTING;
		return v;
	}
	if (v.state.stage == STAGE_COMPUTING) /* that is over: the stages start again */
		v.state = POLICY_STATE_NONE;
	enum policy_level level = level_now(p, v.rule);
	/* Another rule matches, or the rule may do more than when the stages were reached: the
	 * session starts again with the first warning. */
	if (v.state.stage != STAGE_NONE &&
		(level > v.state.level || strcmp(v.state.rule, v.rule->name) != 0))
		v.state = POLICY_STATE_NONE;
	v.state.level = level;
	/* Whether the rule ends the session, in reality or as an observation. */
	v.ends = v.times.end_ms != AT_NEVER &&
		 (level == LEVEL_END ||
			 (level == LEVEL_OBSERVE && rules_level(v.rule) != LEVEL_WARN));
	find_next(&v, v.ends);
	if (judge_was_warned(v.state.stage) && v.state.delivered_ms < 0) {
		if (f->delivered_ms < 0) {
			v.hold = HOLD_UNDELIVERED;
			return v;
		}
		note_delivery(
			&v, p, f->delivered_ms, clock_then(p, f, now_ms, f->delivered_ms));
	}
	take_stage(&v, p, f, now_ms);
	return v;
}

/* Notes the clock of this pass in a state. */
static void note_clock(struct policy_state *state, const struct policy *p,
	const struct session_facts *f, int64_t now_ms)
{
	state->clock_ms = f->clock_ms;
	state->idle_below = f->idle_below;
	state->clock_at_ms = seen_until(p, now_ms);
}

struct verdict judge(const struct policy *p, const struct session_facts *f,
	const struct policy_state *state, int64_t now_ms)
{
	if (!f->observed || f->use_unknown)
		return (struct verdict){ .state = *state,
			.next_clock_ms = -1,
			.hold = f->observed ? HOLD_USE_UNKNOWN : HOLD_UNOBSERVED };
	struct verdict v = judge_observed(p, f, state, now_ms);
	if (judge_was_warned(v.state.stage) || v.step == STEP_END)
		note_clock(&v.state, p, f, now_ms);
	return v;
}

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS INT64_C(3600000)
/* How far ahead verdicts are forecast. */
#define FORESEEN_MS (31 * 24 * HOUR_MS)

struct judge_future judge_foresee(const struct policy *p, const struct session_facts *f,
	const struct verdict *v, int64_t now_ms)
{
	struct judge_future future = { -1, -1 };
	struct session_facts then = *f;
	struct idle_history history = p->history ? *p->history : (struct idle_history){ 0 };
	struct policy policy = *p;
	struct verdict last = *v;
	int64_t every_ms =
		p->config->policy.interval_ms > 0 ? p->config->policy.interval_ms : 1;
	int64_t promised_ms = now_ms + v->times.end_ms - v->times.final_ms;
	history.present = false; /* clocks run up to the pass */
	policy.history = p->history ? &history : NULL;
	for (int64_t at_ms = now_ms; future.end_ms < 0 && at_ms - now_ms < FORESEEN_MS;) {
		/* The next pass is the first in which the verdict may be another one. After a
		 * step, the next stage counts from its delivery: the pass after it finds out.
		 */
		int64_t skip_ms =
			last.hold == HOLD_NOTHING ? 0 : rules_next_hours(p, at_ms) - at_ms;
		int64_t left_ms = last.next_clock_ms - then.clock_ms - every_ms;
		if (last.hold == HOLD_EARLY && left_ms < skip_ms)
			skip_ms = left_ms;
		at_ms += (skip_ms < every_ms ? every_ms : skip_ms / every_ms * every_ms);
		then.clock_ms = f->clock_ms + at_ms - now_ms;
		then.delivered_ms = last.state.stage_ms;
		last = judge(&policy, &then, &last.state, at_ms);
		if (last.step == STEP_END)
			future.end_ms = at_ms;
		else if (last.step == STEP_WARN && future.notice_ms < 0)
			future.notice_ms = at_ms;
		else if (last.step != STEP_WARN && last.hold != HOLD_EARLY &&
			 last.hold != HOLD_QUIET && last.hold != HOLD_NO_RULE)
			break;
	}
	/* The final notice promises a time, and not the pass after it; but that pass must be
	 * the next one, and not one after quiet hours. */
	if (v->state.stage == STAGE_FINAL && future.end_ms > promised_ms &&
		future.end_ms - promised_ms <= every_ms)
		future.end_ms = promised_ms;
	return future;
}

/* Length of a slot in the store, which is the resolution of idle clocks. */
#define SLOT_MS MINUTE_MS

/* Undoes a step: the session stays as it was before the pass. */
static void undo_step(struct pass *p, size_t i, enum policy_hold why)
{
	struct verdict *v = &p->verdicts[i];
	v->state = p->states[i];
	if (v->state.stage != STAGE_NONE)
		note_clock(&v->state, p->policy, &p->facts[i], p->now_ms);
	v->step = STEP_NONE;
	v->renewed = false;
	v->hold = why;
}

/* Whether the limits concern the step: an end, or a new final notice, which must not promise an
 * end that a limit would delay again. */
static bool wants_end(const struct verdict *v)
{
	return v->step == STEP_END || v->renewed;
}

/* Whether the idle clock grew by more than the time since it was noted. Clocks with different
 * limits of use (another rule or configuration) are not compared. A clock that went back never
 * counts as grown, even if the time of day was set back further. */
static bool jumped(const struct pass *p, size_t i)
{
	const struct policy_state *old = &p->states[i];
	const struct session_facts *f = &p->facts[i];
	int64_t passed_ms = p->now_ms > old->clock_at_ms ? p->now_ms - old->clock_at_ms : 0;
	return judge_was_warned(old->stage) && old->clock_at_ms >= 0 &&
	       old->idle_below == f->idle_below && f->observed && f->idle &&
	       f->clock_ms - old->clock_ms > passed_ms + SLOT_MS;
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

bool judge_pass(struct pass *p)
{
	struct due *due = malloc((p->n + 1) * sizeof(*due));
	if (!due)
		return false;
	for (size_t i = 0; i < p->n; i++)
		p->verdicts[i] = judge(p->policy, &p->facts[i], &p->states[i], p->now_ms);
	/* The breaker: a single clock may be wrong for its own reasons, but when several are,
	 * the data cannot be trusted, and nobody is warned or ended until a person has looked.
	 */
	p->n_jumped = 0;
	for (size_t i = 0; i < p->n; i++)
		p->n_jumped += jumped(p, i);
	p->tripped = !p->stopped && p->n_jumped > 1;
	if (p->stopped || p->tripped)
		for (size_t i = 0; i < p->n; i++)
			if (p->verdicts[i].step == STEP_WARN || p->verdicts[i].step == STEP_END)
				undo_step(p, i, HOLD_BREAKER);
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (wants_end(&p->verdicts[i]))
			due[n++] = (struct due){ i, p->facts[i].clock_ms,
				p->facts[i].session->key };
	const struct config_policy *limits = &p->policy->config->policy;
	int64_t most = most_in_a_pass(p, n);
	array_sort(due, n, compare_due);
	for (size_t i = 0; i < n; i++) {
		const char *user = p->facts[due[i].index].session->user;
		if (count_past(p, NULL, HOUR_MS) + count_chosen(p, due, i, NULL) >=
			limits->ends_per_hour)
			undo_step(p, due[i].index, HOLD_HOST_LIMIT);
		else if (count_past(p, user, 24 * HOUR_MS) + count_chosen(p, due, i, user) >=
			 limits->ends_per_user_day)
			undo_step(p, due[i].index, HOLD_USER_LIMIT);
		else if (count_chosen(p, due, i, NULL) >= most)
			undo_step(p, due[i].index, HOLD_PASS_LIMIT);
	}
	free(due);
	return true;
}

/* Random histories: what really happened in each minute, what a recorder stores of it, and what
 * must never follow. */
#include "policy_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "audit/idle_history.h"
#include "policy/signs.h"
#include "policy/simulate.h"

enum { STEPS = 32, CARDS = 2, SESSIONS_MAX = 2, HOLDERS_MAX = 4, STEP_MS = 60000 };
#define T0 INT64_C(1794528000000)

/* What a process does on a card in a minute. The report calls all but ACTIVE idle; for policy
 * MODERATE and ENCODES are use, and of UNKNOWN nobody knows. */
enum doing { ABSENT, ACTIVE, MODERATE, ENCODES, UNKNOWN, LOW, IDLE, DOINGS };
/* The use of a drain in percent, and the rule's limit. */
static const double used_pct[DOINGS] = { [ACTIVE] = 50, [MODERATE] = 7, [LOW] = 3 };
enum { IDLE_BELOW = 5 };

struct holder {
	uint32_t session, card;
	unsigned char doing[STEPS];
};

struct truth {
	uint64_t random;
	size_t n_sessions, n_holders;
	struct holder holders[HOLDERS_MAX];
	bool seen[CARDS][STEPS];
	int64_t kept_from[SESSIONS_MAX], kept_until[SESSIONS_MAX]; /* steps; 0, 0: not */
	bool exempt;	     /* the first session, until a day: all of it */
	int delivery[STEPS]; /* steps until a notice of this step arrives; -1: never */
	bool stopped[STEPS + 1], disarmed[STEPS + 1]; /* gua enforce, in earnest */
	struct config config;
	struct config_rule rule;
	struct config_exemption exemption;
	const char *exempt_user[1];
	struct config_hours quiet[1];
	struct idle_session sessions[SESSIONS_MAX];
	struct idle_process processes[HOLDERS_MAX];
	struct card_id cards[CARDS];
};

static uint64_t next(struct truth *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random;
}

static bool chance(struct truth *t, unsigned percent)
{
	return next(t) % 100 < percent;
}

static int64_t at(int64_t step)
{
	return T0 + step * STEP_MS;
}

/* Whether the holder's session uses its card: what its processes use there is added up. */
static bool is_use(const struct truth *t, const struct holder *h, int step)
{
	double sum = 0;
	for (size_t i = 0; i < t->n_holders; i++)
		if (t->holders[i].session == h->session && t->holders[i].card == h->card)
			sum += used_pct[t->holders[i].doing[step]];
	return h->doing[step] != ABSENT && (sum >= IDLE_BELOW || h->doing[step] == ENCODES);
}

/* Long idle times with now and then something else; some come later, or end early. */
static void make_holder(struct truth *t, struct holder *h)
{
	enum doing doing = chance(t, 70) ? IDLE : ACTIVE;
	int from = chance(t, 15) ? (int)(next(t) % STEPS) : 0;
	int until = chance(t, 15) ? (int)(next(t) % STEPS) : STEPS;
	for (int i = 0; i < STEPS; i++) {
		if (chance(t, 6))
			doing = (enum doing)(next(t) % DOINGS);
		else if (chance(t, 30) && doing != ABSENT)
			doing = IDLE;
		h->doing[i] = (unsigned char)(i >= from && i < until ? doing : ABSENT);
	}
}

static void make_rule(struct truth *t)
{
	t->rule = (struct config_rule){ .name = "only",
		.warn_ms = (int64_t)(3 + next(t) % 3) * STEP_MS,
		.final_ms = (int64_t)(1 + next(t) % 3) * STEP_MS,
		.idle_below = IDLE_BELOW,
		.level = "end" };
	t->rule.again_ms = chance(t, 30)
				   ? AT_NEVER
				   : t->rule.warn_ms + (int64_t)(1 + next(t) % 3) * STEP_MS;
	t->rule.end_ms = t->rule.warn_ms + (int64_t)(2 + next(t) % 6) * STEP_MS;
	t->config.policy_rules = (struct config_blocks){ &t->rule, 1 };
	t->config.policy = (struct config_policy){ .mode = "enforce",
		.interval_ms = STEP_MS,
		.ends_per_hour = 100,
		.ends_per_user_day = 100,
		.breaker_pct = chance(t, 50) ? 100 : 30 };
	if (chance(t, 20)) {
		int from = (int)(next(t) % 30);
		t->quiet[0] = (struct config_hours){ 127, from, from + 8 };
		t->config.quiet = (struct config_calendar){ .hours = t->quiet, .n_hours = 1 };
	}
	t->exempt = chance(t, 20);
	if (t->exempt) {
		t->exempt_user[0] = "user0";
		t->exemption = (struct config_exemption){ .name = "x",
			.owner = "carol",
			.until = chance(t, 50) ? 20990101 : 20200101 };
		t->exempt = t->exemption.until == 20990101;
		t->exemption.match.users = (struct config_patterns){ t->exempt_user, 1 };
		t->config.exemptions = (struct config_blocks){ &t->exemption, 1 };
	}
}

/* A time in which something is so, in some histories. */
static void make_time(struct truth *t, bool so[STEPS + 1])
{
	if (!chance(t, 30))
		return;
	int from = (int)(next(t) % STEPS), until = from + 1 + (int)(next(t) % 9);
	for (int i = from; i < until && i <= STEPS; i++)
		so[i] = true;
}

static void make(struct truth *t, uint64_t seed)
{
	static const char *const keys[] = { "a", "b" }, *const users[] = { "user0", "user1" };
	*t = (struct truth){ .random = seed * 0x9E3779B97F4A7C15u + 1 };
	t->n_sessions = 1 + next(t) % SESSIONS_MAX;
	t->n_holders = t->n_sessions + next(t) % (HOLDERS_MAX - t->n_sessions + 1);
	for (size_t i = 0; i < t->n_sessions; i++) {
		t->sessions[i] = (struct idle_session){
			.key = keys[i], .user = users[i], .use = USE_BATCH
		};
		if (!chance(t, 25))
			continue;
		t->kept_from[i] = (int64_t)(next(t) % STEPS);
		t->kept_until[i] = t->kept_from[i] + (int64_t)(next(t) % 14);
	}
	for (size_t i = 0; i < t->n_holders; i++) {
		struct holder *h = &t->holders[i];
		h->session = (uint32_t)(i < t->n_sessions ? i : next(t) % t->n_sessions);
		h->card = (uint32_t)(next(t) % CARDS);
		make_holder(t, h);
		int begin = 0;
		while (begin < STEPS - 1 && h->doing[begin] == ABSENT)
			begin++;
		t->processes[i] = (struct idle_process){ .pid = (uint32_t)i + 10,
			.session = h->session,
			.uid = 1000,
			.started_ms = at(begin) };
	}
	for (int c = 0; c < CARDS; c++)
		for (int i = 0, left = 0; i<STEPS; i++, left -= left> 0) {
			if (chance(t, 3))
				left = (int)(1 + next(t) % 9);
			t->seen[c][i] = left == 0;
		}
	for (int i = 0; i < STEPS; i++)
		t->delivery[i] = chance(t, 60) ? 0 : chance(t, 10) ? -1 : (int)(next(t) % 6);
	make_rule(t);
	make_time(t, t->stopped);
	make_time(t, t->disarmed);
}

/* A history with room for everything that the truth can have. */
struct store {
	struct idle_history h;
	struct idle_span spans[HOLDERS_MAX * STEPS];
	struct idle_gap gaps[CARDS * STEPS];
	struct idle_session sessions[SESSIONS_MAX];
};

/* When a holder held its card, as a recorder knows after `n` steps. */
static void add_spans(struct store *s, const struct truth *t, uint32_t who, int n)
{
	const struct holder *h = &t->holders[who];
	struct idle_span span = { .session = h->session,
		.process = who,
		.card = h->card,
		.begin_ms = -1,
		.mem_kib = 4 << 20 };
	for (int i = 0; i <= n; i++) {
		bool end = i == n;
		if (!end && !t->seen[h->card][i])
			continue;
		if (!end && h->doing[i] != ABSENT) {
			if (span.begin_ms < 0)
				span.begin_ms = at(i);
			span.end_ms = at(i + 1);
			continue;
		}
		if (span.begin_ms < 0)
			continue;
		span.open = end;
		if (end && s->h.present)
			span.end_ms = at(n);
		s->spans[s->h.n_spans++] = span;
		span.begin_ms = -1;
	}
}

static void add_marks(struct store *s, const struct truth *t, int n)
{
	for (size_t w = 0; w < t->n_holders; w++) {
		const struct holder *h = &t->holders[w];
		for (int k = 0; k < n; k++) {
			if (t->seen[h->card][k] && is_use(t, h, k) &&
				array_one_more(&s->h.marks, s->h.n_marks))
				s->h.marks[s->h.n_marks++] =
					(struct idle_mark){ .session = h->session,
						.card = h->card,
						.from_ms = at(k),
						.until_ms = at(k + 1),
						.slot_ms = at(k) };
			if (t->seen[h->card][k] && h->doing[k] == UNKNOWN &&
				array_one_more(&s->h.blinds, s->h.n_blinds))
				s->h.blinds[s->h.n_blinds++] =
					(struct idle_blind){ .session = h->session,
						.from_ms = at(k),
						.to_ms = at(k + 1) };
		}
	}
}

static int compare_begin(const void *a, const void *b)
{
	const struct idle_span *x = a, *y = b;
	return x->begin_ms < y->begin_ms ? -1 : x->begin_ms > y->begin_ms;
}

/* What the recorder has stored after `n` steps; `present`: as it looks then. */
static void record(struct store *s, struct truth *t, int n, bool present)
{
	struct idle_mark *marks = s->h.marks;
	struct idle_blind *blinds = s->h.blinds;
	s->h = (struct idle_history){ .present = present,
		.any_run = true,
		.running = true,
		.ticked = true,
		.last_tick_ms = at(n),
		.interval_ms = STEP_MS,
		.since_ms = at(0),
		.until_ms = at(n),
		.cards = t->cards,
		.n_cards = CARDS,
		.sessions = s->sessions,
		.n_sessions = t->n_sessions,
		.processes = t->processes,
		.n_processes = t->n_holders,
		.spans = s->spans,
		.marks = marks,
		.blinds = blinds,
		.limits = { IDLE_BELOW },
		.n_limits = 1,
		.gaps = s->gaps };
	memcpy(s->sessions, t->sessions, sizeof(t->sessions));
	for (uint32_t i = 0; i < t->n_holders; i++)
		add_spans(s, t, i, n);
	if (s->h.n_spans)
		qsort(s->spans, s->h.n_spans, sizeof(*s->spans), compare_begin);
	add_marks(s, t, n);
	for (size_t w = 0; w < t->n_holders; w++)
		for (int k = n; k-- > 0;)
			if (t->seen[t->holders[w].card][k]) {
				if (t->holders[w].doing[k] != ABSENT)
					s->sessions[t->holders[w].session].holds = true;
				break;
			}
	for (uint32_t c = 0; c < CARDS; c++)
		for (int k = 0; k < n; k++)
			if (!t->seen[c][k])
				s->gaps[s->h.n_gaps++] =
					(struct idle_gap){ c, at(k), at(k + 1) };
	idle_history_settle(&s->h, NULL);
}

static int64_t kept_until(void *context, const char *key, int64_t ms)
{
	const struct truth *t = context;
	size_t i = (size_t)(key[0] - 'a');
	bool kept = at(t->kept_from[i]) <= ms && ms < at(t->kept_until[i]);
	return kept ? at(t->kept_until[i]) : -1;
}

/* Of two sessions, a pass ends both, or one. */
static int64_t count_two(void *context)
{
	(void)context;
	return 2;
}

static int64_t count_then(void *context, int64_t ms)
{
	(void)ms;
	return count_two(context);
}

/* A step of either run: one line of its log. */
struct log {
	int64_t at_ms[SESSIONS_MAX * STEPS];
	int step[SESSIONS_MAX * STEPS], session[SESSIONS_MAX * STEPS];
	size_t n;
};

static bool is_compared(enum policy_step step)
{
	return step == STEP_WARN || step == STEP_END;
}

static void add_log(struct log *l, int64_t ms, enum policy_step step, const char *key)
{
	if (!is_compared(step))
		return;
	/* In one pass, by session: the order within a pass means nothing. */
	size_t i = l->n++;
	for (; i > 0 && l->at_ms[i - 1] == ms && l->session[i - 1] > key[0] - 'a'; i--) {
		l->at_ms[i] = l->at_ms[i - 1];
		l->step[i] = l->step[i - 1];
		l->session[i] = l->session[i - 1];
	}
	l->at_ms[i] = ms;
	l->step[i] = (int)step;
	l->session[i] = key[0] - 'a';
}

struct teller {
	struct truth *t;
	struct log *log;
};

static void tell(void *context, const struct simulate_step *step)
{
	struct teller *teller = context;
	add_log(teller->log, step->at_ms, step->step, step->session->key);
}

static int64_t teller_kept(void *context, const char *key, int64_t ms)
{
	return kept_until(((struct teller *)context)->t, key, ms);
}

static char wrong[256];

static const char *fail(const char *what, int step, const char *key)
{
	snprintf(wrong, sizeof(wrong), "%s at step %d, session %s", what, step, key);
	return wrong;
}

/* Whether anybody knows that the process is on the card: it was there when last seen. A process
 * that comes to a card while nobody looks cannot be known. */
static bool is_known(const struct truth *t, const struct holder *h, int step)
{
	while (step >= 0 && !t->seen[h->card][step])
		step--;
	return step >= 0 && h->doing[step] != ABSENT;
}

/* The plain words: no use, no exemption, no keep, and seen idle for as long as the rule says.
 * Looks only at the truth. */
static const char *check_end(const struct truth *t, int step, size_t session)
{
	const char *key = t->sessions[session].key;
	int64_t need = t->rule.end_ms / STEP_MS, idle = 0;
	if (session == 0 && t->exempt)
		return fail("an exempt session was ended", step, key);
	if (kept_until((void *)t, key, at(step)) >= 0)
		return fail("a kept session was ended", step, key);
	for (int k = step; k-- > 0 && idle < need;) {
		bool all_seen = true;
		for (size_t w = 0; w < t->n_holders; w++) {
			const struct holder *h = &t->holders[w];
			if (h->session != session || !is_known(t, h, k))
				continue;
			bool seen = t->seen[h->card][k];
			all_seen &= seen && h->doing[k] != UNKNOWN;
			if (seen && is_use(t, h, k))
				return fail("a session was ended that was used", step, key);
			if (k == step - 1 && !(seen && h->doing[k] != UNKNOWN))
				return fail("an unobserved session was ended", step, key);
		}
		idle += all_seen;
	}
	return idle < need ? fail("a session was ended too early", step, key) : NULL;
}

/* A holder as the driver shows it in a minute. */
static struct present_process driver_shows(const struct truth *t, uint32_t who, int step)
{
	const struct holder *h = &t->holders[who];
	enum doing doing = (enum doing)h->doing[step];
	struct present_process p = { .id = { .pid = t->processes[who].pid,
					     .start_ticks = 1,
					     .posix_session = 100 + h->session },
		.card = h->card,
		.holder = true,
		.mem_bytes = 1 };
	p.sm_pct = doing == UNKNOWN ? (double)NAN : used_pct[doing];
	p.engine_pct[ENGINE_DECODER] = doing == ENCODES ? 3 : 0;
	return p;
}

/* The last look before a session is ended, in the minute after the decision: what joined it,
 * and what is used or cannot be seen, spares it; nothing else does. */
static const char *check_confirm(
	const struct truth *t, int step, size_t session, struct policy_checked *sum)
{
	static struct present_card cards[CARDS];
	static struct present_process shown[HOLDERS_MAX];
	struct proc_life plan[HOLDERS_MAX];
	struct present now = { .cards = cards, .n_cards = CARDS, .processes = shown };
	const struct signs_look look = { .now = &now, .idle_below = IDLE_BELOW };
	struct signs_result r;
	size_t n = 0, held = 0;
	bool used = false, joined = false, blind = false;
	for (int c = 0; c < CARDS; c++) {
		cards[c].status = t->seen[c][step] ? CARD_STATUS_OK : CARD_STATUS_LOST;
		cards[c].values[METRIC_UTILIZATION_GPU] = (double)NAN;
	}
	for (uint32_t w = 0; w < t->n_holders; w++) {
		const struct holder *h = &t->holders[w];
		bool known = is_known(t, h, step - 1);
		if (known && h->session == session)
			plan[n++] = (struct proc_life){ t->processes[w].pid, 1, 1000 };
		if (h->doing[step] == ABSENT)
			continue;
		shown[now.n_processes++] = driver_shows(t, w, step);
		if (h->session != session)
			continue;
		held += known;
		joined |= !known;
		used |= is_use(t, h, step);
		blind |= !t->seen[h->card][step] || h->doing[step] == UNKNOWN;
	}
	signs_judge(&r, &look, plan, n);
	bool spares = used || joined || blind || !held;
	sum->joined += joined && held && !used && !blind;
	if ((r.verdict == SIGNS_IDLE) == spares)
		return fail(spares ? "the last look did not spare a session"
				   : "the last look spared an idle session",
			step, t->sessions[session].key);
	return NULL;
}

struct live_run {
	struct truth *t;
	struct policy policy;
	struct policy_state states[SESSIONS_MAX];
	int notices[SESSIONS_MAX];	  /* of the present idle time */
	int64_t last_clock[SESSIONS_MAX]; /* at the last delivered notice */
	struct log log;
	struct policy_checked *sum;
	bool observe;
};

static const char *check_step(
	struct live_run *r, const struct verdict *v, int step, const struct session_facts *f)
{
	size_t i = (size_t)(f->session->key[0] - 'a');
	if (v->step == STEP_WARN) {
		r->notices[i]++;
		r->sum->warnings++;
	} else if (v->step == STEP_END) {
		const char *why = check_end(r->t, step, i);
		int least = r->t->rule.again_ms == AT_NEVER ? 2 : 3;
		if (why)
			return why;
		if (!r->observe && r->t->disarmed[step])
			return fail("ended while that was forbidden", step, f->session->key);
		if (r->notices[i] < least)
			return fail("a stage was skipped", step, f->session->key);
		if (!r->observe && f->delivered_ms < 0)
			return fail("ended without its final notice", step, f->session->key);
		if (at(step) - v->state.delivered_ms > 2 * r->t->rule.final_ms + STEP_MS)
			return fail("ended long after its notice", step, f->session->key);
		if (!r->observe && step < STEPS)
			why = check_confirm(r->t, step, i, r->sum);
		if (why)
			return why;
		r->sum->ends += !r->observe;
		r->sum->would_ends += r->observe;
	}
	r->sum->recovered += v->step == STEP_RECOVERED;
	r->sum->kept += v->step == STEP_KEPT;
	r->sum->exempt += v->hold == HOLD_EXEMPT;
	r->sum->blind += v->hold == HOLD_UNOBSERVED;
	r->sum->quiet += v->hold == HOLD_QUIET;
	r->sum->renewed += v->renewed;
	r->sum->reborn += v->reborn;
	/* What was said before or while ending was forbidden does not count. */
	bool forbidden = !r->observe && r->t->disarmed[step] && v->hold != HOLD_UNOBSERVED &&
			 v->hold != HOLD_USE_UNKNOWN;
	if (v->state.stage == STAGE_NONE || forbidden)
		r->notices[i] = 0;
	if (is_compared(v->step) && rules_is_quiet(&r->policy, at(step)))
		return fail("something happened in quiet hours", step, f->session->key);
	return NULL;
}

/* At most a part of the sessions is ended in a pass, the longest idle first. */
static const char *check_pass(struct live_run *r, const struct session_facts *facts,
	const struct verdict *verdicts, int step)
{
	size_t ended = 0;
	for (size_t i = 0; i < r->t->n_sessions; i++) {
		ended += verdicts[i].step == STEP_END;
		if (verdicts[i].hold != HOLD_PASS_LIMIT)
			continue;
		r->sum->held++;
		/* The other one was ended or told again, and is not idle for less. */
		if (verdicts[1 - i].hold != HOLD_NOTHING ||
			facts[1 - i].clock_ms < facts[i].clock_ms)
			return fail(
				"not the longest idle was ended", step, facts[i].session->key);
	}
	return ended > 1 && r->t->config.policy.breaker_pct < 100
		       ? fail("too many were ended in a pass", step, "a")
		       : NULL;
}

/* The notice of the present stage arrived, as the truth has it. */
static int64_t delivered(const struct truth *t, const struct policy_state *s, int step)
{
	if (s->stage_ms < 0)
		return -1;
	int64_t sent = (s->stage_ms - T0) / STEP_MS;
	int wait = t->delivery[sent < STEPS ? sent : STEPS - 1];
	return wait >= 0 && sent + wait <= step ? at(sent + wait) : -1;
}

/* One pass of the live run: everything is read afresh, as after a restart. */
static const char *live_pass(struct live_run *r, struct store *s, int step)
{
	struct truth *t = r->t;
	struct session_facts facts[SESSIONS_MAX];
	struct verdict verdicts[SESSIONS_MAX];
	record(s, t, step, true);
	r->policy.history = &s->h;
	for (size_t i = 0; i < t->n_sessions; i++) {
		uint32_t spans[HOLDERS_MAX];
		struct open_spans open = { spans, 0 };
		for (uint32_t k = 0; k < s->h.n_spans; k++)
			if (s->spans[k].session == i &&
				facts_covers(&s->h, &s->spans[k], at(step)))
				spans[open.n++] = k;
		facts[i] = (struct session_facts){ .kept_until_ms = kept_until(
							   t, s->sessions[i].key, at(step)),
			.delivered_ms = delivered(t, &r->states[i], step) };
		facts_at(&r->policy, &facts[i], &s->sessions[i], open, at(step));
	}
	struct pass pass = { .policy = &r->policy,
		.now_ms = at(step),
		.facts = facts,
		.states = r->states,
		.verdicts = verdicts,
		.n = t->n_sessions,
		.count_sessions = count_two };
	if (!judge_pass(&pass))
		return "out of memory";
	/* Histories are true: no clock grows faster than time goes by. */
	if (pass.tripped)
		return fail("the breaker tripped", step, "a");
	const char *limit = check_pass(r, facts, verdicts, step);
	if (limit)
		return limit;
	for (size_t i = 0; i < t->n_sessions; i++) {
		const char *why = check_step(r, &verdicts[i], step, &facts[i]);
		if (why)
			return why;
		add_log(&r->log, at(step), verdicts[i].step, facts[i].session->key);
		r->states[i] = verdicts[i].state;
	}
	return NULL;
}

static const char *run_live(struct live_run *r, struct store *s)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		r->states[i] = POLICY_STATE_NONE;
	for (int step = 1; step <= STEPS; step++) {
		if (!r->observe && r->t->stopped[step])
			continue;
		r->policy.may_end = !r->observe && !r->t->disarmed[step];
		const char *why = live_pass(r, s, step);
		if (why)
			return why;
	}
	return NULL;
}

static const char *compare(const struct log *live, const struct log *sim)
{
	size_t n = live->n < sim->n ? live->n : sim->n;
	for (size_t i = 0; i <= n; i++) {
		bool more_live = i < live->n, more_sim = i < sim->n;
		if (!more_live && !more_sim)
			return NULL;
		bool same = more_live && more_sim && live->at_ms[i] == sim->at_ms[i] &&
			    live->step[i] == sim->step[i] &&
			    live->session[i] == sim->session[i];
		if (same)
			continue;
		snprintf(wrong, sizeof(wrong),
			"step %zu: live %d of %d at %lld, simulated %d of %d at %lld", i,
			more_live ? live->step[i] : -1, more_live ? live->session[i] : -1,
			more_live ? (long long)(live->at_ms[i] - T0) / STEP_MS : -1LL,
			more_sim ? sim->step[i] : -1, more_sim ? sim->session[i] : -1,
			more_sim ? (long long)(sim->at_ms[i] - T0) / STEP_MS : -1LL);
		return wrong;
	}
	return NULL;
}

const char *policy_check_random(uint64_t seed, struct policy_checked *sum)
{
	static struct truth t;
	static struct store s;
	static struct log simulated;
	static struct live_run live;
	make(&t, seed);
	sum->histories++;
	/* In earnest, with notices that arrive late or never. */
	live = (struct live_run){ .t = &t,
		.sum = sum,
		.policy = {
			.config = &t.config, .enforce = true, .may_end = true, .utc = true } };
	const char *why = run_live(&live, &s);
	if (why)
		return why;
	/* On paper, as simulate does it. */
	live = (struct live_run){ .t = &t,
		.sum = sum,
		.observe = true,
		.policy = { .config = &t.config, .utc = true } };
	why = run_live(&live, &s);
	if (why)
		return why;
	record(&s, &t, STEPS, false);
	simulated.n = 0;
	struct policy policy = { .config = &t.config, .history = &s.h, .utc = true };
	struct teller teller = { &t, &simulated };
	struct simulation sim = { .policy = &policy,
		.history = &s.h,
		.interval_ms = STEP_MS,
		.kept_until = teller_kept,
		.count_sessions = count_then,
		.tell = tell,
		.context = &teller };
	if (simulate(&sim, NULL) != 0)
		return "out of memory";
	simulate_finish(&sim);
	return compare(&live.log, &simulated);
}

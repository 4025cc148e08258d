/* One pass of gua enforce: reads facts, judges, and writes everything in one transaction. */
#include "policy/enforcer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "base/moment.h"
#include "policy/endings.h"
#include "policy/signs.h"
#include "policy/tell.h"
#include "proc/proc.h"
#include "store/policy/policy_notice.h"

#define HOUR_MS INT64_C(3600000)

/* All that one pass needs; sessions that hold a card first, then those that only have a state.
 */
struct work {
	struct enforcer *x;
	int64_t now_ms;
	struct facts_now now;
	struct session_facts *facts;
	struct policy_state *states, *old;
	struct verdict *verdicts;
	size_t n, n_present;
	struct idle_session *gone; /* the sessions that hold nothing any more */
	size_t n_gone;
	struct past_end *ends;
	size_t n_ends;
	bool stopped; /* the breaker has tripped and was not released */
	struct arena texts;
	struct err *e;
};

static void finish(struct work *w)
{
	facts_now_finish(&w->now);
	free(w->facts);
	free(w->states);
	free(w->old);
	free(w->verdicts);
	free(w->gone);
	free(w->ends);
	arena_finish(&w->texts);
}

/* A time that was found with another limit of use is not valid. */
static int64_t used_of(const struct enforcer *x, const struct session_facts *f)
{
	for (size_t i = 0; i < x->n_used; i++)
		if (strcmp(x->used[i].key, f->session->key) == 0)
			return x->used[i].idle_below == f->idle_below ? x->used[i].used_ms : 0;
	return 0;
}

/* Remembers until when each session was used, as found by a full reading, and forgets all
 * other sessions. */
static bool remember_used(struct work *w)
{
	struct enforcer *x = w->x;
	x->n_used = 0;
	for (size_t i = 0; i < w->n_present; i++) {
		const struct session_facts *f = &w->facts[i];
		if (f->idle_since_ms < 0)
			continue;
		if (!array_one_more(&x->used, x->n_used))
			return false;
		str_copy(x->used[x->n_used].key, SESSION_KEY_CAP, f->session->key);
		x->used[x->n_used].idle_below = f->idle_below;
		x->used[x->n_used++].used_ms = f->idle_since_ms;
	}
	return true;
}

/* Reads the result of the newest attempt to end a session. One that was spared before
 * anything was done to it does not count for the limits. */
static void take_result(struct work *w, const struct policy_action *a)
{
	size_t i = w->n_ends;
	while (i > 0 && strcmp(w->ends[i - 1].session, a->session) != 0)
		i--;
	if (i == 0)
		return;
	struct past_end *end = &w->ends[i - 1];
	end->signalled |= a->step == STEP_SIGNAL;
	if (a->step == STEP_SPARED && !end->signalled)
		*end = w->ends[--w->n_ends];
}

static int take_end(void *context, const struct policy_action *a)
{
	struct work *w = context;
	if (a->would == w->x->policy.enforce)
		return 0;
	if (a->step == STEP_SIGNAL || a->step == STEP_SPARED)
		take_result(w, a);
	if (a->step != STEP_END)
		return 0;
	if (!array_one_more(&w->ends, w->n_ends))
		return err_memory(w->e);
	w->ends[w->n_ends++] = (struct past_end){ a->at_ms, arena_text(&w->texts, a->user),
		arena_text(&w->texts, a->session), false };
	return w->texts.failed ? err_memory(w->e) : 0;
}

static bool is_present(const struct facts_now *now, const char *key)
{
	for (size_t i = 0; i < now->history.n_sessions; i++)
		if (strcmp(now->history.sessions[i].key, key) == 0)
			return true;
	return false;
}

static int take_gone(
	void *context, const char *key, const char *user, const struct policy_state *state)
{
	struct work *w = context;
	(void)state;
	if (is_present(&w->now, key))
		return 0;
	if (!array_one_more(&w->gone, w->n_gone))
		return err_memory(w->e);
	w->gone[w->n_gone++] = (struct idle_session){ .key = arena_text(&w->texts, key),
		.user = arena_text(&w->texts, user),
		.kind = SESSION_PROCESS };
	return w->texts.failed ? err_memory(w->e) : 0;
}

/* Renames keeps: a session gets another name when the name of its user or notebook becomes
 * known later. A keep follows the process for which it was requested. */

/* A keep whose session no longer has the stored name, while the process still exists. */
struct moved {
	const struct facts_now *now;
	char session[SESSION_KEY_CAP];
	struct policy_keep keep;
	const char *key; /* of the session that the process is in now */
};

static int find_moved(void *context, const struct policy_keep *k)
{
	struct moved *m = context;
	const struct idle_history *h = &m->now->history;
	if (is_present(m->now, k->session))
		return 0;
	for (size_t i = 0; i < h->n_processes; i++) {
		const struct idle_process *p = &h->processes[i];
		if (!p->holds || p->pid != k->pid || (k->uid != 0 && p->uid != k->uid) ||
			p->started_ms > k->from_ms)
			continue;
		str_copy(m->session, sizeof(m->session), k->session);
		m->keep = *k;
		m->keep.session = m->session;
		m->key = h->sessions[p->session].key;
		return 1;
	}
	return 0;
}

static int follow_keeps(struct policy_file *f, const struct facts_now *now, struct err *e)
{
	const struct policy_span span = { now->now_ms, now->now_ms + 1 };
	struct moved m = { .now = now };
	int rc;
	while ((rc = policy_file_keeps(f, span, find_moved, &m, e)) == 1) {
		rc = policy_file_move_keep(f, &m.keep, m.key, e);
		if (rc)
			return rc;
	}
	return rc;
}

static int take_keep(void *context, const struct policy_keep *k)
{
	struct work *w = context;
	for (size_t i = 0; i < w->n_present; i++)
		if (strcmp(w->facts[i].session->key, k->session) == 0 &&
			k->until_ms > w->facts[i].kept_until_ms)
			w->facts[i].kept_until_ms = k->until_ms;
	return 0;
}

/* Reads the store; `brief` leaves out what takes long to read. */
static int read_present(struct work *w, bool brief)
{
	struct enforcer *x = w->x;
	facts_now_finish(&w->now);
	w->now = (struct facts_now){
		.db = x->db, .root = x->root, .now_ms = w->now_ms, .brief = brief
	};
	w->now.policy = &x->policy;
	int rc = facts_now_read(&w->now, w->e);
	for (size_t i = 0; rc == 0 && brief && i < w->now.history.n_sessions; i++) {
		struct idle_session *s = &w->now.history.sessions[i];
		s->used_ms = used_of(x, &w->now.facts[i]);
	}
	if (rc == 0 && brief)
		facts_now_judge_again(&w->now);
	x->policy.history = &w->now.history;
	return rc;
}

static int make_room(struct work *w)
{
	w->n_present = w->now.history.n_sessions;
	w->n_gone = 0;
	int rc = policy_file_sessions(w->x->file, take_gone, w, w->e);
	w->n = w->n_present + w->n_gone;
	free(w->facts);
	free(w->states);
	free(w->old);
	free(w->verdicts);
	w->facts = calloc(w->n + 1, sizeof(*w->facts));
	w->states = calloc(w->n + 1, sizeof(*w->states));
	w->old = calloc(w->n + 1, sizeof(*w->old));
	w->verdicts = calloc(w->n + 1, sizeof(*w->verdicts));
	if (rc == 0 && (!w->facts || !w->states || !w->old || !w->verdicts))
		rc = err_memory(w->e);
	return rc;
}

/* CPU seconds of a session's processes; NAN: not known. */
static double cpu_seconds(const struct work *w, size_t session)
{
	const struct idle_history *h = &w->now.history;
	const char *const *texts = h->sessions[session].texts;
	struct end_process *processes = calloc(h->n_processes + 1, sizeof(*processes));
	int proc = -1;
	double seconds = (double)NAN;
	struct signs_session s = { .processes = processes,
		.job = texts[PROCESS_JOB] ? texts[PROCESS_JOB] : "",
		.container = texts[PROCESS_CONTAINER] ? texts[PROCESS_CONTAINER] : "" };
	for (size_t i = 0; processes && i < h->n_processes; i++)
		if (h->processes[i].session == session && h->processes[i].holds)
			processes[s.n++] = (struct end_process){ h->processes[i].pid,
				h->processes[i].start_ticks, h->processes[i].uid };
	if (processes && proc_open(&proc, w->x->root ? w->x->root : "", NULL) == 0) {
		seconds = signs_cpu_s(proc, &s);
		close(proc);
	}
	free(processes);
	return seconds;
}

/* Whether a session that was spared because of its CPU use still computes, measured between
 * two passes that are as far apart as the looks before an end. Unknown counts as use. */
static bool computes(struct work *w, size_t session)
{
	struct enforcer *x = w->x;
	const char *key = w->facts[session].session->key;
	int64_t now_us = clock_now(x->clock).mono_us;
	struct enforcer_cpu *c = x->cpu;
	while (c < x->cpu + x->n_cpu && strcmp(c->key, key) != 0)
		c++;
	bool known = x->n_cpu && c < x->cpu + x->n_cpu;
	if (known && now_us - c->at_us < x->policy.config->end.confirm_ms * 1000)
		return c->busy;
	double now_s = cpu_seconds(w, session);
	if (!known) {
		if (!array_one_more(&x->cpu, x->n_cpu))
			return true;
		c = &x->cpu[x->n_cpu++];
		*c = (struct enforcer_cpu){ .cpu_s = (double)NAN, .at_us = now_us };
		str_copy(c->key, sizeof(c->key), key);
	}
	double pct = 100e6 * (now_s - c->cpu_s) / (double)(now_us - c->at_us);
	c->busy = !(pct >= 0 && pct <= x->policy.config->end.cpu_pct);
	c->cpu_s = now_s;
	c->at_us = now_us;
	return c->busy;
}

/* Forgets the CPU time of sessions that are no longer spared because of it. */
static void forget_cpu(struct work *w)
{
	struct enforcer *x = w->x;
	for (size_t k = x->n_cpu; k-- > 0;) {
		bool needed = false;
		for (size_t i = 0; i < w->n_present && !needed; i++)
			needed = w->states[i].stage == STAGE_COMPUTING &&
				 strcmp(w->facts[i].session->key, x->cpu[k].key) == 0;
		if (!needed)
			x->cpu[k] = x->cpu[--x->n_cpu];
	}
}

/* The stored state of each session, and whether its notice has arrived. */
static int read_states(struct work *w)
{
	int rc = 0;
	for (size_t i = 0; i < w->n && rc == 0; i++) {
		struct session_facts *f = &w->facts[i];
		rc = policy_file_state(w->x->file, f->session->key, &w->states[i], w->e);
		w->old[i] = w->states[i];
		if (rc == 0 && w->states[i].stage != STAGE_NONE &&
			w->states[i].delivered_ms < 0)
			rc = policy_notice_delivered(w->x->file, f->session->key, &w->states[i],
				&f->delivered_ms, w->e);
		if (rc == 0 && i < w->n_present && w->states[i].stage == STAGE_COMPUTING)
			f->computes = computes(w, i);
	}
	forget_cpu(w);
	return rc;
}

static int fill(struct work *w)
{
	struct policy_span now = { w->now_ms, w->now_ms + 1 };
	int rc = make_room(w);
	if (rc == 0)
		rc = follow_keeps(w->x->file, &w->now, w->e);
	if (rc)
		return rc;
	memcpy(w->facts, w->now.facts, w->n_present * sizeof(*w->facts));
	for (size_t i = 0; i < w->n_gone; i++)
		w->facts[w->n_present + i] = (struct session_facts){ .session = &w->gone[i],
			.observed = true,
			.idle_since_ms = -1,
			.mem_bytes = -1,
			.uid = -1,
			.kept_until_ms = -1,
			.delivered_ms = -1 };
	rc = policy_file_keeps(w->x->file, now, take_keep, w, w->e);
	return rc ? rc : read_states(w);
}

static int64_t count_sessions(void *context)
{
	return (int64_t)((struct work *)context)->n_present;
}

static int judge_all(struct work *w, struct pass *pass)
{
	*pass = (struct pass){ .policy = &w->x->policy,
		.now_ms = w->now_ms,
		.facts = w->facts,
		.states = w->states,
		.verdicts = w->verdicts,
		.n = w->n,
		.past = w->ends,
		.n_past = w->n_ends,
		.stopped = w->stopped,
		.count_sessions = count_sessions,
		.context = w };
	return judge_pass(pass) ? 0 : err_memory(w->e);
}

/* Whether the pass has anything to store: a step, or a delivered notice, from which the next
 * stage is counted. */
static bool any_step(const struct work *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->verdicts[i].step != STEP_NONE ||
			w->verdicts[i].state.delivered_ms != w->old[i].delivered_ms)
			return true;
	return false;
}

void enforcer_lists_finish(struct enforcer_lists *l)
{
	str_finish(&l->pids);
	str_finish(&l->cards);
	str_finish(&l->gpus);
}

void enforcer_list(struct enforcer_lists *l, const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	struct str *pids = &l->pids;
	for (size_t i = 0; s->session != SIZE_MAX && i < h->n_processes; i++)
		if (h->processes[i].session == s->session && h->processes[i].holds)
			str_addf(pids, "%s%u", pids->len ? " " : "", h->processes[i].pid);
	for (size_t i = 0; i < h->n_cards && i < CARD_WORDS * 64; i++) {
		char label[CARD_LABEL_CAP];
		if (!(s->facts->cards.bits[i / 64] >> i % 64 & 1))
			continue;
		card_label(label, sizeof(label), &h->cards[i]);
		str_addf(&l->cards, "%s%s", l->cards.len ? " " : "", h->cards[i].uuid);
		str_addf(&l->gpus, "%s%s", l->gpus.len ? ", " : "", label);
	}
}

static void evidence_of(char *dst, size_t cap, const struct enforcer_step *s)
{
	char idle[48], since[48], held[SIZE_TEXT_CAP];
	const struct session_facts *f = s->facts;
	if (s->session == SIZE_MAX || !f->idle) {
		snprintf(dst, cap, "%s",
			s->session == SIZE_MAX ? "it holds no card any more"
					       : "it used a card");
		return;
	}
	duration_text(idle, sizeof(idle), f->clock_ms);
	moment_iso(since, sizeof(since), f->idle_since_ms);
	size_text(held, (double)f->mem_bytes);
	int64_t most_pct = idle_history_most(
		&s->now->history, (uint32_t)s->session, f->idle_since_ms, s->now_ms);
	snprintf(dst, cap,
		"no use of its cards of %lld %% or more since %s (at most %lld %%), seen idle "
		"for %s; %s held",
		(long long)f->idle_below, since, (long long)most_pct, idle,
		f->mem_bytes < 0 ? "an unknown amount" : held);
}

/* A row for the log about a session. */
struct note {
	enum policy_step step;
	enum policy_stage stage;
};
static int add_row(struct enforcer *x, const struct enforcer_step *s, const struct note *note,
	struct err *e)
{
	struct enforcer_lists lists = { 0 };
	char evidence[256];
	const struct session_facts *f = s->facts;
	enforcer_list(&lists, s);
	evidence_of(evidence, sizeof(evidence), s);
	struct policy_action a = { .at_ms = s->now_ms,
		.uid = f->uid,
		.held_bytes = f->mem_bytes,
		.idle_since_ms = f->idle_since_ms,
		.idle_ms = f->idle ? f->clock_ms : -1,
		.given_back_ms = -1,
		.step = note->step,
		.stage = note->stage,
		.would = s->verdict->would,
		.rule = s->verdict->rule ? s->verdict->rule->name : s->verdict->state.rule,
		.session = f->session->key,
		.kind = session_kind_names[f->session->kind],
		.user = f->session->user,
		.pids = str_text(&lists.pids),
		.cards = str_text(&lists.cards),
		.gpus = str_text(&lists.gpus),
		.command = f->session->texts[PROCESS_COMMAND],
		.evidence = evidence,
		.config = x->config_hash,
		.actor = "gua-enforce" };
	int rc = policy_file_add_action(x->file, &a, e);
	enforcer_lists_finish(&lists);
	return rc;
}

static struct enforcer_step step_of(const struct work *w, size_t i)
{
	return (struct enforcer_step){ .policy = &w->x->policy,
		.now = &w->now,
		.session = i < w->n_present ? i : SIZE_MAX,
		.facts = &w->facts[i],
		.verdict = &w->verdicts[i],
		.now_ms = w->now_ms };
}

static bool same_state(const struct policy_state *a, const struct policy_state *b)
{
	return a->stage == b->stage && a->level == b->level && a->round == b->round &&
	       a->idle_since_ms == b->idle_since_ms && a->stage_ms == b->stage_ms &&
	       a->delivered_ms == b->delivered_ms && a->next_clock_ms == b->next_clock_ms &&
	       a->clock_ms == b->clock_ms && a->clock_at_ms == b->clock_at_ms &&
	       a->idle_below == b->idle_below && strcmp(a->rule, b->rule) == 0;
}

/* Stores the verdict about one session. */
static int write_one(struct work *w, size_t i)
{
	struct enforcer *x = w->x;
	struct enforcer_step step = step_of(w, i);
	const struct verdict *v = &w->verdicts[i];
	int rc = 0;
	if (!same_state(&v->state, &w->old[i]) &&
		(v->state.stage != STAGE_NONE || w->old[i].stage != STAGE_NONE))
		rc = policy_file_set_state(x->file, step.facts->session->key,
			step.facts->session->user, &v->state, w->e);
	if (rc || v->step == STEP_NONE)
		return rc;
	rc = add_row(x, &step, &(struct note){ v->step, v->state.stage }, w->e);
	return rc || !x->endings || v->would ? rc : tell_step(x->file, &step, w->e);
}

/* Records that the breaker has tripped: once, until it is released. */
static int write_breaker(struct work *w, const struct pass *pass)
{
	char text[256];
	if (!pass->tripped)
		return 0;
	snprintf(text, sizeof(text),
		"the idle time of %zu sessions grew by more than the time since the last pass: "
		"the data cannot be right, so nobody is warned or ended until 'gua enforce "
		"release'",
		pass->n_jumped);
	struct policy_action a = { .at_ms = w->now_ms,
		.step = STEP_BREAKER,
		.would = !w->x->policy.enforce,
		.uid = -1,
		.held_bytes = -1,
		.idle_since_ms = -1,
		.idle_ms = -1,
		.given_back_ms = -1,
		.evidence = text,
		.config = w->x->config_hash,
		.actor = "gua-enforce" };
	int rc = policy_file_add_action(w->x->file, &a, w->e);
	if (rc == 0)
		rc = policy_file_trip(w->x->file, w->now_ms, text, w->e);
	if (rc || !w->x->endings || a.would)
		return rc;
	log_warning("%s", text);
	return tell_alarm(w->x->file, &w->x->policy.config->notices, text, w->now_ms, w->e);
}

static int write_all(struct work *w, const struct pass *pass)
{
	struct enforcer *x = w->x;
	int rc = policy_file_begin(x->file, w->e);
	if (rc)
		return rc;
	for (size_t i = 0; i < w->n && rc == 0; i++)
		rc = write_one(w, i);
	if (rc == 0)
		rc = write_breaker(w, pass);
	if (rc == 0)
		rc = policy_file_set_pass(x->file, &x->last, w->e);
	int end = policy_file_end(x->file, rc == 0, rc ? NULL : w->e);
	rc = rc ? rc : end;
	for (size_t i = 0; i < w->n && rc == 0; i++) {
		struct enforcer_step step = step_of(w, i);
		bool has_stage = step.verdict->state.stage != STAGE_NONE;
		if (x->endings && (has_stage || step.verdict->step != STEP_NONE))
			endings_follow(x->endings, &step);
	}
	return rc;
}

static void describe_pass(struct work *w)
{
	struct policy_pass *last = &w->x->last;
	*last = (struct policy_pass){ .at_ms = w->now_ms, .sessions = (int64_t)w->n_present };
	for (size_t i = 0; i < w->n_present; i++)
		last->idle += w->facts[i].idle;
}

/* The first reading leaves out what takes long, so sessions may look idle for too long. If a
 * step would follow, and once at the start, everything is read and judged again. */
static int judge_present(struct work *w, struct pass *pass)
{
	int rc = fill(w);
	if (rc == 0)
		rc = judge_all(w, pass);
	if (rc || (w->x->primed && !any_step(w) && !pass->tripped))
		return rc;
	w->x->primed = true;
	rc = read_present(w, false);
	if (rc == 0)
		rc = fill(w);
	if (rc == 0 && !remember_used(w))
		rc = err_memory(w->e);
	return rc ? rc : judge_all(w, pass);
}

int enforcer_pass(struct enforcer *x, int64_t now_ms, struct err *e)
{
	struct work w = { .x = x, .now_ms = now_ms, .e = e };
	int64_t stopped_ms = -1;
	char why[256];
	/* The span has no end, so that limits still count everything after the clock was set
	 * back. */
	struct policy_span day = { now_ms - 24 * HOUR_MS, INT64_MAX };
	struct pass pass = { 0 };
	int rc = read_present(&w, true);
	if (rc == 0 && !facts_now_is_known(&w.now)) {
		x->last = (struct policy_pass){ .at_ms = now_ms };
		str_copy(x->last.note, sizeof(x->last.note),
			"nothing was judged: no recorder has written in the last minutes");
		rc = policy_file_set_pass(x->file, &x->last, e);
	} else if (rc == 0) {
		rc = policy_file_actions(x->file, day, take_end, &w, e);
		if (rc == 0)
			rc = policy_file_tripped(x->file, &stopped_ms, why, e);
		w.stopped = stopped_ms >= 0;
		if (rc == 0)
			rc = judge_present(&w, &pass);
		if (rc == 0) {
			describe_pass(&w);
			rc = write_all(&w, &pass);
		}
	}
	finish(&w);
	x->policy.history = NULL;
	return rc;
}

void enforcer_finish(struct enforcer *x)
{
	free(x->used);
	free(x->cpu);
	x->used = NULL;
	x->cpu = NULL;
	x->n_used = x->n_cpu = 0;
}

/* One pass of gua enforce: gathers facts, judges, writes all in one transaction, acts. */
#include "policy/enforcer.h"

#include "policy/endings.h"
#include "policy/signs.h"
#include "policy/tell.h"

#define HOUR_MS INT64_C(3600000)
/* Notices mention the keeps of this time. */
#define KEEPS_MS (28 * 24 * HOUR_MS)

/* A session that has a state in policy.db. */
struct stored {
	struct idle_session session; /* what is known when it no longer holds a card */
	struct policy_state state;
	int64_t delivered_ms; /* of the notice of its stage; -1: not delivered, or not asked */
	bool present;	      /* it holds a card */
};

/* All that one pass needs. */
struct work {
	struct enforcer *x;
	int64_t now_ms;
	/* From policy.db. */
	struct stored *stored; /* by key */
	size_t n_stored;
	struct policy_keep *keeps;
	struct past_end *ends;
	size_t n_ends;
	bool stopped; /* the breaker has tripped and was not released */
	/* From the store, with what policy.db has: sessions that hold a card first, then those
	 * that only have a state. */
	struct facts_now now;
	struct session_facts *facts;
	struct policy_state *states; /* as stored */
	struct verdict *verdicts;
	size_t n, n_present;
	struct arena texts;
	struct err *e;
};

static void forget_facts(struct work *w)
{
	facts_now_finish(&w->now);
	free(w->facts);
	free(w->states);
	free(w->verdicts);
	w->facts = NULL;
	w->states = NULL;
	w->verdicts = NULL;
}

/* When the session was last used; 0: unknown, or found with another limit of use. */
static int64_t used_of(const struct enforcer *x, const struct session_facts *f)
{
	for (size_t i = 0; i < x->n_used; i++)
		if (strcmp(x->used[i].key, f->session->key) == 0)
			return x->used[i].idle_below == f->idle_below ? x->used[i].used_ms : 0;
	return 0;
}

/* Remembers of each session until when it was used, if known, and forgets the others. */
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

static int take_end(void *context, const struct policy_action *a)
{
	struct work *w = context;
	if (a->would == w->x->policy.enforce)
		return 0;
	if (a->step == STEP_SIGNAL || a->step == STEP_SPARED) {
		/* The result of the newest attempt to end a session. An attempt that was given
		 * up before any signal does not count for the limits. */
		size_t i = w->n_ends;
		while (i > 0 && strcmp(w->ends[i - 1].session, a->session) != 0)
			i--;
		struct past_end *end = i > 0 ? &w->ends[i - 1] : NULL;
		if (end)
			end->signalled |= a->step == STEP_SIGNAL;
		if (end && a->step == STEP_SPARED && !end->signalled)
			*end = w->ends[--w->n_ends];
	}
	if (a->step != STEP_END)
		return 0;
	if (!array_one_more(&w->ends, w->n_ends))
		return err_memory(w->e);
	w->ends[w->n_ends++] = (struct past_end){ a->at_ms, arena_text(&w->texts, a->user),
		arena_text(&w->texts, a->session), false };
	return w->texts.failed ? err_memory(w->e) : 0;
}

/* Takes over what is stored about a session. */
static int take_session(struct work *w, const struct policy_session *from)
{
	struct enforcer *x = w->x;
	if (!array_one_more(&w->stored, w->n_stored))
		return err_memory(w->e);
	struct stored *s = &w->stored[w->n_stored++];
	*s = (struct stored){
		.session = { .key = from->key, .user = from->user, .kind = SESSION_PROCESS },
		.state = from->state,
		.delivered_ms = -1
	};
	int rc = s->state.stage == STAGE_ENDING
			 ? endings_left(x->endings, from->key, from->user, &s->state, w->e)
			 : 0;
	if (rc || s->state.stage == STAGE_NONE || s->state.delivered_ms >= 0)
		return rc;
	return policy_notice_delivered(x->file, from->key, &s->state, &s->delivered_ms, w->e);
}

static int read_file(struct work *w)
{
	struct enforcer *x = w->x;
	const struct policy_span weeks = { w->now_ms - KEEPS_MS, w->now_ms + 1 };
	/* The span has no end: after the clock was set back, ends with a later time still
	 * count for the limits. */
	const struct policy_span day = { w->now_ms - 24 * HOUR_MS, INT64_MAX };
	struct policy_orders orders;
	struct policy_session *sessions = NULL;
	x->policy.may_end = false;
	if ((!x->file && policy_file_open(&x->file, x->policy_db, true, w->e)) ||
		policy_file_orders(x->file, w->now_ms, &orders, w->e) ||
		policy_file_actions(x->file, day, take_end, w, w->e) ||
		policy_file_keeps(x->file, weeks, &w->texts, &w->keeps, w->e) ||
		policy_file_sessions(x->file, &w->texts, &sessions, w->e))
		return w->e->code;
	for (; sessions; sessions = sessions->next)
		if (take_session(w, sessions))
			return w->e->code;
	w->stopped = orders.stopped_ms >= 0;
	/* Sessions are ended only where that is safe and where users can object. */
	x->policy.may_end = x->users_can_ask && orders.armed_until_ms > w->now_ms &&
			    rules_check_trust(x->settings, NULL) == 0;
	return 0;
}

struct facts_now enforcer_facts(const struct enforcer *x, int64_t now_ms, bool brief)
{
	return (struct facts_now){ .db = x->db,
		.proc = x->proc,
		.now_ms = now_ms,
		.brief = brief,
		.policy = &x->policy };
}

/* Reads the store; `brief` leaves out what takes long to read. */
static int read_present(struct work *w, bool brief)
{
	struct enforcer *x = w->x;
	w->now = enforcer_facts(x, w->now_ms, brief);
	int rc = facts_now_read(&w->now, w->e);
	for (size_t i = 0; rc == 0 && brief && i < w->now.history.n_sessions; i++)
		w->now.history.sessions[i].used_ms = used_of(x, &w->now.facts[i]);
	if (rc == 0 && brief)
		facts_now_judge_again(&w->now);
	x->policy.history = &w->now.history;
	return rc;
}

/* The facts about a session that holds a card; NULL: it does not hold one. */
static struct session_facts *find_present(struct work *w, const char *key)
{
	for (size_t i = 0; i < w->n_present; i++)
		if (strcmp(w->facts[i].session->key, key) == 0)
			return &w->facts[i];
	return NULL;
}

/* A session gets another name when the name of its user or notebook becomes known later. A keep
 * follows the process for which it was requested. */
static int follow_keep(struct work *w, struct policy_keep *k)
{
	const struct idle_history *h = &w->now.history;
	const struct idle_process *p = h->processes;
	while (p < h->processes + h->n_processes &&
		(!p->holds || p->pid != k->pid || (k->uid != 0 && p->uid != k->uid) ||
			p->started_ms > k->from_ms))
		p++;
	if (h->n_processes == 0 || p == h->processes + h->n_processes)
		return 0;
	const char *key = h->sessions[p->session].key;
	int rc = policy_file_move_keep(w->x->file, k, key, w->e);
	k->session = arena_text(&w->texts, key);
	return rc == 0 && w->texts.failed ? err_memory(w->e) : rc;
}

static int apply_keeps(struct work *w)
{
	for (struct policy_keep *k = w->keeps; k; k = k->next) {
		if (k->until_ms <= w->now_ms)
			continue;
		int rc = find_present(w, k->session) ? 0 : follow_keep(w, k);
		if (rc)
			return rc;
		struct session_facts *f = find_present(w, k->session);
		if (f)
			f->kept_until_ms = clock_later(f->kept_until_ms, k->until_ms);
	}
	return 0;
}

/* Whether a session that was spared because of its CPU use still computes. That is measured
 * between two passes, at least confirm_ms apart; unmeasured, it counts as computing. */
static bool still_computes(struct work *w, size_t session)
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
	const struct idle_history *h = &w->now.history;
	const char *const *texts = h->sessions[session].texts;
	struct proc_life *processes = calloc(h->n_processes + 1, sizeof(*processes));
	struct activity_group s = { .processes = processes,
		.job = texts[PROCESS_JOB] ? texts[PROCESS_JOB] : "",
		.container = texts[PROCESS_CONTAINER] ? texts[PROCESS_CONTAINER] : "",
		.pod = texts[PROCESS_POD] ? texts[PROCESS_POD] : "" };
	for (size_t i = 0; processes && i < h->n_processes; i++)
		if (h->processes[i].session == session && h->processes[i].holds)
			processes[s.n++] = (struct proc_life){ h->processes[i].pid,
				h->processes[i].start_ticks, h->processes[i].uid };
	/* CPU seconds of its processes. */
	double now_s = processes && x->proc >= 0 ? activity_cpu_s(x->proc, &s) : (double)NAN;
	free(processes);
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

static int compare_stored(const void *key, const void *stored)
{
	return strcmp(key, ((const struct stored *)stored)->session.key);
}

/* Joins the sessions of the store with what policy.db has about them. */
static int join(struct work *w)
{
	size_t most = w->now.history.n_sessions + w->n_stored + 1;
	w->n = w->n_present = w->now.history.n_sessions;
	w->facts = calloc(most, sizeof(*w->facts));
	w->states = calloc(most, sizeof(*w->states));
	w->verdicts = calloc(most, sizeof(*w->verdicts));
	if (!w->facts || !w->states || !w->verdicts)
		return err_memory(w->e);
	for (size_t i = 0; i < w->n_stored; i++)
		w->stored[i].present = false;
	for (size_t i = 0; i < w->n_present; i++) {
		w->facts[i] = w->now.facts[i];
		w->states[i] = POLICY_STATE_NONE;
		struct stored *s =
			!w->n_stored ? NULL
				     : bsearch(w->facts[i].session->key, w->stored, w->n_stored,
					       sizeof(*w->stored), compare_stored);
		if (!s)
			continue;
		s->present = true;
		w->states[i] = s->state;
		w->facts[i].delivered_ms = s->delivered_ms;
	}
	for (size_t i = 0; i < w->n_stored; i++) {
		if (w->stored[i].present)
			continue;
		w->states[w->n] = w->stored[i].state;
		w->facts[w->n++] = (struct session_facts){ .session = &w->stored[i].session,
			.observed = true,
			.idle_since_ms = -1,
			.mem_bytes = -1,
			.uid = -1,
			.kept_until_ms = -1,
			.delivered_ms = w->stored[i].delivered_ms };
	}
	for (size_t i = 0; i < w->n_present; i++)
		if (w->states[i].stage == STAGE_COMPUTING)
			w->facts[i].computes = still_computes(w, i);
	/* Forgets the CPU time of sessions that are no longer spared because of it. */
	struct enforcer *x = w->x;
	for (size_t k = x->n_cpu; k-- > 0;) {
		const struct session_facts *f = find_present(w, x->cpu[k].key);
		if (!f || w->states[f - w->facts].stage != STAGE_COMPUTING)
			x->cpu[k] = x->cpu[--x->n_cpu];
	}
	return apply_keeps(w);
}

static int64_t count_sessions(void *context)
{
	return (int64_t)((struct work *)context)->n_present;
}

static int judge_all(struct work *w, struct pass *pass)
{
	int rc = join(w);
	if (rc)
		return rc;
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
			w->verdicts[i].state.delivered_ms != w->states[i].delivered_ms)
			return true;
	return false;
}

static void evidence_of(char *dst, size_t cap, const struct enforcer_step *s)
{
	const struct session_facts *f = s->facts;
	if (s->session == SIZE_MAX || !f->idle) {
		snprintf(dst, cap, "%s",
			s->session == SIZE_MAX ? "it no longer holds a card"
					       : "it used a card");
		return;
	}
	struct brief idle = duration_text(f->clock_ms);
	struct brief since = moment_iso(f->idle_since_ms);
	if (f->session->kind == SESSION_LEASE) {
		snprintf(dst, cap, "not on its cards since %s, seen reserved for %s",
			since.text, idle.text);
		return;
	}
	int64_t most_pct = idle_history_most(
		&s->now->history, (uint32_t)s->session, f->idle_since_ms, s->now_ms);
	snprintf(dst, cap,
		"no use of its cards of %lld %% or more since %s (at most %lld %%), seen idle "
		"for %s; %s held",
		(long long)f->idle_below, since.text, (long long)most_pct, idle.text,
		f->mem_bytes < 0 ? "an unknown amount" : size_text((double)f->mem_bytes).text);
}

static struct enforcer_step step_of(const struct work *w, size_t i)
{
	return (struct enforcer_step){ .policy = &w->x->policy,
		.now = &w->now,
		.session = i < w->n_present ? i : SIZE_MAX,
		.facts = &w->facts[i],
		.verdict = &w->verdicts[i],
		.now_ms = w->now_ms,
		.keeps = w->keeps };
}

/* Sets the pids and the UUIDs of the cards, separated by blanks, and the cards' labels. */
static void list(struct policy_action *a, struct arena *texts, const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	struct str pids = { 0 }, cards = { 0 }, gpus = { 0 };
	for (size_t i = 0; s->session != SIZE_MAX && i < h->n_processes; i++)
		if (h->processes[i].session == s->session && h->processes[i].holds)
			str_addf(&pids, "%s%u", pids.len ? " " : "", h->processes[i].pid);
	for (size_t i = 0; i < h->n_cards; i++) {
		if (!facts_has_card(&s->facts->cards, i))
			continue;
		str_addf(&cards, "%s%s", cards.len ? " " : "", h->cards[i].uuid);
		str_addf(&gpus, "%s%s", gpus.len ? ", " : "", card_label(&h->cards[i]).text);
	}
	a->pids = arena_text(texts, str_text(&pids));
	a->cards = arena_text(texts, str_text(&cards));
	a->gpus = arena_text(texts, str_text(&gpus));
	str_finish(&pids);
	str_finish(&cards);
	str_finish(&gpus);
}

bool enforcer_row(struct policy_action *a, struct arena *texts, const struct enforcer *x,
	const struct enforcer_step *s)
{
	char evidence[256];
	const struct session_facts *f = s->facts;
	const struct verdict *v = s->verdict;
	const char *command = f->session->texts[PROCESS_COMMAND];
	evidence_of(evidence, sizeof(evidence), s);
	*a = (struct policy_action){ .at_ms = s->now_ms,
		.uid = f->uid,
		.held_bytes = f->mem_bytes,
		.idle_since_ms = f->idle_since_ms,
		.idle_ms = f->idle ? f->clock_ms : -1,
		.given_back_ms = -1,
		.step = v->step,
		.stage = v->state.stage,
		.would = v->would,
		.rule = arena_text(texts, v->rule ? v->rule->name : v->state.rule),
		.session = arena_text(texts, f->session->key),
		.kind = session_kind_names[f->session->kind],
		.user = arena_text(texts, f->session->user),
		.command = command ? arena_text(texts, command) : NULL,
		.evidence = arena_text(texts, evidence),
		.config = x->config_hash,
		.actor = "gua-enforce" };
	list(a, texts, s);
	return !texts->failed;
}

static bool same_state(const struct policy_state *a, const struct policy_state *b)
{
	return a->stage == b->stage && a->level == b->level && a->round == b->round &&
	       a->idle_since_ms == b->idle_since_ms && a->stage_ms == b->stage_ms &&
	       a->delivered_ms == b->delivered_ms && a->next_clock_ms == b->next_clock_ms &&
	       a->clock_ms == b->clock_ms && a->clock_at_ms == b->clock_at_ms &&
	       a->idle_below == b->idle_below && strcmp(a->rule, b->rule) == 0;
}

/* What the verdict about a session changes in policy.db. */
static int make_record(struct work *w, size_t i, struct policy_record *r)
{
	const struct enforcer_step step = step_of(w, i);
	const struct verdict *v = &w->verdicts[i];
	*r = (struct policy_record){ .key = step.facts->session->key,
		.user = step.facts->session->user };
	if (!same_state(&v->state, &w->states[i]) &&
		(v->state.stage != STAGE_NONE || w->states[i].stage != STAGE_NONE))
		r->state = &v->state;
	if (v->step == STEP_NONE)
		return 0;
	struct policy_action *a = arena_take(&w->texts, sizeof(*a));
	if (!a || !enforcer_row(a, &w->texts, w->x, &step))
		return err_memory(w->e);
	r->action = a;
	return v->would ? 0 : tell_step(&w->texts, &step, r, w->e);
}

/* Records that the breaker has tripped: once, until it is released. */
static int make_breaker(struct work *w, const struct pass *pass, struct policy_record *r)
{
	const struct enforcer_step step = { .policy = &w->x->policy, .now_ms = w->now_ms };
	char text[256];
	struct policy_action *a = arena_take(&w->texts, sizeof(*a));
	snprintf(text, sizeof(text),
		"the idle time of %zu sessions grew by more than the time since the last pass: "
		"the data must be wrong, so nobody is warned and nothing is ended until 'gua "
		"enforce release'",
		pass->n_jumped);
	const char *evidence = arena_text(&w->texts, text);
	if (!a || !evidence)
		return err_memory(w->e);
	*a = (struct policy_action){ .at_ms = w->now_ms,
		.step = STEP_BREAKER,
		.would = !w->x->policy.enforce,
		POLICY_ACTION_UNKNOWN,
		.evidence = evidence,
		.config = w->x->config_hash,
		.actor = "gua-enforce" };
	*r = (struct policy_record){ .action = a };
	if (a->would)
		return 0;
	log_warning("%s", text);
	return tell_alarm(&w->texts, &step, text, r, w->e);
}

/* A brief reading leaves out what takes long, so sessions may look idle for too long. If a step
 * would follow, and once at the start, everything is read and judged again. */
static int pass_over(struct work *w)
{
	struct enforcer *x = w->x;
	struct pass pass = { 0 };
	bool brief = x->primed;
	if (read_file(w) || read_present(w, brief))
		return w->e->code;
	if (!facts_now_is_known(&w->now)) {
		x->last = (struct policy_pass){ .at_ms = w->now_ms };
		str_copy(x->last.note, sizeof(x->last.note),
			"no session was judged: the recorder has written nothing recently");
		return policy_file_set_pass(x->file, &x->last, w->e);
	}
	int rc = judge_all(w, &pass);
	if (rc == 0 && brief && (any_step(w) || pass.tripped)) {
		brief = false;
		forget_facts(w);
		rc = read_present(w, brief);
		rc = rc ? rc : judge_all(w, &pass);
	}
	if (rc || !remember_used(w))
		return rc ? rc : err_memory(w->e);
	x->primed = true;
	/* Writes everything that the pass decided, then ends sessions. */
	struct policy_record *records = calloc(w->n + 1, sizeof(*records));
	size_t n = 0;
	rc = records ? 0 : err_memory(w->e);
	x->last = (struct policy_pass){ .at_ms = w->now_ms, .sessions = (int64_t)w->n_present };
	for (size_t i = 0; i < w->n_present; i++)
		x->last.idle += facts_is_idle(&w->facts[i]);
	for (size_t i = 0; i < w->n && rc == 0; i++)
		rc = make_record(w, i, &records[n++]);
	if (rc == 0 && pass.tripped)
		rc = make_breaker(w, &pass, &records[n++]);
	if (rc == 0)
		rc = policy_file_write(x->file, records, n, &x->last, w->e);
	free(records);
	for (size_t i = 0; i < w->n && rc == 0; i++) {
		const struct enforcer_step step = step_of(w, i);
		if (step.verdict->state.stage != STAGE_NONE || step.verdict->step != STEP_NONE)
			endings_follow(x->endings, &step);
	}
	return rc;
}

int enforcer_pass(struct enforcer *x, int64_t now_ms, struct err *e)
{
	struct work w = { .x = x, .now_ms = now_ms, .e = e };
	x->now_ms = now_ms;
	int rc = pass_over(&w);
	forget_facts(&w);
	free(w.stored);
	free(w.ends);
	arena_finish(&w.texts);
	x->policy.history = NULL;
	endings_passed(x->endings);
	return rc;
}

void enforcer_finish(struct enforcer *x)
{
	policy_file_close(x->file);
	file_close(x->proc);
	free(x->used);
	free(x->cpu);
	x->file = NULL;
	x->proc = -1;
	x->used = NULL;
	x->cpu = NULL;
	x->n_used = x->n_cpu = 0;
}

/* Holds, ends and lets go of sessions as the judgement says, and stores what came of it. */
#include "cmd/enforce_end.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/enforce_login.h"
#include "cmd/hand_over.h"
#include "cmd/live.h"
#include "policy/keep_spool.h"
#include "policy/tell.h"
#include "query/idle_power.h"
#include "store/policy_file.h"

enum { LIST_CAP = 1024 };

/* What is needed of a session once the pass that decided is over. */
struct ending_case {
	int64_t ticket; /* 0: free */
	char key[SESSION_KEY_CAP], user[USER_CAP], rule[RULE_NAME_CAP];
	char pids[LIST_CAP], cards[LIST_CAP];
	enum session_kind kind;
	int64_t uid, held_bytes, idle_since_ms, clock_ms, final_ms;
	struct policy_state state;
	struct notice notice;
};

struct held {
	char key[SESSION_KEY_CAP];
	struct end_process process;
	bool refused; /* it must not be signalled, or has ended */
};

struct enforce_end {
	const struct enforce *x;
	struct enforcer *enforcer;
	struct endings *endings;
	struct live_session live;
	struct clock clock;
	char program[PATH_MAX];
	int64_t tickets;
	struct ending_case cases[ENDINGS_MOST];
	struct held *held;
	size_t n_held;
};

static int open_live(void *context, struct live **l, struct err *e)
{
	struct enforce_end *x = context;
	const struct live_values values = { .no_store = true,
		.timeout_ms = x->x->conf.values.driver_timeout_ms };
	int rc = cmd_live_open(&x->live, &values, NULL, e);
	*l = x->live.live;
	if (rc)
		cmd_live_close(&x->live);
	return rc;
}

static void close_live(void *context, struct live *l)
{
	(void)l;
	cmd_live_close(&((struct enforce_end *)context)->live);
}

static struct ending_case *find_case(struct enforce_end *x, int64_t ticket)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (x->cases[i].ticket == ticket)
			return &x->cases[i];
	return NULL;
}

/* A row about a case. */
static int add_row(struct enforce_end *x, const struct ending_case *c,
	const struct policy_action *what, struct err *e)
{
	struct policy_action a = *what;
	a.at_ms = clock_wall_ms(&x->clock);
	a.uid = c->uid;
	a.held_bytes = c->held_bytes;
	a.idle_since_ms = c->idle_since_ms;
	a.idle_ms = c->clock_ms;
	a.rule = c->rule;
	a.session = c->key;
	a.kind = session_kind_names[c->kind];
	a.user = c->user;
	a.pids = c->pids;
	a.cards = c->cards;
	a.config = x->enforcer->config_hash;
	a.actor = "gua-enforce";
	return policy_file_add_action(x->enforcer->file, &a, e);
}

struct keeping {
	const char *key;
	bool kept;
};

static int take_keep(void *context, const struct policy_keep *k)
{
	struct keeping *keeping = context;
	keeping->kept |= strcmp(k->session, keeping->key) == 0;
	return 0;
}

/* Since the pass that decided, the session may be kept, or ending forbidden. */
static int allowed(void *context, int64_t ticket, struct err *e)
{
	struct enforce_end *x = context;
	struct policy_file *f = x->enforcer->file;
	const struct ending_case *c = find_case(x, ticket);
	int64_t now_ms = clock_wall_ms(&x->clock), until_ms = -1;
	char spool[PATH_MAX], by[64];
	if (!f || !c)
		return err_set(e, ERR_WORLD, "policy.db is not open");
	struct keeping keeping = { c->key, false };
	keep_spool_path(spool, sizeof(spool), &x->x->conf.values.policy, x->x->db);
	int rc = policy_file_armed(f, now_ms, &until_ms, by, e);
	if (rc == 0 && until_ms <= now_ms)
		rc = err_set(e, ERR_NOTHING, "ending is not allowed any more");
	if (rc == 0)
		rc = keep_spool_take(x->enforcer, spool, now_ms, e);
	if (rc == 0)
		rc = policy_file_keeps(
			f, (struct policy_span){ now_ms, now_ms + 1 }, take_keep, &keeping, e);
	if (rc == 0 && keeping.kept)
		rc = err_set(e, ERR_NOTHING, "its user keeps it");
	return rc;
}

/* No record, no action: what returns 0 is on disk. */
static int record(void *context, const struct ending_step *step, struct err *e)
{
	struct enforce_end *x = context;
	const struct ending_case *c = find_case(x, step->ticket);
	const struct policy_action a = { .step = STEP_SIGNAL,
		.stage = STAGE_ENDING,
		.evidence = step->evidence,
		.result = step->what,
		.given_back_ms = -1 };
	if (!x->enforcer->file || !c)
		return err_set(e, ERR_WORLD, "policy.db is not open");
	int rc = policy_file_begin(x->enforcer->file, e);
	if (rc)
		return rc;
	rc = add_row(x, c, &a, e);
	int end = policy_file_end(x->enforcer->file, rc == 0, rc ? NULL : e);
	return rc ? rc : end;
}

int enforce_end_open(struct enforce_end **out, const struct enforce *x,
	struct enforcer *enforcer, struct err *e)
{
	struct enforce_end *n = calloc(1, sizeof(*n));
	if (!n)
		return err_memory(e);
	n->x = x;
	n->enforcer = enforcer;
	clock_init_real(&n->clock);
	if (!hand_over_path("end", n->program))
		text_copy(n->program, sizeof(n->program), "gua-end");
	const char *socket = x->conf.values.end.socket;
	const struct endings_options o = { .config = &x->conf.values.end,
		.program = n->program,
		.socket = socket ? socket : secure_getenv("GUA_END_SOCKET"),
		.context = n,
		.allowed = allowed,
		.record = record,
		.open_live = open_live,
		.close_live = close_live };
	int rc = endings_new(&n->endings, &o, e);
	if (rc)
		free(n);
	else
		*out = n;
	return rc;
}

void enforce_end_close(struct enforce_end *x)
{
	if (!x)
		return;
	endings_free(x->endings);
	free(x->held);
	free(x);
}

static struct end_process process_of(const struct idle_process *p)
{
	return (struct end_process){ p->pid, p->start_ticks, p->uid };
}

static bool is_held(const struct enforce_end *x, const struct end_process *p)
{
	for (size_t i = 0; i < x->n_held; i++)
		if (x->held[i].process.pid == p->pid &&
			x->held[i].process.start_ticks == p->start_ticks)
			return true;
	return false;
}

static void hold_one(struct enforce_end *x, const char *key, const struct end_process *p)
{
	struct err e = { 0 };
	if (is_held(x, p) || !array_one_more(&x->held, x->n_held))
		return;
	int rc = endings_hold(x->endings, p, &e);
	if (rc == ERR_WORLD || rc == ERR_BUSY) {
		log_warning("process %u cannot be held: %s", (unsigned)p->pid, e.text);
		return; /* tried again in the next pass */
	}
	if (rc == ERR_USAGE)
		log_notice("process %u will not be ended: %s", (unsigned)p->pid, e.text);
	struct held *h = &x->held[x->n_held++];
	*h = (struct held){ .process = *p, .refused = rc != 0 };
	text_copy(h->key, sizeof(h->key), key);
}

static void hold(struct enforce_end *x, const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	for (size_t i = 0; s->session != SIZE_MAX && i < h->n_processes; i++) {
		struct end_process p = process_of(&h->processes[i]);
		if (h->processes[i].session == s->session && h->processes[i].holds)
			hold_one(x, s->facts->session->key, &p);
	}
}

static void release(struct enforce_end *x, const char *key)
{
	for (size_t i = x->n_held; i-- > 0;) {
		if (strcmp(x->held[i].key, key) != 0)
			continue;
		endings_release(x->endings, &x->held[i].process);
		x->held[i] = x->held[--x->n_held];
	}
}

/* The youngest first: workers before what started them. */
static int by_age(const void *a, const void *b)
{
	const struct end_process *one = a, *other = b;
	return (one->start_ticks < other->start_ticks) -
	       (one->start_ticks > other->start_ticks);
}

static bool add_processes(struct ending_plan *plan, const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	for (size_t i = 0; i < h->n_processes; i++) {
		if (h->processes[i].session != s->session || !h->processes[i].holds)
			continue;
		if (plan->n_processes == ENDING_PROCESSES)
			return false;
		plan->processes[plan->n_processes++] = process_of(&h->processes[i]);
	}
	qsort(plan->processes, plan->n_processes, sizeof(plan->processes[0]), by_age);
	return plan->n_processes > 0;
}

static void add_cards(
	struct ending_plan *plan, const struct enforce_end *x, const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	struct err e = { 0 };
	for (size_t i = 0; i < h->n_cards && i < CARD_WORDS * 64; i++) {
		if (!(s->facts->cards.bits[i / 64] >> i % 64 & 1) ||
			plan->n_cards == ENDING_CARDS)
			continue;
		struct ending_card *card = &plan->cards[plan->n_cards++];
		text_copy(card->uuid, sizeof(card->uuid), h->cards[i].uuid);
		idle_power_of(&card->idle_power_w, x->enforcer->db, card->uuid, s->now_ms, &e);
	}
}

static void copy_label(char *dst, const char *text)
{
	text_copy(dst, LABEL_CAP, text ? text : "");
}

static void fill_case(struct ending_case *c, const struct enforcer_step *s)
{
	const struct idle_session *session = s->facts->session;
	struct str pids = { 0 }, cards = { 0 };
	*c = (struct ending_case){ .ticket = -1,
		.kind = session->kind,
		.uid = s->facts->uid,
		.held_bytes = s->facts->mem_bytes,
		.idle_since_ms = s->facts->idle_since_ms,
		.clock_ms = s->facts->clock_ms,
		.final_ms = s->verdict->rule ? s->verdict->rule->final_ms : 0,
		.state = s->verdict->state };
	text_copy(c->key, sizeof(c->key), session->key);
	text_copy(c->user, sizeof(c->user), session->user);
	text_copy(c->rule, sizeof(c->rule), s->verdict->state.rule);
	enforcer_lists(&pids, &cards, s);
	text_copy(c->pids, sizeof(c->pids), str_text(&pids));
	text_copy(c->cards, sizeof(c->cards), str_text(&cards));
	str_finish(&pids);
	str_finish(&cards);
	tell_describe(&c->notice, s, NOTICE_ENDED);
}

/* What an outcome means for the session. */
static const struct {
	enum policy_step step;
	enum policy_stage stage;
	enum notice_kind notice;
} meanings[ENDING_HOWS] = {
	[ENDING_SPARED] = { STEP_SPARED, STAGE_AGAIN, NOTICE_NOT_ENDED },
	[ENDING_ENDED] = { STEP_ENDED, STAGE_ENDED, NOTICE_ENDED },
	[ENDING_STILL_HELD] = { STEP_FAILED, STAGE_FAILED, NOTICE_NOT_ENDED },
	[ENDING_FAILED] = { STEP_FAILED, STAGE_FAILED, NOTICE_NOT_ENDED },
};

/* One that was spared gets a new final notice, after the time that lies between it and the
 * end. */
static struct policy_state state_after(
	const struct ending_case *c, enum ending_how how, int64_t now_ms)
{
	struct policy_state s = c->state;
	s.stage = meanings[how].stage;
	s.stage_ms = now_ms;
	if (how != ENDING_SPARED)
		return s;
	s.delivered_ms = now_ms;
	s.next_clock_ms = c->clock_ms + c->final_ms;
	s.round++;
	return s;
}

static int write_outcome(struct enforce_end *x, struct ending_case *c,
	const struct ending_outcome *o, struct err *e)
{
	int64_t now_ms = clock_wall_ms(&x->clock);
	struct policy_file *f = x->enforcer->file;
	struct policy_state state = state_after(c, o->how, now_ms);
	const struct policy_action a = { .step = meanings[o->how].step,
		.stage = state.stage,
		.result = o->text,
		.given_back_ms = -1 };
	const struct tell_queue target = { &x->x->conf.values.notices, c->key, &c->state,
		now_ms };
	c->notice.kind = meanings[o->how].notice;
	c->notice.made_ms = now_ms;
	c->notice.freed_bytes = o->freed_bytes;
	text_copy(c->notice.result, sizeof(c->notice.result), o->text);
	int rc = policy_file_set_state(f, c->key, c->user, &state, e);
	if (rc == 0)
		rc = add_row(x, c, &a, e);
	if (rc == 0)
		rc = tell_add(f, &target, &c->notice, notice_kind_names[c->notice.kind], e);
	return rc;
}

/* A result that cannot be stored is in the log of the service at least. The stored state stays
 * "ending", which the next start takes for spared. */
static void finish(struct enforce_end *x, struct ending_case *c, const struct ending_outcome *o)
{
	struct err e = { 0 };
	log_notice(
		"session %s of %s: %s: %s", c->key, c->user, ending_how_names[o->how], o->text);
	int rc = x->enforcer->file ? policy_file_begin(x->enforcer->file, &e)
				   : err_set(&e, ERR_WORLD, "policy.db is not open");
	if (rc == 0) {
		rc = write_outcome(x, c, o, &e);
		int end = policy_file_end(x->enforcer->file, rc == 0, rc ? NULL : &e);
		rc = rc ? rc : end;
	}
	if (rc)
		log_error("this could not be recorded: %s", e.text);
	if (o->how != ENDING_SPARED)
		release(x, c->key);
	c->ticket = 0;
}

/* Nothing is done to the session. */
static void spare(struct enforce_end *x, struct ending_case *c, const char *why)
{
	struct ending_outcome o = { .how = ENDING_SPARED, .freed_bytes = -1 };
	text_copy(o.text, sizeof(o.text), why);
	finish(x, c, &o);
}

static void begin(struct enforce_end *x, const struct enforcer_step *s)
{
	struct ending_plan plan = { 0 };
	struct err e = { 0 };
	struct ending_case *c = find_case(x, 0), other;
	const char *const *texts = s->facts->session->texts;
	fill_case(c ? c : &other, s);
	if (!c) {
		spare(x, &other, "enough sessions are being ended now");
		return;
	}
	plan.ticket = c->ticket = ++x->tickets;
	plan.notice_ms = s->verdict->state.delivered_ms;
	plan.grace_ms = x->x->conf.values.end.grace_ms;
	plan.kill = s->verdict->rule && s->verdict->rule->kill_after_term;
	copy_label(plan.job, texts[PROCESS_JOB]);
	copy_label(plan.container, texts[PROCESS_CONTAINER]);
	add_cards(&plan, x, s);
	bool all = s->session != SIZE_MAX && add_processes(&plan, s);
	int rc = all ? endings_begin(x->endings, &plan, &e)
		     : err_set(&e, ERR_WORLD, "it has too many processes");
	if (rc)
		spare(x, c, e.text);
}

void enforce_end_after(void *context, const struct enforcer_step *s)
{
	struct enforce_end *x = context;
	const struct verdict *v = s->verdict;
	bool ends = x->enforcer->policy.enforce && v->state.level == LEVEL_END && !v->would;
	if (v->state.stage == STAGE_NONE) {
		release(x, s->facts->session->key);
		enforce_login_clear(
			&x->x->conf.values.notices, x->enforcer->file, s->facts->session);
	} else if (ends) {
		hold(x, s);
	}
	if (v->step == STEP_END && ends)
		begin(x, s);
}

void enforce_end_step(struct enforce_end *x)
{
	struct ending_outcome o;
	endings_step(x->endings);
	while (endings_next(x->endings, &o)) {
		struct ending_case *c = find_case(x, o.ticket);
		if (c)
			finish(x, c, &o);
	}
}

size_t enforce_end_fds(const struct enforce_end *x, struct pollfd *fds)
{
	return endings_fds(x->endings, fds);
}

int64_t enforce_end_wait_ms(const struct enforce_end *x)
{
	return endings_wait_ms(x->endings);
}

/* Sessions whose state says that they are being ended. */
struct left {
	struct enforce_end *x;
	struct ending_case *cases;
	size_t n;
};

static int take_left(
	void *context, const char *key, const char *user, const struct policy_state *state)
{
	struct left *l = context;
	if (state->stage != STAGE_ENDING)
		return 0;
	if (!array_one_more(&l->cases, l->n))
		return ERR_WORLD;
	struct ending_case *c = &l->cases[l->n++];
	*c = (struct ending_case){ .uid = -1,
		.held_bytes = -1,
		.idle_since_ms = state->idle_since_ms,
		.clock_ms = state->next_clock_ms,
		.kind = SESSION_PROCESS,
		.state = *state };
	text_copy(c->key, sizeof(c->key), key);
	text_copy(c->user, sizeof(c->user), user);
	text_copy(c->rule, sizeof(c->rule), state->rule);
	return 0;
}

int enforce_end_left(struct enforce_end *x, int64_t now_ms, struct err *e)
{
	struct left l = { .x = x };
	const struct policy_action a = { .step = STEP_SPARED,
		.stage = STAGE_AGAIN,
		.result = "gua enforce was stopped while the session was being ended",
		.given_back_ms = -1 };
	struct policy_file *f = x->enforcer->file;
	int rc = policy_file_sessions(f, take_left, &l, e);
	for (size_t i = 0; i < l.n && rc == 0; i++) {
		struct policy_state state = state_after(&l.cases[i], ENDING_SPARED, now_ms);
		rc = policy_file_set_state(f, l.cases[i].key, l.cases[i].user, &state, e);
		if (rc == 0)
			rc = add_row(x, &l.cases[i], &a, e);
	}
	free(l.cases);
	return rc;
}

/* Holds, ends and lets go of sessions as the judgement says, and stores what came of it. */
#include "cmd/enforce_end.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "cmd/enforce_case.h"
#include "cmd/enforce_login.h"
#include "cmd/enforce_run.h"
#include "cmd/share/hand_over.h"
#include "policy/tell.h"
#include "audit/idle_power.h"
#include "store/policy/policy_file.h"

/* Of one user, at most this many processes are held between two passes. */
enum { HELD_OF_USER = 256 };

static int open_live(void *context, struct live **l, struct err *e)
{
	struct enforce_end *x = context;
	const struct live_values values = { .no_store = true,
		.clock = x->x->o->clock,
		.timeout_ms = x->x->conf.values.driver_timeout_ms };
	unsigned char wanted[METRIC_COUNT];
	memcpy(wanted, live_usual_metrics, sizeof(wanted));
	wanted[METRIC_UTILIZATION_ENCODER] = wanted[METRIC_UTILIZATION_DECODER] = 1;
	int rc = cmd_live_open(&x->live, &values, wanted, e);
	enforce_log_setup(); /* a view shows errors alone */
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

struct keeping {
	const struct ending_case *of;
	bool kept;
};

static const struct end_process *find_pid(const struct ending_case *c, uint32_t pid)
{
	for (size_t i = 0; i < c->n_processes; i++)
		if (c->processes[i].pid == pid)
			return &c->processes[i];
	return NULL;
}

/* By its name, or by one of its processes: the name may have changed since. */
static int take_keep(void *context, const struct policy_keep *k)
{
	struct keeping *keeping = context;
	const struct ending_case *c = keeping->of;
	keeping->kept |= strcmp(k->session, c->key) == 0 ||
			 ((k->uid == 0 || k->uid == c->uid) && find_pid(c, (uint32_t)k->pid));
	return 0;
}

/* The session of a case as the store knows it now; NULL: it is not there. */
static const struct session_facts *find_facts(
	const struct sessions_now *now, const struct ending_case *c)
{
	for (size_t i = 0; i < now->history.n_processes; i++) {
		const struct idle_process *p = &now->history.processes[i];
		const struct end_process *own = find_pid(c, p->pid);
		if (own && own->start_ticks == p->start_ticks)
			return &now->facts[p->session];
	}
	return NULL;
}

/* Whether an exemption protects the session by now: the configuration may have been read
 * again since the pass that decided. */
static int check_exemptions(
	const struct enforce_end *x, const struct ending_case *c, int64_t now_ms, struct err *e)
{
	struct sessions_now now = { .db = x->enforcer->db,
		.root = x->enforcer->root,
		.now_ms = now_ms,
		.brief = true };
	struct policy policy = x->enforcer->policy;
	int rc = sessions_now_read(&now, e);
	const struct session_facts *f = rc == 0 ? find_facts(&now, c) : NULL;
	policy.history = &now.history;
	const struct config_exemption *exempt =
		f ? policy_find_exemption(&policy, f, now_ms) : NULL;
	if (rc == 0 && !f)
		rc = err_set(e, ERR_NOTHING, "it is not in the store any more");
	else if (f && f->exemption)
		rc = err_set(e, ERR_NOTHING, "it is exempt: %s", f->exemption);
	else if (exempt)
		rc = err_set(e, ERR_NOTHING, "it is exempt: [exempt %s]", exempt->name);
	sessions_now_finish(&now);
	return rc;
}

/* Since the pass that decided, the session may be kept or exempt, or ending forbidden. */
static int allowed(void *context, int64_t ticket, bool brief, struct err *e)
{
	struct enforce_end *x = context;
	struct policy_file *f = x->enforcer->file;
	const struct ending_case *c = enforce_case_find(x, ticket);
	int64_t now_ms = clock_wall_ms(x->enforcer->clock), until_ms = -1, stopped_ms = -1;
	char by[64], why[256];
	if (!f || !c)
		return err_set(e, ERR_WORLD, "policy.db is not open");
	struct keeping keeping = { c, false };
	const struct policy *policy = &x->enforcer->policy;
	int rc = policy_file_armed(f, now_ms, &until_ms, by, e);
	/* The configuration may be another one by now. */
	if (rc == 0 && (until_ms <= now_ms || !policy->enforce || !policy->may_end))
		rc = err_set(e, ERR_NOTHING, "ending is not allowed any more");
	if (rc == 0)
		rc = policy_file_tripped(f, &stopped_ms, why, e);
	if (rc == 0 && stopped_ms >= 0)
		rc = err_set(e, ERR_NOTHING, "the breaker has stopped everything");
	if (rc == 0)
		rc = policy_file_keeps(
			f, (struct policy_span){ now_ms, now_ms + 1 }, take_keep, &keeping, e);
	if (rc == 0 && keeping.kept)
		rc = err_set(e, ERR_NOTHING, "its user keeps it");
	return rc || brief ? rc : check_exemptions(x, c, now_ms, e);
}

/* No record, no action: what returns 0 is on disk. */
static int record(void *context, const struct ending_step *step, struct err *e)
{
	struct enforce_end *x = context;
	const struct ending_case *c = enforce_case_find(x, step->ticket);
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
	rc = enforce_case_row(x, c, &a, e);
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
	if (!hand_over_path("end", n->program))
		text_copy(n->program, sizeof(n->program), "gua-end");
	const char *socket = x->conf.values.end.socket;
	const struct endings_options o = { .config = &x->conf.values.end,
		.program = n->program,
		.socket = socket ? socket : secure_getenv("GUA_END_SOCKET"),
		.clock = enforcer->clock,
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
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		free(x->cases[i].processes);
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

static void refuse(struct enforce_end *x, uint32_t pid, const char *why)
{
	if (x->n_refused++ == 0)
		snprintf(x->refused, sizeof(x->refused), "process %u: %.200s", (unsigned)pid,
			why);
}

static size_t count_held(const struct enforce_end *x, const char *user)
{
	size_t n = 0;
	for (size_t i = 0; i < x->n_held; i++)
		n += strcmp(x->held[i].user, user) == 0;
	return n;
}

/* One that is not held, because there is no room, is checked in the same way when it is
 * signalled. */
static void hold_one(
	struct enforce_end *x, const struct idle_session *session, const struct end_process *p)
{
	struct err e = { 0 };
	if (!array_one_more(&x->held, x->n_held))
		return;
	int rc = endings_hold(x->endings, p, &e);
	x->unreachable |= rc == ERR_WORLD;
	if (rc == ERR_WORLD || rc == ERR_USAGE)
		refuse(x, p->pid, e.text);
	if (rc == ERR_WORLD || rc == ERR_BUSY)
		return; /* tried again in the next pass */
	struct held *h = &x->held[x->n_held++];
	*h = (struct held){ .process = *p, .refused = rc != 0 };
	text_copy(h->key, sizeof(h->key), session->key);
	text_copy(h->user, sizeof(h->user), session->user);
}

static void hold(struct enforce_end *x, const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	const struct idle_session *session = s->facts->session;
	size_t n = count_held(x, session->user);
	for (size_t i = 0; s->session != SIZE_MAX && i < h->n_processes; i++) {
		struct end_process p = process_of(&h->processes[i]);
		if (h->processes[i].session != s->session || !h->processes[i].holds ||
			is_held(x, &p))
			continue;
		if (n++ >= HELD_OF_USER || x->unreachable)
			return;
		hold_one(x, session, &p);
	}
}

void enforce_end_passed(struct enforce_end *x)
{
	if (x->n_refused)
		log_warning(
			"%zu processes that a rule would end will not be ended, or cannot be "
			"held now: %s",
			x->n_refused, x->refused);
	x->n_refused = 0;
	x->unreachable = false;
}

void enforce_end_release(struct enforce_end *x, const char *key)
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

/* All processes of the session. False: there are none, or no memory for them. */
static bool add_processes(struct ending_case *c, const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	for (size_t i = 0; i < h->n_processes; i++) {
		if (h->processes[i].session != s->session || !h->processes[i].holds)
			continue;
		if (!array_one_more(&c->processes, c->n_processes))
			return false;
		c->processes[c->n_processes++] = process_of(&h->processes[i]);
	}
	if (c->n_processes)
		qsort(c->processes, c->n_processes, sizeof(c->processes[0]), by_age);
	return c->n_processes > 0;
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
	struct enforcer_lists lists = { 0 };
	const char *command = session->texts[PROCESS_COMMAND];
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
	text_copy(c->command, sizeof(c->command), command ? command : "");
	enforcer_list(&lists, s);
	text_copy(c->pids, sizeof(c->pids), str_text(&lists.pids));
	text_copy(c->cards, sizeof(c->cards), str_text(&lists.cards));
	text_copy(c->gpus, sizeof(c->gpus), str_text(&lists.gpus));
	enforcer_lists_finish(&lists);
	tell_describe(&c->notice, s, NOTICE_ENDED);
}

/* Nothing is done to the session. */
static void spare(struct enforce_end *x, struct ending_case *c, const char *why)
{
	struct ending_outcome o = { .how = ENDING_SPARED, .freed_bytes = -1 };
	text_copy(o.text, sizeof(o.text), why);
	enforce_case_finish(x, c, &o);
}

static void begin(struct enforce_end *x, const struct enforcer_step *s)
{
	struct ending_plan plan = { 0 };
	struct err e = { 0 };
	struct ending_case *c = enforce_case_find(x, 0), other;
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
	plan.idle_below = s->facts->idle_below;
	copy_label(plan.job, texts[PROCESS_JOB]);
	copy_label(plan.container, texts[PROCESS_CONTAINER]);
	add_cards(&plan, x, s);
	bool all = s->session != SIZE_MAX && add_processes(c, s);
	plan.processes = c->processes;
	plan.n_processes = c->n_processes;
	int rc = all ? endings_begin(x->endings, &plan, &e)
		     : err_set(&e, ERR_WORLD, "its processes cannot be listed");
	if (rc)
		spare(x, c, e.text);
}

void enforce_end_after(void *context, const struct enforcer_step *s)
{
	struct enforce_end *x = context;
	const struct verdict *v = s->verdict;
	bool ends = x->enforcer->policy.enforce && v->state.level == LEVEL_END && !v->would;
	if (v->state.stage == STAGE_NONE) {
		enforce_end_release(x, s->facts->session->key);
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
	enforce_case_retry(x);
	while (endings_next(x->endings, &o)) {
		struct ending_case *c = enforce_case_find(x, o.ticket);
		if (c)
			enforce_case_finish(x, c, &o);
	}
}

size_t enforce_end_fds(const struct enforce_end *x, struct pollfd *fds)
{
	return endings_fds(x->endings, fds);
}

int64_t enforce_end_wait_ms(const struct enforce_end *x)
{
	int64_t end_ms = endings_wait_ms(x->endings), retry_ms = enforce_case_wait_ms(x);
	return retry_ms >= 0 && (end_ms < 0 || retry_ms < end_ms) ? retry_ms : end_ms;
}

bool enforce_end_is_asking(const struct enforce_end *x)
{
	return endings_is_asking(x->endings);
}

bool enforce_end_is_busy(const struct enforce_end *x)
{
	return endings_wait_ms(x->endings) >= 0;
}

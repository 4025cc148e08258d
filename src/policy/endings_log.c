/* Endings in policy.db: whether one may go on, a row for each step, and the result, which is
 * stored as soon as possible. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/size.h"
#include "model/session.h"
#include "policy/endings_private.h"
#include "policy/tell.h"
#include "store/policy/policy_file.h"

/* How often storing a result is tried again. */
enum { RETRY_MS = 2000 };
/* How many times the wait for a new final notice doubles. */
enum { LONGEST = 6 };

struct keeping {
	const struct ending *of;
	bool kept;
};

static const struct end_process *find_pid(const struct ending *a, uint32_t pid)
{
	for (size_t i = 0; i < a->n_processes; i++)
		if (a->processes[i].pid == pid)
			return &a->processes[i];
	return NULL;
}

/* Matches a keep by the session's name, or by one of its processes: the name may have
 * changed since. */
static int take_keep(void *context, const struct policy_keep *k)
{
	struct keeping *keeping = context;
	const struct ending *a = keeping->of;
	keeping->kept |= strcmp(k->session, a->key) == 0 ||
			 ((k->uid == 0 || k->uid == a->uid) && find_pid(a, (uint32_t)k->pid));
	return 0;
}

/* The session of an ending as the store has it now; NULL: it is not there. */
static const struct session_facts *find_facts(
	const struct facts_now *now, const struct ending *a)
{
	for (size_t i = 0; i < now->history.n_processes; i++) {
		const struct idle_process *p = &now->history.processes[i];
		const struct end_process *own = find_pid(a, p->pid);
		if (own && own->start_ticks == p->start_ticks)
			return &now->facts[p->session];
	}
	return NULL;
}

/* Whether an exemption protects the session now: the configuration may have been reloaded
 * since the pass that decided to end it. */
static int check_exemptions(
	const struct enforcer *x, const struct ending *a, int64_t now_ms, struct err *e)
{
	struct facts_now now = {
		.db = x->db, .root = x->root, .now_ms = now_ms, .brief = true
	};
	struct policy policy = x->policy;
	int rc = facts_now_read(&now, e);
	const struct session_facts *f = rc == 0 ? find_facts(&now, a) : NULL;
	policy.history = &now.history;
	const struct config_exemption *exempt =
		f ? rules_find_exemption(&policy, f, now_ms) : NULL;
	if (rc == 0 && !f)
		rc = err_set(e, ERR_NOTHING, "it is not in the store any more");
	else if (f && f->exemption)
		rc = err_set(e, ERR_NOTHING, "it is exempt: %s", f->exemption);
	else if (exempt)
		rc = err_set(e, ERR_NOTHING, "it is exempt: [exempt %s]", exempt->name);
	facts_now_finish(&now);
	return rc;
}

int ending_allowed(const struct endings *es, const struct ending *a, bool brief, struct err *e)
{
	const struct enforcer *x = es->enforcer;
	int64_t now_ms = clock_wall_ms(x->clock), until_ms = -1, stopped_ms = -1;
	char by[64], why[256];
	if (!x->file || !x->db)
		return err_set(
			e, ERR_WORLD, "%s is not open", x->db ? "policy.db" : "the store");
	struct keeping keeping = { a, false };
	int rc = policy_file_armed(x->file, now_ms, &until_ms, by, e);
	if (rc)
		return rc;
	/* The configuration may have been reloaded. */
	if (until_ms <= now_ms || !x->policy.enforce || !x->policy.may_end)
		return err_set(e, ERR_NOTHING, "ending is not allowed any more");
	rc = policy_file_tripped(x->file, &stopped_ms, why, e);
	if (rc)
		return rc;
	if (stopped_ms >= 0)
		return err_set(e, ERR_NOTHING, "the breaker has stopped everything");
	rc = policy_file_keeps(
		x->file, (struct policy_span){ now_ms, now_ms + 1 }, take_keep, &keeping, e);
	if (rc)
		return rc;
	if (keeping.kept)
		return err_set(e, ERR_NOTHING, "its user keeps it");
	return brief ? 0 : check_exemptions(x, a, now_ms, e);
}

/* Adds a row about a session: step, stage, evidence and result are those of `what`. */
static int add_row(const struct endings *es, const struct ending *a,
	const struct policy_action *what, struct err *e)
{
	const struct enforcer *x = es->enforcer;
	struct policy_action row = *what;
	row.at_ms = clock_wall_ms(x->clock);
	row.uid = a->uid;
	row.held_bytes = a->held_bytes;
	row.idle_since_ms = a->idle_since_ms;
	row.idle_ms = a->clock_ms;
	row.rule = a->rule;
	row.session = a->key;
	row.kind = session_kind_names[a->kind];
	row.user = a->user;
	row.pids = a->pids;
	row.cards = a->uuids;
	row.gpus = a->gpus;
	row.command = a->command;
	row.config = x->config_hash;
	row.actor = "gua-enforce";
	row.given_back_ms = -1;
	return policy_file_add_action(x->file, &row, e);
}

int ending_record(
	const struct endings *es, const struct ending *a, const char *what, struct err *e)
{
	struct policy_file *f = es->enforcer->file;
	const struct policy_action row = { .step = STEP_SIGNAL,
		.stage = STAGE_ENDING,
		.evidence = a->evidence,
		.result = what };
	if (!f)
		return err_set(e, ERR_WORLD, "policy.db is not open");
	int rc = policy_file_begin(f, e);
	if (rc)
		return rc;
	rc = add_row(es, a, &row, e);
	int end_rc = policy_file_end(f, rc == 0, rc ? NULL : e);
	return rc ? rc : end_rc;
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
	[ENDING_COMPUTES] = { STEP_SPARED, STAGE_COMPUTING, NOTICE_NOT_ENDED },
};

/* A session that was spared gets a new final notice: after the time between final notice and
 * end, and after twice that each further time, so that nobody gets the same notice all day. */
static struct policy_state state_after(
	const struct ending *a, enum ending_how how, int64_t now_ms)
{
	struct policy_state s = a->state;
	s.stage = meanings[how].stage;
	s.stage_ms = now_ms;
	if (how != ENDING_SPARED)
		return s;
	s.delivered_ms = now_ms;
	s.next_clock_ms =
		a->clock_ms + (a->final_ms << (s.round < LONGEST ? s.round : LONGEST));
	s.round++;
	return s;
}

static int write_outcome(struct endings *es, struct ending *a, struct err *e)
{
	struct policy_file *f = es->enforcer->file;
	int64_t now_ms = clock_wall_ms(es->enforcer->clock);
	struct policy_state state = state_after(a, a->how, now_ms);
	const struct policy_action row = {
		.step = meanings[a->how].step, .stage = state.stage, .result = a->text
	};
	const struct tell_queue target = { &es->enforcer->policy.config->notices, a->key,
		&a->state, now_ms };
	a->notice.kind = meanings[a->how].notice;
	a->notice.made_ms = now_ms;
	a->notice.freed_bytes = a->freed_bytes;
	str_copy(a->notice.result, sizeof(a->notice.result), a->text);
	int rc = policy_file_set_state(f, a->key, a->user, &state, e);
	if (rc == 0)
		rc = add_row(es, a, &row, e);
	return rc ? rc : tell_add(f, &target, &a->notice, notice_kind_names[a->notice.kind], e);
}

/* Stores the result in one transaction. */
static int store(struct endings *es, struct ending *a, struct err *e)
{
	struct policy_file *f = es->enforcer->file;
	int rc = f ? policy_file_begin(f, e) : err_set(e, ERR_WORLD, "policy.db is not open");
	if (rc)
		return rc;
	rc = write_outcome(es, a, e);
	int end_rc = policy_file_end(f, rc == 0, rc ? NULL : e);
	return rc ? rc : end_rc;
}

static void log_outcome(const struct ending *a, const char *name)
{
	static const char *const words[ENDING_HOWS] = {
		[ENDING_SPARED] = "spared",
		[ENDING_ENDED] = "ended",
		[ENDING_STILL_HELD] = "ended",
		[ENDING_FAILED] = "could not end",
		[ENDING_COMPUTES] = "spared",
	};
	char freed[SIZE_TEXT_CAP];
	size_text(freed, (double)a->freed_bytes);
	if (a->how == ENDING_ENDED && a->freed_bytes >= 0)
		log_notice("ended %s: %s freed", name, freed);
	else
		log_notice("%s %s: %s", words[a->how], name, a->text);
}

/* Until it is stored, the state is "ending", and nothing else is done to the session. */
void ending_store(struct endings *es, struct ending *a)
{
	struct err e = { 0 };
	char name[SESSION_KEY_CAP];
	session_shown(name, sizeof(name), a->key, true);
	if (a->retry_us == 0)
		log_outcome(a, name);
	int rc = store(es, a, &e);
	if (rc && !es->failing)
		log_error("what came of ending %s cannot be recorded: %s; trying again", name,
			e.text);
	if (!rc && es->failing)
		log_notice("results are recorded again");
	es->failing = rc != 0;
	a->retry_us = endings_now_us(es) + RETRY_MS * 1000;
	if (rc)
		return;
	if (a->how != ENDING_SPARED && a->how != ENDING_COMPUTES)
		endings_release(es, a->key);
	ending_clear(a);
}

void endings_store(struct endings *es)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (es->items[i].stage == ENDING_OVER &&
			endings_now_us(es) >= es->items[i].retry_us)
			ending_store(es, &es->items[i]);
}

static bool is_known(const struct endings *es, const char *key)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (es->items[i].stage != ENDING_NONE && strcmp(es->items[i].key, key) == 0)
			return true;
	return false;
}

/* Sessions whose stored state is "ending" although this run is not ending them. */
struct left {
	struct endings *es;
	struct ending *items;
	size_t n;
};

static int take_left(
	void *context, const char *key, const char *user, const struct policy_state *state)
{
	struct left *l = context;
	if (state->stage != STAGE_ENDING || is_known(l->es, key))
		return 0;
	if (!array_one_more(&l->items, l->n))
		return ERR_WORLD;
	struct ending *a = &l->items[l->n++];
	*a = (struct ending){ .uid = -1,
		.held_bytes = -1,
		.idle_since_ms = state->idle_since_ms,
		.clock_ms = state->clock_ms,
		.kind = SESSION_PROCESS,
		.state = *state };
	str_copy(a->key, sizeof(a->key), key);
	str_copy(a->user, sizeof(a->user), user);
	str_copy(a->rule, sizeof(a->rule), state->rule);
	return 0;
}

int endings_left(struct endings *es, int64_t now_ms, struct err *e)
{
	struct left l = { .es = es };
	const struct policy_action row = { .step = STEP_SPARED,
		.stage = STAGE_AGAIN,
		.result = "gua enforce was stopped while the session was being ended, or could "
			  "not record the result" };
	struct policy_file *f = es->enforcer->file;
	int rc = policy_file_sessions(f, take_left, &l, e);
	for (size_t i = 0; i < l.n && rc == 0; i++) {
		struct policy_state state = state_after(&l.items[i], ENDING_SPARED, now_ms);
		rc = policy_file_set_state(f, l.items[i].key, l.items[i].user, &state, e);
		if (rc == 0)
			rc = add_row(es, &l.items[i], &row, e);
	}
	free(l.items);
	return rc;
}

/* Stores what came of ending a session, as soon as it can be stored, and tells people. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/size.h"
#include "cmd/enforce_case.h"
#include "model/session.h"
#include "policy/tell.h"
#include "store/policy/policy_file.h"

/* How often it is tried again. */
enum { RETRY_MS = 2000 };
/* How often the wait for a new final notice doubles. */
enum { LONGEST = 6 };

struct ending_case *enforce_case_find(struct enforce_end *x, int64_t ticket)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (x->cases[i].ticket == ticket)
			return &x->cases[i];
	return NULL;
}

int enforce_case_row(struct enforce_end *x, const struct ending_case *c,
	const struct policy_action *what, struct err *e)
{
	struct policy_action a = *what;
	a.at_ms = clock_wall_ms(x->enforcer->clock);
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
	a.gpus = c->gpus;
	a.command = c->command;
	a.config = x->enforcer->config_hash;
	a.actor = "gua-enforce";
	return policy_file_add_action(x->enforcer->file, &a, e);
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

/* One that was spared gets a new final notice, after the time that lies between it and the end,
 * and after twice that each further time: nobody is told the same thing all day. */
static struct policy_state state_after(
	const struct ending_case *c, enum ending_how how, int64_t now_ms)
{
	struct policy_state s = c->state;
	s.stage = meanings[how].stage;
	s.stage_ms = now_ms;
	if (how != ENDING_SPARED)
		return s;
	s.delivered_ms = now_ms;
	s.next_clock_ms =
		c->clock_ms + (c->final_ms << (s.round < LONGEST ? s.round : LONGEST));
	s.round++;
	return s;
}

static int write_outcome(struct enforce_end *x, struct ending_case *c,
	const struct ending_outcome *o, struct err *e)
{
	int64_t now_ms = clock_wall_ms(x->enforcer->clock);
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
		rc = enforce_case_row(x, c, &a, e);
	if (rc == 0)
		rc = tell_add(f, &target, &c->notice, notice_kind_names[c->notice.kind], e);
	return rc;
}

/* In one transaction. */
static int store(struct enforce_end *x, struct ending_case *c, struct err *e)
{
	struct policy_file *f = x->enforcer->file;
	int rc = f ? policy_file_begin(f, e) : err_set(e, ERR_WORLD, "policy.db is not open");
	if (rc)
		return rc;
	rc = write_outcome(x, c, &c->outcome, e);
	int end = policy_file_end(f, rc == 0, rc ? NULL : e);
	return rc ? rc : end;
}

/* Until it is stored, the state is "ending", and nothing else is done to the session. */
static void try_to_store(struct enforce_end *x, struct ending_case *c)
{
	struct err e = { 0 };
	int rc = store(x, c, &e);
	char name[SESSION_KEY_CAP];
	session_shown(name, sizeof(name), c->key, true);
	if (rc && !x->failing)
		log_error("what came of ending %s cannot be recorded: %s; trying again", name,
			e.text);
	if (!rc && x->failing)
		log_notice("results are recorded again");
	x->failing = rc != 0;
	c->retry_us = clock_now(x->enforcer->clock).mono_us + RETRY_MS * 1000;
	if (rc)
		return;
	if (c->outcome.how != ENDING_SPARED && c->outcome.how != ENDING_COMPUTES)
		enforce_end_release(x, c->key);
	free(c->processes);
	c->processes = NULL;
	c->n_processes = 0;
	c->over = false;
	c->ticket = 0;
}

void enforce_case_finish(
	struct enforce_end *x, struct ending_case *c, const struct ending_outcome *o)
{
	static const char *const words[ENDING_HOWS] = {
		[ENDING_SPARED] = "spared",
		[ENDING_ENDED] = "ended",
		[ENDING_STILL_HELD] = "ended",
		[ENDING_FAILED] = "could not end",
		[ENDING_COMPUTES] = "spared",
	};
	char name[SESSION_KEY_CAP], freed[SIZE_TEXT_CAP];
	session_shown(name, sizeof(name), c->key, true);
	size_text(freed, (double)o->freed_bytes);
	if (o->how == ENDING_ENDED && o->freed_bytes >= 0)
		log_notice("ended %s: %s freed", name, freed);
	else
		log_notice("%s %s: %s", words[o->how], name, o->text);
	c->outcome = *o;
	c->over = true;
	try_to_store(x, c);
}

void enforce_case_retry(struct enforce_end *x)
{
	int64_t now_us = clock_now(x->enforcer->clock).mono_us;
	for (size_t i = 0; i < ENDINGS_MOST; i++) {
		struct ending_case *c = &x->cases[i];
		if (c->ticket && c->over && now_us >= c->retry_us)
			try_to_store(x, c);
	}
}

int64_t enforce_case_wait_ms(const struct enforce_end *x)
{
	int64_t least_ms = -1, now_us = clock_now(x->enforcer->clock).mono_us;
	for (size_t i = 0; i < ENDINGS_MOST; i++) {
		const struct ending_case *c = &x->cases[i];
		if (!c->ticket || !c->over)
			continue;
		int64_t ms = c->retry_us > now_us ? (c->retry_us - now_us) / 1000 + 1 : 0;
		least_ms = least_ms < 0 || ms < least_ms ? ms : least_ms;
	}
	return least_ms;
}

static bool is_known(const struct enforce_end *x, const char *key)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (x->cases[i].ticket && strcmp(x->cases[i].key, key) == 0)
			return true;
	return false;
}

/* Sessions whose state says that they are being ended, while they are not. */
struct left {
	struct enforce_end *x;
	struct ending_case *cases;
	size_t n;
};

static int take_left(
	void *context, const char *key, const char *user, const struct policy_state *state)
{
	struct left *l = context;
	if (state->stage != STAGE_ENDING || is_known(l->x, key))
		return 0;
	if (!array_one_more(&l->cases, l->n))
		return ERR_WORLD;
	struct ending_case *c = &l->cases[l->n++];
	*c = (struct ending_case){ .uid = -1,
		.held_bytes = -1,
		.idle_since_ms = state->idle_since_ms,
		.clock_ms = state->clock_ms,
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
		.result = "gua enforce was stopped while the session was being ended, or could "
			  "not record the result",
		.given_back_ms = -1 };
	struct policy_file *f = x->enforcer->file;
	int rc = policy_file_sessions(f, take_left, &l, e);
	for (size_t i = 0; i < l.n && rc == 0; i++) {
		struct policy_state state = state_after(&l.cases[i], ENDING_SPARED, now_ms);
		rc = policy_file_set_state(f, l.cases[i].key, l.cases[i].user, &state, e);
		if (rc == 0)
			rc = enforce_case_row(x, &l.cases[i], &a, e);
	}
	free(l.cases);
	return rc;
}

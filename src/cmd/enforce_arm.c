/* gua enforce arm, disarm and release: an admin allows ending for a time, forbids it again, and
 * lets everything go on after the breaker has stopped it. */
#include <stdio.h>
#include <string.h>

#include "base/moment.h"
#include "cmd/enforce.h"
#include "cmd/share/mine.h"
#include "policy/channel.h"
#include "policy/rules.h"
#include "store/policy/policy_file.h"

#define MOST_MS (INT64_C(366) * 86400000)

/* A length is from now on; a day counts to its end. */
static int read_until(const struct enforce *x, int64_t *until_ms, struct err *e)
{
	const char *text = x->o->window.until;
	int64_t ms = 0;
	if (!text)
		return err_set(e, ERR_USAGE,
			"arm needs --until and a day, as in --until 2026-12-31, or a time, as "
			"in "
			"--until 7d");
	if (duration_parse(text, &ms, NULL) == 0) {
		*until_ms = x->now_ms + ms;
	} else {
		int rc = moment_parse(text, x->now_ms, x->o->utc, until_ms, e);
		if (rc)
			return err_prefix(e, "--until");
		struct tm day = moment_fields(*until_ms, x->o->utc);
		if (!strpbrk(text, ":@")) {
			day.tm_mday++;
			*until_ms = moment_day_start(day, x->o->utc);
		}
	}
	if (*until_ms <= x->now_ms)
		return err_set(e, ERR_USAGE, "--until %s is in the past", text);
	if (*until_ms > x->now_ms + MOST_MS)
		return err_set(e, ERR_USAGE, "--until must be within a year");
	return 0;
}

/* What an admin decides. */
struct decision {
	enum policy_step step;
	int64_t until_ms;  /* STEP_ARMED */
	const char *actor; /* who */
};

static int store(
	struct policy_file *f, const struct enforce *x, const struct decision *d, struct err *e)
{
	return d->step == STEP_RESUMED
		       ? policy_file_release(f, x->now_ms, d->actor, e)
		       : policy_file_arm(f, x->now_ms, d->until_ms, d->actor, e);
}

/* Writes the row, and the step for the log. */
static int write_decision(struct enforce *x, const struct decision *d, struct err *e)
{
	struct policy_file *file = NULL;
	char until[64] = "", hash[RULES_HASH_CAP], text[160] = "ending is forbidden";
	rules_hash(hash, &x->conf.settings);
	moment_iso(until, sizeof(until), d->until_ms);
	if (d->step == STEP_ARMED)
		snprintf(text, sizeof(text), "ending is allowed until %s", until);
	else if (d->step == STEP_RESUMED)
		str_copy(text, sizeof(text), "the breaker was released");
	struct policy_action a = { .at_ms = x->now_ms,
		.step = d->step,
		.uid = -1,
		.held_bytes = -1,
		.idle_since_ms = -1,
		.idle_ms = -1,
		.given_back_ms = -1,
		.evidence = text,
		.config = hash,
		.actor = d->actor };
	int rc = policy_file_open(&file, x->policy_db, true, e);
	if (rc)
		return rc;
	rc = policy_file_begin(file, e);
	if (rc == 0)
		rc = store(file, x, d, e);
	if (rc == 0)
		rc = policy_file_add_action(file, &a, e);
	int end = policy_file_end(file, rc == 0, rc ? NULL : e);
	policy_file_close(file);
	return rc ? rc : end;
}

/* What else is missing before a session can be ended, and what is likely a mistake. */
static void add_missing(struct str *out, struct enforce *x)
{
	struct err why = { 0 };
	bool any = false;
	for (size_t i = 0; i < rules_count(&x->policy); i++) {
		const struct config_rule *rule = rules_get(&x->policy, i);
		char hasty[WHY_CAP];
		any |= rules_level(rule) == LEVEL_END;
		if (rules_is_hasty(rule, hasty))
			str_addf(out, "But %s.\n", hasty);
	}
	if (!x->policy.enforce)
		str_add(out, "But [policy] mode is observe: nothing is ended before it is "
			     "'enforce'.\n");
	if (!any)
		str_add(out, "But no rule has the level 'end'.\n");
	char missed[CHANNEL_REACH_CAP];
	if (any && channel_misses(&x->conf.values.notices, missed))
		str_addf(out, "But %s.\n", missed);
	if (rules_check_trust(&x->conf.settings, &why))
		str_addf(out, "But the configuration may not end sessions: %s.\n", why.text);
}

int enforce_arm(struct enforce *x)
{
	struct err e = { 0 };
	struct str out = { 0 };
	char actor[USER_CAP] = "", until[48];
	int64_t until_ms = 0;
	int rc = read_until(x, &until_ms, &e);
	if (rc == 0)
		rc = mine_actor(actor, &e);
	if (rc == 0)
		rc = write_decision(x, &(struct decision){ STEP_ARMED, until_ms, actor }, &e);
	if (rc)
		return cmd_fail(x->self, &e);
	enforce_moment(x, until, sizeof(until), until_ms);
	str_addf(&out, "Sessions may be ended until %s (armed by %s).\n", until, actor);
	add_missing(&out, x);
	return cmd_print(x->self, &out);
}

int enforce_disarm(struct enforce *x)
{
	struct err e = { 0 };
	struct str out = { 0 };
	char actor[USER_CAP] = "";
	int rc = mine_actor(actor, &e);
	if (rc == 0)
		rc = write_decision(x, &(struct decision){ STEP_DISARMED, 0, actor }, &e);
	if (rc)
		return cmd_fail(x->self, &e);
	str_add(&out, "No session is ended from now on.\n");
	return cmd_print(x->self, &out);
}

/* Whether the breaker has stopped everything; fills why. */
static int read_breaker(const struct enforce *x, int64_t *at_ms, char why[256], struct err *e)
{
	struct policy_file *file = NULL;
	int rc = policy_file_open(&file, x->policy_db, false, e);
	if (rc == 0)
		rc = policy_file_tripped(file, at_ms, why, e);
	policy_file_close(file);
	return rc;
}

int enforce_release(struct enforce *x)
{
	struct err e = { 0 };
	struct str out = { 0 };
	char actor[USER_CAP] = "", at[48], why[256];
	int64_t at_ms = -1;
	int rc = read_breaker(x, &at_ms, why, &e);
	if (rc == 0 && at_ms < 0) {
		str_add(&out, "Nothing to release: the breaker has not stopped anything.\n");
		return cmd_print(x->self, &out);
	}
	if (rc == 0)
		rc = mine_actor(actor, &e);
	if (rc == 0)
		rc = write_decision(x, &(struct decision){ STEP_RESUMED, 0, actor }, &e);
	if (rc)
		return cmd_fail(x->self, &e);
	enforce_moment(x, at, sizeof(at), at_ms);
	str_addf(&out,
		"Released: sessions are warned and ended again. Stopped since %s:\n%s.\n", at,
		why);
	return cmd_print(x->self, &out);
}

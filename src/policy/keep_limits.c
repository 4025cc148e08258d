/* Checks a request to keep a session and stores the keep. */
#include "policy/keep_limits.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/moment.h"

#define WEEK_MS (INT64_C(7) * 86400000)
#define ROOT_LONGEST_MS (4 * WEEK_MS)
#define DAY_MS INT64_C(86400000)
/* Keeps are recorded for ever, so their number is limited. */
enum { MOST_A_DAY = 100 };

static int refuse(struct keep_answer *a, const char *why)
{
	a->done = false;
	str_copy(a->why, sizeof(a->why), why);
	return 0;
}

static const struct idle_process *find_process(
	const struct sessions_now *now, const struct user_request *r)
{
	for (size_t i = 0; i < now->history.n_processes; i++)
		if (now->history.processes[i].pid == r->pid &&
			now->history.processes[i].start_ticks == r->start_ticks)
			return &now->history.processes[i];
	return NULL;
}

struct week {
	uint32_t uid;
	int64_t since_ms, sum_ms;
	int64_t day_ms, n_day; /* how many since day_ms */
};

static int add_keep(void *context, const struct policy_keep *k)
{
	struct week *w = context;
	if (k->uid != w->uid)
		return 0;
	w->sum_ms += k->until_ms - (k->from_ms > w->since_ms ? k->from_ms : w->since_ms);
	w->n_day += k->from_ms > w->day_ms;
	return 0;
}

/* Whether the time is within what the configuration allows a user. */
static int check_time(const struct keep_limits *l, const struct user_request *r, uint32_t uid,
	struct keep_answer *a, struct err *e)
{
	const struct config_policy *limits = &l->x->policy.config->policy;
	struct week week = { uid, l->now_ms - WEEK_MS, 0, l->now_ms - DAY_MS, 0 };
	char text[160], length[48];
	if (r->for_ms > (uid == 0 ? ROOT_LONGEST_MS : limits->keep_longest_ms)) {
		duration_text(length, sizeof(length),
			uid == 0 ? ROOT_LONGEST_MS : limits->keep_longest_ms);
		snprintf(text, sizeof(text), "a session can be kept for %s at most", length);
		return refuse(a, text);
	}
	int rc = policy_file_keeps(l->x->file, (struct policy_span){ week.since_ms, INT64_MAX },
		add_keep, &week, e);
	if (rc == 0 && uid != 0 && week.sum_ms + r->for_ms > limits->keep_per_week_ms) {
		duration_text(length, sizeof(length), limits->keep_per_week_ms);
		snprintf(text, sizeof(text),
			"a user can keep sessions for %s in seven days, and more than that was "
			"asked for",
			length);
		return refuse(a, text);
	}
	if (rc == 0 && uid != 0 && week.n_day >= MOST_A_DAY) {
		snprintf(text, sizeof(text), "a user can keep sessions %d times in 24 hours",
			MOST_A_DAY);
		return refuse(a, text);
	}
	a->done = rc == 0;
	return rc;
}

struct keeping {
	const char *session;
	bool kept;
};

static int find_keep(void *context, const struct policy_keep *k)
{
	struct keeping *keeping = context;
	keeping->kept |= strcmp(k->session, keeping->session) == 0;
	return 0;
}

/* Whether there is a keep to drop; without one, no row is written. */
static int is_kept(const struct keep_limits *l, const char *session, bool *kept, struct err *e)
{
	struct keeping keeping = { session, false };
	int rc = policy_file_keeps(l->x->file, (struct policy_span){ l->now_ms, l->now_ms + 1 },
		find_keep, &keeping, e);
	*kept = keeping.kept;
	return rc;
}

static int write_keep(const struct keep_limits *l, const struct user_request *r, uint32_t uid,
	const struct idle_session *session, struct err *e)
{
	char evidence[320], until[48];
	struct policy_keep keep = { .session = session->key,
		.user = uid == 0 ? "root" : session->user,
		.reason = r->reason,
		.uid = uid,
		.pid = r->pid,
		.from_ms = l->now_ms,
		.until_ms = l->now_ms + r->for_ms };
	moment_iso(until, sizeof(until), keep.until_ms);
	if (r->ask == USER_ASK_DROP)
		snprintf(evidence, sizeof(evidence), "its user does not keep it any more");
	else
		snprintf(evidence, sizeof(evidence), "kept until %s: %s", until, r->reason);
	struct policy_action a = { .at_ms = l->now_ms,
		.step = STEP_KEPT,
		.uid = uid,
		.held_bytes = -1,
		.idle_since_ms = -1,
		.idle_ms = -1,
		.given_back_ms = -1,
		.session = session->key,
		.kind = session_kind_names[session->kind],
		.user = session->user,
		.evidence = evidence,
		.config = l->x->config_hash,
		.actor = keep.user };
	int rc = policy_file_begin(l->x->file, e);
	if (rc == 0)
		rc = policy_file_drop_keep(l->x->file, session->key, l->now_ms, e);
	if (rc == 0 && r->ask == USER_ASK_KEEP)
		rc = policy_file_add_keep(l->x->file, &keep, e);
	if (rc == 0)
		rc = policy_file_add_action(l->x->file, &a, e);
	int end = policy_file_end(l->x->file, rc == 0, rc ? NULL : e);
	return rc ? rc : end;
}

int keep_limits_apply(const struct keep_limits *l, const struct user_request *r, uint32_t uid,
	struct keep_answer *answer, struct err *e)
{
	*answer = (struct keep_answer){ .until_ms = l->now_ms + r->for_ms };
	const struct idle_process *process = find_process(l->now, r);
	if (!process)
		return refuse(answer, "this process holds no card at the recorder's last tick");
	if (uid != 0 && process->uid != uid)
		return refuse(answer, "this process belongs to another user");
	const struct idle_session *session = &l->now->history.sessions[process->session];
	bool worth = false;
	int rc;
	if (r->ask == USER_ASK_DROP) {
		answer->done = true;
		rc = is_kept(l, session->key, &worth, e);
	} else {
		rc = check_time(l, r, uid, answer, e);
		worth = answer->done;
	}
	return rc || !worth ? rc : write_keep(l, r, uid, session, e);
}

/* A keep whose session no longer has the stored name, while the process still exists. */
struct moved {
	const struct sessions_now *now;
	char session[SESSION_KEY_CAP];
	struct policy_keep keep;
	const char *key; /* of the session that the process is in now */
};

static bool is_present(const struct sessions_now *now, const char *key)
{
	for (size_t i = 0; i < now->history.n_sessions; i++)
		if (strcmp(now->history.sessions[i].key, key) == 0)
			return true;
	return false;
}

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

int keep_limits_follow(struct policy_file *f, const struct sessions_now *now, struct err *e)
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

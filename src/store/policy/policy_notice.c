/* Reads and writes the queue of notices. */
#include "store/policy/policy_notice.h"

#include <string.h>

#include "store/policy/policy_private.h"
#include "store/sql.h"

int policy_notice_add(struct policy_file *f, const struct policy_notice *n, struct err *e)
{
	return policy_file_run(f, e,
		"INSERT OR REPLACE INTO notice (session, idle_since_ms, round, stage, channel, "
		"user, uid, body, queued_ms, due_ms, tries, state, counts, admitted, result) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, 'waiting', ?11, ?12, "
		"'')",
		SQL_TEXT(n->session), SQL_INT(n->idle_since_ms), SQL_INT(n->round),
		SQL_TEXT(n->stage), SQL_TEXT(n->channel), SQL_TEXT(n->user),
		SQL_KNOWN(n->uid, -1), SQL_RAW(n->body), SQL_INT(n->queued_ms),
		SQL_INT(n->due_ms), SQL_INT(n->counts), SQL_INT(n->admitted));
}

int policy_notice_each(
	struct policy_query *q, policy_notice_taker take, void *context, struct err *e)
{
	int answer = 0;
	while (answer == 0 && policy_file_next(q)) {
		const struct policy_notice n = { .id = sql_int(q->row, 0, -1),
			.session = sql_raw(q->row, 1),
			.stage = sql_raw(q->row, 2),
			.channel = sql_raw(q->row, 3),
			.user = sql_raw(q->row, 4),
			.body = sql_raw(q->row, 5),
			.uid = sql_int(q->row, 6, -1),
			.idle_since_ms = sql_int(q->row, 7, -1),
			.round = sql_int(q->row, 8, -1),
			.queued_ms = sql_int(q->row, 9, -1),
			.due_ms = sql_int(q->row, 10, -1),
			.tries = sql_int(q->row, 11, -1),
			.counts = sql_int(q->row, 12, -1) > 0,
			.admitted = sql_int(q->row, 13, -1) > 0,
			.result = sql_raw(q->row, 14) };
		answer = take(context, &n);
	}
	return policy_file_done(q, answer, e);
}

/* A notice that has waited longer than any wait can be was queued when the clock was wrong. */
int policy_notice_due(struct policy_file *f, int64_t now_ms, policy_notice_taker take,
	void *context, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		POLICY_NOTICE_COLUMNS " WHERE state = 'waiting' AND admitted AND (due_ms <= ?1 "
				      "OR due_ms > ?1 + 172800000) ORDER BY due_ms, id");
	sql_bind(q.row, SQL_INT(now_ms));
	return policy_notice_each(&q, take, context, e);
}

int policy_notice_waiting(struct policy_file *f, const char *session, policy_notice_taker take,
	void *context, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		POLICY_NOTICE_COLUMNS " WHERE state = 'waiting' AND counts AND (?1 = '' OR "
				      "session = ?1) ORDER BY user, session, id");
	sql_bind(q.row, SQL_TEXT(session));
	return policy_notice_each(&q, take, context, e);
}

int policy_notice_done(struct policy_file *f, const struct policy_delivery *d, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE notice SET state = ?2, result = ?3, due_ms = ?4, done_ms = ?5, "
		"tries = tries + (?3 = '') WHERE (id = ?1 AND (state = 'waiting' OR ?2 = "
		"'delivered')) OR (digest = ?1 AND state = 'digest' AND ?2 <> 'waiting')",
		SQL_INT(d->id), SQL_TEXT(d->state), SQL_TEXT(d->result), SQL_INT(d->due_ms),
		SQL_KNOWN(strcmp(d->state, "waiting") == 0 ? -1 : d->now_ms, -1));
}

int policy_notice_delivered(struct policy_file *f, const char *session,
	const struct policy_state *state, int64_t *ms, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		"SELECT min(done_ms) FROM notice WHERE session = ?1 AND idle_since_ms = ?2 AND "
		"round = ?3 AND stage = ?4 AND state = 'delivered' AND counts AND "
		"queued_ms >= ?5");
	sql_bind(q.row, SQL_TEXT(session), SQL_INT(state->idle_since_ms), SQL_INT(state->round),
		SQL_TEXT(policy_stage_names[state->stage]), SQL_INT(state->stage_ms));
	*ms = policy_file_next(&q) ? sql_int(q.row, 0, -1) : -1;
	return policy_file_done(&q, 0, e);
}

int policy_notice_cancel(
	struct policy_file *f, const char *session, int64_t now_ms, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE notice SET state = 'failed', result = 'no longer needed', done_ms = ?2 "
		"WHERE session = ?1 AND state IN ('waiting', 'digest')",
		SQL_TEXT(session), SQL_INT(now_ms));
}

int policy_notice_copy(
	struct policy_file *f, int64_t id, const char *channel, bool counts, struct err *e)
{
	return policy_file_run(f, e,
		"INSERT OR IGNORE INTO notice (session, idle_since_ms, round, stage, channel, "
		"user, uid, body, queued_ms, due_ms, tries, state, counts, admitted, result) "
		"SELECT session, idle_since_ms, round, stage, ?2, user, uid, body, queued_ms, "
		"queued_ms, 0, 'waiting', ?3, NOT ?3 OR NOT " POLICY_NOTICE_LIMITED
		", '' FROM notice WHERE "
		"(id = ?1 AND stage <> 'digest') OR (digest = ?1 AND state = 'digest')",
		SQL_INT(id), SQL_TEXT(channel), SQL_INT(counts));
}

int policy_notice_tries(struct policy_file *f, int64_t id, int64_t *tries, struct err *e)
{
	struct policy_query q = policy_file_select(f, "SELECT tries FROM notice WHERE id = ?1");
	sql_bind(q.row, SQL_INT(id));
	*tries = policy_file_next(&q) ? sql_int(q.row, 0, -1) : 0;
	return policy_file_done(&q, 0, e);
}

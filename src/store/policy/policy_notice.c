/* Reads and writes the queue of notices. */
#include "store/policy/policy_notice.h"

#include <string.h>

#include "store/policy/policy_private.h"
#include "store/sql.h"

int policy_notice_add(struct policy_file *f, const struct policy_notice *n, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"INSERT OR REPLACE INTO notice (session, idle_since_ms, round, stage, channel, "
		"user, uid, body, queued_ms, due_ms, tries, state, counts, admitted, result) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, 'waiting', ?11, ?12, "
		"'')");
	sql_bind_text(q, 1, n->session);
	sqlite3_bind_int64(q, 2, n->idle_since_ms);
	sqlite3_bind_int64(q, 3, n->round);
	sql_bind_text(q, 4, n->stage);
	sql_bind_text(q, 5, n->channel);
	sql_bind_text(q, 6, n->user);
	sql_bind_known(q, 7, n->uid, -1);
	sqlite3_bind_text(q, 8, n->body, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(q, 9, n->queued_ms);
	sqlite3_bind_int64(q, 10, n->due_ms);
	sqlite3_bind_int(q, 11, n->counts);
	sqlite3_bind_int(q, 12, n->admitted);
	return policy_run(f, q, e);
}

static struct policy_notice notice_of(sqlite3_stmt *row)
{
	return (struct policy_notice){ .id = policy_number(row, 0),
		.session = policy_text(row, 1),
		.stage = policy_text(row, 2),
		.channel = policy_text(row, 3),
		.user = policy_text(row, 4),
		.body = policy_text(row, 5),
		.uid = policy_number(row, 6),
		.idle_since_ms = policy_number(row, 7),
		.round = policy_number(row, 8),
		.queued_ms = policy_number(row, 9),
		.due_ms = policy_number(row, 10),
		.tries = policy_number(row, 11),
		.counts = policy_number(row, 12) > 0,
		.admitted = policy_number(row, 13) > 0,
		.result = policy_text(row, 14) };
}

int policy_notice_each(
	struct policy_query *q, policy_notice_taker take, void *context, struct err *e)
{
	int answer = 0;
	while (answer == 0 && policy_next(q)) {
		struct policy_notice n = notice_of(q->row);
		answer = take(context, &n);
	}
	return policy_end(q, answer, e);
}

/* What waits for longer than any wait can be was queued when the clock was wrong. */
int policy_notice_due(struct policy_file *f, int64_t now_ms, policy_notice_taker take,
	void *context, struct err *e)
{
	struct policy_query q = policy_select(f,
		POLICY_NOTICE_COLUMNS " WHERE state = 'waiting' AND admitted AND (due_ms <= ?1 "
				      "OR due_ms > ?1 + 172800000) ORDER BY due_ms, id");
	sqlite3_bind_int64(q.row, 1, now_ms);
	return policy_notice_each(&q, take, context, e);
}

int policy_notice_waiting(struct policy_file *f, const char *session, policy_notice_taker take,
	void *context, struct err *e)
{
	struct policy_query q = policy_select(f,
		POLICY_NOTICE_COLUMNS " WHERE state = 'waiting' AND counts AND (?1 = '' OR "
				      "session = ?1) ORDER BY user, session, id");
	sql_bind_text(q.row, 1, session);
	return policy_notice_each(&q, take, context, e);
}

int policy_notice_done(struct policy_file *f, const struct policy_delivery *d, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"UPDATE notice SET state = ?2, result = ?3, due_ms = ?4, done_ms = ?5, "
		"tries = tries + (?3 = '') WHERE (id = ?1 AND (state = 'waiting' OR ?2 = "
		"'delivered')) OR (digest = ?1 AND state = 'digest' AND ?2 <> 'waiting')");
	sqlite3_bind_int64(q, 1, d->id);
	sql_bind_text(q, 2, d->state);
	sql_bind_text(q, 3, d->result);
	sqlite3_bind_int64(q, 4, d->due_ms);
	sql_bind_known(q, 5, strcmp(d->state, "waiting") == 0 ? -1 : d->now_ms, -1);
	return policy_run(f, q, e);
}

int policy_notice_delivered(struct policy_file *f, const char *session,
	const struct policy_state *state, int64_t *ms, struct err *e)
{
	struct policy_query q = policy_select(f,
		"SELECT min(done_ms) FROM notice WHERE session = ?1 AND idle_since_ms = ?2 AND "
		"round = ?3 AND stage = ?4 AND state = 'delivered' AND counts AND "
		"queued_ms >= ?5");
	sql_bind_text(q.row, 1, session);
	sqlite3_bind_int64(q.row, 2, state->idle_since_ms);
	sqlite3_bind_int64(q.row, 3, state->round);
	sql_bind_text(q.row, 4, policy_stage_names[state->stage]);
	sqlite3_bind_int64(q.row, 5, state->stage_ms);
	bool found = policy_next(&q);
	*ms = found ? policy_number(q.row, 0) : -1;
	return policy_end(&q, 0, e);
}

int policy_notice_cancel(
	struct policy_file *f, const char *session, int64_t now_ms, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"UPDATE notice SET state = 'failed', result = 'no longer needed', done_ms = ?2 "
		"WHERE session = ?1 AND state IN ('waiting', 'digest')");
	sql_bind_text(q, 1, session);
	sqlite3_bind_int64(q, 2, now_ms);
	return policy_run(f, q, e);
}

int policy_notice_copy(
	struct policy_file *f, int64_t id, const char *channel, bool counts, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"INSERT OR IGNORE INTO notice (session, idle_since_ms, round, stage, channel, "
		"user, uid, body, queued_ms, due_ms, tries, state, counts, admitted, result) "
		"SELECT session, idle_since_ms, round, stage, ?2, user, uid, body, queued_ms, "
		"queued_ms, 0, 'waiting', ?3, NOT ?3 OR NOT " POLICY_NOTICE_LIMITED
		", '' FROM notice WHERE "
		"(id = ?1 AND stage <> 'digest') OR (digest = ?1 AND state = 'digest')");
	sqlite3_bind_int64(q, 1, id);
	sql_bind_text(q, 2, channel);
	sqlite3_bind_int(q, 3, counts);
	return policy_run(f, q, e);
}

int policy_notice_tries(struct policy_file *f, int64_t id, int64_t *tries, struct err *e)
{
	struct policy_query q = policy_select(f, "SELECT tries FROM notice WHERE id = ?1");
	sqlite3_bind_int64(q.row, 1, id);
	bool found = policy_next(&q);
	*tries = found ? policy_number(q.row, 0) : 0;
	return policy_end(&q, 0, e);
}

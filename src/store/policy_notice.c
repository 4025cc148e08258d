/* Reads and writes the queue of notices. */
#include "store/policy_notice.h"

#include <string.h>

#include "store/policy_private.h"
#include "store/sqlite.h"

int policy_notice_add(struct policy_file *f, const struct policy_notice *n, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"INSERT OR REPLACE INTO notice (session, idle_since_ms, round, stage, channel, "
		"user, uid, body, queued_ms, due_ms, tries, state, counts, result) VALUES (?1, "
		"?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, 'waiting', ?11, '')");
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
	return policy_run(f, q, e);
}

int policy_notice_due(struct policy_file *f, int64_t now_ms, policy_notice_taker take,
	void *context, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"SELECT id, session, stage, channel, user, body, uid, idle_since_ms, round, "
		"queued_ms, due_ms, tries, counts FROM notice WHERE state = 'waiting' AND "
		"due_ms <= ?1 ORDER BY due_ms, id");
	sqlite3_bind_int64(q, 1, now_ms);
	int rc = q ? SQLITE_ROW : SQLITE_ERROR, answer = 0;
	while (answer == 0 && rc == SQLITE_ROW && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		struct policy_notice n = { .id = policy_number(q, 0),
			.session = policy_text(q, 1),
			.stage = policy_text(q, 2),
			.channel = policy_text(q, 3),
			.user = policy_text(q, 4),
			.body = policy_text(q, 5),
			.uid = policy_number(q, 6),
			.idle_since_ms = policy_number(q, 7),
			.round = policy_number(q, 8),
			.queued_ms = policy_number(q, 9),
			.due_ms = policy_number(q, 10),
			.tries = policy_number(q, 11),
			.counts = policy_number(q, 12) > 0 };
		answer = take(context, &n);
	}
	sqlite3_finalize(q);
	if (answer)
		return answer;
	return rc == SQLITE_DONE ? 0 : policy_fail(f, "read", e);
}

int policy_notice_done(struct policy_file *f, const struct policy_delivery *d, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"UPDATE notice SET state = ?2, result = ?3, due_ms = ?4, done_ms = ?5, "
		"tries = tries + (?3 = '') WHERE id = ?1 AND (state = 'waiting' OR ?2 = "
		"'delivered')");
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
	sqlite3_stmt *q = policy_prepare(f,
		"SELECT min(done_ms) FROM notice WHERE session = ?1 AND idle_since_ms = ?2 AND "
		"round = ?3 AND stage = ?4 AND state = 'delivered' AND counts AND "
		"queued_ms >= ?5");
	sql_bind_text(q, 1, session);
	sqlite3_bind_int64(q, 2, state->idle_since_ms);
	sqlite3_bind_int64(q, 3, state->round);
	sql_bind_text(q, 4, policy_stage_names[state->stage]);
	sqlite3_bind_int64(q, 5, state->stage_ms);
	int rc = q ? sqlite3_step(q) : SQLITE_ERROR;
	*ms = rc == SQLITE_ROW ? policy_number(q, 0) : -1;
	sqlite3_finalize(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : policy_fail(f, "read", e);
}

int policy_notice_sent(struct policy_file *f, const char *user, int64_t since_ms,
	struct policy_sent *sent, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"SELECT count(DISTINCT session || ' ' || stage || ' ' || idle_since_ms || ' ' "
		"|| "
		"round), min(done_ms) FROM notice WHERE user = ?1 AND state = 'delivered' AND "
		"done_ms >= ?2");
	sql_bind_text(q, 1, user);
	sqlite3_bind_int64(q, 2, since_ms);
	int rc = q ? sqlite3_step(q) : SQLITE_ERROR;
	sent->n = rc == SQLITE_ROW ? policy_number(q, 0) : 0;
	sent->first_ms = rc == SQLITE_ROW ? policy_number(q, 1) : -1;
	sqlite3_finalize(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : policy_fail(f, "read", e);
}

int policy_notice_cancel(
	struct policy_file *f, const char *session, int64_t now_ms, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"UPDATE notice SET state = 'failed', result = 'no longer needed', done_ms = ?2 "
		"WHERE session = ?1 AND state = 'waiting'");
	sql_bind_text(q, 1, session);
	sqlite3_bind_int64(q, 2, now_ms);
	return policy_run(f, q, e);
}

int policy_notice_tries(struct policy_file *f, int64_t id, int64_t *tries, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f, "SELECT tries FROM notice WHERE id = ?1");
	sqlite3_bind_int64(q, 1, id);
	int rc = q ? sqlite3_step(q) : SQLITE_ERROR;
	*tries = rc == SQLITE_ROW ? policy_number(q, 0) : 0;
	sqlite3_finalize(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : policy_fail(f, "read", e);
}

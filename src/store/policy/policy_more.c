/* Arms, the breaker, keeps, passes and the last simulation in policy.db. */
#include "store/policy/policy_more.h"

#include "base/str.h"
#include "store/policy/policy_private.h"
#include "store/sql.h"

int policy_file_arm(struct policy_file *f, int64_t now_ms, int64_t until_ms, const char *user,
	struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"UPDATE arm SET disarmed_ms = ?1 WHERE disarmed_ms IS NULL AND until_ms > ?1");
	sqlite3_bind_int64(q, 1, now_ms);
	int rc = policy_run(f, q, e);
	if (rc || until_ms <= 0)
		return rc;
	q = policy_prepare(f, "INSERT INTO arm (at_ms, until_ms, user) VALUES (?1, ?2, ?3)");
	sqlite3_bind_int64(q, 1, now_ms);
	sqlite3_bind_int64(q, 2, until_ms);
	sql_bind_text(q, 3, user);
	return policy_run(f, q, e);
}

int policy_file_armed(
	struct policy_file *f, int64_t now_ms, int64_t *until_ms, char user[64], struct err *e)
{
	struct policy_query q = policy_select(f,
		"SELECT until_ms, user FROM arm WHERE disarmed_ms IS NULL AND at_ms <= ?1 AND "
		"until_ms > ?1 ORDER BY id DESC LIMIT 1");
	sqlite3_bind_int64(q.row, 1, now_ms);
	bool found = policy_next(&q);
	*until_ms = found ? policy_number(q.row, 0) : -1;
	str_copy(user, 64, found ? policy_text(q.row, 1) : "");
	return policy_end(&q, 0, e);
}

int policy_file_trip(struct policy_file *f, int64_t now_ms, const char *why, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f, "INSERT INTO breaker (at_ms, why) VALUES (?1, ?2)");
	sqlite3_bind_int64(q, 1, now_ms);
	sql_bind_text(q, 2, why);
	return policy_run(f, q, e);
}

int policy_file_release(struct policy_file *f, int64_t now_ms, const char *user, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(
		f, "UPDATE breaker SET released_ms = ?1, user = ?2 WHERE released_ms IS NULL");
	sqlite3_bind_int64(q, 1, now_ms);
	sql_bind_text(q, 2, user);
	return policy_run(f, q, e);
}

int policy_file_tripped(struct policy_file *f, int64_t *at_ms, char why[256], struct err *e)
{
	struct policy_query q = policy_select(f,
		"SELECT at_ms, why FROM breaker WHERE released_ms IS NULL ORDER BY id LIMIT 1");
	bool found = policy_next(&q);
	*at_ms = found ? policy_number(q.row, 0) : -1;
	str_copy(why, 256, found ? policy_text(q.row, 1) : "");
	return policy_end(&q, 0, e);
}

int policy_file_releases(struct policy_file *f, int (*take)(void *context, int64_t at_ms),
	void *context, struct err *e)
{
	struct policy_query q = policy_select(f,
		"SELECT released_ms FROM breaker WHERE released_ms IS NOT NULL ORDER BY "
		"released_ms");
	int answer = 0;
	while (answer == 0 && policy_next(&q))
		answer = take(context, policy_number(q.row, 0));
	return policy_end(&q, answer, e);
}

int policy_file_set_pass(struct policy_file *f, const struct policy_pass *p, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"INSERT OR REPLACE INTO pass (id, at_ms, sessions, idle, note) "
		"VALUES (1, ?1, ?2, ?3, ?4)");
	sqlite3_bind_int64(q, 1, p->at_ms);
	sqlite3_bind_int64(q, 2, p->sessions);
	sqlite3_bind_int64(q, 3, p->idle);
	sql_bind_text(q, 4, p->note);
	return policy_run(f, q, e);
}

int policy_file_pass(struct policy_file *f, struct policy_pass *p, struct err *e)
{
	struct policy_query q =
		policy_select(f, "SELECT at_ms, sessions, idle, note FROM pass");
	bool found = policy_next(&q);
	*p = (struct policy_pass){ .at_ms = -1 };
	if (found) {
		p->at_ms = policy_number(q.row, 0);
		p->sessions = policy_number(q.row, 1);
		p->idle = policy_number(q.row, 2);
		str_copy(p->note, sizeof(p->note), policy_text(q.row, 3));
	}
	return policy_end(&q, 0, e);
}

int policy_file_counts(
	struct policy_file *f, policy_count_taker take, void *context, struct err *e)
{
	struct policy_query q = policy_select(
		f, "SELECT step, mode, count(*) FROM action GROUP BY step, mode ORDER BY 1, 2");
	int answer = 0;
	while (answer == 0 && policy_next(&q)) {
		struct policy_count c = { policy_text(q.row, 0), policy_text(q.row, 1),
			policy_number(q.row, 2) };
		answer = take(context, &c);
	}
	return policy_end(&q, answer, e);
}

int policy_file_add_keep(struct policy_file *f, const struct policy_keep *k, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"INSERT INTO keep (session, user, uid, pid, from_ms, until_ms, reason) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
	sql_bind_text(q, 1, k->session);
	sql_bind_text(q, 2, k->user);
	sqlite3_bind_int64(q, 3, k->uid);
	sqlite3_bind_int64(q, 4, k->pid);
	sqlite3_bind_int64(q, 5, k->from_ms);
	sqlite3_bind_int64(q, 6, k->until_ms);
	sql_bind_text(q, 7, k->reason);
	return policy_run(f, q, e);
}

int policy_file_drop_keep(
	struct policy_file *f, const char *session, int64_t now_ms, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"UPDATE keep SET dropped_ms = ?2, until_ms = ?2 WHERE session = ?1 AND "
		"dropped_ms IS NULL AND until_ms > ?2");
	sql_bind_text(q, 1, session);
	sqlite3_bind_int64(q, 2, now_ms);
	return policy_run(f, q, e);
}

int policy_file_move_keep(
	struct policy_file *f, const struct policy_keep *k, const char *session, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(f,
		"UPDATE keep SET session = ?1 WHERE session = ?2 AND uid = ?3 AND pid = ?4 AND "
		"from_ms = ?5");
	sql_bind_text(q, 1, session);
	sql_bind_text(q, 2, k->session);
	sqlite3_bind_int64(q, 3, k->uid);
	sqlite3_bind_int64(q, 4, k->pid);
	sqlite3_bind_int64(q, 5, k->from_ms);
	return policy_run(f, q, e);
}

int policy_file_keeps(struct policy_file *f, struct policy_span span, policy_keep_taker take,
	void *context, struct err *e)
{
	struct policy_query q = policy_select(f,
		"SELECT session, user, uid, pid, from_ms, until_ms, reason FROM keep "
		"WHERE until_ms > ?1 AND from_ms < ?2 ORDER BY id");
	sqlite3_bind_int64(q.row, 1, span.since_ms);
	sqlite3_bind_int64(q.row, 2, span.until_ms);
	int answer = 0;
	while (answer == 0 && policy_next(&q)) {
		struct policy_keep keep = { .session = policy_text(q.row, 0),
			.user = policy_text(q.row, 1),
			.uid = policy_number(q.row, 2),
			.pid = policy_number(q.row, 3),
			.from_ms = policy_number(q.row, 4),
			.until_ms = policy_number(q.row, 5),
			.reason = policy_text(q.row, 6) };
		answer = take(context, &keep);
	}
	return policy_end(&q, answer, e);
}

int policy_file_set_simulation(
	struct policy_file *f, int64_t now_ms, const char *json, struct err *e)
{
	sqlite3_stmt *q = policy_prepare(
		f, "INSERT OR REPLACE INTO simulation (id, at_ms, json) VALUES (1, ?1, ?2)");
	sqlite3_bind_int64(q, 1, now_ms);
	sqlite3_bind_text(q, 2, json, -1, SQLITE_TRANSIENT);
	return policy_run(f, q, e);
}

int policy_file_simulation(
	struct policy_file *f, int64_t *at_ms, struct str *json, struct err *e)
{
	struct policy_query q = policy_select(f, "SELECT at_ms, json FROM simulation");
	bool found = policy_next(&q);
	*at_ms = -1;
	if (found) {
		*at_ms = policy_number(q.row, 0);
		str_add(json, policy_text(q.row, 1));
	}
	return policy_end(&q, 0, e);
}

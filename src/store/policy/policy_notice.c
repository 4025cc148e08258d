/* Reads and writes notices, and what digests and the daily limit need; it decides nothing. */
#include "store/policy/policy_notice.h"

#include "store/policy/policy_private.h"

#define COLUMNS                                                                                \
	"SELECT id, session, stage, channel, user, body, uid, idle_since_ms, round, "          \
	"queued_ms, due_ms, tries, counts, admitted, result FROM notice"
/* Whether a notice counts for the daily limit: results and repeated final notices do not. */
#define LIMITED                                                                                \
	"(stage IN ('warning', 'second warning', 'digest') OR (stage = 'final notice' AND "    \
	"round = 0))"

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

/* Calls `take` with rows of COLUMNS, and ends the query. */
static int each(struct policy_query *q, policy_notice_taker take, void *context, struct err *e)
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
		COLUMNS " WHERE state = 'waiting' AND admitted AND (due_ms <= ?1 "
			"OR due_ms > ?1 + 172800000) ORDER BY due_ms, id");
	sql_bind(q.row, SQL_INT(now_ms));
	return each(&q, take, context, e);
}

int policy_notice_waiting(struct policy_file *f, const char *session, policy_notice_taker take,
	void *context, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		COLUMNS " WHERE state = 'waiting' AND counts AND (?1 = '' OR "
			"session = ?1) ORDER BY user, session, id");
	sql_bind(q.row, SQL_TEXT(session));
	return each(&q, take, context, e);
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
		"queued_ms, 0, 'waiting', ?3, NOT ?3 OR NOT " LIMITED ", '' FROM notice WHERE "
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

#define DAY_MS INT64_C(86400000)
/* The columns that identify one message to a user, through any of its channels. */
#define MESSAGE "session, idle_since_ms, round, stage"
#define NOT_ADMITTED "state = 'waiting' AND NOT admitted"

/* Whether a notice has the stage that its session has now; ?2 to ?7 are STAGES. */
#define IS_CURRENT                                                                             \
	"EXISTS (SELECT 1 FROM session s WHERE s.key = notice.session AND s.stage = CASE "     \
	"notice.stage WHEN ?2 THEN ?5 WHEN ?3 THEN ?6 ELSE ?7 END)"

#define STAGES                                                                                 \
	SQL_TEXT(policy_stage_names[STAGE_WARN]), SQL_TEXT(policy_stage_names[STAGE_AGAIN]),   \
		SQL_TEXT(policy_stage_names[STAGE_FINAL]), SQL_INT(STAGE_WARN),                \
		SQL_INT(STAGE_AGAIN), SQL_INT(STAGE_FINAL)

int policy_notice_drop_stale(struct policy_file *f, int64_t now_ms, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE notice SET state = 'failed', result = 'no longer needed', done_ms = ?1 "
		"WHERE state IN ('waiting', 'digest') AND stage IN (?2, ?3, ?4) AND "
		"NOT " IS_CURRENT,
		SQL_INT(now_ms), STAGES);
}

/* A delivered message counts from its delivery on; a message that is being sent always counts.
 * The notices in a digest do not count beside it. A moment in the future does not count either:
 * the clock was set back. */
#define SENT                                                                                   \
	"(SELECT count(*) FROM (SELECT max(CASE WHEN state = 'delivered' THEN done_ms END) "   \
	"AS done, max(state = 'waiting') AS waiting FROM notice WHERE user = waits.user "      \
	"AND counts AND admitted AND digest IS NULL AND " LIMITED " GROUP BY " MESSAGE         \
	") WHERE (done IS NULL AND waiting) OR (done > ?1 AND done < ?2))"

int policy_notice_users(struct policy_file *f, int64_t now_ms, struct arena *arena,
	struct policy_waiting **first, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		"SELECT user, count(*), " SENT " FROM (SELECT user FROM notice "
		"WHERE " NOT_ADMITTED " GROUP BY user, " MESSAGE
		") AS waits GROUP BY user ORDER BY user");
	sql_bind(q.row, SQL_INT(now_ms - DAY_MS), SQL_INT(now_ms + DAY_MS));
	*first = NULL;
	while (!arena->failed && policy_file_next(&q)) {
		struct policy_waiting *w = arena_take(arena, sizeof(*w));
		if (!w)
			break;
		*w = (struct policy_waiting){ arena_text(arena, sql_raw(q.row, 0)),
			sql_int(q.row, 1, -1), sql_int(q.row, 2, 0), NULL };
		*first = w;
		first = &w->next;
	}
	return policy_file_done(&q, arena->failed ? err_memory(e) : 0, e);
}

int policy_notice_admit(struct policy_file *f, const char *user, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE notice SET admitted = 1 WHERE user = ?1 AND " NOT_ADMITTED,
		SQL_TEXT(user));
}

int policy_notice_make_digest(
	struct policy_file *f, const char *user, int64_t now_ms, int64_t most, struct err *e)
{
	int rc = policy_file_begin(f, e);
	if (rc)
		return rc;
	/* One row for each channel of its parts. */
	rc = policy_file_run(f, e,
		"INSERT OR REPLACE INTO notice (session, idle_since_ms, round, stage, channel, "
		"user, uid, body, queued_ms, due_ms, tries, state, counts, admitted, result) "
		"SELECT 'digest ' || user, ?2, 0, '" POLICY_NOTICE_DIGEST "', channel, user, "
		"max(uid), '', ?2, ?2, 0, 'waiting', 1, 1, '' FROM notice WHERE user = ?1 "
		"AND " NOT_ADMITTED " GROUP BY channel",
		SQL_TEXT(user), SQL_INT(now_ms));
	if (rc == 0)
		rc = policy_file_run(f, e,
			"UPDATE notice SET state = 'digest', digest = (SELECT d.id FROM notice "
			"d WHERE d.session = 'digest ' || notice.user AND d.idle_since_ms = ?2 "
			"AND "
			"d.stage = '" POLICY_NOTICE_DIGEST
			"' AND d.channel = notice.channel) WHERE user = ?1 AND " NOT_ADMITTED
			" AND (" MESSAGE ") IN (SELECT " MESSAGE " FROM notice WHERE "
			"user = ?1 AND " NOT_ADMITTED " GROUP BY " MESSAGE
			" ORDER BY min(id) LIMIT ?3)",
			SQL_TEXT(user), SQL_INT(now_ms), SQL_INT(most));
	return policy_file_end(f, rc, e);
}

int policy_notice_parts(struct policy_file *f, int64_t id, policy_notice_taker take,
	void *context, struct err *e)
{
	struct policy_query q = policy_file_select(
		f, COLUMNS " WHERE digest = ?1 AND state = 'digest' ORDER BY id");
	sql_bind(q.row, SQL_INT(id));
	return each(&q, take, context, e);
}

int policy_notice_current(struct policy_file *f, const struct policy_notice *like,
	policy_notice_taker take, void *context, struct err *e)
{
	struct policy_query q = policy_file_select(f, COLUMNS
		" WHERE id IN (SELECT max(id) FROM notice WHERE user = ?1 AND channel = ?8 "
		"AND state IN ('waiting', 'delivered') AND ((stage IN (?2, ?3, ?4) "
		"AND " IS_CURRENT ") OR (stage = 'ended' AND queued_ms > "
		"(SELECT max(queued_ms) FROM notice WHERE user = ?1) - ?9) OR "
		"(stage = 'not-ended' AND EXISTS (SELECT 1 FROM session s WHERE "
		"s.key = notice.session AND s.stage <> ?10))) GROUP BY session) ORDER BY id");
	sql_bind(q.row, SQL_TEXT(like->user), STAGES, SQL_TEXT(like->channel), SQL_INT(DAY_MS),
		SQL_INT(STAGE_NONE));
	return each(&q, take, context, e);
}

int policy_notice_renew(
	struct policy_file *f, const char *session, const char *channel, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE notice SET state = 'waiting', due_ms = 0, done_ms = NULL WHERE "
		"session = ?1 AND channel = ?2 AND state = 'delivered'",
		SQL_TEXT(session), SQL_TEXT(channel));
}

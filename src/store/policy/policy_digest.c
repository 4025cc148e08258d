/* Reads and writes what digests and the daily limit of notices need; it decides nothing. */
#include "store/policy/policy_digest.h"

#include "store/policy/policy_private.h"
#include "store/sql.h"

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

int policy_digest_drop_stale(struct policy_file *f, int64_t now_ms, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE notice SET state = 'failed', result = 'no longer needed', done_ms = ?1 "
		"WHERE state IN ('waiting', 'digest') AND stage IN (?2, ?3, ?4) AND "
		"NOT " IS_CURRENT,
		SQL_INT(now_ms), STAGES);
}

int policy_digest_waiting(
	struct policy_file *f, policy_waiting_taker take, void *context, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		"SELECT user, count(*) FROM (SELECT user FROM notice WHERE " NOT_ADMITTED
		" GROUP BY user, " MESSAGE ") GROUP BY user ORDER BY user");
	int answer = 0;
	while (answer == 0 && policy_file_next(&q)) {
		const struct policy_waiting w = { sql_raw(q.row, 0), sql_int(q.row, 1, -1) };
		answer = take(context, &w);
	}
	return policy_file_done(&q, answer, e);
}

/* A delivered message counts from its delivery on; a message that is being sent always counts.
 * The notices in a digest do not count beside it. A moment in the future does not count either:
 * the clock was set back. */
int policy_digest_sent(
	struct policy_file *f, const char *user, int64_t now_ms, int64_t *n, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		"SELECT count(*) FROM (SELECT max(CASE WHEN state = 'delivered' THEN done_ms "
		"END) AS done, max(state = 'waiting') AS waiting FROM notice WHERE user = ?1 "
		"AND counts AND admitted AND digest IS NULL AND " POLICY_NOTICE_LIMITED
		" GROUP BY " MESSAGE
		") WHERE (done IS NULL AND waiting) OR (done > ?2 AND done < ?3)");
	sql_bind(q.row, SQL_TEXT(user), SQL_INT(now_ms - DAY_MS), SQL_INT(now_ms + DAY_MS));
	*n = policy_file_next(&q) ? sql_int(q.row, 0, -1) : 0;
	return policy_file_done(&q, 0, e);
}

int policy_digest_admit(struct policy_file *f, const char *user, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE notice SET admitted = 1 WHERE user = ?1 AND " NOT_ADMITTED,
		SQL_TEXT(user));
}

int policy_digest_make(
	struct policy_file *f, const char *user, int64_t now_ms, int64_t most, struct err *e)
{
	int rc = policy_file_begin(f, e);
	if (rc)
		return rc;
	/* One row for each channel of its parts. */
	rc = policy_file_run(f, e,
		"INSERT OR REPLACE INTO notice (session, idle_since_ms, round, stage, channel, "
		"user, uid, body, queued_ms, due_ms, tries, state, counts, admitted, result) "
		"SELECT 'digest ' || user, ?2, 0, '" POLICY_DIGEST_STAGE "', channel, user, "
		"max(uid), '', ?2, ?2, 0, 'waiting', 1, 1, '' FROM notice WHERE user = ?1 "
		"AND " NOT_ADMITTED " GROUP BY channel",
		SQL_TEXT(user), SQL_INT(now_ms));
	if (rc == 0)
		rc = policy_file_run(f, e,
			"UPDATE notice SET state = 'digest', digest = (SELECT d.id FROM notice "
			"d WHERE "
			"d.session = 'digest ' || notice.user AND d.idle_since_ms = ?2 AND "
			"d.stage = "
			"'" POLICY_DIGEST_STAGE
			"' AND d.channel = notice.channel) WHERE user = ?1 AND " NOT_ADMITTED
			" AND (" MESSAGE ") IN (SELECT " MESSAGE " FROM notice WHERE "
			"user = ?1 AND " NOT_ADMITTED " GROUP BY " MESSAGE
			" ORDER BY min(id) LIMIT ?3)",
			SQL_TEXT(user), SQL_INT(now_ms), SQL_INT(most));
	int end = policy_file_end(f, rc == 0, rc ? NULL : e);
	return rc ? rc : end;
}

int policy_digest_parts(struct policy_file *f, int64_t id, policy_notice_taker take,
	void *context, struct err *e)
{
	struct policy_query q = policy_file_select(
		f, POLICY_NOTICE_COLUMNS " WHERE digest = ?1 AND state = 'digest' ORDER BY id");
	sql_bind(q.row, SQL_INT(id));
	return policy_notice_each(&q, take, context, e);
}

int policy_digest_current(struct policy_file *f, const struct policy_notice *like,
	policy_notice_taker take, void *context, struct err *e)
{
	struct policy_query q = policy_file_select(f, POLICY_NOTICE_COLUMNS
		" WHERE id IN (SELECT max(id) FROM notice WHERE user = ?1 AND channel = ?8 "
		"AND state IN ('waiting', 'delivered') AND ((stage IN (?2, ?3, ?4) "
		"AND " IS_CURRENT ") OR (stage = 'ended' AND queued_ms > "
		"(SELECT max(queued_ms) FROM notice WHERE user = ?1) - ?9) OR "
		"(stage = 'not-ended' AND EXISTS (SELECT 1 FROM session s WHERE "
		"s.key = notice.session AND s.stage <> ?10))) GROUP BY session) ORDER BY id");
	sql_bind(q.row, SQL_TEXT(like->user), STAGES, SQL_TEXT(like->channel), SQL_INT(DAY_MS),
		SQL_INT(STAGE_NONE));
	return policy_notice_each(&q, take, context, e);
}

int policy_digest_renew(
	struct policy_file *f, const char *session, const char *channel, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE notice SET state = 'waiting', due_ms = 0, done_ms = NULL WHERE "
		"session = ?1 AND channel = ?2 AND state = 'delivered'",
		SQL_TEXT(session), SQL_TEXT(channel));
}

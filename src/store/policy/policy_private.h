/* What the files of policy.db share. Only for store/policy_*.c. */
#ifndef GUA_STORE_POLICY_POLICY_PRIVATE_H
#define GUA_STORE_POLICY_POLICY_PRIVATE_H

#include <sqlite3.h>

#include "store/policy/policy_notice.h"

/* NULL on failure, which the bind functions and policy_run() accept. */
sqlite3_stmt *policy_prepare(struct policy_file *f, const char *sql);
/* Runs a statement without rows and finishes it. */
int policy_run(struct policy_file *f, sqlite3_stmt *q, struct err *e);
/* Reads rows: select, bind to `row`, policy_next() until it is false or as long as wanted, then
 * policy_end(). A failure to prepare is reported at the end, too. */
struct policy_query {
	struct policy_file *file;
	sqlite3_stmt *row;
	int rc; /* of the last step */
};
struct policy_query policy_select(struct policy_file *f, const char *sql);
/* Whether there is another row. */
bool policy_next(struct policy_query *q);
/* Returns `answer` if it is not zero, ERR_WORLD or ERR_BUSY if reading failed, else 0. */
int policy_end(struct policy_query *q, int answer, struct err *e);
/* A column as a number, -1 for NULL; as a text, "" for NULL. */
int64_t policy_number(sqlite3_stmt *row, int i);
const char *policy_text(sqlite3_stmt *row, int i);

/* Calls `take` with rows of the table notice, selected by these columns, and ends the query. */
#define POLICY_NOTICE_COLUMNS                                                                  \
	"SELECT id, session, stage, channel, user, body, uid, idle_since_ms, round, "          \
	"queued_ms, due_ms, tries, counts, admitted, result FROM notice"
/* Whether a notice counts for the limit of a day: not a result, nor a final notice once more.
 */
#define POLICY_NOTICE_LIMITED                                                                  \
	"(stage IN ('warning', 'second warning', 'digest') OR (stage = 'final notice' AND "    \
	"round = 0))"
int policy_notice_each(
	struct policy_query *q, policy_notice_taker take, void *context, struct err *e);

#endif

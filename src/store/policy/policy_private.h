/* What the files of policy.db share. Only for store/policy/. */
#pragma once

#include "store/policy/policy_file.h"
#include "store/sql.h"

/* Runs a statement without rows: policy_file_run(f, e, sql, SQL_INT(id), SQL_TEXT(x) ...). */
#define policy_file_run(f, e, sql, ...)                                                        \
	policy_file_run_args((f), (e), (sql), SQL_ARGS(__VA_ARGS__))
int policy_file_run_args(
	struct policy_file *f, struct err *e, const char *sql, const struct sql_arg *args);
/* Reads rows: select, bind to `row`, call policy_file_next() until it returns false or as long
 * as needed, then policy_file_done(), which also reports a failure to prepare. */
struct policy_query {
	struct policy_file *file;
	sqlite3_stmt *row;
	int rc; /* of the last step */
};
struct policy_query policy_file_select(struct policy_file *f, const char *sql);
/* Whether there is another row. */
bool policy_file_next(struct policy_query *q);
/* Returns `answer` if it is not zero, ERR_WORLD or ERR_BUSY if reading failed, else 0. */
int policy_file_done(struct policy_query *q, int answer, struct err *e);

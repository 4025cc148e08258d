/* What the files of policy.db share. Only for store/policy_*.c. */
#ifndef GUA_STORE_POLICY_PRIVATE_H
#define GUA_STORE_POLICY_PRIVATE_H

#include <sqlite3.h>

#include "store/policy_file.h"

/* The error of the last call; the present transaction will not be kept. */
int policy_fail(struct policy_file *f, const char *doing, struct err *e);
/* NULL on failure, which the bind functions and policy_run() accept. */
sqlite3_stmt *policy_prepare(struct policy_file *f, const char *sql);
/* Runs a statement without rows and finishes it. */
int policy_run(struct policy_file *f, sqlite3_stmt *q, struct err *e);
/* A column as a number, -1 for NULL; as a text, "" for NULL. */
int64_t policy_number(sqlite3_stmt *row, int i);
const char *policy_text(sqlite3_stmt *row, int i);

#endif

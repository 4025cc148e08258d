/* SQLite with our errors: one sentence for each kind of failure, and short functions that bind
 * values and store unknown as NULL. */
#ifndef GUA_STORE_SQLITE_H
#define GUA_STORE_SQLITE_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "base/err.h"

/* Fills `e` from the last failure of `db` (may be NULL: out of memory): what was being done
 * ("write", "read", "open") to which file, and what to do about it. Returns ERR_BUSY when
 * waiting may help, else ERR_WORLD. */
int sql_fail(struct err *e, sqlite3 *db, const char *doing, const char *path);
/* The same from a result code, for when the connection is gone. */
int sql_fail_code(struct err *e, int rc, const char *doing, const char *path);

/* Why the last call of `db` failed, for messages about other files than a store. */
const char *sql_why(sqlite3 *db);

/* Runs statements without results; returns SQLite's code. */
int sql_exec(sqlite3 *db, const char *sql);
/* The first column of the first row; `fallback` when there is none, it is NULL, or on failure
 * (see *rc, which may be NULL). */
int64_t sql_value(sqlite3 *db, const char *sql, int64_t fallback, int *rc);

/* Binds NULL when `value` is `unknown`. */
void sql_bind_known(sqlite3_stmt *s, int place, int64_t value, int64_t unknown);
/* Binds text, escaped so that it is safe to show; text_or_null: "" becomes NULL. */
void sql_bind_text(sqlite3_stmt *s, int place, const char *text);
void sql_bind_text_or_null(sqlite3_stmt *s, int place, const char *text);

/* The statement at `*kept`, prepared when it is first needed; NULL on failure, which the bind
 * functions and sql_run() accept. */
sqlite3_stmt *sql_kept(sqlite3 *db, sqlite3_stmt **kept, const char *sql);
/* Steps a statement that returns at most one row and resets it. SQLITE_ROW fills *first (may be
 * NULL) with the first column. Returns SQLITE_ROW, SQLITE_DONE or an error code. */
int sql_once(sqlite3_stmt *s, int64_t *first);
/* The same; false: SQLite failed, or `s` is NULL. */
bool sql_run(sqlite3_stmt *s, int64_t *first);

#endif

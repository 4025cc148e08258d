/* SQLite with our errors: one sentence for each kind of failure, and short functions that bind
 * values, store unknown as NULL, run statements and read rows; the slot tables. */
#pragma once

#include <sqlite3.h>

#include "model/card.h"

/* Fills `e` from the last failure of `db` (may be NULL: out of memory): what was being done
 * ("write", "read", "open") to which file, and what to do about it. Returns ERR_BUSY when
 * waiting may help, else ERR_WORLD. */
int sql_fail(struct err *e, sqlite3 *db, const char *doing, const char *path);
/* The same from a result code, when the connection is already closed. */
int sql_fail_code(struct err *e, int rc, const char *doing, const char *path);

/* Why the last call of `db` failed, for messages about other files than a store. */
const char *sql_why(sqlite3 *db);

/* Runs statements without results; returns SQLite's code. */
int sql_exec(sqlite3 *db, const char *sql);
/* The first column of the first row; `fallback` when there is none, it is NULL, or on failure
 * (see *rc, which may be NULL). */
int64_t sql_value(sqlite3 *db, const char *sql, int64_t fallback, int *rc);

/* A value for a parameter of a statement. sql_bind(), sql_put() and sql_do() take them in the
 * order of the parameters, from ?1 on: sql_bind(q, SQL_INT(host), SQL_TEXT(user)). */
struct sql_arg {
	enum { ARG_END, ARG_INT, ARG_KNOWN, ARG_REAL, ARG_TEXT, ARG_OPTIONAL, ARG_RAW } type;
	union {
		int64_t number;
		double real;
		const char *text;
	};
	int64_t unknown; /* of ARG_KNOWN */
};
/* clang-format off */
#define SQL_INT(n) { .type = ARG_INT, .number = (n) }
/* NULL if the number is the one that stands for unknown. */
#define SQL_KNOWN(n, none) { .type = ARG_KNOWN, .number = (n), .unknown = (none) }
#define SQL_REAL(x) { .type = ARG_REAL, .real = (x) } /* NAN: NULL */
/* Text, escaped so that it is safe to show; OPTIONAL: "" is NULL; RAW: the bytes as they are,
 * valid until the statement has run. */
#define SQL_TEXT(t) { .type = ARG_TEXT, .text = (t) }
#define SQL_OPTIONAL(t) { .type = ARG_OPTIONAL, .text = (t) }
#define SQL_RAW(t) { .type = ARG_RAW, .text = (t) }
#define SQL_ARGS(...) (const struct sql_arg[]){ __VA_ARGS__, { .type = ARG_END } }
/* clang-format on */

/* Binds the values; `s` may be NULL. */
#define sql_bind(s, ...) sql_bind_from((s), 1, SQL_ARGS(__VA_ARGS__))
/* The same from parameter `place` on; `args` ends with ARG_END. */
void sql_bind_from(sqlite3_stmt *s, int place, const struct sql_arg *args);

/* The statement at `*kept`, prepared when it is first needed; NULL on failure, which sql_bind()
 * and sql_run() accept. */
sqlite3_stmt *sql_kept(sqlite3 *db, sqlite3_stmt **kept, const char *sql);
/* Steps a statement that returns at most one row, and resets it. The row fills *first (may be
 * NULL) with its first column. False: SQLite failed, or `s` is NULL. */
bool sql_run(sqlite3_stmt *s, int64_t *first);
/* The same after binding the values. */
#define sql_put(s, first, ...) sql_put_args((s), (first), SQL_ARGS(__VA_ARGS__))
bool sql_put_args(sqlite3_stmt *s, int64_t *first, const struct sql_arg *args);
/* The same for a statement that is needed once. */
#define sql_do(db, sql, first, ...) sql_do_args((db), (sql), (first), SQL_ARGS(__VA_ARGS__))
bool sql_do_args(sqlite3 *db, const char *sql, int64_t *first, const struct sql_arg *args);

/* Two tables with slots of a width. The slot tables, coarsest (oldest) first: usage_1h,
 * holding_1h ... */
struct slot_table {
	const char *usage, *holding, *reserved;
	int64_t seconds;
};
#define SLOT_TABLES 3
extern const struct slot_table slot_tables[SLOT_TABLES];

/* Up to when a card is accounted. */
#define SQL_CARD_SEEN                                                                          \
	"coalesce((SELECT seen_ms FROM reading WHERE reading.gpu = gpu.id), last_seen_ms)"

/* The largest valid sum of a row: 30 years of milliseconds. Larger values are cut, so that no
 * file can make a total overflow. */
#define ROW_MAX 1000000000000LL
/* The largest valid absolute value of any other number (a moment in milliseconds, bytes of
 * memory). Differences of such numbers, and a thousand times them, cannot overflow. */
#define NUMBER_MAX 1000000000000000LL

/* Prepares a statement (printf-like, for table names). */
int sql_prepare(sqlite3 *db, sqlite3_stmt **stmt, struct err *e, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Steps: 1: there is a row; 0: done; negative: failed, with `e` set. */
int sql_step(sqlite3_stmt *stmt, struct err *e);
/* The same for a loop over rows, if *rc is 0. True: there is a row, and *rc is 0. False: there
 * is none, or *rc is not 0; *stmt is finalized and becomes NULL, which a loop that runs to its
 * end need not do. */
bool sql_next(sqlite3_stmt **stmt, int *rc, struct err *e);
/* Sets *number from one row. It is unchanged if there is no row or the value is NULL. */
int sql_number(sqlite3 *db, int64_t *number, struct err *e, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Calls `row` with every row of "SELECT fold(COLUMNS) FROM ..."; `row` returns false to stop
 * with an error. SQLite passes all values of a row to an aggregate function at once. This is a
 * third faster than stepping and reading each column, which matters for a year of slots. */
struct fold {
	bool (*row)(struct fold *f, sqlite3_value **values);
	void *context;
	struct err *e; /* filled by `row` when it stops */
};
int sql_fold(sqlite3 *db, struct fold *f, struct err *e, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A column as text that is safe to show, cut to fit; "" for NULL. */
void sql_text(sqlite3_stmt *stmt, int column, char *dst, size_t cap);
/* A column as it is, valid until the next step; "" for NULL. */
const char *sql_raw(sqlite3_stmt *stmt, int column);
/* A column as safe text in the arena; NULL for NULL (or when out of memory). */
const char *sql_text_copy(sqlite3_stmt *stmt, int column, struct arena *texts);
/* A column as a number, `fallback` for NULL. */
int64_t sql_int(sqlite3_stmt *stmt, int column, int64_t fallback);
/* The columns that say which card a row of the table gpu is, and how many they are; that
 * card, from the first of them on. */
#define SQL_CARD_COLUMNS                                                                       \
	"uuid, name, parent_uuid, pci, idx, mig_index, gpu_instance, compute_instance, "       \
	"mem_total_bytes"
enum { SQL_CARD_COLUMNS_N = 9 };
struct card_id sql_card(sqlite3_stmt *stmt, int column);
/* A value as a number: -1 for NULL; as a sum, 0..ROW_MAX; as a number that may be negative. */
int64_t sql_value_known(sqlite3_value *value);
int64_t sql_value_sum(sqlite3_value *value);
int64_t sql_value_signed(sqlite3_value *value);

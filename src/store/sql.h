/* Short functions to read from SQLite, and the slot tables. */
#ifndef GUA_STORE_SQL_H
#define GUA_STORE_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* The slot tables, coarsest (oldest) first: usage_1h, holding_1h ... */
struct slot_table {
	const char *usage, *holding;
	const char *heat; /* its sums over all cards; NULL: the sums by day do not have it */
	int64_t seconds;
};
#define SLOT_TABLES 3
extern const struct slot_table slot_tables[SLOT_TABLES];

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
/* A column as safe text in the arena; NULL for NULL (or when out of memory). */
const char *sql_text_copy(sqlite3_stmt *stmt, int column, struct arena *texts);
/* A column as a number, `fallback` for NULL. */
int64_t sql_int(sqlite3_stmt *stmt, int column, int64_t fallback);
/* A value as a number: -1 for NULL; as a sum, 0..ROW_MAX; as a number that may be negative. */
int64_t value_known(sqlite3_value *value);
int64_t value_sum(sqlite3_value *value);
int64_t value_signed(sqlite3_value *value);

#endif

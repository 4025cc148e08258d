/* Thin wrappers around SQLite's reading calls. */
#include "store/sql.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/sqlite.h"

const struct slot_table slot_tables[SLOT_TABLES] = {
	{ "usage_1h", "holding_1h", "heat_1h", 3600 },
	{ "usage_5m", "holding_5m", "heat_5m", 300 },
	{ "usage_1m", "holding_1m", NULL, 60 },
};

static int sql_failed(sqlite3 *db, struct err *e)
{
	const char *path = sqlite3_db_filename(db, "main");
	int code = sqlite3_errcode(db) == SQLITE_BUSY ? ERR_BUSY : ERR_WORLD;
	return err_set(e, code, "cannot read %s: %s", path ? path : "the store", sql_why(db));
}

static int prepare(
	sqlite3 *db, sqlite3_stmt **stmt, struct err *e, const char *format, va_list args)
{
	char *sql = sqlite3_vmprintf(format, args);
	*stmt = NULL;
	if (!sql)
		return err_memory(e);
	int rc = sqlite3_prepare_v2(db, sql, -1, stmt, NULL);
	sqlite3_free(sql);
	return rc == SQLITE_OK ? 0 : sql_failed(db, e);
}

int sql_prepare(sqlite3 *db, sqlite3_stmt **stmt, struct err *e, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int rc = prepare(db, stmt, e, format, args);
	va_end(args);
	return rc;
}

int sql_step(sqlite3_stmt *stmt, struct err *e)
{
	int rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : sql_failed(sqlite3_db_handle(stmt), e);
}

int sql_number(sqlite3 *db, int64_t *number, struct err *e, const char *format, ...)
{
	sqlite3_stmt *stmt;
	va_list args;
	va_start(args, format);
	int rc = prepare(db, &stmt, e, format, args);
	va_end(args);
	if (rc)
		return rc;
	rc = sql_step(stmt, e);
	if (rc == 1)
		*number = sql_int(stmt, 0, *number);
	sqlite3_finalize(stmt);
	return rc < 0 ? rc : 0;
}

void sql_text(sqlite3_stmt *stmt, int column, char *dst, size_t cap)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	size_t len = (size_t)sqlite3_column_bytes(stmt, column);
	text_escape(dst, cap, text ? text : "", text ? len : 0);
}

const char *sql_text_copy(sqlite3_stmt *stmt, int column, struct arena *texts)
{
	char text[1024];
	if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
		return NULL;
	sql_text(stmt, column, text, sizeof(text));
	return arena_text(texts, text);
}

static int64_t within(int64_t number, int64_t min, int64_t max)
{
	return number < min ? min : number > max ? max : number;
}

int64_t sql_int(sqlite3_stmt *stmt, int column, int64_t fallback)
{
	int64_t number = sqlite3_column_int64(stmt, column);
	if (number == 0 && sqlite3_column_type(stmt, column) == SQLITE_NULL)
		return fallback;
	return within(number, -NUMBER_MAX, NUMBER_MAX);
}

int64_t value_known(sqlite3_value *value)
{
	int64_t number = sqlite3_value_int64(value);
	if (number == 0 && sqlite3_value_type(value) == SQLITE_NULL)
		return -1;
	return within(number, -NUMBER_MAX, NUMBER_MAX);
}

int64_t value_sum(sqlite3_value *value)
{
	return within(sqlite3_value_int64(value), 0, ROW_MAX);
}

int64_t value_signed(sqlite3_value *value)
{
	return within(sqlite3_value_int64(value), -ROW_MAX, ROW_MAX);
}

static void fold_step(sqlite3_context *context, int n, sqlite3_value **values)
{
	(void)n;
	struct fold *f = sqlite3_user_data(context);
	if (!f->row(f, values))
		sqlite3_result_error(context, "stopped", -1);
}

static void fold_end(sqlite3_context *context)
{
	sqlite3_result_null(context);
}

int sql_fold(sqlite3 *db, struct fold *f, struct err *e, const char *format, ...)
{
	sqlite3_stmt *stmt;
	va_list args;
	f->e = e;
	if (sqlite3_create_function(db, "fold", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, f, NULL,
		    fold_step, fold_end) != SQLITE_OK)
		return sql_failed(db, e);
	va_start(args, format);
	int rc = prepare(db, &stmt, e, format, args);
	va_end(args);
	struct err stepped = { 0 };
	if (rc == 0 && sql_step(stmt, &stepped) < 0) {
		rc = stepped.code;
		if (e && !e->code) /* else `row` stopped, and said why */
			*e = stepped;
	}
	sqlite3_finalize(stmt);
	return rc;
}

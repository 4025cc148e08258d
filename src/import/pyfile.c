/* Opens a database of the Python tool gpu-usage-audit, and reads its host, version and range.
 */
#include "import/pyfile.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "import/pyfile_private.h"
#include "import/pytime.h"
#include "store/sqlite.h"

int pyfile_failed(const struct pyfile *f, struct err *e)
{
	int rc = sqlite3_errcode(f->db) & 0xff;
	if (rc == SQLITE_INTERRUPT && f->stopped)
		return err_set(e, ERR_WORLD, "interrupted: nothing was imported");
	if (rc == SQLITE_NOTADB)
		return err_set(e, ERR_WORLD, "%s is not a SQLite database", f->path);
	return err_set(e, rc == SQLITE_BUSY || rc == SQLITE_LOCKED ? ERR_BUSY : ERR_WORLD,
		"cannot read %s: %s", f->path, sql_why(f->db));
}

bool pyfile_has(struct pyfile *f, const char *table, const char *column)
{
	return sqlite3_table_column_metadata(
		       f->db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

void pyfile_add_column(struct pyfile *f, struct str *sql, const char *table, const char *column)
{
	if (pyfile_has(f, table, column))
		str_addf(sql, ", %s.%s", table, column);
	else
		str_add(sql, ", NULL");
}

int pyfile_prepare(struct pyfile *f, sqlite3_stmt **statement, struct str *sql, struct err *e)
{
	int rc = sql->failed ? SQLITE_NOMEM
			     : sqlite3_prepare_v2(f->db, str_text(sql), -1, statement, NULL);
	str_finish(sql);
	return rc == SQLITE_OK ? 0 : pyfile_failed(f, e);
}

bool pyfile_plausible(const struct pyfile *f, int64_t at_ms)
{
	return at_ms >= EARLIEST_MS && at_ms <= f->latest_ms;
}

static int check_layout(struct pyfile *f, struct err *e)
{
	static const char *const needed[][2] = { { "gpu_sample", "ts" },
		{ "gpu_sample", "gpu_uuid" }, { "gpu_sample", "util_pct" },
		{ "proc_sample", "ts" }, { "proc_sample", "gpu_uuid" },
		{ "proc_sample", "pid" }, { "proc_sample", "mem_used_mb" },
		{ "proc_sample", "loginuid_user" } };
	static const char *const tables[] = { "host", "daemon_run", "gpu_device", "gpu_sample",
		"proc_sample", NULL };
	if (sqlite3_exec(f->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) !=
		SQLITE_OK)
		return pyfile_failed(f, e);
	if (foreign_check_tables(f->db, tables, f->path, e) != 0)
		return e->code;
	if (pyfile_has(f, "usage_1h", "gpu"))
		return err_set(e, ERR_WORLD, "%s is a store of gua already: use it with --db",
			f->path);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!pyfile_has(f, needed[i][0], needed[i][1]))
			return err_set(e, ERR_WORLD,
				"%s is not a database of the Python gpu-usage-audit: it has no "
				"%s.%s",
				f->path, needed[i][0], needed[i][1]);
	return 0;
}

/* pytime(TEXT) in SQL: unix milliseconds, NULL for a text that is not a plausible time. */
static void pytime_function(sqlite3_context *result, int n, sqlite3_value **values)
{
	int64_t ms;
	const char *text = n == 1 ? (const char *)sqlite3_value_text(values[0]) : NULL;
	if (text && pytime_parse(text, &ms) && pyfile_plausible(sqlite3_user_data(result), ms))
		sqlite3_result_int64(result, ms);
}

/* A damaged or forged file can answer with more rows than it has, and in no order. */
static int check_content(struct pyfile *f, struct err *e)
{
	struct str sql = { 0 };
	sqlite3_stmt *row = NULL;
	if (check_layout(f, e) != 0)
		return e->code;
	str_add(&sql, "PRAGMA quick_check(1)");
	if (pyfile_prepare(f, &row, &sql, e) != 0)
		return e->code;
	int rc = sqlite3_step(row);
	const char *answer =
		rc == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;
	if (rc != SQLITE_ROW)
		pyfile_failed(f, e);
	else if (!answer || strcmp(answer, "ok") != 0)
		err_set(e, ERR_WORLD,
			"cannot read %s: it is damaged. Nothing was imported; `sqlite3 FILE "
			".recover` may save a part",
			f->path);
	sqlite3_finalize(row);
	return e->code;
}

/* It is opened as immutable, so that SQLite makes no files beside it, unless a log has content
 * that the file lacks. */
static int open_database(struct pyfile *f, struct err *e)
{
	const struct foreign_file file = { .path = f->path,
		.wait_ms = 5000,
		.immutable = !foreign_has_log(f->path),
		.read_once = true,
		.stop = &f->stop };
	if (foreign_open(&f->db, &file, e) != 0)
		return e->code;
	if (sqlite3_create_function(f->db, "pytime", 1,
		    SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, f, pytime_function,
		    NULL, NULL) != SQLITE_OK)
		return pyfile_failed(f, e);
	return check_content(f, e);
}

int pyfile_open(struct pyfile **out, const char *path, int64_t now_ms, struct err *e)
{
	struct pyfile *f = calloc(1, sizeof(*f));
	*out = NULL;
	if (f)
		f->path = strdup(path);
	if (!f || !f->path) {
		free(f);
		return err_memory(e);
	}
	f->latest_ms = now_ms + DAY_MS;
	int rc = open_database(f, e);
	if (rc != 0) {
		pyfile_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

void pyfile_close(struct pyfile *f)
{
	if (!f)
		return;
	sqlite3_finalize(f->cards);
	sqlite3_finalize(f->processes);
	sqlite3_finalize(f->device);
	sqlite3_close(f->db);
	free(f->list);
	free(f->path);
	free(f);
}

static int ask_to_stop(void *file)
{
	struct pyfile *f = file;
	f->stopped = f->ask.asked(f->ask.context) != 0;
	return f->stopped;
}

void pyfile_interrupt(struct pyfile *f, int (*stop)(void *), void *context)
{
	f->stop = (struct foreign_stop){ stop ? ask_to_stop : NULL, f };
	f->ask = (struct foreign_stop){ stop, context };
}

void pyfile_text(sqlite3_stmt *row, int column, char *dst, size_t cap, const char *otherwise)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	int len = sqlite3_column_bytes(row, column);
	if (text && len > 0)
		text_escape(dst, cap, text, (size_t)len);
	else
		text_copy(dst, cap, otherwise);
}

double pyfile_number(sqlite3_stmt *row, int column, double max)
{
	int type = sqlite3_column_type(row, column);
	double value = sqlite3_column_double(row, column);
	bool good = (type == SQLITE_INTEGER || type == SQLITE_FLOAT) && value >= 0;
	return good && value <= max ? value : -1;
}

int64_t pyfile_interval_ms(sqlite3_stmt *row, int column)
{
	double seconds = pyfile_number(row, column, MAX_INTERVAL_S);
	return seconds >= 0.001 ? llround(seconds * 1000) : -1;
}

static int64_t column_ms(sqlite3_stmt *row, int column)
{
	bool known = sqlite3_column_type(row, column) == SQLITE_INTEGER;
	return known ? sqlite3_column_int64(row, column) : -1;
}

static int read_host(struct pyfile *f, struct pyfile_facts *facts, struct err *e)
{
	struct str sql = { 0 };
	sqlite3_stmt *row = NULL;
	text_copy(facts->hostname, sizeof(facts->hostname), "unknown");
	if (!pyfile_has(f, "host", "hostname"))
		return 0;
	str_add(&sql, "SELECT hostname");
	pyfile_add_column(f, &sql, "host", "env_kind");
	pyfile_add_column(f, &sql, "host", "driver_version");
	pyfile_add_column(f, &sql, "host", "last_seen");
	str_add(&sql, " FROM host ORDER BY 4 DESC LIMIT 1");
	if (pyfile_prepare(f, &row, &sql, e) != 0)
		return e->code;
	int rc = sqlite3_step(row);
	if (rc == SQLITE_ROW) {
		pyfile_text(row, 0, facts->hostname, sizeof(facts->hostname), "unknown");
		pyfile_text(row, 1, facts->environment, sizeof(facts->environment), "");
		pyfile_text(row, 2, facts->driver, sizeof(facts->driver), "");
	}
	sqlite3_finalize(row);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : pyfile_failed(f, e);
}

/* Runs a query of one row; the caller finalizes *row. */
static int one_row(struct pyfile *f, sqlite3_stmt **row, const char *text, struct err *e)
{
	struct str sql = { 0 };
	str_add(&sql, text);
	if (pyfile_prepare(f, row, &sql, e) != 0)
		return e->code;
	int rc = sqlite3_step(*row);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : pyfile_failed(f, e);
}

int pyfile_facts(struct pyfile *f, struct pyfile_facts *facts, struct err *e)
{
	sqlite3_stmt *row = NULL;
	*facts = (struct pyfile_facts){ .first_ms = -1, .last_ms = -1, .interval_ms = -1 };
	if (read_host(f, facts, e) != 0)
		return e->code;
	if (one_row(f, &row, "SELECT min(pytime(ts)), max(pytime(ts)) FROM gpu_sample", e) ==
		0) {
		facts->first_ms = column_ms(row, 0);
		facts->last_ms = column_ms(row, 1);
	}
	sqlite3_finalize(row);
	row = NULL;
	if (!e->code && one_row(f, &row,
				"SELECT (SELECT count(*) FROM gpu_sample), "
				"(SELECT count(*) FROM proc_sample)",
				e) == 0) {
		facts->samples = sqlite3_column_int64(row, 0);
		facts->rows = facts->samples + sqlite3_column_int64(row, 1);
	}
	sqlite3_finalize(row);
	row = NULL;
	if (!e->code && pyfile_has(f, "daemon_run", "interval_seconds") &&
		one_row(f, &row, "SELECT interval_seconds FROM daemon_run ORDER BY id DESC",
			e) == 0)
		facts->interval_ms = pyfile_interval_ms(row, 0);
	sqlite3_finalize(row);
	return e->code;
}

void pyfile_device(struct pyfile *f, const char *uuid, struct card_id *id)
{
	struct str sql = { 0 };
	if (!f->device && pyfile_has(f, "gpu_device", "gpu_uuid")) {
		str_add(&sql, "SELECT 1");
		pyfile_add_column(f, &sql, "gpu_device", "name");
		pyfile_add_column(f, &sql, "gpu_device", "memory_total_mb");
		str_add(&sql, " FROM gpu_device WHERE gpu_uuid = ?");
		pyfile_prepare(f, &f->device, &sql, NULL);
	}
	if (!f->device)
		return;
	sqlite3_bind_text(f->device, 1, uuid, -1, SQLITE_STATIC);
	if (sqlite3_step(f->device) == SQLITE_ROW) {
		pyfile_text(f->device, 1, id->name, sizeof(id->name), id->name);
		double mb = pyfile_number(f->device, 2, MAX_MEM_MB);
		if (mb >= 0)
			id->mem_total_bytes = llround(mb * 1e6);
	}
	sqlite3_reset(f->device);
}

int64_t pyfile_rows_done(const struct pyfile *f)
{
	return f->rows_done;
}

int64_t pyfile_rows_misdated(const struct pyfile *f)
{
	return f->rows_misdated;
}

int64_t pyfile_rows_bad(const struct pyfile *f)
{
	return f->rows_bad;
}

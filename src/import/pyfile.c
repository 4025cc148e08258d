/* Opens a database of the Python tool gpu-usage-audit, and reads its host, version and range.
 */
#include "import/pyfile.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "import/pyfile_private.h"
#include "import/pytime.h"

int pyfile_failed(const struct pyfile *f, struct err *e)
{
	int rc = sqlite3_errcode(f->db) & 0xff;
	if (rc == SQLITE_INTERRUPT)
		return err_set(e, ERR_WORLD, "interrupted: nothing was imported");
	if (rc == SQLITE_NOTADB)
		return err_set(e, ERR_WORLD, "%s is not a SQLite database", f->path);
	return err_set(e, rc == SQLITE_BUSY || rc == SQLITE_LOCKED ? ERR_BUSY : ERR_WORLD,
		"cannot read %s: %s", f->path, sqlite3_errmsg(f->db));
}

static bool beside(const char *path, const char *suffix)
{
	struct str name = { 0 };
	str_addf(&name, "%s%s", path, suffix);
	bool there = access(str_text(&name), F_OK) == 0;
	str_finish(&name);
	return there;
}

/* Makes a URI that opens without writing: "immutable" keeps SQLite from making -wal and -shm
 * files beside the database, but must not be used when a log has content that the file lacks.
 */
static void read_only_uri(struct str *uri, const char *path)
{
	str_add(uri, "file:");
	for (const char *c = path; *c; c++) {
		if (strchr("?#%", *c))
			str_addf(uri, "%%%02X", (unsigned char)*c);
		else
			str_add_bytes(uri, c, 1);
	}
	str_add(uri, "?mode=ro");
	if (!beside(path, "-wal") && !beside(path, "-journal"))
		str_add(uri, "&immutable=1");
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

static int check_layout(struct pyfile *f, struct err *e)
{
	static const char *const needed[][2] = { { "gpu_sample", "ts" },
		{ "gpu_sample", "gpu_uuid" }, { "gpu_sample", "util_pct" },
		{ "proc_sample", "ts" }, { "proc_sample", "gpu_uuid" },
		{ "proc_sample", "pid" }, { "proc_sample", "mem_used_mb" },
		{ "proc_sample", "loginuid_user" } };
	if (sqlite3_exec(f->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) !=
		SQLITE_OK)
		return pyfile_failed(f, e);
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

/* pytime(TEXT) in SQL: unix milliseconds, NULL for a text that is not a time. */
static void pytime_function(sqlite3_context *result, int n, sqlite3_value **values)
{
	int64_t ms;
	const char *text = n == 1 ? (const char *)sqlite3_value_text(values[0]) : NULL;
	if (text && pytime_parse(text, &ms))
		sqlite3_result_int64(result, ms);
}

static int open_database(struct pyfile *f, struct err *e)
{
	struct str uri = { 0 };
	if (access(f->path, R_OK) != 0)
		return err_set(e, ERR_WORLD, "cannot read %s: %s", f->path, strerror(errno));
	read_only_uri(&uri, f->path);
	int rc = uri.failed ? SQLITE_NOMEM
			    : sqlite3_open_v2(str_text(&uri), &f->db,
				      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
	str_finish(&uri);
	if (rc != SQLITE_OK || !f->db)
		return err_set(e, ERR_WORLD, "cannot open %s: %s", f->path, sqlite3_errstr(rc));
	sqlite3_busy_timeout(f->db, 5000);
	sqlite3_create_function(f->db, "pytime", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
		pytime_function, NULL, NULL);
	return check_layout(f, e);
}

int pyfile_open(struct pyfile **out, const char *path, struct err *e)
{
	struct pyfile *f = calloc(1, sizeof(*f));
	*out = NULL;
	if (f)
		f->path = strdup(path);
	if (!f || !f->path) {
		free(f);
		return err_memory(e);
	}
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

void pyfile_interrupt(struct pyfile *f, int (*stop)(void *), void *context)
{
	sqlite3_progress_handler(f->db, 100000, stop, context);
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

int64_t pyfile_rows_bad(const struct pyfile *f)
{
	return f->rows_bad;
}

/* Reads tracking and sub-tracking files. */
#include "subtrack/subtrack_files.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/str.h"
#include "store/foreign.h"
#include "store/sqlite.h"

enum { NAME_CAP = 1024, WAIT_MS = 5000 };

static const char *const mark_columns[] = { "process_id", "code_block_name", "position",
	"timestamp" };
enum { MARK_COLUMNS = 4 };

bool subtrack_is_csv(const char *path)
{
	size_t len = strlen(path);
	return len > 4 && strcmp(path + len - 4, ".csv") == 0;
}

/* One table of rows of texts, from a CSV or SQLite file. */
struct rows {
	const char *path;
	struct csv csv;
	char *bytes; /* content of a CSV file */
	sqlite3 *db;
	sqlite3_stmt *query;
	size_t places[TRACKING_COLUMNS]; /* where each wanted column is */
	size_t n_wanted;
	size_t number; /* of the row, for messages */
	bool failed;   /* the database could not be read further */
};

static int bad_file(const struct rows *r, const char *what, struct err *e)
{
	return err_set(e, ERR_WORLD, "%s is no %s", r->path, what);
}

int subtrack_open(struct sqlite3 **db, const char *path, struct err *e)
{
	static const char *const tables[] = { "static_data", "data", NULL };
	const struct foreign_file file = { .path = path, .wait_ms = WAIT_MS };
	int rc = foreign_open(db, &file, e);
	if (!rc)
		rc = foreign_check_tables(*db, tables, path, e);
	if (!rc)
		return 0;
	sqlite3_close(*db);
	*db = NULL;
	return rc;
}

static int rows_open(struct rows *r, const char *path, struct err *e)
{
	*r = (struct rows){ .path = path };
	if (file_check_regular(path, e) != 0)
		return e->code;
	if (subtrack_is_csv(path)) {
		size_t len = 0;
		int rc = file_read_all(path, SUBTRACK_MAX_FILE, &r->bytes, &len, e);
		if (!rc)
			csv_start(&r->csv, r->bytes, len);
		return rc;
	}
	return subtrack_open(&r->db, path, e);
}

static void rows_close(struct rows *r)
{
	sqlite3_finalize(r->query);
	sqlite3_close(r->db);
	free(r->bytes);
	*r = (struct rows){ 0 };
}

/* Finds the wanted columns in the header (CSV: the next record; SQLite: `table`). */
static bool rows_header(struct rows *r, const char *table, const char *const *wanted, size_t n)
{
	size_t have = 0;
	if (r->db) {
		struct str sql = { 0 };
		str_addf(&sql, "SELECT * FROM %s", table);
		sqlite3_finalize(r->query);
		r->query = NULL;
		int rc = sqlite3_prepare_v2(r->db, str_text(&sql), -1, &r->query, NULL);
		str_finish(&sql);
		if (rc != SQLITE_OK)
			return false;
		have = (size_t)sqlite3_column_count(r->query);
	} else {
		if (!csv_next(&r->csv))
			return false;
		have = r->csv.n;
	}
	r->n_wanted = n;
	for (size_t i = 0; i < n; i++) {
		r->places[i] = have;
		for (size_t k = 0; k < have; k++) {
			const char *name = r->db ? sqlite3_column_name(r->query, (int)k)
						 : r->csv.fields[k];
			if (name && strcmp(name, wanted[i]) == 0)
				r->places[i] = k;
		}
		if (r->places[i] == have)
			return false;
	}
	return true;
}

static bool rows_next(struct rows *r)
{
	r->number++;
	if (!r->db)
		return csv_next(&r->csv);
	int rc = sqlite3_step(r->query);
	r->failed = rc != SQLITE_ROW && rc != SQLITE_DONE;
	return rc == SQLITE_ROW;
}

/* After the last row: fails if it was the last one only because reading failed. */
static int rows_end(const struct rows *r, struct err *e)
{
	if (!r->failed)
		return 0;
	return err_set(e, ERR_WORLD, "cannot read %s: %s", r->path, sql_why(r->db));
}

/* The i-th wanted column; "" when it is NULL or missing. */
static const char *rows_text(struct rows *r, size_t i)
{
	size_t place = r->places[i];
	const char *text = NULL;
	if (r->db)
		text = (const char *)sqlite3_column_text(r->query, (int)place);
	else if (place < r->csv.n)
		text = r->csv.fields[place];
	return text ? text : "";
}

static bool is_real(const struct rows *r, size_t i)
{
	return r->db && sqlite3_column_type(r->query, (int)r->places[i]) == SQLITE_FLOAT;
}

/* NAN when it is not a number. */
static double rows_number(struct rows *r, size_t i)
{
	/* SQLite's text of a number has 15 digits: a time stamp lost its microseconds. */
	if (is_real(r, i)) {
		double real = sqlite3_column_double(r->query, (int)r->places[i]);
		return isfinite(real) ? real : NAN;
	}
	const char *text = rows_text(r, i);
	char *end = NULL;
	double number = strtod(text, &end);
	return end == text || *end || !isfinite(number) ? NAN : number;
}

static char *escaped(const char *text)
{
	char safe[NAME_CAP];
	text_escape(safe, sizeof(safe), text, strlen(text));
	return strdup(safe);
}

/* The i-th wanted column, escaped; a number with all its digits. */
static char *rows_copy(struct rows *r, size_t i)
{
	char exact[32];
	const char *text = rows_text(r, i);
	double number = rows_number(r, i);
	if (is_real(r, i) && !isnan(number) && strtod(text, NULL) != number) {
		text_exact(exact, sizeof(exact), number);
		text = exact;
	}
	return escaped(text);
}

static int by_time(const void *a, const void *b)
{
	const struct timepoint *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

static int read_points(struct timepoints *t, struct rows *r, struct err *e)
{
	while (rows_next(r)) {
		if (!array_reserve(&t->rows, &t->cap, t->n + 1))
			return err_memory(e);
		struct timepoint *p = &t->rows[t->n];
		for (size_t i = 0; i < SUBTRACK_MEASUREMENTS; i++)
			p->values[i] = rows_number(r, i);
		p->at = rows_number(r, SUBTRACK_MEASUREMENTS);
		if (isnan(p->at))
			return err_set(
				e, ERR_WORLD, "%s: row %zu has no time", r->path, r->number);
		t->n++;
	}
	if (t->n)
		qsort(t->rows, t->n, sizeof(*t->rows), by_time);
	return rows_end(r, e);
}

int timepoints_read(struct timepoints *t, char **statics, const char *path, struct err *e)
{
	struct rows r;
	*t = (struct timepoints){ 0 };
	int rc = rows_open(&r, path, e);
	if (!rc && (!rows_header(&r, "static_data", tracking_statics, TRACKING_STATICS) ||
			   !rows_next(&r)))
		rc = bad_file(&r, "tracking file", e);
	for (size_t i = 0; !rc && i < TRACKING_STATICS; i++) {
		statics[i] = rows_copy(&r, i);
		rc = statics[i] ? 0 : err_memory(e);
	}
	if (!rc && !rows_header(&r, "data", tracking_columns, TRACKING_COLUMNS))
		rc = bad_file(&r, "tracking file", e);
	if (!rc)
		rc = read_points(t, &r, e);
	rows_close(&r);
	return rc;
}

void timepoints_finish(struct timepoints *t)
{
	free(t->rows);
	*t = (struct timepoints){ 0 };
}

static int read_mark(struct marks *m, struct rows *r, struct err *e)
{
	if (!array_reserve(&m->rows, &m->cap, m->n + 1))
		return err_memory(e);
	double process = rows_number(r, 0), position = rows_number(r, 2),
	       at = rows_number(r, 3);
	if (isnan(process) || fabs(process) > 1e15 || (position != 0 && position != 1) ||
		isnan(at))
		return err_set(e, ERR_WORLD,
			"%s: row %zu is not a process id, a block, 0 or 1, and a time", r->path,
			r->number);
	char *block = escaped(rows_text(r, 1));
	if (!block)
		return err_memory(e);
	m->rows[m->n] = (struct mark){ (int64_t)process, block, position == 1, at, m->n };
	m->n++;
	return 0;
}

int marks_read(struct marks *m, const char *path, struct err *e)
{
	struct rows r;
	int rc = rows_open(&r, path, e);
	if (!rc && !rows_header(&r, "data", mark_columns, MARK_COLUMNS))
		rc = bad_file(&r, "sub-tracking file", e);
	while (!rc && rows_next(&r))
		rc = read_mark(m, &r, e);
	if (!rc)
		rc = rows_end(&r, e);
	rows_close(&r);
	return rc;
}

void marks_finish(struct marks *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->rows[i].block);
	free(m->rows);
	*m = (struct marks){ 0 };
}

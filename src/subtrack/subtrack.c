/* Joins the blocks of code of a sub-tracking file with the samples of a tracking file; reads
 * both. */
#include "subtrack/subtrack.h"

#include "base/csv.h"
#include "store/foreign.h"
#include "store/sql.h"

/* One row of a tracking file. */
struct timepoint {
	double at; /* unix seconds */
	double values[SUBTRACK_MEASUREMENTS];
};

struct timepoints {
	struct timepoint *rows; /* by time */
	size_t n, cap;
};

/* One row of a sub-tracking file. */
struct mark {
	int64_t process;
	char *block; /* escaped; heap */
	bool stop;
	double at;
	size_t order; /* its position in the file */
};

struct marks {
	struct mark *rows;
	size_t n, cap;
};

enum { SUBTRACK_MAX_FILE = 1 << 30 }; /* bytes of a CSV file */

enum { NAME_CAP = 1024, WAIT_MS = 5000 };

static const char *const mark_columns[] = { "process_id", "code_block_name", "position",
	"timestamp" };
enum { MARK_COLUMNS = 4 };

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
	return err_set(e, ERR_WORLD, "%s is not a %s", r->path, what);
}

/* Opens a tracking or sub-tracking file in SQLite for reading, with limits. */
static int open_file(struct sqlite3 **db, const char *path, struct err *e)
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
	if (str_ends_with(path, ".csv")) {
		size_t len = 0;
		int rc = file_read_all(path, SUBTRACK_MAX_FILE, &r->bytes, &len, e);
		if (!rc)
			csv_start(&r->csv, r->bytes, len);
		return rc;
	}
	return open_file(&r->db, path, e);
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
	str_escape(safe, sizeof(safe), text, strlen(text));
	return strdup(safe);
}

static int by_time(const void *a, const void *b)
{
	const struct timepoint *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

static int read_timepoints(
	struct timepoints *t, char **statics, const char *path, struct err *e)
{
	struct rows r;
	int rc = rows_open(&r, path, e);
	if (!rc && (!rows_header(&r, "static_data", tracking_statics, TRACKING_STATICS) ||
			   !rows_next(&r)))
		rc = bad_file(&r, "tracking file", e);
	for (size_t i = 0; !rc && i < TRACKING_STATICS; i++) {
		/* The i-th wanted column, escaped; a number with all its digits. */
		char exact[32];
		const char *text = rows_text(&r, i);
		double number = rows_number(&r, i);
		if (is_real(&r, i) && !isnan(number) && strtod(text, NULL) != number) {
			str_exact_number(exact, sizeof(exact), number);
			text = exact;
		}
		statics[i] = escaped(text);
		rc = statics[i] ? 0 : err_memory(e);
	}
	if (!rc && !rows_header(&r, "data", tracking_columns, TRACKING_COLUMNS))
		rc = bad_file(&r, "tracking file", e);
	while (!rc && rows_next(&r)) {
		if (!array_reserve(&t->rows, &t->cap, t->n + 1)) {
			rc = err_memory(e);
			break;
		}
		struct timepoint *p = &t->rows[t->n++];
		for (size_t i = 0; i < SUBTRACK_MEASUREMENTS; i++)
			p->values[i] = rows_number(&r, i);
		p->at = rows_number(&r, SUBTRACK_MEASUREMENTS);
		if (isnan(p->at))
			rc = err_set(e, ERR_WORLD, "%s: row %zu has no time", path, r.number);
	}
	array_sort(t->rows, t->n, by_time);
	if (!rc)
		rc = rows_end(&r, e);
	rows_close(&r);
	return rc;
}

static int read_marks(struct marks *m, const char *path, struct err *e)
{
	struct rows r;
	int rc = rows_open(&r, path, e);
	if (!rc && !rows_header(&r, "data", mark_columns, MARK_COLUMNS))
		rc = bad_file(&r, "sub-tracking file", e);
	while (!rc && rows_next(&r)) {
		double process = rows_number(&r, 0), position = rows_number(&r, 2),
		       at = rows_number(&r, 3);
		if (isnan(process) || fabs(process) > 1e15 ||
			(position != 0 && position != 1) || isnan(at)) {
			rc = err_set(e, ERR_WORLD,
				"%s: row %zu is not a process id, a block, 0 or 1, and a time",
				path, r.number);
			break;
		}
		char *block = array_reserve(&m->rows, &m->cap, m->n + 1)
				      ? escaped(rows_text(&r, 1))
				      : NULL;
		if (!block) {
			rc = err_memory(e);
			break;
		}
		m->rows[m->n] =
			(struct mark){ (int64_t)process, block, position == 1, at, m->n };
		m->n++;
	}
	if (!rc)
		rc = rows_end(&r, e);
	rows_close(&r);
	return rc;
}

static void finish_marks(struct marks *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->rows[i].block);
	free(m->rows);
	*m = (struct marks){ 0 };
}

/* One call of a block. */
struct block_call {
	double start, stop;
};

struct block_calls {
	struct block_call *rows;
	size_t n, cap;
};

/* Adds a number to the set, if it is known. */
static void take(struct subtrack_stats *r, double x)
{
	if (isnan(x))
		return;
	r->n++;
	r->min = r->n == 1 || x < r->min ? x : r->min;
	r->max = r->n == 1 || x > r->max ? x : r->max;
	double before = x - r->mean;
	r->mean += before / (double)r->n;
	r->squares += before * (x - r->mean);
	r->total += x;
}

static int by_block_and_process(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	int names = strcmp(x->block, y->block);
	if (names)
		return names;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* What the two files contain, and the result. */
struct analysis {
	struct timepoints points;
	struct marks marks; /* by block, process and time */
	const char *marks_path;
	struct subtrack *result;
};

/* Pairs `n` marks of one block and process, from marks.rows[from] on. A block that calls itself
 * is nested: a stop belongs to the latest start that has none. Starts without a stop are left
 * out. */
static int pair(const struct analysis *a, struct block_calls *calls, size_t from, size_t n,
	struct err *e)
{
	int rc = 0;
	size_t open = 0;
	const struct mark *marks = &a->marks.rows[from];
	const struct mark **stack = malloc((n + 1) * sizeof(*stack));
	if (!stack)
		return err_memory(e);
	for (size_t i = 0; !rc && i < n; i++) {
		const struct mark *m = &marks[i];
		if (!m->stop)
			stack[open++] = m;
		else if (open == 0)
			rc = err_set(e, ERR_WORLD,
				"%s: block %s of process %lld stops at %.6f without having "
				"started",
				a->marks_path, m->block, (long long)m->process, m->at);
		else if (!array_reserve(&calls->rows, &calls->cap, calls->n + 1))
			rc = err_memory(e);
		else
			calls->rows[calls->n++] =
				(struct block_call){ stack[--open]->at, m->at };
	}
	a->result->unfinished += (int64_t)open;
	free(stack);
	return rc;
}

/* The first point that is not before `at`. */
static size_t first_from(const struct timepoints *t, double at)
{
	size_t low = 0, high = t->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->rows[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_start(const void *a, const void *b)
{
	const struct block_call *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* Computes what the block used: each sample within any of its calls counts once. */
static void join(
	struct subtrack_block *block, struct block_calls *calls, const struct timepoints *t)
{
	size_t done = 0; /* points before this one have been handled */
	array_sort(calls->rows, calls->n, by_start);
	for (size_t i = 0; i < calls->n; i++) {
		const struct block_call *call = &calls->rows[i];
		size_t from = first_from(t, call->start);
		bool any = from < t->n && t->rows[from].at <= call->stop;
		take(&block->compute_time, call->stop - call->start);
		block->non_empty_calls += any;
		size_t p = from > done ? from : done;
		for (; p < t->n && t->rows[p].at <= call->stop; p++) {
			block->timepoints++;
			for (size_t k = 0; k < SUBTRACK_MEASUREMENTS; k++)
				take(&block->usage[k], t->rows[p].values[k]);
		}
		done = p > done ? p : done;
	}
	block->calls = (int64_t)calls->n;
}

/* Counts the marks from `from` on that have the same block and, if `process`, the same
 * process. */
static size_t run_length(const struct marks *m, size_t from, bool process)
{
	size_t to = from + 1;
	while (to < m->n && strcmp(m->rows[to].block, m->rows[from].block) == 0 &&
		(!process || m->rows[to].process == m->rows[from].process))
		to++;
	return to - from;
}

/* Adds the block of the `n` marks from marks.rows[from] on. */
static int add_block(const struct analysis *a, size_t from, size_t n, struct err *e)
{
	struct block_calls calls = { 0 };
	struct subtrack *s = a->result;
	if (!array_one_more(&s->blocks, s->n_blocks))
		return err_memory(e);
	struct subtrack_block *block = &s->blocks[s->n_blocks];
	*block = (struct subtrack_block){ .name = strdup(a->marks.rows[from].block) };
	if (!block->name)
		return err_memory(e);
	s->n_blocks++;
	int rc = 0;
	for (size_t i = from; !rc && i < from + n;) {
		size_t length = run_length(&a->marks, i, true);
		rc = pair(a, &calls, i, length, e);
		i += length;
	}
	join(block, &calls, &a->points);
	free(calls.rows);
	return rc;
}

int subtrack_analyze(struct subtrack *s, const char *tracking_file,
	const char *sub_tracking_file, struct err *e)
{
	struct analysis a = { .marks_path = sub_tracking_file, .result = s };
	struct marks *m = &a.marks;
	*s = (struct subtrack){ 0 };
	int rc = read_timepoints(&a.points, s->statics, tracking_file, e);
	if (!rc)
		rc = read_marks(m, sub_tracking_file, e);
	if (!rc) {
		for (size_t i = 0; i < a.points.n; i++)
			for (size_t k = 0; k < SUBTRACK_MEASUREMENTS; k++)
				take(&s->overall[k], a.points.rows[i].values[k]);
		array_sort(m->rows, m->n, by_block_and_process);
	}
	for (size_t i = 0; !rc && i < m->n;) {
		size_t n = run_length(m, i, false);
		rc = add_block(&a, i, n, e);
		i += n;
	}
	free(a.points.rows);
	finish_marks(m);
	if (rc)
		subtrack_finish(s);
	return rc;
}

void subtrack_finish(struct subtrack *s)
{
	for (size_t i = 0; i < TRACKING_STATICS; i++)
		free(s->statics[i]);
	for (size_t i = 0; i < s->n_blocks; i++)
		free(s->blocks[i].name);
	free(s->blocks);
	*s = (struct subtrack){ 0 };
}

/* Copies the rows after the header of each file unchanged. */
static int combine_csv(const char *target, const char *const *paths, size_t n, struct err *e)
{
	FILE *to = fopen(target, "wxe");
	if (!to)
		return err_set(e, ERR_WORLD, "cannot write %s: %s", target, strerror(errno));
	fputs("process_id,code_block_name,position,timestamp\n", to);
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		char *bytes = NULL;
		size_t len = 0;
		rc = file_read_all(paths[i], SUBTRACK_MAX_FILE, &bytes, &len, e);
		if (rc)
			break;
		size_t head = strcspn(bytes, "\n");
		head += head < len;
		bool ok = fwrite(bytes + head, 1, len - head, to) == len - head;
		if (len > head && bytes[len - 1] != '\n')
			ok = fputc('\n', to) != EOF && ok;
		if (!ok)
			rc = err_set(e, ERR_WORLD, "cannot write: %s", strerror(errno));
		free(bytes);
	}
	if (fclose(to) != 0 && !rc)
		rc = err_set(e, ERR_WORLD, "cannot write %s: %s", target, strerror(errno));
	return rc;
}

/* Copies the rows as they are. */
static int append_sqlite(sqlite3 *target, const char *path, struct err *e)
{
	static const char read[] =
		"SELECT process_id, code_block_name, position, timestamp FROM data";
	sqlite3 *db = NULL;
	sqlite3_stmt *from = NULL, *to = NULL;
	int code = open_file(&db, path, e);
	if (code)
		return code;
	int rc = sqlite3_prepare_v2(
		target, "INSERT INTO data VALUES (?, ?, ?, ?)", -1, &to, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, read, -1, &from, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(from)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(from); i++)
			sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
		sqlite3_step(to);
		rc = sqlite3_reset(to);
	}
	if (rc != SQLITE_DONE)
		code = err_set(e, ERR_WORLD, "cannot copy %s: %s", path, sqlite3_errstr(rc));
	sqlite3_finalize(from);
	sqlite3_finalize(to);
	sqlite3_close(db);
	return code;
}

static int combine_sqlite(const char *target, const char *const *paths, size_t n, struct err *e)
{
	sqlite3 *db = NULL;
	static const char table[] =
		"BEGIN; CREATE TABLE data (process_id INTEGER, code_block_name TEXT,"
		" position INTEGER, timestamp REAL)";
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, rc = 0;
	bool ok = sqlite3_open_v2(target, &db, flags, NULL) == SQLITE_OK &&
		  sqlite3_exec(db, table, NULL, NULL, NULL) == SQLITE_OK;
	for (size_t i = 0; ok && !rc && i < n; i++)
		rc = append_sqlite(db, paths[i], e);
	if (!rc && (!ok || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK))
		rc = err_set(e, ERR_WORLD, "cannot write %s: %s", target, sqlite3_errmsg(db));
	sqlite3_close(db);
	return rc;
}

int subtrack_combine(const char *target, const char *const *paths, size_t n, struct err *e)
{
	const char *ending = str_ends_with(target, ".csv") ? ".csv" : ".sqlite";
	if (!str_ends_with(target, ending))
		return err_set(e, ERR_USAGE, "%s must end in .csv or .sqlite", target);
	for (size_t i = 0; i < n; i++)
		if (!str_ends_with(paths[i], ending))
			return err_set(e, ERR_USAGE, "%s does not end in %s as %s does",
				paths[i], ending, target);
	if (access(target, F_OK) == 0)
		return err_set(e, ERR_WORLD, "%s exists; nothing was combined", target);
	/* Check that all are sub-tracking files before anything is written. */
	for (size_t i = 0; i < n; i++) {
		struct marks m = { 0 };
		int rc = read_marks(&m, paths[i], e);
		finish_marks(&m);
		if (rc)
			return rc;
	}
	int rc = str_ends_with(target, ".csv") ? combine_csv(target, paths, n, e)
					       : combine_sqlite(target, paths, n, e);
	if (rc)
		unlink(target);
	return rc;
}

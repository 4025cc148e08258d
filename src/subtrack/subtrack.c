/* Joins code blocks with the samples taken during their calls, and several sub-tracking files
 * into one. */
#include "subtrack/subtrack.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "subtrack/subtrack_files.h"

/* One call of a block. */
struct block_call {
	double start, stop;
};

struct block_calls {
	struct block_call *rows;
	size_t n, cap;
};

/* Running statistics by Welford's method, which does not lose small differences. */
struct running_stats {
	int64_t n;
	double min, max, mean, squares, total;
};

static void take(struct running_stats *r, double x)
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

static struct subtrack_stats stats_of(const struct running_stats *r)
{
	if (!r->n)
		return (struct subtrack_stats){ NAN, NAN, NAN, NAN, NAN };
	return (struct subtrack_stats){ r->min, r->max, r->mean,
		sqrt(r->squares / (double)r->n), r->total };
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

static int wrong_order(const char *path, const struct mark *m, struct err *e)
{
	return err_set(e, ERR_WORLD,
		"%s: block %s of process %lld stops at %.6f without having started", path,
		m->block, (long long)m->process, m->at);
}

static bool keep_call(struct block_calls *calls, double start, double stop)
{
	if (!array_reserve(&calls->rows, &calls->cap, calls->n + 1))
		return false;
	calls->rows[calls->n++] = (struct block_call){ start, stop };
	return true;
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
		if (!marks[i].stop)
			stack[open++] = &marks[i];
		else if (open == 0)
			rc = wrong_order(a->marks_path, &marks[i], e);
		else if (!keep_call(calls, stack[--open]->at, marks[i].at))
			rc = err_memory(e);
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
	struct running_stats usage[SUBTRACK_MEASUREMENTS] = { 0 }, compute = { 0 };
	size_t done = 0; /* points before this one have been handled */
	if (calls->n)
		qsort(calls->rows, calls->n, sizeof(*calls->rows), by_start);
	for (size_t i = 0; i < calls->n; i++) {
		const struct block_call *call = &calls->rows[i];
		size_t from = first_from(t, call->start);
		bool any = from < t->n && t->rows[from].at <= call->stop;
		take(&compute, call->stop - call->start);
		block->non_empty_calls += any;
		size_t p = from > done ? from : done;
		for (; p < t->n && t->rows[p].at <= call->stop; p++) {
			block->timepoints++;
			for (size_t k = 0; k < SUBTRACK_MEASUREMENTS; k++)
				take(&usage[k], t->rows[p].values[k]);
		}
		done = p > done ? p : done;
	}
	block->calls = (int64_t)calls->n;
	block->compute_time = stats_of(&compute);
	for (size_t k = 0; k < SUBTRACK_MEASUREMENTS; k++)
		block->usage[k] = stats_of(&usage[k]);
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

static void sum_overall(struct subtrack *s, const struct timepoints *t)
{
	for (size_t k = 0; k < SUBTRACK_MEASUREMENTS; k++) {
		struct running_stats all = { 0 };
		for (size_t i = 0; i < t->n; i++)
			take(&all, t->rows[i].values[k]);
		s->overall[k] = stats_of(&all);
	}
}

int subtrack_analyze(struct subtrack *s, const char *tracking_file,
	const char *sub_tracking_file, struct err *e)
{
	struct analysis a = { .marks_path = sub_tracking_file, .result = s };
	struct marks *m = &a.marks;
	*s = (struct subtrack){ 0 };
	int rc = timepoints_read(&a.points, s->statics, tracking_file, e);
	if (!rc)
		rc = marks_read(m, sub_tracking_file, e);
	if (!rc) {
		sum_overall(s, &a.points);
		if (m->n)
			qsort(m->rows, m->n, sizeof(*m->rows), by_block_and_process);
	}
	for (size_t i = 0; !rc && i < m->n;) {
		size_t n = run_length(m, i, false);
		rc = add_block(&a, i, n, e);
		i += n;
	}
	timepoints_finish(&a.points);
	marks_finish(m);
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

static const char header[] = "process_id,code_block_name,position,timestamp";

static int check_kinds(const char *target, const char *const *paths, size_t n, struct err *e)
{
	const char *ending = strrchr(target, '.');
	bool known = ending && (!strcmp(ending, ".csv") || !strcmp(ending, ".sqlite"));
	if (!known)
		return err_set(e, ERR_USAGE, "%s must end in .csv or .sqlite", target);
	for (size_t i = 0; i < n; i++) {
		const char *own = strrchr(paths[i], '.');
		if (!own || strcmp(own, ending) != 0)
			return err_set(e, ERR_USAGE, "%s does not end in %s as %s does",
				paths[i], ending, target);
	}
	if (access(target, F_OK) == 0)
		return err_set(e, ERR_WORLD, "%s exists; nothing was combined", target);
	return 0;
}

/* Reads a file to check that it is a sub-tracking file, before anything is written. */
static int check_content(const char *path, struct err *e)
{
	struct marks m = { 0 };
	int rc = marks_read(&m, path, e);
	marks_finish(&m);
	return rc;
}

/* Copies the rows after the header unchanged. */
static int append_csv(FILE *to, const char *path, struct err *e)
{
	char *bytes = NULL;
	size_t len = 0;
	int rc = file_read_all(path, SUBTRACK_MAX_FILE, &bytes, &len, e);
	if (rc)
		return rc;
	size_t head = strcspn(bytes, "\n");
	head += head < len;
	bool ok = fwrite(bytes + head, 1, len - head, to) == len - head;
	if (len > head && bytes[len - 1] != '\n')
		ok = fputc('\n', to) != EOF && ok;
	free(bytes);
	return ok ? 0 : err_set(e, ERR_WORLD, "cannot write: %s", strerror(errno));
}

static int combine_csv(const char *target, const char *const *paths, size_t n, struct err *e)
{
	FILE *to = fopen(target, "wxe");
	if (!to)
		return err_set(e, ERR_WORLD, "cannot write %s: %s", target, strerror(errno));
	fprintf(to, "%s\n", header);
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++)
		rc = append_csv(to, paths[i], e);
	if (fclose(to) != 0 && !rc)
		rc = err_set(e, ERR_WORLD, "cannot write %s: %s", target, strerror(errno));
	return rc;
}

/* Copies the rows of `from` as they are; returns SQLite's code. */
static int copy_rows(sqlite3_stmt *from, sqlite3_stmt *to)
{
	int rc;
	while ((rc = sqlite3_step(from)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(from); i++)
			sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
		sqlite3_step(to);
		rc = sqlite3_reset(to);
		if (rc != SQLITE_OK)
			return rc;
	}
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int append_sqlite(sqlite3 *target, const char *path, struct err *e)
{
	static const char read[] =
		"SELECT process_id, code_block_name, position, timestamp FROM data";
	sqlite3 *db = NULL;
	sqlite3_stmt *from = NULL, *to = NULL;
	int code = subtrack_open(&db, path, e);
	if (code)
		return code;
	int rc = sqlite3_prepare_v2(
		target, "INSERT INTO data VALUES (?, ?, ?, ?)", -1, &to, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, read, -1, &from, NULL);
	if (rc == SQLITE_OK)
		rc = copy_rows(from, to);
	if (rc != SQLITE_OK)
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
	int rc = check_kinds(target, paths, n, e);
	for (size_t i = 0; !rc && i < n; i++)
		rc = check_content(paths[i], e);
	if (rc)
		return rc;
	rc = subtrack_is_csv(target) ? combine_csv(target, paths, n, e)
				     : combine_sqlite(target, paths, n, e);
	if (rc)
		unlink(target);
	return rc;
}

/* Prints what blocks of code used, and compares several sub-tracked runs. */
#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "render/json.h"
#include "subtrack/subtrack.h"

enum { MAX_FILE = 64 << 20, MAX_SESSIONS = 64, PATH_NAME_CAP = 2100 };

/* A block of a session, and what it is sorted by. */
struct loaded_block {
	json_t *values;
	char *key;
};

/* A session's parsed file, its blocks in order. */
struct loaded {
	const char *name;
	json_t *file;
	struct loaded_block *blocks;
	size_t n_blocks;
};

/* All sessions, in the order in which they were given. */
struct loaded_sessions {
	const struct loaded *rows;
	size_t n;
	size_t first; /* the first one by name: the others must have its blocks */
};

static int parse(json_t **file, const char *path, struct err *e)
{
	char *bytes = NULL, first[2] = "";
	size_t len = 0;
	json_error_t problem;
	int rc = file_check_regular(path, e);
	if (rc)
		return rc;
	if (file_read_at(AT_FDCWD, path, first, sizeof(first)) > 0 &&
		(unsigned char)first[0] == 0x80)
		return err_set(e, ERR_WORLD,
			"%s is a pickle, and loading one runs the code in it; make the result "
			"again with 'sub-track analyze -f json', or convert the pickle as "
			"gua-sub-track(1) shows",
			path);
	rc = file_read_all(path, MAX_FILE, &bytes, &len, e);
	if (rc)
		return rc;
	*file = json_loadb(bytes, len, 0, &problem);
	free(bytes);
	if (!*file)
		return err_set(e, ERR_WORLD, "%s is not JSON: line %d: %s", path, problem.line,
			problem.text);
	if (!json_is_array(json_object_get(*file, "code_block_results")) ||
		!json_is_object(json_object_get(*file, "overall")))
		return err_set(e, ERR_WORLD,
			"%s is not a result of 'sub-track analyze -f json'", path);
	return 0;
}

static const char *block_name(const struct loaded_block *block)
{
	const char *name = json_string_value(json_object_get(block->values, "name"));
	return name ? name : "";
}

/* Splits "path:12" into "path" and 12; -1 for a name without a number. */
static long line_of(const char *name, size_t *base)
{
	const char *colon = strrchr(name, ':');
	*base = strlen(name);
	if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return -1;
	*base = (size_t)(colon - name);
	return strtol(colon + 1, NULL, 10);
}

static bool same_base(const char *a, const char *b)
{
	size_t x = 0, y = 0;
	long la = line_of(a, &x), lb = line_of(b, &y);
	return x == y && memcmp(a, b, x) == 0 && (la < 0) == (lb < 0);
}

static int by_key(const void *a, const void *b)
{
	const struct loaded_block *x = a, *y = b;
	return strcmp(x->key, y->key);
}

/* Sorts the blocks by name, in which line numbers count as numbers: as gpu-tracker does, all
 * are written with as many digits as the longest. False: out of memory. */
static bool sort_blocks(struct loaded *l)
{
	size_t base, digits = 0;
	for (size_t i = 0; i < l->n_blocks; i++) {
		const char *name = block_name(&l->blocks[i]);
		size_t own = line_of(name, &base) < 0 ? 0 : strlen(name) - base - 1;
		digits = own > digits ? own : digits;
	}
	for (size_t i = 0; i < l->n_blocks; i++) {
		const char *name = block_name(&l->blocks[i]);
		struct str key = { 0 };
		bool numbered = line_of(name, &base) >= 0;
		str_add_bytes(&key, name, base);
		if (numbered) {
			size_t own = strlen(name) - base - 1;
			str_add(&key, ":");
			str_add_repeat(&key, "0", digits - own);
		}
		str_add(&key, numbered ? name + base + 1 : "");
		l->blocks[i].key = key.data;
		if (key.failed || !key.data)
			return false;
	}
	if (l->n_blocks)
		qsort(l->blocks, l->n_blocks, sizeof(*l->blocks), by_key);
	return true;
}

static int load(struct loaded *l, const struct subtrack_session *session, struct err *e)
{
	*l = (struct loaded){ .name = session->name };
	int rc = parse(&l->file, session->path, e);
	if (rc)
		return rc;
	json_t *list = json_object_get(l->file, "code_block_results");
	l->blocks = calloc(json_array_size(list) + 1, sizeof(*l->blocks));
	if (!l->blocks)
		return err_memory(e);
	for (; l->n_blocks < json_array_size(list); l->n_blocks++)
		l->blocks[l->n_blocks].values = json_array_get(list, l->n_blocks);
	return sort_blocks(l) ? 0 : err_memory(e);
}

static void unload(struct loaded *l)
{
	for (size_t i = 0; i < l->n_blocks; i++)
		free(l->blocks[i].key);
	free(l->blocks);
	json_decref(l->file);
}

/* A value of one session in a group that is being sorted. */
struct entry {
	const char *name;
	json_t *value;
	size_t order; /* as given */
};

static int by_value(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	double p = json_number_value(x->value), q = json_number_value(y->value);
	if (json_is_null(x->value) != json_is_null(y->value))
		return json_is_null(x->value) - json_is_null(y->value);
	if (p != q)
		return p > q ? 1 : -1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* { session: value } in ascending order, equal ones as given; unknown last. */
static json_t *group(struct entry *entries, size_t n)
{
	json_t *result = json_object();
	qsort(entries, n, sizeof(*entries), by_value);
	for (size_t i = 0; i < n; i++)
		json_object_set_new(result, entries[i].name, json_copy(entries[i].value));
	return result;
}

/* The statistic of `of` (an object of statistics), or null. */
static json_t *statistic_of(const json_t *of, const char *statistic)
{
	json_t *value = json_object_get(of, statistic);
	return json_is_number(value) ? value : json_null();
}

static json_t *compare_overall(const struct loaded_sessions *s, const char *statistic)
{
	json_t *result = json_object(), *unused;
	json_t *first = json_object_get(s->rows[s->first].file, "overall");
	const char *measurement;
	json_object_foreach(first, measurement, unused)
	{
		struct entry entries[MAX_SESSIONS] = { 0 };
		for (size_t i = 0; i < s->n; i++) {
			json_t *overall = json_object_get(s->rows[i].file, "overall");
			json_t *of = json_object_get(overall, measurement);
			entries[i] = (struct entry){ s->rows[i].name,
				statistic_of(of, statistic), i };
		}
		json_object_set_new(result, measurement, group(entries, s->n));
	}
	return result;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The block's name, or "a -> b -> c" where line numbers moved: the different names, sorted. */
static void shown_name(char *dst, const struct loaded_sessions *s, size_t block)
{
	const char *names[MAX_SESSIONS] = { 0 };
	for (size_t i = 0; i < s->n; i++)
		names[i] = block_name(&s->rows[i].blocks[block]);
	qsort(names, s->n, sizeof(names[0]), by_text);
	int at = snprintf(dst, PATH_NAME_CAP, "%s", names[0]);
	for (size_t i = 1; i < s->n && at > 0 && at < PATH_NAME_CAP; i++)
		if (strcmp(names[i], names[i - 1]) != 0)
			at += snprintf(
				dst + at, (size_t)(PATH_NAME_CAP - at), " -> %s", names[i]);
}

/* { block: { session: value } } of one measurement, or of the compute time. */
static json_t *compare_blocks(
	const struct loaded_sessions *s, const char *measurement, const char *statistic)
{
	json_t *result = json_object();
	for (size_t b = 0; b < s->rows[s->first].n_blocks; b++) {
		struct entry entries[MAX_SESSIONS] = { 0 };
		char name[PATH_NAME_CAP];
		shown_name(name, s, b);
		for (size_t i = 0; i < s->n; i++) {
			const json_t *block = s->rows[i].blocks[b].values;
			json_t *of = json_object_get(
				block, measurement ? "resource_usage" : "compute_time");
			of = measurement ? json_object_get(of, measurement) : of;
			entries[i] = (struct entry){ s->rows[i].name,
				statistic_of(of, statistic), i };
		}
		json_object_set_new(result, name, group(entries, s->n));
	}
	return result;
}

static json_t *compare_usage(const struct loaded_sessions *s, const char *statistic)
{
	const struct loaded *first = &s->rows[s->first];
	json_t *result = json_object(), *unused;
	const char *measurement;
	if (!first->n_blocks)
		return result;
	json_object_foreach(json_object_get(first->file, "overall"), measurement, unused)
	{
		json_object_set_new(
			result, measurement, compare_blocks(s, measurement, statistic));
	}
	return result;
}

/* Two blocks that differ in their line numbers only. */
static void warn_of(
	struct str *warnings, const struct loaded *l, const struct loaded *first, size_t block)
{
	const char *own = block_name(&l->blocks[block]);
	const char *other = block_name(&first->blocks[block]);
	char safe_own[PATH_NAME_CAP], safe_other[PATH_NAME_CAP];
	str_escape(safe_own, sizeof(safe_own), own, strlen(own));
	str_escape(safe_other, sizeof(safe_other), other, strlen(other));
	str_addf(warnings, "code block %s of %s is compared with %s of %s\n", safe_own, l->name,
		safe_other, first->name);
}

static int check_session(
	const struct loaded *l, const struct loaded *first, struct str *warnings, struct err *e)
{
	if (l->n_blocks != first->n_blocks)
		return err_set(e, ERR_WORLD,
			"%s has %zu code blocks and %s has %zu: they cannot be compared",
			first->name, first->n_blocks, l->name, l->n_blocks);
	for (size_t b = 0; b < l->n_blocks; b++) {
		const char *x = block_name(&first->blocks[b]), *y = block_name(&l->blocks[b]);
		if (!same_base(x, y))
			return err_set(e, ERR_WORLD,
				"code block %s of %s has no match in %s: there it is %s", x,
				first->name, l->name, y);
		if (strcmp(x, y) != 0)
			warn_of(warnings, l, first, b);
	}
	return 0;
}

static size_t first_by_name(const struct subtrack_session *sessions, size_t n)
{
	size_t first = 0;
	for (size_t i = 1; i < n; i++)
		if (strcmp(sessions[i].name, sessions[first].name) < 0)
			first = i;
	return first;
}

int subtrack_compare(struct subtrack_comparison *c, struct err *e)
{
	size_t n = c->n;
	struct loaded loaded[MAX_SESSIONS] = { 0 };
	if (n == 0 || n > MAX_SESSIONS)
		return err_set(e, ERR_USAGE, "give 1 to %d results to compare", MAX_SESSIONS);
	struct loaded_sessions all = { loaded, n, first_by_name(c->sessions, n) };
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++)
		rc = load(&loaded[i], &c->sessions[i], e);
	for (size_t i = 0; !rc && i < n; i++)
		rc = check_session(&loaded[i], &loaded[all.first], &c->warnings, e);
	if (!rc) {
		c->result = json_object();
		json_object_set_new(c->result, "overall_resource_usage",
			compare_overall(&all, c->statistic));
		json_object_set_new(c->result, "code_block_resource_usage",
			compare_usage(&all, c->statistic));
		json_object_set_new(c->result, "code_block_compute_time",
			compare_blocks(&all, NULL, c->statistic));
	}
	for (size_t i = 0; i < n; i++)
		unload(&loaded[i]);
	return rc;
}

enum {
	NUMBER_CAP = 400,
	NAME_CAP = 2200,
	LABEL_WIDTH = 20,
	N_USAGE_STATS = 4,
	N_TIME_STATS = 5
};

/* A table of numbers as gpu-tracker prints it: names on the left, numbers right-aligned, one
 * blank between columns. The caller owns everything; texts are safe to show. */
struct subtrack_table {
	const char *const *heads; /* of the columns */
	size_t n_columns;
	const char *const *names; /* of the rows; NULL: one row without a name */
	size_t n_rows;
	const double *cells; /* row by row; NAN: unknown */
};

/* Writes a number with at most 8 decimals and at least one; "-" if it is unknown. */
static void print_number(char *dst, size_t cap, double number)
{
	char decimals[NUMBER_CAP];
	if (!isfinite(number)) {
		str_copy(dst, cap, "-");
		return;
	}
	snprintf(decimals, sizeof(decimals), "%.8f", number);
	str_exact_number(dst, cap, strtod(decimals, NULL));
	size_t len = strlen(dst);
	if (!strpbrk(dst, ".e"))
		str_copy(dst + len, cap - len, ".0");
}

static size_t missing_columns(const char *text, size_t width)
{
	size_t have = str_columns(text);
	return have < width ? width - have : 0;
}

static void add_right(struct str *out, const char *text, size_t width)
{
	str_add_repeat(out, " ", missing_columns(text, width));
	str_add(out, text);
}

static void add_left(struct str *out, const char *text, size_t width)
{
	str_add(out, text);
	str_add_repeat(out, " ", missing_columns(text, width));
}

/* A column is wider than its title by at least one. */
static size_t column_width(const struct subtrack_table *t, size_t column)
{
	char number[NUMBER_CAP];
	size_t width = str_columns(t->heads[column]) + 1;
	for (size_t row = 0; row < t->n_rows; row++) {
		print_number(number, sizeof(number), t->cells[row * t->n_columns + column]);
		width = strlen(number) > width ? strlen(number) : width;
	}
	return width;
}

static void add_row(
	struct str *out, const struct subtrack_table *t, const size_t *widths, size_t row)
{
	char number[NUMBER_CAP];
	for (size_t i = 0; i < t->n_columns; i++) {
		print_number(number, sizeof(number), t->cells[row * t->n_columns + i]);
		str_add(out, " ");
		add_right(out, number, widths[i]);
	}
	str_add(out, "\n");
}

/* Appends the table, each line after `depth` tabs. */
static void add_table(struct str *out, const struct subtrack_table *t, size_t depth)
{
	size_t names = 0, *widths = calloc(t->n_columns + 1, sizeof(*widths));
	if (!widths) {
		out->failed = true;
		return;
	}
	for (size_t row = 0; t->names && row < t->n_rows; row++) {
		size_t width = str_columns(t->names[row]);
		names = width > names ? width : names;
	}
	str_add_repeat(out, "\t", depth);
	str_add_repeat(out, " ", names);
	for (size_t i = 0; i < t->n_columns; i++) {
		widths[i] = column_width(t, i);
		str_add(out, " ");
		add_right(out, t->heads[i], widths[i]);
	}
	str_add(out, "\n");
	for (size_t row = 0; row < t->n_rows; row++) {
		str_add_repeat(out, "\t", depth);
		add_left(out, t->names ? t->names[row] : "", names);
		add_row(out, t, widths, row);
	}
	free(widths);
}

static const char *const stat_names[] = { "min", "max", "mean", "std", "total" };

static double stat_at(const struct subtrack_stats *s, size_t i)
{
	const double all[] = { s->min, s->max, s->mean, s->std, s->total };
	return all[i];
}

static void add_usage(struct str *out, const struct subtrack_stats *usage, size_t depth)
{
	double cells[SUBTRACK_MEASUREMENTS * N_USAGE_STATS];
	for (size_t i = 0; i < SUBTRACK_MEASUREMENTS; i++)
		for (size_t k = 0; k < N_USAGE_STATS; k++)
			cells[i * N_USAGE_STATS + k] = stat_at(&usage[i], k);
	struct subtrack_table table = { .heads = stat_names,
		.n_columns = N_USAGE_STATS,
		.names = tracking_columns,
		.n_rows = SUBTRACK_MEASUREMENTS,
		.cells = cells };
	add_table(out, &table, depth);
}

static void add_time(struct str *out, const struct subtrack_stats *time, size_t depth)
{
	double cells[N_TIME_STATS];
	for (size_t k = 0; k < N_TIME_STATS; k++)
		cells[k] = stat_at(time, k);
	struct subtrack_table table = {
		.heads = stat_names, .n_columns = N_TIME_STATS, .n_rows = 1, .cells = cells
	};
	add_table(out, &table, depth);
}

static void add_count(struct str *out, const char *label, int64_t count)
{
	str_add(out, "\t");
	add_left(out, label, LABEL_WIDTH);
	str_addf(out, " %lld\n", (long long)count);
}

static void add_block(struct str *out, const struct subtrack_block *b)
{
	str_add(out, "\t");
	add_left(out, "Name:", LABEL_WIDTH);
	str_addf(out, " %s\n", b->name);
	add_count(out, "Num Timepoints:", b->timepoints);
	add_count(out, "Num Calls:", b->calls);
	add_count(out, "Num Non Empty Calls:", b->non_empty_calls);
	str_add(out, "\tCompute Time:\n");
	add_time(out, &b->compute_time, 2);
	str_add(out, "\tResource Usage:\n");
	add_usage(out, b->usage, 2);
	str_add(out, "\n");
}

/* A static value as it is shown: a number that is not whole has at most 8 decimals. */
static const char *static_text(char *dst, size_t cap, const char *text)
{
	char *end = NULL;
	double number = strtod(text, &end);
	if (end == text || *end || !strpbrk(text, ".eE"))
		return text;
	print_number(dst, cap, number);
	return dst;
}

/* Units and capacities: a line of names and a line of values below them. */
static void add_statics(struct str *out, const struct subtrack *s)
{
	struct str values = { 0 };
	str_add(out, "\t");
	str_add(&values, "\t");
	for (size_t i = 0; i < TRACKING_STATICS; i++) {
		char number[64];
		const char *text = s->statics[i] && *s->statics[i] ? s->statics[i] : "-";
		text = static_text(number, sizeof(number), text);
		size_t width = strlen(tracking_statics[i]), have = str_columns(text) + 1;
		width = have > width ? have : width;
		str_add(out, " ");
		add_right(out, tracking_statics[i], width);
		str_add(&values, " ");
		add_right(&values, text, width);
	}
	str_addf(out, "\n%s\n", str_text(&values));
	out->failed |= values.failed;
	str_finish(&values);
}

void subtrack_print_text(struct str *out, const struct subtrack *s)
{
	str_add(out, "Overall:\n");
	add_usage(out, s->overall, 1);
	str_add(out, "Static Data:\n");
	add_statics(out, s);
	str_add(out, "Code Block Results:\n");
	for (size_t i = 0; i < s->n_blocks; i++)
		add_block(out, &s->blocks[i]);
	if (s->unfinished)
		str_addf(out, "%lld calls never stopped and were left out.\n",
			(long long)s->unfinished);
}

static void json_stats(
	struct json *j, const char *key, const struct subtrack_stats *s, size_t n)
{
	json_open(j, key, '{');
	for (size_t i = 0; i < n; i++)
		json_exact(j, stat_names[i], stat_at(s, i));
	json_close(j, '}');
}

static void json_usage(struct json *j, const char *key, const struct subtrack_stats *usage)
{
	json_open(j, key, '{');
	for (size_t i = 0; i < SUBTRACK_MEASUREMENTS; i++)
		json_stats(j, tracking_columns[i], &usage[i], N_USAGE_STATS);
	json_close(j, '}');
}

static void json_statics(struct json *j, const struct subtrack *s)
{
	json_open(j, "static_data", '{');
	for (size_t i = 0; i < TRACKING_STATICS; i++) {
		char *end = NULL;
		const char *text = s->statics[i] ? s->statics[i] : "";
		double number = strtod(text, &end);
		if (i < 3) /* the units */
			json_text(j, tracking_statics[i], text);
		else
			json_exact(j, tracking_statics[i], end == text || *end ? NAN : number);
	}
	json_close(j, '}');
}

static void json_block(struct json *j, const struct subtrack_block *b)
{
	json_open(j, NULL, '{');
	json_text(j, "name", b->name);
	json_number(j, "num_timepoints", (double)b->timepoints, 0);
	json_number(j, "num_calls", (double)b->calls, 0);
	json_number(j, "num_non_empty_calls", (double)b->non_empty_calls, 0);
	json_stats(j, "compute_time", &b->compute_time, N_TIME_STATS);
	json_usage(j, "resource_usage", b->usage);
	json_close(j, '}');
}

void subtrack_print_json(struct str *out, const struct subtrack *s)
{
	struct json j = { .out = out, .lines = 4 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-sub-track-1");
	json_usage(&j, "overall", s->overall);
	json_statics(&j, s);
	json_open(&j, "code_block_results", '[');
	for (size_t i = 0; i < s->n_blocks; i++)
		json_block(&j, &s->blocks[i]);
	json_close(&j, ']');
	json_number(&j, "unfinished_calls", (double)s->unfinished, 0);
	json_close(&j, '}');
	str_add(out, "\n");
}

/* The title of a key, as gpu-tracker writes it: "main_gpu_ram" is "Main Gpu Ram". */
static void add_title(struct str *out, const char *key, size_t depth)
{
	char title[NAME_CAP];
	str_escape(title, sizeof(title), key, strlen(key));
	for (size_t i = 0; title[i]; i++) {
		if (title[i] == '_')
			title[i] = ' ';
		else if (i == 0 || title[i - 1] == ' ')
			title[i] = (char)toupper((unsigned char)title[i]);
	}
	str_add_repeat(out, "\t", depth);
	str_addf(out, "%s:\n", title);
}

/* The name of a block stays as it is. */
static void add_name(struct str *out, const char *name, size_t depth)
{
	char safe[NAME_CAP];
	str_escape(safe, sizeof(safe), name, strlen(name));
	str_add_repeat(out, "\t", depth);
	str_addf(out, "%s:\n", safe);
}

/* The values of one group, { session: value }, side by side. */
static void add_sessions(struct str *out, json_t *group, size_t depth)
{
	size_t n = json_object_size(group), i = 0;
	char(*heads)[NAME_CAP] = calloc(n + 1, sizeof(*heads));
	const char **texts = calloc(n + 1, sizeof(*texts)), *name;
	double *cells = calloc(n + 1, sizeof(*cells));
	json_t *value;
	out->failed |= !heads || !texts || !cells;
	if (!out->failed) {
		json_object_foreach(group, name, value)
		{
			str_escape(heads[i], sizeof(heads[i]), name, strlen(name));
			texts[i] = heads[i];
			cells[i++] = json_is_number(value) ? json_number_value(value) : NAN;
		}
		struct subtrack_table table = {
			.heads = texts, .n_columns = n, .n_rows = 1, .cells = cells
		};
		add_table(out, &table, depth);
	}
	free(heads);
	free(texts);
	free(cells);
}

static void add_blocks(struct str *out, json_t *blocks, size_t depth)
{
	const char *block;
	json_t *group;
	json_object_foreach(blocks, block, group)
	{
		add_name(out, block, depth);
		add_sessions(out, group, depth + 1);
	}
}

void subtrack_print_comparison(struct str *out, const json_t *comparison)
{
	const char *measurement;
	json_t *group;
	add_title(out, "overall_resource_usage", 0);
	json_object_foreach(
		json_object_get(comparison, "overall_resource_usage"), measurement, group)
	{
		add_title(out, measurement, 1);
		add_sessions(out, group, 2);
	}
	add_title(out, "code_block_resource_usage", 0);
	json_object_foreach(
		json_object_get(comparison, "code_block_resource_usage"), measurement, group)
	{
		add_title(out, measurement, 1);
		add_blocks(out, group, 2);
	}
	add_title(out, "code_block_compute_time", 0);
	add_blocks(out, json_object_get(comparison, "code_block_compute_time"), 1);
}

static void add_members(struct json *j, const json_t *object)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)object, key, value)
	{
		if (!json_is_object(value)) {
			json_exact(
				j, key, json_is_number(value) ? json_number_value(value) : NAN);
			continue;
		}
		json_open(j, key, '{');
		add_members(j, value);
		json_close(j, '}');
	}
}

void subtrack_print_comparison_json(struct str *out, const json_t *comparison)
{
	struct json j = { .out = out, .lines = 3 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-sub-track-compare-1");
	add_members(&j, comparison);
	json_close(&j, '}');
	str_add(out, "\n");
}

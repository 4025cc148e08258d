/* Prints what blocks of code used, and the comparison of several sub-tracked runs. */
#include <ctype.h>

#include "render/json.h"
#include "subtrack/subtrack.h"

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

static void add_right(struct str *out, const char *text, size_t width)
{
	size_t have = str_columns(text);
	str_add_repeat(out, " ", have < width ? width - have : 0);
	str_add(out, text);
}

static void add_left(struct str *out, const char *text, size_t width)
{
	size_t have = str_columns(text);
	str_add(out, text);
	str_add_repeat(out, " ", have < width ? width - have : 0);
}

/* Appends the table, each line after `depth` tabs. A column is wider than its title. */
static void add_table(struct str *out, const struct subtrack_table *t, size_t depth)
{
	char number[NUMBER_CAP];
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
		widths[i] = str_columns(t->heads[i]) + 1;
		for (size_t row = 0; row < t->n_rows; row++) {
			print_number(number, sizeof(number), t->cells[row * t->n_columns + i]);
			widths[i] = strlen(number) > widths[i] ? strlen(number) : widths[i];
		}
		str_add(out, " ");
		add_right(out, t->heads[i], widths[i]);
	}
	str_add(out, "\n");
	for (size_t row = 0; row < t->n_rows; row++) {
		str_add_repeat(out, "\t", depth);
		add_left(out, t->names ? t->names[row] : "", names);
		for (size_t i = 0; i < t->n_columns; i++) {
			print_number(number, sizeof(number), t->cells[row * t->n_columns + i]);
			str_add(out, " ");
			add_right(out, number, widths[i]);
		}
		str_add(out, "\n");
	}
	free(widths);
}

static const char *const stat_names[] = { "min", "max", "mean", "std", "total" };

/* NAN for an empty set. The standard deviation is that of the whole population. */
static double stat_at(const struct subtrack_stats *s, size_t i)
{
	const double all[] = { s->min, s->max, s->mean, sqrt(s->squares / (double)s->n),
		s->total };
	return s->n ? all[i] : NAN;
}

/* Appends the statistics of all measurements, or of the compute time alone. */
static void add_stats(
	struct str *out, const struct subtrack_stats *stats, bool usage, size_t depth)
{
	double cells[SUBTRACK_MEASUREMENTS * N_USAGE_STATS + N_TIME_STATS];
	struct subtrack_table table = { .heads = stat_names,
		.n_columns = usage ? N_USAGE_STATS : N_TIME_STATS,
		.names = usage ? tracking_columns : NULL,
		.n_rows = usage ? SUBTRACK_MEASUREMENTS : 1,
		.cells = cells };
	for (size_t i = 0; i < table.n_rows; i++)
		for (size_t k = 0; k < table.n_columns; k++)
			cells[i * table.n_columns + k] = stat_at(&stats[i], k);
	add_table(out, &table, depth);
}

static void add_count(struct str *out, const char *label, int64_t count)
{
	str_add(out, "\t");
	add_left(out, label, LABEL_WIDTH);
	str_addf(out, " %lld\n", (long long)count);
}

/* Units and capacities: a line of names and a line of values below them. A number that is not
 * whole has at most 8 decimals. */
static void add_statics(struct str *out, const struct subtrack *s)
{
	struct str values = { 0 };
	str_add(out, "\t");
	str_add(&values, "\t");
	for (size_t i = 0; i < TRACKING_STATICS; i++) {
		char exact[64], *end = NULL;
		const char *text = s->statics[i] && *s->statics[i] ? s->statics[i] : "-";
		double number = strtod(text, &end);
		if (end != text && !*end && strpbrk(text, ".eE")) {
			print_number(exact, sizeof(exact), number);
			text = exact;
		}
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
	add_stats(out, s->overall, true, 1);
	str_add(out, "Static Data:\n");
	add_statics(out, s);
	str_add(out, "Code Block Results:\n");
	for (size_t i = 0; i < s->n_blocks; i++) {
		const struct subtrack_block *b = &s->blocks[i];
		str_add(out, "\t");
		add_left(out, "Name:", LABEL_WIDTH);
		str_addf(out, " %s\n", b->name);
		add_count(out, "Num Timepoints:", b->timepoints);
		add_count(out, "Num Calls:", b->calls);
		add_count(out, "Num Non Empty Calls:", b->non_empty_calls);
		str_add(out, "\tCompute Time:\n");
		add_stats(out, &b->compute_time, false, 2);
		str_add(out, "\tResource Usage:\n");
		add_stats(out, b->usage, true, 2);
		str_add(out, "\n");
	}
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

void subtrack_print_json(struct str *out, const struct subtrack *s)
{
	struct json j = { .out = out, .lines = 4 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-sub-track-1");
	json_usage(&j, "overall", s->overall);
	json_open(&j, "static_data", '{');
	for (size_t i = 0; i < TRACKING_STATICS; i++) {
		char *end = NULL;
		const char *text = s->statics[i] ? s->statics[i] : "";
		double number = strtod(text, &end);
		if (i < 3) /* the units */
			json_text(&j, tracking_statics[i], text);
		else
			json_exact(&j, tracking_statics[i], end == text || *end ? NAN : number);
	}
	json_close(&j, '}');
	json_open(&j, "code_block_results", '[');
	for (size_t i = 0; i < s->n_blocks; i++) {
		const struct subtrack_block *b = &s->blocks[i];
		json_open(&j, NULL, '{');
		json_text(&j, "name", b->name);
		json_number(&j, "num_timepoints", (double)b->timepoints, 0);
		json_number(&j, "num_calls", (double)b->calls, 0);
		json_number(&j, "num_non_empty_calls", (double)b->non_empty_calls, 0);
		json_stats(&j, "compute_time", &b->compute_time, N_TIME_STATS);
		json_usage(&j, "resource_usage", b->usage);
		json_close(&j, '}');
	}
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
		char safe[NAME_CAP];
		str_escape(safe, sizeof(safe), block, strlen(block));
		str_add_repeat(out, "\t", depth);
		str_addf(out, "%s:\n", safe);
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

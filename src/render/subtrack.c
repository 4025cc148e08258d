/* Prints the statistics of blocks of code as text tables and as JSON. */
#include "render/subtrack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/json.h"
#include "render/subtrack_table.h"

enum { LABEL_WIDTH = 20, N_USAGE_STATS = 4, N_TIME_STATS = 5 };

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
	subtrack_table_text(out, &table, depth);
}

static void add_time(struct str *out, const struct subtrack_stats *time, size_t depth)
{
	double cells[N_TIME_STATS];
	for (size_t k = 0; k < N_TIME_STATS; k++)
		cells[k] = stat_at(time, k);
	struct subtrack_table table = {
		.heads = stat_names, .n_columns = N_TIME_STATS, .n_rows = 1, .cells = cells
	};
	subtrack_table_text(out, &table, depth);
}

static void add_count(struct str *out, const char *label, int64_t count)
{
	str_add(out, "\t");
	subtrack_add_left(out, label, LABEL_WIDTH);
	str_addf(out, " %lld\n", (long long)count);
}

static void add_block(struct str *out, const struct subtrack_block *b)
{
	str_add(out, "\t");
	subtrack_add_left(out, "Name:", LABEL_WIDTH);
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
	subtrack_number(dst, cap, number);
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
		size_t width = strlen(tracking_statics[i]), have = text_columns(text) + 1;
		width = have > width ? have : width;
		str_add(out, " ");
		subtrack_add_right(out, tracking_statics[i], width);
		str_add(&values, " ");
		subtrack_add_right(&values, text, width);
	}
	str_addf(out, "\n%s\n", str_text(&values));
	out->failed |= values.failed;
	str_finish(&values);
}

void subtrack_text(struct str *out, const struct subtrack *s)
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

void subtrack_json(struct str *out, const struct subtrack *s)
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

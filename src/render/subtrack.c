/* Prints the statistics of blocks of code as text tables and as JSON. */
#include "render/subtrack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/json.h"

enum { NAME_WIDTH = 46, NUMBER_WIDTH = 16, DECIMALS = 8 };

static const char *const stat_names[] = { "min", "max", "mean", "std", "total" };

static double stat_at(const struct subtrack_stats *s, size_t i)
{
	const double all[] = { s->min, s->max, s->mean, s->std, s->total };
	return all[i];
}

static void add_row(struct str *out, const char *indent, const char *name,
	const struct subtrack_stats *s, size_t n_stats)
{
	str_addf(out, "%s%*s", indent, NAME_WIDTH, name);
	for (size_t i = 0; i < n_stats; i++) {
		char number[64];
		number_text(number, sizeof(number), stat_at(s, i), DECIMALS);
		str_addf(out, "%*s", NUMBER_WIDTH, *number ? number : "-");
	}
	str_add(out, "\n");
}

static void add_heading(struct str *out, const char *indent, size_t n_stats)
{
	str_addf(out, "%s%*s", indent, NAME_WIDTH, "");
	for (size_t i = 0; i < n_stats; i++)
		str_addf(out, "%*s", NUMBER_WIDTH, stat_names[i]);
	str_add(out, "\n");
}

static void add_usage(struct str *out, const char *indent, const struct subtrack_stats *usage)
{
	add_heading(out, indent, 4);
	for (size_t i = 0; i < SUBTRACK_MEASUREMENTS; i++)
		add_row(out, indent, tracking_columns[i], &usage[i], 4);
}

static void add_block(struct str *out, const struct subtrack_block *b)
{
	str_addf(out, "\tName: %s\n", b->name);
	str_addf(out, "\tNum Timepoints: %lld\n", (long long)b->timepoints);
	str_addf(out, "\tNum Calls: %lld\n", (long long)b->calls);
	str_addf(out, "\tNum Non Empty Calls: %lld\n", (long long)b->non_empty_calls);
	str_add(out, "\tCompute Time:\n");
	add_heading(out, "\t\t", 5);
	add_row(out, "\t\t", "seconds", &b->compute_time, 5);
	str_add(out, "\tResource Usage:\n");
	add_usage(out, "\t\t", b->usage);
	str_add(out, "\n");
}

void subtrack_text(struct str *out, const struct subtrack *s)
{
	str_add(out, "Overall:\n");
	add_usage(out, "\t", s->overall);
	str_add(out, "Static Data:\n");
	for (size_t i = 0; i < TRACKING_STATICS; i++)
		str_addf(out, "\t%s: %s\n", tracking_statics[i],
			s->statics[i] ? s->statics[i] : "");
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
		json_stats(j, tracking_columns[i], &usage[i], 4);
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
	json_stats(j, "compute_time", &b->compute_time, 5);
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

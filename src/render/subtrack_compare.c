/* Prints a comparison of sub-tracking results as text and as JSON. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/json.h"
#include "render/subtrack.h"
#include "render/subtrack_table.h"

enum { NAME_CAP = 2200 };

/* The title of a key, as gpu-tracker writes it: "main_gpu_ram" is "Main Gpu Ram". */
static void add_title(struct str *out, const char *key, size_t depth)
{
	char title[NAME_CAP];
	text_escape(title, sizeof(title), key, strlen(key));
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
	text_escape(safe, sizeof(safe), name, strlen(name));
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
			text_escape(heads[i], sizeof(heads[i]), name, strlen(name));
			texts[i] = heads[i];
			cells[i++] = json_is_number(value) ? json_number_value(value) : NAN;
		}
		struct subtrack_table table = {
			.heads = texts, .n_columns = n, .n_rows = 1, .cells = cells
		};
		subtrack_table_text(out, &table, depth);
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

void subtrack_comparison_text(struct str *out, const json_t *comparison)
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

void subtrack_comparison_json(struct str *out, const json_t *comparison)
{
	struct json j = { .out = out, .lines = 3 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-sub-track-compare-1");
	add_members(&j, comparison);
	json_close(&j, '}');
	str_add(out, "\n");
}

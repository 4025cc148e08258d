/* Fills a struct of values from settings: defaults, then the files, the last one first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/timetext.h"
#include "config/settings.h"
#include "config/settings_private.h"

static int parse_flag(const struct config_value *v, struct err *e)
{
	static const char *const words[] = { "no", "yes", "off", "on", "false", "true", "0",
		"1" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(v->text, words[i]) != 0)
			continue;
		*(bool *)v->at = i % 2;
		return 0;
	}
	return err_set(e, ERR_USAGE, "%s takes yes or no, not '%s'", v->name, v->text);
}

/* Sets one value below `base`: all values, or a block. */
static int set_value(struct config_value *v, void *base, struct err *e)
{
	const struct option_row *row = &v->key->value;
	v->at = (char *)base + row->offset;
	if (!*v->text)
		return err_set(e, ERR_USAGE, "%s needs a value after the =", v->name);
	if (v->key->parse)
		return v->key->parse(v, e);
	if (row->kind == OPTION_FLAG)
		return parse_flag(v, e);
	return option_set(row, &(struct written){ v->name, v->text }, base, e);
}

static int set_defaults(struct settings *s, const char *section, void *base, struct err *e)
{
	int rc = 0;
	for (const struct config_key *key = s->schema->keys; key->section && !rc; key++) {
		if (strcmp(key->section, section) != 0)
			continue;
		if (!key->initial && !key->parse && key->value.kind == OPTION_REAL)
			*(double *)(void *)((char *)base + key->value.offset) = NAN;
		if (!key->initial)
			continue;
		struct config_value v = { .key = key,
			.name = key->value.name,
			.text = key->initial,
			.arena = &s->arena };
		rc = set_value(&v, base, e);
	}
	return rc;
}

/* The block of a setting, made if it is not there; NULL: out of memory. */
static void *find_block(
	struct settings *s, const struct setting *item, void *values, struct err *e)
{
	struct config_blocks *blocks = (void *)((char *)values + item->section->offset);
	size_t size = item->section->block_size;
	for (size_t i = 0; i < blocks->n; i++) {
		void *block = (char *)blocks->items + i * size;
		if (strcmp(*(const char **)block, item->block) == 0)
			return block;
	}
	void *new = config_one_more(&s->arena, &blocks->items, blocks->n, size);
	if (!new || set_defaults(s, item->section->name, new, e))
		return NULL;
	blocks->n++;
	*(const char **)new = item->block;
	return new;
}

static int apply(struct settings *s, const struct setting *item, void *values, struct err *e)
{
	void *base = item->section->block_size ? find_block(s, item, values, e) : values;
	if (!base)
		return err_memory(e);
	if (!item->key)
		return 0;
	struct config_value v = {
		.key = item->key, .name = item->name, .text = item->text, .arena = &s->arena
	};
	return set_value(&v, base, e);
}

/* Applies one setting; a value that is refused becomes an error of its line. */
static int try_one(struct settings *s, struct setting *item, void *values, struct err *e)
{
	struct err own = { 0 };
	int rc = apply(s, item, values, &own);
	if (rc == ERR_USAGE) {
		item->wrong = true;
		settings_add_error(s, item->file, item->line, own.text);
		return 0;
	}
	if (rc)
		*e = own;
	return rc;
}

/* Tries each value by itself, also those that another file overrides: an error in any file is
 * an error. */
static int check_all(struct settings *s, struct err *e)
{
	int rc = 0;
	void *scratch = malloc(s->schema->values_size);
	if (!scratch)
		return err_memory(e);
	for (size_t i = 0; i < s->n_items && !rc; i++) {
		memset(scratch, 0, s->schema->values_size);
		rc = try_one(s, &s->items[i], scratch, e);
	}
	free(scratch);
	return rc;
}

static bool is_beaten(const struct settings *s, const struct setting *item)
{
	for (size_t i = s->n_items; i-- > 0 && s->items[i].file > item->file;)
		if (!s->items[i].wrong && item->key && settings_same(item, &s->items[i]))
			return true;
	return false;
}

static int apply_file(struct settings *s, size_t file, void *values, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < s->n_items && !rc; i++) {
		struct setting *item = &s->items[i];
		if (item->file != file || item->wrong)
			continue;
		item->beaten = is_beaten(s, item);
		if (!item->beaten)
			rc = try_one(s, item, values, e);
	}
	return rc;
}

static int compare_errors(const void *a, const void *b)
{
	const struct settings_error *x = a, *y = b;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line == y->line ? 0 : x->line < y->line ? -1 : 1;
}

int settings_apply(struct settings *s, void *values, struct err *e)
{
	memset(values, 0, s->schema->values_size);
	int rc = check_all(s, e);
	for (const struct config_section *at = s->schema->sections; at->name && !rc; at++)
		if (!at->block_size)
			rc = set_defaults(s, at->name, values, e);
	for (size_t file = s->n_files; file-- > 0 && !rc;)
		rc = apply_file(s, file, values, e);
	if (s->n_errors)
		qsort(s->errors, s->n_errors, sizeof(*s->errors), compare_errors);
	return rc;
}

/* Bytes of a value that an option and a key share. */
static size_t value_size(enum option_kind kind)
{
	switch (kind) {
	case OPTION_FLAG:
		return sizeof(bool);
	case OPTION_COUNT:
	case OPTION_DURATION:
	case OPTION_SIZE:
		return sizeof(int64_t);
	case OPTION_REAL:
		return sizeof(double);
	default:
		return sizeof(const char *);
	}
}

void settings_override(const struct config_schema *schema, void *values,
	const struct option_row *table, const void *options, const bool *given)
{
	for (const struct config_key *key = schema->keys; key->section; key++) {
		for (size_t i = 0; key->option && table[i].name; i++) {
			if (!given[i] || strcmp(table[i].name, key->option) != 0 ||
				table[i].kind != key->value.kind)
				continue;
			memcpy((char *)values + key->value.offset,
				(const char *)options + table[i].offset,
				value_size(table[i].kind));
		}
	}
}

bool settings_differ(const struct config_key *key, const void *a, const void *b)
{
	const char *x = (const char *)a + key->value.offset;
	const char *y = (const char *)b + key->value.offset;
	size_t size = value_size(key->value.kind);
	if (key->value.kind != OPTION_TEXT && key->value.kind != OPTION_CHOICE)
		return memcmp(x, y, size) != 0;
	return !settings_same_text(
		*(const char *const *)(const void *)x, *(const char *const *)(const void *)y);
}

void settings_value_text(
	const struct config_key *key, const void *values, char *dst, size_t cap)
{
	const void *at = (const char *)values + key->value.offset;
	switch (key->value.kind) {
	case OPTION_FLAG:
		text_copy(dst, cap, *(const bool *)at ? "yes" : "no");
		break;
	case OPTION_DURATION:
		duration_option(dst, cap, *(const int64_t *)at);
		break;
	case OPTION_COUNT:
	case OPTION_SIZE:
		snprintf(dst, cap, "%lld", (long long)*(const int64_t *)at);
		break;
	case OPTION_REAL:
		text_exact(dst, cap, *(const double *)at);
		break;
	default:
		text_copy(dst, cap, *(const char *const *)at ? *(const char *const *)at : "");
	}
}

/* Reads files into settings, finds what is wrong with them, and fills structs of values. */
#include "config/settings.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/ini.h"
#include "base/nearest.h"
#include "config/settings_private.h"

void *config_one_more(struct arena *arena, void **items, size_t n, size_t size)
{
	if ((n & (n - 1)) == 0) {
		char *larger = arena_take(arena, (n ? 2 * n : 1) * size);
		if (!larger)
			return NULL;
		if (n)
			memcpy(larger, *items, n * size);
		*items = larger;
	}
	return memset((char *)*items + n * size, 0, size);
}

void settings_add_error(struct settings *s, size_t file, size_t line, const char *text)
{
	if (s->n_errors == SETTINGS_MAX_ERRORS || !array_one_more(&s->errors, s->n_errors))
		return;
	const char *copy = arena_text(&s->arena, text);
	s->errors[s->n_errors++] = (struct settings_error){
		.file = file, .line = line, .text = copy ? copy : ERR_MEMORY_TEXT
	};
}

/* Reports what is wrong in the file that is being read. */
__attribute__((format(printf, 3, 4))) static void report(
	struct settings *s, size_t line, const char *format, ...)
{
	char raw[512];
	struct err e = { 0 };
	va_list args;
	va_start(args, format);
	vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	err_set(&e, ERR_USAGE, "%s", raw); /* makes it safe to print */
	settings_add_error(s, s->n_files - 1, line, e.text);
}

/* The name most like what the user wrote, among keys of a section or among sections. */
struct guess {
	const char *asked, *best;
	size_t least;
};

static struct guess guess_start(const char *asked)
{
	return (struct guess){ asked, NULL, nearest_far(strlen(asked)) + 1 };
}

static void guess_add(struct guess *g, const char *name)
{
	size_t d = nearest_distance(name, strlen(name), g->asked, strlen(g->asked));
	if (d < g->least && d < strlen(name)) {
		g->least = d;
		g->best = name;
	}
}

static const struct config_section *find_section(
	const struct config_schema *schema, const char *name)
{
	for (const struct config_section *at = schema->sections; at->name; at++)
		if (strcmp(at->name, name) == 0)
			return at;
	return NULL;
}

static void unknown_section(struct settings *s, const struct ini_item *item)
{
	struct guess g = guess_start(item->first);
	for (const struct config_section *at = s->schema->sections; at->name; at++)
		guess_add(&g, at->name);
	report(s, item->line, "there is no section [%s]%s%s%s", item->first,
		g.best ? "; did you mean [" : "; see man gua.conf", g.best ? g.best : "",
		g.best ? "]?" : "");
}

static const struct config_key *find_key(
	const struct config_schema *schema, const char *section, const char *name)
{
	for (const struct config_key *at = schema->keys; at->section; at++)
		if (strcmp(at->section, section) == 0 &&
			(!at->value.name || strcmp(at->value.name, name) == 0))
			return at;
	return NULL;
}

static void unknown_key(
	struct settings *s, const struct config_section *section, const struct ini_item *item)
{
	struct guess g = guess_start(item->first);
	for (const struct config_key *at = s->schema->keys; at->section; at++) {
		if (at->value.name && strcmp(at->value.name, item->first) == 0) {
			report(s, item->line, "%s: this key belongs to [%s], not to [%s]",
				item->first, at->section, section->name);
			return;
		}
		if (strcmp(at->section, section->name) == 0)
			guess_add(&g, at->value.name);
	}
	report(s, item->line, "%s: [%s] has no such key%s%s%s", item->first, section->name,
		g.best ? "; did you mean '" : "; see man gua.conf", g.best ? g.best : "",
		g.best ? "'?" : "");
}

bool settings_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool settings_same(const struct setting *a, const struct setting *b)
{
	return a->key == b->key && a->section == b->section &&
	       settings_same_text(a->block, b->block) &&
	       (!a->key || a->key->value.name || strcmp(a->name, b->name) == 0);
}

/* The setting of the same file that a new one repeats, although it must not; NULL: none. */
static const struct setting *find_twin(const struct settings *s, const struct setting *new)
{
	if (new->key &&new->key->repeats)
		return NULL;
	for (size_t i = s->n_items; i-- > 0 && s->items[i].file == new->file;)
		if (settings_same(&s->items[i], new))
			return &s->items[i];
	return NULL;
}

static int add_setting(struct settings *s, const struct setting *new, struct err *e)
{
	const struct setting *twin = find_twin(s, new);
	if (twin && !new->key && s->are_options)
		return 0;
	if (twin) {
		report(s, new->line, "%s: given already, in line %zu",
			new->key ? new->name : new->block, twin->line);
		return 0;
	}
	if (!array_reserve(&s->items, &s->items_cap, s->n_items + 1))
		return err_memory(e);
	s->items[s->n_items++] = *new;
	return 0;
}

/* Where the reader is. */
struct place {
	const struct config_section *section; /* NULL: an unknown one, or none yet */
	const char *block;
	bool unknown; /* the section is: its keys are not reported too */
};

static int take_section(
	struct settings *s, struct place *p, const struct ini_item *item, struct err *e)
{
	const struct config_section *section = find_section(s->schema, item->first);
	*p = (struct place){ .unknown = true };
	if (!section) {
		unknown_section(s, item);
		return 0;
	}
	bool named = item->second && *item->second;
	if (section->block_size && !named) {
		report(s, item->line, "this section needs a name: [%s NAME]", section->name);
		return 0;
	}
	if (!section->block_size && item->second) {
		report(s, item->line, "the section [%s] takes no name", section->name);
		return 0;
	}
	*p = (struct place){ .section = section, .block = item->second };
	if (!section->block_size)
		return 0;
	return add_setting(s,
		&(struct setting){ .section = section,
			.block = item->second,
			.file = s->n_files - 1,
			.line = item->line },
		e);
}

static int take_pair(
	struct settings *s, const struct place *p, const struct ini_item *item, struct err *e)
{
	if (!p->section) {
		if (!p->unknown)
			report(s, item->line,
				"%s: a key needs a section before it, such as [%s]",
				item->first, s->schema->sections[0].name);
		return 0;
	}
	const struct config_key *key = find_key(s->schema, p->section->name, item->first);
	if (!key) {
		unknown_key(s, p->section, item);
		return 0;
	}
	return add_setting(s,
		&(struct setting){ .key = key,
			.section = p->section,
			.block = p->block,
			.name = item->first,
			.text = item->second,
			.file = s->n_files - 1,
			.line = item->line },
		e);
}

/* Begins a file. */
static int add_file(struct settings *s, const char *file, struct err *e)
{
	assert(s->n_files < SETTINGS_MAX_FILES);
	const char *copy = arena_text(&s->arena, file);
	if (!copy)
		return err_memory(e);
	s->files[s->n_files++] = copy;
	return 0;
}

int settings_read(
	struct settings *s, const char *file, const char *bytes, size_t len, struct err *e)
{
	struct ini reader;
	struct ini_item item;
	struct place place = { 0 };
	char *copy = arena_take(&s->arena, len + 1);
	int rc = copy ? add_file(s, file, e) : err_memory(e);
	if (rc)
		return rc;
	if (len)
		memcpy(copy, bytes, len);
	ini_start(&reader, copy, len);
	size_t before = s->n_items;
	while (!rc && ini_next(&reader, &item)) {
		if (s->n_items - before == SETTINGS_MAX) {
			report(s, item.line,
				"the file has more than %d settings; the rest is "
				"ignored",
				(int)SETTINGS_MAX);
			break;
		}
		if (item.kind == INI_WRONG)
			settings_add_error(s, s->n_files - 1, item.line, item.first);
		else if (item.kind == INI_SECTION)
			rc = take_section(s, &place, &item, e);
		else
			rc = take_pair(s, &place, &item, e);
	}
	return rc;
}

int settings_refuse(struct settings *s, const char *file, const char *why, struct err *e)
{
	int rc = add_file(s, file, e);
	size_t before = s->n_errors;
	if (!rc)
		settings_add_error(s, s->n_files - 1, 0, why);
	if (s->n_errors > before)
		s->errors[before].whole = true;
	return rc;
}

/* Writes "section.key=value" as lines of a file. */
static int add_lines(const struct config_schema *schema, struct str *out, const char *option)
{
	const char *equals = strchr(option, '='), *dot = strchr(option, '.');
	char section[64];
	if (!equals || !dot || dot > equals || strpbrk(option, "\n\r\"\\"))
		return ERR_USAGE;
	snprintf(section, sizeof(section), "%.*s", (int)(dot - option), option);
	const struct config_section *known = find_section(schema, section);
	const char *key = dot + 1;
	str_addf(out, "[%s", section);
	if (known && known->block_size) {
		const char *last = memrchr(key, '.', (size_t)(equals - key));
		if (!last)
			return ERR_USAGE;
		str_addf(out, " \"%.*s\"", (int)(last - key), key);
		key = last + 1;
	}
	str_addf(out, "]\n\"%.*s\" = %s\n", (int)(equals - key), key, equals + 1);
	return 0;
}

int settings_set(
	struct settings *s, const char *file, const struct text_list *list, struct err *e)
{
	struct str lines = { 0 };
	int rc = 0;
	for (size_t i = 0; i < list->n && !rc; i++)
		if (add_lines(s->schema, &lines, list->items[i]))
			rc = err_set(e, ERR_USAGE,
				"--set takes SECTION.KEY=VALUE, as record.interval=10s, not "
				"'%s'",
				list->items[i]);
	if (!rc && lines.failed)
		rc = err_memory(e);
	s->are_options = true;
	if (!rc)
		rc = settings_read(s, file, str_text(&lines), lines.len, e);
	s->are_options = false;
	for (size_t i = 0; i < s->n_items; i++)
		if (s->items[i].file == s->n_files - 1)
			s->items[i].line = 0;
	for (size_t i = 0; i < s->n_errors; i++)
		if (s->errors[i].file == s->n_files - 1)
			s->errors[i].line = 0;
	str_finish(&lines);
	return rc;
}

void settings_error_text(const struct settings *s, size_t i, char *dst, size_t cap)
{
	const struct settings_error *error = &s->errors[i];
	char file[1024], line[32] = "";
	if (error->whole) {
		text_copy(dst, cap, error->text);
		return;
	}
	text_escape(file, sizeof(file), s->files[error->file], strlen(s->files[error->file]));
	if (error->line)
		snprintf(line, sizeof(line), "%zu:", error->line);
	snprintf(dst, cap, "%s:%s %s", file, line, error->text);
}

void settings_finish(struct settings *s)
{
	free(s->items);
	free(s->errors);
	arena_finish(&s->arena);
	*s = (struct settings){ .schema = s->schema };
}

/* Reads files into settings, finds what is wrong with them, and fills structs of values. */
#include "config/settings.h"

#include <assert.h>

#include "base/ini.h"
#include "base/nearest.h"
#include "base/words.h"

void *settings_append(
	struct arena *arena, void *items, size_t *n, const void *item, size_t size)
{
	char *old;
	memcpy(&old, items, sizeof(old)); /* a T * must not be read as a char * */
	if ((*n & (*n - 1)) == 0) {
		char *larger = arena_take(arena, (*n ? 2 * *n : 1) * size);
		if (!larger)
			return NULL;
		if (*n)
			memcpy(larger, old, *n * size);
		memcpy(items, &larger, sizeof(larger));
		old = larger;
	}
	char *at = old + (*n)++ * size;
	return item ? memcpy(at, item, size) : memset(at, 0, size);
}

/* Adds an error with a text that is safe to print. NULL: it does not fit, and is dropped. */
static struct settings_error *add_error(
	struct settings *s, size_t file, size_t line, const char *text)
{
	if (s->n_errors == SETTINGS_MAX_ERRORS || !array_one_more(&s->errors, s->n_errors))
		return NULL;
	const char *copy = arena_text(&s->arena, text);
	s->errors[s->n_errors++] = (struct settings_error){
		.file = file, .line = line, .text = copy ? copy : ERR_MEMORY_TEXT
	};
	return &s->errors[s->n_errors - 1];
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
	add_error(s, s->n_files - 1, line, e.text);
}

static const struct config_section *find_section(
	const struct config_schema *schema, const char *name)
{
	for (const struct config_section *at = schema->sections; at->name; at++)
		if (strcmp(at->name, name) == 0)
			return at;
	return NULL;
}

/* Whether both are the same text, or both NULL. */
static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool settings_same(const struct setting *a, const struct setting *b)
{
	return a->key == b->key && a->section == b->section && same_text(a->block, b->block) &&
	       (!a->key || a->key->value.name || strcmp(a->name, b->name) == 0);
}

/* Adds a setting. One that the file has already is an error, unless it may be repeated. */
static int add_setting(struct settings *s, const struct setting *new, struct err *e)
{
	const struct setting *twin = NULL;
	bool repeats = new->key &&new->key->repeats;
	for (size_t i = s->n_items; i-- > 0 && !repeats && s->items[i].file == new->file;)
		if (settings_same(&s->items[i], new)) {
			twin = &s->items[i];
			break;
		}
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
		struct nearest like = nearest_to(item->first, strlen(item->first));
		for (const struct config_section *at = s->schema->sections; at->name; at++)
			nearest_try(&like, at->name);
		report(s, item->line, "there is no section [%s]%s%s%s", item->first,
			like.name ? "; did you mean [" : "; see man gua.conf",
			like.name ? like.name : "", like.name ? "]?" : "");
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
	const struct config_section *section = p->section;
	const struct config_key *key = NULL, *of_other = NULL;
	struct nearest like = nearest_to(item->first, strlen(item->first));
	if (!section) {
		if (!p->unknown)
			report(s, item->line,
				"%s: a key needs a section before it, such as [%s]",
				item->first, s->schema->sections[0].name);
		return 0;
	}
	for (const struct config_key *at = s->schema->keys; at->section && !key; at++) {
		const char *name = at->value.name;
		bool own = strcmp(at->section, section->name) == 0;
		bool same = name && strcmp(name, item->first) == 0;
		if (own && (same || !name))
			key = at;
		else if (own)
			nearest_try(&like, name);
		else if (same && !of_other)
			of_other = at;
	}
	if (key)
		return add_setting(s,
			&(struct setting){ .key = key,
				.section = section,
				.block = p->block,
				.name = item->first,
				.text = item->second,
				.file = s->n_files - 1,
				.line = item->line },
			e);
	if (of_other)
		report(s, item->line, "%s: this key belongs to [%s], not to [%s]", item->first,
			of_other->section, section->name);
	else
		report(s, item->line, "%s: [%s] has no such key%s%s%s", item->first,
			section->name, like.name ? "; did you mean '" : "; see man gua.conf",
			like.name ? like.name : "", like.name ? "'?" : "");
	return 0;
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
				"the file has more than %d settings; the rest is ignored",
				(int)SETTINGS_MAX);
			break;
		}
		if (item.kind == INI_WRONG)
			add_error(s, s->n_files - 1, item.line, item.first);
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
	struct settings_error *error = rc ? NULL : add_error(s, s->n_files - 1, 0, why);
	if (error)
		error->whole = true;
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

void settings_blame(struct settings *s, const char *section, const char *key, const char *why)
{
	for (size_t i = s->n_items; i-- > 0;) {
		const struct setting *item = &s->items[i];
		if (item->key && !item->wrong && !item->beaten &&
			strcmp(item->section->name, section) == 0 &&
			strcmp(item->name, key) == 0) {
			add_error(s, item->file, item->line, why);
			return;
		}
	}
}

void settings_error_text(const struct settings *s, size_t i, char *dst, size_t cap)
{
	const struct settings_error *error = &s->errors[i];
	char file[1024], line[32] = "";
	if (error->whole) {
		str_copy(dst, cap, error->text);
		return;
	}
	str_escape(file, sizeof(file), s->files[error->file], strlen(s->files[error->file]));
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

/* Gives the words of a value to its key, one by one. */
static int set_words(const struct config_value *v, struct err *e)
{
	char *copy = strdup(v->text), **words = NULL;
	size_t n = 0;
	if (!copy)
		return err_memory(e);
	for (char *at = copy; *at; at++)
		*at = *at == ',' ? ' ' : *at;
	int rc = words_split(copy, &words, &n, e);
	free(copy);
	if (rc)
		return err_prefix(e, "%s", v->name);
	if (!n)
		rc = err_set(e, ERR_USAGE, "%s needs at least one word after the =", v->name);
	for (size_t i = 0; i < n && !rc; i++)
		rc = v->key->each(v, words[i], e);
	free(words);
	return rc;
}

/* Sets one value below `base`: all values, or a block. */
static int set_value(struct config_value *v, void *base, struct err *e)
{
	static const char *const flags[] = { "no", "yes", "off", "on", "false", "true", "0",
		"1" };
	const struct option_row *row = &v->key->value;
	v->at = (char *)base + row->offset;
	if (!*v->text)
		return err_set(e, ERR_USAGE, "%s needs a value after the =", v->name);
	if (v->key->parse)
		return v->key->parse(v, e);
	if (v->key->each)
		return set_words(v, e);
	if (row->kind != OPTION_FLAG)
		return options_set_one(row, &(struct written){ v->name, v->text }, base, e);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcasecmp(v->text, flags[i]) == 0) {
			*(bool *)v->at = i % 2;
			return 0;
		}
	return err_set(e, ERR_USAGE, "%s takes yes or no, not '%s'", v->name, v->text);
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
	void *new = settings_append(&s->arena, &blocks->items, &blocks->n, NULL, size);
	if (!new || set_defaults(s, item->section->name, new, e))
		return NULL;
	*(const char **)new = item->block;
	return new;
}

/* Applies one setting; a value that is refused becomes an error of its line. */
static int try_one(struct settings *s, struct setting *item, void *values, struct err *e)
{
	struct err own = { 0 };
	void *base = item->section->block_size ? find_block(s, item, values, &own) : values;
	if (!base)
		return err_memory(e);
	if (!item->key)
		return 0;
	struct config_value v = {
		.key = item->key, .name = item->name, .text = item->text, .arena = &s->arena
	};
	int rc = set_value(&v, base, &own);
	if (rc == ERR_USAGE) {
		item->wrong = true;
		add_error(s, item->file, item->line, own.text);
		return 0;
	}
	if (rc)
		*e = own;
	return rc;
}

static int apply_file(struct settings *s, size_t file, void *values, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < s->n_items && !rc; i++) {
		struct setting *item = &s->items[i];
		if (item->file != file || item->wrong)
			continue;
		item->beaten = false;
		for (size_t k = s->n_items; k-- > 0 && s->items[k].file > file;)
			item->beaten |= !s->items[k].wrong && item->key &&
					settings_same(item, &s->items[k]);
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
	int rc = 0;
	memset(values, 0, s->schema->values_size);
	/* Each value is tried by itself, also those that another file overrides: an error in
	 * any file is an error. A value that is refused may have been written before. */
	void *scratch = malloc(s->schema->values_size);
	if (!scratch)
		return err_memory(e);
	for (size_t i = 0; i < s->n_items && !rc; i++) {
		memset(scratch, 0, s->schema->values_size);
		rc = try_one(s, &s->items[i], scratch, e);
	}
	free(scratch);
	for (const struct config_section *at = s->schema->sections; at->name && !rc; at++)
		if (!at->block_size)
			rc = set_defaults(s, at->name, values, e);
	for (size_t file = s->n_files; file-- > 0 && !rc;)
		rc = apply_file(s, file, values, e);
	array_sort(s->errors, s->n_errors, compare_errors);
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

void settings_rows(const struct config_schema *schema, const struct option_row *table,
	struct option_row rows[OPTIONS_MAX])
{
	do {
		*rows = *table;
		const char *dot = table->key ? strchr(table->key, '.') : NULL;
		for (const struct config_key *key = schema->keys; dot && key->section; key++) {
			size_t len = strlen(key->section);
			if (table->key + len != dot || strncmp(key->section, table->key, len) ||
				!key->value.name || strcmp(key->value.name, dot + 1) != 0)
				continue;
			*rows = key->value;
			rows->letter = table->letter;
			rows->name = table->name;
			rows->key = table->key;
			rows->help = table->help ? table->help : rows->help;
			if (rows->kind == OPTION_FLAG)
				rows->arg = NULL;
			else
				rows->initial = key->initial;
		}
	} while (rows++, table++->name);
}

void settings_override(
	const struct option_row *rows, void *values, const void *options, const bool *given)
{
	for (size_t i = 0; rows[i].name; i++)
		if (given[i] && rows[i].key)
			memcpy((char *)values + rows[i].offset,
				(const char *)options + rows[i].offset,
				value_size(rows[i].kind));
}

void settings_value_text(
	const struct option_row *row, const void *values, char *dst, size_t cap)
{
	const void *at = (const char *)values + row->offset;
	switch (row->kind) {
	case OPTION_FLAG:
		str_copy(dst, cap, *(const bool *)at ? "yes" : "no");
		break;
	case OPTION_DURATION:
		str_copy(dst, cap, duration_option(*(const int64_t *)at).text);
		break;
	case OPTION_COUNT:
	case OPTION_SIZE:
		snprintf(dst, cap, "%lld", (long long)*(const int64_t *)at);
		break;
	case OPTION_REAL:
		str_exact_number(dst, cap, *(const double *)at);
		break;
	default:
		str_copy(dst, cap, *(const char *const *)at ? *(const char *const *)at : "");
	}
}

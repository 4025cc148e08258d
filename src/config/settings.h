/* A configuration: its schema (which sections it has, which keys they have, and what a value
 * may be), and the settings in force: what files and options say, each with the place that it
 * came from, and what is wrong with them. */
#pragma once

#include "base/options.h"

struct config_section {
	const char *name;
	const char *help; /* one sentence */
	/* A section that is written [name NAME] and may be there several times. Each becomes
	 * one block: a struct of `block_size` bytes whose first member is `const char *name`,
	 * in the struct config_blocks at `offset` of the values. 0: not such a section. */
	size_t block_size, offset;
};

/* The blocks of a section, in the order in which they count: those of a later file first. */
struct config_blocks {
	void *items;
	size_t n;
};

/* A value on its way into the values. */
struct config_value {
	const struct config_key *key;
	const char *name;    /* the key as the user wrote it; messages begin with it */
	const char *text;    /* the value as written */
	void *at;	     /* where it goes: the values or the block, at the key's offset */
	struct arena *arena; /* for what must stay as long as the values */
};

struct config_key {
	const char *section;
	/* Name, placeholder, help, kind, choices, limits and place of the value. No name: users
	 * choose the key, which may be there with many names. OPTION_FLAG is yes or no. */
	struct option_row value;
	const char *initial; /* the default, as a file would have it; NULL: there is none, and
				the value is NAN, 0 or NULL */
	const char *example; /* of a value, for a key without a default; of the whole line if
				users choose the key */
	/* Reads a value that is of no option's kind, or each word of it, with blanks and commas
	 * between them; both NULL: options_set_one() does. */
	int (*parse)(const struct config_value *v, struct err *e);
	int (*each)(const struct config_value *v, char *word, struct err *e);
	bool repeats; /* may be there several times, and adds to what is there */
};

/* Both tables end with an entry whose `section` or `name` is NULL. */
struct config_schema {
	const struct config_section *sections;
	const struct config_key *keys;
	size_t values_size; /* of the struct that the keys' offsets are in */
};

/* Appends a copy of the item (NULL: one of zeroes) to an array of `*n` items in the arena:
 * `items` is the address of the array's pointer. Returns the new item; NULL: out of memory. */
void *settings_append(
	struct arena *arena, void *items, size_t *n, const void *item, size_t size);

/* Files are added in the order in which they count; each overrides earlier ones key by key. */

/* One line of a file. */
struct setting {
	const struct config_key *key; /* NULL: the block is there, with or without keys */
	const struct config_section *section;
	const char *block; /* its NAME; NULL if the section has none */
	const char *name;  /* the key as written */
	const char *text;  /* the value as written */
	size_t file;	   /* index in struct settings */
	size_t line;	   /* 0: not in a file */
	bool wrong;	   /* its value was refused */
	bool beaten;	   /* a later file says something else */
};

struct settings_error {
	size_t file, line; /* line 0: not of a line */
	bool whole;	   /* about the whole file, and the text names it */
	const char *text;
};

/* Who owns a file or a directory, and who may write to it. */
struct settings_owner {
	bool known;
	int64_t uid;
	uint32_t mode; /* of stat(2) */
};

/* No file may have more. */
enum { SETTINGS_MAX_FILES = 4, SETTINGS_MAX = 4096, SETTINGS_MAX_ERRORS = 100 };

/* Set `schema`, and zero the rest. */
struct settings {
	const struct config_schema *schema;
	const char *files[SETTINGS_MAX_FILES];
	/* Of each file, as it was when it was read, and of its directory. */
	struct settings_owner owners[SETTINGS_MAX_FILES], directories[SETTINGS_MAX_FILES];
	size_t n_files;
	bool are_options; /* private: several may be of one block */
	struct setting *items;
	size_t n_items, items_cap;
	struct settings_error *errors;
	size_t n_errors; /* at most SETTINGS_MAX_ERRORS; more are not kept */
	struct arena arena;
};

/* Adds a file by its content. What is wrong in it becomes an error; the rest counts. ERR_WORLD:
 * out of memory. */
int settings_read(
	struct settings *s, const char *file, const char *bytes, size_t len, struct err *e);
/* Adds an error about a whole file, which has no line then: a sentence that names the file. */
int settings_refuse(struct settings *s, const char *file, const char *why, struct err *e);
/* Adds an error about the line in force that sets a key: something that is only known once all
 * values are. Nothing is added if no line does. */
void settings_blame(struct settings *s, const char *section, const char *key, const char *why);
/* Adds options as the last file, called `file`: each "section.key=value", or
 * "section.NAME.key=value" for a block. ERR_USAGE: one is not written like that. */
int settings_set(
	struct settings *s, const char *file, const struct text_list *list, struct err *e);

/* Fills `values`, which the schema describes: defaults first, then what the files say. Wrong
 * values become errors and are left out. Texts belong to the settings. */
int settings_apply(struct settings *s, void *values, struct err *e);

/* Fills in the rows that name a key, all but their names: such an option sets the value of the
 * key, whose help it has if it has none. NULL in `rows` ends them as it ends `table`. */
void settings_rows(const struct config_schema *schema, const struct option_row *table,
	struct option_row rows[OPTIONS_MAX]);
/* Puts what such options say over the values: `given` says which rows were given, as
 * options_parse() does. */
void settings_override(
	const struct option_row *rows, void *values, const void *options, const bool *given);

/* A value as a file would have it: "30s", "yes". Only for values of an option's kind. */
void settings_value_text(
	const struct option_row *row, const void *values, char *dst, size_t cap);

/* "FILE:LINE: text" of an error, or without the line. Safe to print. */
void settings_error_text(const struct settings *s, size_t i, char *dst, size_t cap);
/* Whether two settings are of the same key: the same name, in the same block. */
bool settings_same(const struct setting *a, const struct setting *b);

void settings_finish(struct settings *s);

/* Describes a configuration: which sections it has, which keys they have, and what a value may
 * be. Everything that knows keys (the reader, `gua config`, the check of the manual) follows
 * from such tables. */
#ifndef GUA_CONFIG_SCHEMA_H
#define GUA_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
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
	const char *example; /* for a key without a default: a line with it */
	/* Reads a value that is of no option's kind; NULL: option_set() does. */
	int (*parse)(const struct config_value *v, struct err *e);
	bool repeats; /* may be there several times; `parse` adds to what is there */
	/* The option that does the same, and the commands that have it, with blanks between
	 * them; NULL: only --set does. */
	const char *option, *commands;
};

/* Both tables end with an entry whose `section` or `name` is NULL. */
struct config_schema {
	const struct config_section *sections;
	const struct config_key *keys;
	size_t values_size; /* of the struct that the keys' offsets are in */
};

/* Room for one more item in an array of the arena that grows when n is 0 or a power of two, the
 * new item zeroed; NULL: out of memory. */
void *config_one_more(struct arena *arena, void **items, size_t n, size_t size);

#endif

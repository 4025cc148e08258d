/* Reads an ini file line by line: sections, and keys with values.
 *
 *   # a comment, also with ; at the beginning of a line, or behind a blank
 *   [section]
 *   [kind NAME]
 *   key = value          # a comment behind a value
 *   "a key with = in it" = "a value with # in it"
 *
 * A line that is wrong is an item of its own, and reading goes on behind it. */
#pragma once

#include "base/base.h"

enum ini_kind { INI_SECTION, INI_PAIR, INI_WRONG };

/* One line that is neither empty nor a comment. The texts are valid UTF-8 without controls. */
struct ini_item {
	enum ini_kind kind;
	size_t line;	   /* from 1 */
	const char *first; /* the section, the key, or what is wrong: a sentence */
	/* The NAME of a section, NULL if it has none; or a value, which keeps its quotes unless
	 * they enclose all of it. */
	const char *second;
};

/* A reader that changes its bytes: texts are terminated and unquoted in place. */
struct ini {
	char *at, *end; /* the bytes not read yet; one byte after `end` must be writable */
	size_t line;	/* of `at` */
};

/* `bytes` must have room for one more byte after `len`, and must live as long as the items. */
void ini_start(struct ini *i, char *bytes, size_t len);
/* Reads the next item; false at the end. */
bool ini_next(struct ini *i, struct ini_item *item);

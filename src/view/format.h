/* The words of a --format like csv,noheader: each sets a flag. */
#ifndef GUA_VIEW_FORMAT_H
#define GUA_VIEW_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* A table of them ends with a word that is NULL. */
struct format_word {
	const char *word;
	size_t flag; /* offset of its bool */
};

/* Sets the flags in `to` that the words between the commas name; false: one names none. */
bool format_take(const struct format_word *words, void *to, const char *text);
/* All words, each with a blank behind. */
void format_list(const struct format_word *words, struct str *out);

#endif

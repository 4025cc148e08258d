/* The words of a --format like csv,noheader: each sets a flag. */
#pragma once

#include "base/base.h"

/* A word and its flag. A table ends with a word that is NULL. */
struct format_word {
	const char *word;
	size_t flag; /* offset of its bool */
};

/* Sets the flags in `to` for a comma-separated list of words; false if a word is unknown. */
bool format_take(const struct format_word *words, void *to, const char *text);
/* Appends all words, each followed by a space. */
void format_list(const struct format_word *words, struct str *out);

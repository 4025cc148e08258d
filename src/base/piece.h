/* Parts of texts: a pointer and a length, cut at separators and compared with patterns. */
#pragma once

#include "base/base.h"

/* A part of the bytes of a file; it is not terminated. */
struct piece {
	const char *at;
	size_t len;
};

/* Whether the text matches the pattern, in which '*' may be the first or the last character and
 * matches anything. */
bool piece_is_like(struct piece text, const char *pattern);
/* Returns how many leading characters are of the set. */
size_t piece_span(struct piece text, const char *set);
/* Takes the text before the next separator, or all of it, from *text, which then is what
 * follows; its `at` is NULL if there was no separator. */
struct piece piece_cut(struct piece *text, char separator);
/* The text without its first n characters. */
struct piece piece_skip(struct piece text, size_t n);
/* The last part of a path. Slashes after it do not count. */
struct piece piece_basename(struct piece path);
/* The path without its last part; empty if it has only one part. */
struct piece piece_directory(struct piece path);

static inline bool piece_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

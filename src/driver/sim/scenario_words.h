/* Words of a scenario line, and the values that words can be. Private to scenario*.c. */
#ifndef GUA_DRIVER_SIM_SCENARIO_WORDS_H
#define GUA_DRIVER_SIM_SCENARIO_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { WORDS_MAX = 64, LINE_CAP = 2048 };

/* One line cut into words; `next` moves as they are taken. */
struct words {
	char text[LINE_CAP]; /* the words, each terminated */
	char *items[WORDS_MAX];
	size_t n, next;
	const char *where; /* name of the file */
	int line;
	int64_t day_us; /* of a line that begins with `on`: the start of the day it is read for
			 */
	struct err *e;
};

/* Fails with "FILE:LINE: sentence"; returns ERR_USAGE. */
int words_fail(const struct words *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Cuts bytes[0..len) into words: blanks separate, "..." quotes (with \" and \\), # at the start
 * of a word begins a comment. */
int words_cut(struct words *w, const char *bytes, size_t len);

/* The next word, or NULL at the end of the line. */
const char *words_peek(const struct words *w);
/* Takes the next word when it is `word`. */
bool words_take(struct words *w, const char *word);

/* These take one word and fail with a sentence when there is none or it is something else.
 * `what` names it in the sentence. */
int words_text(struct words *w, const char *what, const char **text);
int words_copy(struct words *w, const char *what, char *dst, size_t cap);
int words_count(struct words *w, const char *what, int64_t min, int64_t max, int64_t *value);
int words_duration(struct words *w, const char *what, int64_t *us);
/* As words_duration, with a sign before it. */
int words_signed_duration(struct words *w, const char *what, int64_t *us);
/* "80GiB", "8GB", "512KiB", "0B" ... */
int words_size(struct words *w, const char *what, int64_t *bytes);
/* "60W", "0.5W" or "60000mW". */
int words_power(struct words *w, const char *what, int64_t *mw);
/* Fails when words are left. */
int words_end(struct words *w);

#endif

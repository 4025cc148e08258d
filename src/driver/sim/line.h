/* One line of a scenario, cut into words taken one by one. Private to scenario*.c. */
#pragma once

#include "base/base.h"

enum { LINE_WORDS_MAX = 64, LINE_CAP = 2048 };

struct line {
	char text[LINE_CAP]; /* the words, each terminated */
	char *items[LINE_WORDS_MAX];
	size_t n, next;	   /* number of words, and the next one to take */
	const char *where; /* name of the file */
	int number;	   /* of the line in it */
	int64_t day_us;	   /* of a line with `on`: the start of the day it is read for */
	struct err *e;
};

/* Cuts bytes[0..len) into words: blanks separate, "..." quotes (with \" and \\), # at the start
 * of a word begins a comment. */
int line_cut(struct line *l, const char *bytes, size_t len);

/* Fails with "FILE:LINE: sentence"; returns ERR_USAGE. */
int line_fail(const struct line *l, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The next word, or NULL at the end of the line. */
const char *line_peek(const struct line *l);
/* Takes the next word when it is `word`. */
bool line_take(struct line *l, const char *word);
/* Fails when words are left. */
int line_end(struct line *l);

/* These take one word. They fail with a sentence when there is no word or it is something else.
 * `what` names it in the sentence. */
int line_text(struct line *l, const char *what, const char **text);
int line_copy(struct line *l, const char *what, char *dst, size_t cap);
int line_count(struct line *l, const char *what, int64_t min, int64_t max, int64_t *value);
int line_duration(struct line *l, const char *what, int64_t *us);
/* Like line_duration(), with a sign before it. */
int line_signed_duration(struct line *l, const char *what, int64_t *us);
/* "80GiB", "8GB", "512KiB", "0B" ... */
int line_size(struct line *l, const char *what, int64_t *bytes);
/* "60W", "0.5W" or "60000mW". */
int line_power(struct line *l, const char *what, int64_t *mw);

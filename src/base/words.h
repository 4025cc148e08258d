/* Splits a line into words as a POSIX shell would, without running a shell: blanks separate
 * words, '...' keeps everything, "..." keeps everything but \" \\ \$ \` and \newline, \x is x.
 * There is no expansion. */
#pragma once

#include "base/base.h"

/* Returns the words, NULL-terminated like argv, in one allocation that the caller frees with
 * free(). ERR_USAGE for an open quote or a trailing backslash. */
int words_split(const char *line, char ***words, size_t *n, struct err *e);

/* Returns the first character that only a shell would act on: a pipe, a redirection, a list, a
 * variable, a pattern. NULL: there is none. */
const char *words_for_shell(const char *line);

/* Appends a word so that a shell reads it as one: in quotes if it needs them. */
void words_quote(struct str *out, const char *word);

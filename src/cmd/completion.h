/* What the writers of completion scripts share: the values of options and operands, and the
 * writers for three shells. */
#ifndef GUA_CMD_COMPLETION_H
#define GUA_CMD_COMPLETION_H

#include "base/options.h"
#include "base/str.h"
#include "cmd/cmd.h"

/* What a shell may offer as a value. */
enum completion_value {
	COMPLETION_NONE,	/* no value: a flag, or a command without operands */
	COMPLETION_WORDS,	/* one of some words */
	COMPLETION_LIST,	/* several words, separated by commas */
	COMPLETION_LETTERS,	/* several letters, without a separator */
	COMPLETION_USERS,	/* user names, separated by commas */
	COMPLETION_FILES,	/* a path */
	COMPLETION_DIRECTORIES, /* a path of a directory */
	COMPLETION_OTHER,	/* a value that cannot be completed */
};

/* The kind of an option's value. */
enum completion_value completion_option(const struct option_row *row);
/* Whether the word after an option is always its value. */
bool completion_needs_value(const struct option_row *row);
/* The kind of a command's operands. */
enum completion_value completion_operands(const struct command *command);

/* Append words separated by spaces: those of "a|b|c", and those of an option's value. */
void completion_add_words(struct str *out, const char *choices);
void completion_add_option_words(struct str *out, const struct option_row *row);

/* Append the whole script; `commands` ends with NULL. */
void completion_bash(struct str *out, const struct command *const *commands);
void completion_zsh(struct str *out, const struct command *const *commands);
void completion_fish(struct str *out, const struct command *const *commands);

#endif

/* What the writers of completion scripts share: what follows an option, and the three shells.
 */
#ifndef GUA_CMD_COMPLETION_H
#define GUA_CMD_COMPLETION_H

#include "base/options.h"
#include "base/str.h"
#include "cmd/cmd.h"

/* What a shell may offer as a value. */
enum completion_value {
	COMPLETION_NONE,	/* there is none: a flag, a command without operands */
	COMPLETION_WORDS,	/* one of some words */
	COMPLETION_LIST,	/* some of them, with commas between */
	COMPLETION_LETTERS,	/* some of them, which are letters, with nothing between */
	COMPLETION_USERS,	/* names of users, with commas between */
	COMPLETION_FILES,	/* a path */
	COMPLETION_DIRECTORIES, /* a path of a directory */
	COMPLETION_OTHER,	/* something that nobody but the user knows */
};

/* What follows an option. */
enum completion_value completion_option(const struct option_row *row);
/* Whether the word after an option is its value, whatever it is. */
bool completion_needs_value(const struct option_row *row);
/* What a command's operands are. */
enum completion_value completion_operands(const struct command *command);

/* Append words with a blank between them: of "a|b|c", of an option's value. */
void completion_add_words(struct str *out, const char *choices);
void completion_add_option_words(struct str *out, const struct option_row *row);

/* Append the whole script; `commands` ends with NULL. */
void completion_bash(struct str *out, const struct command *const *commands);
void completion_zsh(struct str *out, const struct command *const *commands);
void completion_fish(struct str *out, const struct command *const *commands);

#endif

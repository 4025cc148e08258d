/* Options as a table: one row drives parsing, --help, shell completion and the check of the
 * manual. Values are written into the caller's struct at the row's offset. */
#pragma once

#include "base/base.h"

enum option_kind {
	OPTION_FLAG,	   /* bool */
	OPTION_TEXT,	   /* const char * */
	OPTION_LIST,	   /* struct text_list: may be given several times */
	OPTION_TEXTS,	   /* struct texts: the same without a limit */
	OPTION_COUNT,	   /* int64_t, within min..max */
	OPTION_REAL,	   /* double, within min..max */
	OPTION_DURATION,   /* int64_t milliseconds, within min..max */
	OPTION_SIZE,	   /* int64_t bytes, within min..max: see size_parse() */
	OPTION_CHOICE,	   /* const char *, one of the words in `choices` ("a|b|c") */
	OPTION_MAYBE,	   /* const char *: --name=VALUE, or "" for --name alone */
	OPTION_MAYBE_NEXT, /* the same, and the next word is the value unless it is an option */
};

#define TEXT_LIST_MAX 64

struct text_list {
	const char *items[TEXT_LIST_MAX];
	size_t n;
};

/* An item may be several words with commas between them. Reads the next word of an item; false
 * at its end. */
enum { TEXT_LIST_WORD_CAP = 256 };
bool options_list_word(const char **at, char word[TEXT_LIST_WORD_CAP]);
/* Whether the list is not given, or `match` accepts one of the words; match NULL: a word is the
 * text `what`. */
bool options_list_takes(const struct text_list *list,
	bool (*match)(const char *word, const void *what), const void *what);
/* ERR_USAGE for an item without a word: it would match nothing, and probably comes from an
 * empty variable of a script. */
int options_list_check(const char *option, const struct text_list *list, struct err *e);

/* Zero-initialise; options_texts_finish() frees the array, also after a failure of
 * options_parse(). */
struct texts {
	const char **items; /* point into argv */
	size_t n;
};
void options_texts_finish(struct texts *t);

struct option_row {
	enum option_kind kind;
	char letter;	     /* short name, or 0 */
	const char *name;    /* long name without dashes */
	const char *arg;     /* name of the value in help; NULL for flags */
	const char *help;    /* one line */
	const char *choices; /* OPTION_CHOICE: the words; also for completion elsewhere */
	size_t offset;	     /* of the value in the caller's struct */
	double min, max;     /* for numbers, durations (ms), sizes (bytes); max 0: no limit */
	const char *initial; /* the value if the option is not given, as one would write it;
				help ends with it */
	const char *key;     /* "SECTION.KEY" of a configuration: the value goes to `config` of
				struct command_line, and has its default there */
	bool hidden;	     /* an old spelling: parsed, not shown */
	const char *instead; /* of a hidden one: it is refused, and this is what to write */
	/* For completion: appends the words that the value may have, each with a blank after
	 * it; NULL: `choices` has them. If `arg` has a comma, the value is a list of such
	 * words. */
	void (*words)(struct str *out);
};

/* A value as a user wrote it, and the name that messages give it: "--interval". */
struct written {
	const char *name, *text;
};
/* Sets the value of one row, at its offset in `values`. ERR_USAGE: it is not such a value. */
int options_set_one(
	const struct option_row *row, const struct written *as, void *values, struct err *e);

/* The place of a word among choices "a|b|c", from 0; -1: it is none of them. */
int options_choice(const char *choices, const char *word);

/* No table has more rows. */
#define OPTIONS_MAX 64

/* The words that a program was started with, and what parsing found beside the options. */
struct command_line {
	int argc;
	char **argv;
	bool stop_at_operand; /* the first operand ends the options, as in POSIX; else options
				 and operands may be mixed, until "--" */
	int first_operand;    /* set: index of the first operand; argc: there is none */
	bool *given;  /* OPTIONS_MAX of them, or NULL: set for each row that was given */
	void *config; /* where rows with a key write their values */
	bool help;    /* set: -h or --help was given, and parsing stopped there */
};

/* Sets the initial values, and parses argv[1..]. Operands are moved to the end, as getopt_long
 * does. The table ends with a row without a name (NULL). Every command has -h/--help, which is
 * not in the tables. */
int options_parse(
	struct command_line *line, const struct option_row *table, void *values, struct err *e);

/* Appends the table as help text, in two columns, at most 80 wide. */
void options_describe(const struct option_row *table, struct str *out);

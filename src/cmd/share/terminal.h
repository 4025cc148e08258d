/* What standard output can show: colour, characters, size; and more than fits, with a pager. */
#pragma once

#include <signal.h>

#include "cmd/cmd.h"
#include "render/text.h"

/* Whether standard output is a terminal, and TERM and NO_COLOR allow colour. */
bool terminal_has_color(void);

/* --color: when colours are used; "" (without a value) means always, NULL is auto. */
#define COLOR_ROW(type, member)                                                                \
	{                                                                                      \
		OPTION_MAYBE, 0, "color", "WHEN",                                              \
			"use colours: auto (on a terminal), always or never (default auto; "   \
			"without a value always)",                                             \
			.choices = "auto|always|never", .offset = offsetof(type, member)       \
	}
/* Sets whether colours are used, and whether 256 of them; ERR_USAGE for another word. */
int terminal_choose_color(const char *when, bool *color, bool *color256, struct err *e);
/* Whether NO_COLOR allows colour. */
bool terminal_may_color(void);
/* Whether the terminal has no control codes: TERM says so, or is not set. */
bool terminal_is_dumb(void);
/* Whether the locale uses UTF-8. Sets the program's LC_CTYPE. */
bool terminal_is_utf8(void);

struct terminal_size {
	size_t rows, columns;
};

/* The size of the terminal that is open; 0 if it is none or the size is unknown. */
struct terminal_size terminal_size(int fd);

/* How text is printed: as wide as the terminal, with its colours and characters. */
struct text_style terminal_style(bool ascii, bool utc);

/* A progress bar on a terminal, for work that a signal may end between two steps. */

struct progress {
	const char *unit; /* "rows" */
	bool terminal;	  /* stderr is a terminal */
	bool shown;	  /* there is a bar to erase */
	int64_t drawn_ms; /* monotonic time of the last drawing, to limit the rate */
	sigset_t signals; /* those that end the work */
};

void terminal_progress_init(struct progress *p, const char *unit);
/* From here on, signals that would end the program wait for terminal_progress_step(), so that
 * work can be undone. Returns 0, or -1. */
int terminal_progress_hold_signals(struct progress *p);
/* Draws the bar of a struct progress; returns non-zero if a signal asks to stop. */
int terminal_progress_step(void *progress, int64_t done, int64_t total);
void terminal_progress_erase(struct progress *p);

/* The row of the option that switches off the pager. */
#define PAGER_ROW(type, member)                                                                \
	{                                                                                      \
		OPTION_FLAG, 0, "no-pager",                                                    \
			.help = "use no pager, also if the text is longer than the terminal",  \
			.offset = offsetof(type, member)                                       \
	}

/* Prints the text as cmd_print() does, or through the user's pager, as git does: GUA_PAGER,
 * PAGER or less, if standard output is a terminal with fewer lines. Finishes `out`; returns the
 * exit status. */
int terminal_page(const struct command *self, struct str *out, bool none);

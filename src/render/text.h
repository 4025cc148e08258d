/* Text for people: tables within a width, wrapped sentences. Everything that is printed
 * here stays within style.columns and, when style.ascii, within ASCII. */
#pragma once

#include "model/table.h"

struct text_style {
	size_t columns; /* width of the page */
	bool ascii;	/* ASCII only: blocks have a replacement, names are escaped */
	bool color;	/* escape sequences may be used */
	bool color256;	/* and those of 256 colours */
	bool watch;	/* colours end with a sequence that watch(1) knows, as in gpustat */
	bool utc;	/* moments in UTC instead of local time */
	bool minutes;	/* GPU time in minutes: as the table says, whose cells are shown */
};

/* Appends `text`, truncated to `columns` with a mark at the end. Returns the columns used. */
size_t text_add_cut(
	struct str *out, const char *text, size_t columns, const struct text_style *style);
/* Appends a paragraph broken at spaces; lines after the first start at column `indent`, and
 * the first continues at column `at`. Ends with a newline. */
void text_add_wrapped(struct str *out, const char *text, size_t at, size_t indent,
	const struct text_style *style);
/* Appends `text` between the escape sequences of `color` ("1;31"), or plain. */
void text_add_colored(
	struct str *out, const char *text, const char *color, const struct text_style *style);

/* Removes blanks at the end of the line, and ends it. */
void text_end_line(struct str *out);

/* A cell as people read it; "-" when it is unknown. */
void text_cell(char *dst, size_t cap, const struct column *column, const struct cell *cell,
	const struct text_style *style);
/* Whether people see a column: an optional one only if a row has a value. */
bool text_shows(const struct table *t, size_t column);
/* Appends the table with a heading, indented by two. */
void text_add_table(struct str *out, const struct table *t, const struct text_style *style);

/* Pieces of HTML: escaped text and tables. The result has no scripts and no style
 * attributes, so that a page may forbid both. */
#pragma once

#include "model/table.h"

/* Appends escaped text, which is also safe in a quoted attribute. */
void html_text(struct str *out, const char *text);

/* Appends the sign of a state, in the colour of its class. */
void html_key(struct str *out, const char *class);
/* Appends a paragraph that the reader must not miss. */
void html_warning(struct str *out, const char *text);

/* Appends the fill patterns of states, which the stylesheet refers to, so that states differ
 * not only by colour. Once per page. */
void html_patterns(struct str *out);
/* The same for the <defs> of a picture. */
void html_pattern_defs(struct str *out);

/* Appends text as part of a path or a query value: all bytes except unreserved ones are
 * percent-encoded. */
void html_url(struct str *out, const char *text);
/* Appends HTML as printf does: %s is a text for html_text(), %-s one for html_url(); also %d,
 * %u, %zu, %.1f and the like. */
void html_addf(struct str *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The link of a column: to `path`, followed by the texts of one or two other columns of the
 * row. If one of them is empty, the row has no link. */
struct html_link {
	const char *title;   /* of the column that is shown */
	const char *path;    /* "/user/" */
	const char *keys[2]; /* of the other columns */
};

/* How a table looks. */
struct html_table_style {
	const char *caption;  /* what the table shows; also for screen readers */
	const char *bars;     /* title of a column of shares that also gets bars, or NULL */
	const unsigned *deep; /* for each row its level, from 0; NULL: all are 0 */
	size_t deep_step;     /* bytes from one level to the next */
	bool utc;	      /* moments in UTC instead of local time */
	const struct html_link *links; /* ends with one without a title; NULL: none */
};
/* Appends the columns that have a title; optional ones only if a row has a value. */
void html_table(struct str *out, const struct table *t, const struct html_table_style *style);

enum style_part { STYLE_TOKENS, STYLE_STATES, STYLE_PAGE, STYLE_REPORT, STYLE_PARTS };

/* Appends the parts from `first` to `last`. */
void html_style(struct str *out, enum style_part first, enum style_part last);

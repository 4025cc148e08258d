/* Pieces of HTML: escaped text and tables. What is made here needs no script, and no style
 * attributes, so that a page may forbid both. */
#ifndef GUA_RENDER_HTML_H
#define GUA_RENDER_HTML_H

#include "base/str.h"
#include "model/table.h"

/* Appends text so that it is text, also in the value of an attribute between quotes. */
void html_text(struct str *out, const char *text);

/* Appends the patterns of states, which the stylesheet refers to: once in a page, so that
 * colour is not the only difference. */
void html_patterns(struct str *out);
/* The same for the <defs> of a picture. */
void html_pattern_defs(struct str *out);

/* Appends text as a part of a path or a value of a query: all bytes but unreserved ones are
 * percent-encoded. */
void html_url(struct str *out, const char *text);

/* Where the names in a column lead: to `path`, followed by the texts of one or two other
 * columns of the row. A row in which one of them is empty has no link. */
struct html_link {
	const char *title;   /* of the column that is shown */
	const char *path;    /* "/user/" */
	const char *keys[2]; /* of the other columns */
};

/* How a table looks. */
struct html_table_style {
	const char *caption;  /* what the table shows; for those who do not see the page, too */
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

#endif

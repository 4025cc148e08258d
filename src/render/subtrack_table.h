/* A table of numbers as gpu-tracker prints it: names on the left, numbers right-aligned, one
 * blank between columns. */
#ifndef GUA_RENDER_SUBTRACK_TABLE_H
#define GUA_RENDER_SUBTRACK_TABLE_H

#include <stddef.h>

#include "base/str.h"

/* The caller owns everything; texts are safe to show. */
struct subtrack_table {
	const char *const *heads; /* of the columns */
	size_t n_columns;
	const char *const *names; /* of the rows; NULL: one row without a name */
	size_t n_rows;
	const double *cells; /* row by row; NAN: unknown */
};

/* Appends the table, each line after `depth` tabs. */
void subtrack_table_text(struct str *out, const struct subtrack_table *table, size_t depth);

/* Appends `text` with blanks before or after it, `width` columns wide. */
void subtrack_add_right(struct str *out, const char *text, size_t width);
void subtrack_add_left(struct str *out, const char *text, size_t width);

/* Writes a number with at most 8 decimals and at least one; "-" if it is unknown. */
void subtrack_number(char *dst, size_t cap, double number);

#endif

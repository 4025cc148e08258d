/* A table of rows: what a question becomes, and what every format prints. A column says once
 * what its numbers mean; text, CSV and JSON follow from that. */
#ifndef GUA_MODEL_TABLE_H
#define GUA_MODEL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the number in a cell is, and so how it is shown: to people / to programs. */
enum column_kind {
	COLUMN_TEXT,   /* already safe for a terminal */
	COLUMN_COUNT,  /* a whole number */
	COLUMN_GPU_MS, /* milliseconds of GPU time: hours / seconds */
	COLUMN_MS,     /* milliseconds: seconds / seconds */
	COLUMN_SHARE,  /* 0..1: percent / the share */
	COLUMN_PCT,    /* 0..100: percent / the number */
	COLUMN_KIB,    /* KiB: GB / MB (10^6 bytes) */
	COLUMN_MJ,     /* millijoules: kWh / joules */
	COLUMN_MOMENT, /* unix milliseconds: day and time / ISO 8601 in UTC */
};

struct column {
	const char *key;   /* name in CSV and JSON */
	const char *title; /* heading in text; NULL: not shown there */
	enum column_kind kind;
	int width; /* text: at least so wide; a text column is cut to it when it is negative */
	bool flexible; /* text: takes what is left of the line, and is cut */
};

struct cell {
	const char *text; /* COLUMN_TEXT; NULL: none */
	double number;	  /* the others; NAN: unknown */
};

struct table {
	const struct column *columns; /* the maker's, constant */
	size_t n_columns;
	struct cell *cells; /* n_rows x n_columns, row by row; texts are the table's own */
	size_t n_rows, cap_rows;
	uint64_t optional; /* bit c: text leaves column c out when no row knows it, or there is
			      no room */
	bool failed;	   /* out of memory: rows are missing */
};

/* A text that is copied into the table, and a number; -1 as an integer means unknown. */
struct cell cell_text(const char *text);
struct cell cell_number(double number);
struct cell cell_known(int64_t number);

/* Adds a row of n_columns cells; texts are copied. */
void table_add(struct table *t, const struct cell *cells);
/* The cell at (row, column). */
const struct cell *table_cell(const struct table *t, size_t row, size_t column);
void table_finish(struct table *t);

#endif

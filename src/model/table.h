/* A table of rows: the result of a query, which every format prints. A column defines once
 * what its numbers mean; text, CSV and JSON follow from that. */
#pragma once

#include "base/base.h"

/* What the number in a cell is. This decides how it is shown: to people / to programs. */
enum column_kind {
	COLUMN_TEXT,   /* already safe for a terminal */
	COLUMN_COUNT,  /* a whole number */
	COLUMN_GPU_MS, /* milliseconds of GPU time: hours (or minutes) / seconds */
	COLUMN_MS,     /* milliseconds: seconds / seconds */
	COLUMN_LENGTH, /* milliseconds: "3 h 20 min" / seconds */
	COLUMN_SHARE,  /* 0..1: percent / the share */
	COLUMN_PCT,    /* 0..100: percent / the number */
	COLUMN_USE,    /* the same, of a process: percent / the number, one decimal */
	COLUMN_KIB,    /* KiB: MiB or GiB / bytes */
	COLUMN_MJ,     /* millijoules: kWh / joules */
	COLUMN_KWH,    /* kilowatt-hours */
	COLUMN_MONEY,  /* in the currency that is named elsewhere: cents / all decimals */
	COLUMN_BOOL,   /* 0 or 1: no, yes / false, true in JSON and 0, 1 in CSV */
	COLUMN_MOMENT, /* unix milliseconds: day and time / ISO 8601 in UTC */
};

struct cell {
	const char *text; /* COLUMN_TEXT; NULL: none */
	double number;	  /* the others; NAN: unknown */
};

/* A column: its names, what its numbers are, and how to get them from the struct that a row is
 * made of. A format shows the columns that have a name for it, in this order; where the formats
 * differ in order, a column stands in the table twice. */
struct column {
	const char *key;   /* name in CSV and in JSON; NULL: in neither */
	const char *title; /* heading in text, of one line or two; NULL: not shown there */
	const char *json; /* name in JSON if it differs: "group.name" goes into an object of the
			     row, together with the neighbouring columns of that group; "": not
			     in JSON */
	enum column_kind kind;
	/* The cell of a row. `of` selects one of the values that the getter knows: a state, or
	 * the offset of a member. A text need not outlive the row. */
	struct cell (*get)(const void *row, size_t of);
	size_t of;
	int width;     /* text: minimum width; a negative width truncates a text column to it */
	bool flexible; /* text: takes the rest of the line, and is truncated; optional columns
			  make room until it has its minimum width */
	bool wraps; /* text: of a flexible column, the last one: wrapped instead of truncated */
	bool optional; /* text: left out when no row has a value, or there is no room */
	bool needed;   /* an optional one for which others make room */
};

struct table {
	const struct column *columns; /* the maker's, constant */
	size_t n_columns;
	struct cell *cells; /* n_rows x n_columns, row by row; texts are the table's own */
	size_t n_rows, cap_rows;
	struct arena texts; /* of the cells */
	bool failed;	    /* out of memory: rows are missing */
	bool minutes;	    /* people see GPU time in minutes instead of hours */
};

/* A text that is copied into the table, and a number; -1 as an integer means unknown. */
struct cell table_text(const char *text);
struct cell table_number(double number);
struct cell table_known(int64_t number);

/* Getters for members of the row's struct: `of` is the offset of a char array, of one where ""
 * is none, of a char *, of a double, of an int64_t where -1 is unknown, of a size_t, of a
 * uint32_t, of a bool. */
struct cell table_get_chars(const void *row, size_t of);
struct cell table_get_some_chars(const void *row, size_t of);
struct cell table_get_string(const void *row, size_t of);
struct cell table_get_double(const void *row, size_t of);
struct cell table_get_known(const void *row, size_t of);
struct cell table_get_size(const void *row, size_t of);
struct cell table_get_uint(const void *row, size_t of);
struct cell table_get_flag(const void *row, size_t of);

/* Adds a row: what the columns get from it; texts are copied. */
void table_add(struct table *t, const void *row);
/* The cell at (row, column). */
const struct cell *table_cell(const struct table *t, size_t row, size_t column);
/* Those of the rows first .. first + n - 1 that there are, as a table that borrows them: no
 * table_finish() for it. */
struct table table_part(const struct table *t, size_t first, size_t n);
void table_finish(struct table *t);

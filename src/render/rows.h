/* Tables for programs: the same cells as CSV lines (RFC 4180) and as JSON objects. */
#pragma once

#include "model/present.h"
#include "model/table.h"
#include "render/json.h"

/* Appends one text, quoted if necessary. A text that a spreadsheet would run as a formula
 * gets an apostrophe in front. */
void rows_text(struct str *out, const char *text);
/* The same for a text of gua itself that programs read: never with an apostrophe. */
void rows_own_text(struct str *out, const char *text);
/* The names of the columns that have a key. */
void rows_header(struct str *out, const struct column *columns, size_t n);
/* One row. */
void rows_add(
	struct str *out, const struct column *columns, size_t n, const struct cell *cells);
/* Header and all rows. */
void rows_table(struct str *out, const struct table *t);

/* Adds one row as an object to the open array. Adjacent columns that are named "group.key" form
 * an object in it. */
void rows_json_row(
	struct json *j, const struct column *columns, size_t n, const struct cell *cells);
/* The cells of a row in the object that is open. */
void rows_json_cells(
	struct json *j, const struct column *columns, size_t n, const struct cell *cells);
/* All rows as an array of objects. */
void rows_json_table(struct json *j, const char *key, const struct table *t);
/* The array of the cards that are reserved now. */
void rows_json_reserved(struct json *j, const struct present *now);

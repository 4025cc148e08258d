/* Prints tables of numbers in gpu-tracker's form. */
#include "render/subtrack_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_CAP = 400 };

void subtrack_number(char *dst, size_t cap, double number)
{
	char decimals[NUMBER_CAP];
	if (!isfinite(number)) {
		text_copy(dst, cap, "-");
		return;
	}
	snprintf(decimals, sizeof(decimals), "%.8f", number);
	text_exact(dst, cap, strtod(decimals, NULL));
	size_t len = strlen(dst);
	if (!strpbrk(dst, ".e"))
		text_copy(dst + len, cap - len, ".0");
}

static size_t missing_columns(const char *text, size_t width)
{
	size_t have = text_columns(text);
	return have < width ? width - have : 0;
}

void subtrack_add_right(struct str *out, const char *text, size_t width)
{
	str_add_repeat(out, " ", missing_columns(text, width));
	str_add(out, text);
}

void subtrack_add_left(struct str *out, const char *text, size_t width)
{
	str_add(out, text);
	str_add_repeat(out, " ", missing_columns(text, width));
}

/* A column is wider than its title by at least one. */
static size_t column_width(const struct subtrack_table *t, size_t column)
{
	char number[NUMBER_CAP];
	size_t width = text_columns(t->heads[column]) + 1;
	for (size_t row = 0; row < t->n_rows; row++) {
		subtrack_number(number, sizeof(number), t->cells[row * t->n_columns + column]);
		width = strlen(number) > width ? strlen(number) : width;
	}
	return width;
}

static void add_row(
	struct str *out, const struct subtrack_table *t, const size_t *widths, size_t row)
{
	char number[NUMBER_CAP];
	for (size_t i = 0; i < t->n_columns; i++) {
		subtrack_number(number, sizeof(number), t->cells[row * t->n_columns + i]);
		str_add(out, " ");
		subtrack_add_right(out, number, widths[i]);
	}
	str_add(out, "\n");
}

void subtrack_table_text(struct str *out, const struct subtrack_table *t, size_t depth)
{
	size_t names = 0, *widths = calloc(t->n_columns + 1, sizeof(*widths));
	if (!widths) {
		out->failed = true;
		return;
	}
	for (size_t row = 0; t->names && row < t->n_rows; row++) {
		size_t width = text_columns(t->names[row]);
		names = width > names ? width : names;
	}
	str_add_repeat(out, "\t", depth);
	str_add_repeat(out, " ", names);
	for (size_t i = 0; i < t->n_columns; i++) {
		widths[i] = column_width(t, i);
		str_add(out, " ");
		subtrack_add_right(out, t->heads[i], widths[i]);
	}
	str_add(out, "\n");
	for (size_t row = 0; row < t->n_rows; row++) {
		str_add_repeat(out, "\t", depth);
		subtrack_add_left(out, t->names ? t->names[row] : "", names);
		add_row(out, t, widths, row);
	}
	free(widths);
}

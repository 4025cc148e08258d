/* Builds tables: rows of cells that own their texts. */
#include "model/table.h"

struct cell table_text(const char *text)
{
	return (struct cell){ .text = text, .number = NAN };
}

struct cell table_number(double number)
{
	return (struct cell){ .number = number };
}

struct cell table_known(int64_t number)
{
	return table_number(number < 0 ? NAN : (double)number);
}

struct cell table_get_chars(const void *row, size_t of)
{
	return table_text((const char *)row + of);
}

struct cell table_get_some_chars(const void *row, size_t of)
{
	const char *text = (const char *)row + of;
	return table_text(*text ? text : NULL);
}

struct cell table_get_string(const void *row, size_t of)
{
	const char *text;
	memcpy(&text, (const char *)row + of, sizeof(text));
	return table_text(text);
}

struct cell table_get_double(const void *row, size_t of)
{
	double number;
	memcpy(&number, (const char *)row + of, sizeof(number));
	return table_number(number);
}

struct cell table_get_known(const void *row, size_t of)
{
	int64_t number;
	memcpy(&number, (const char *)row + of, sizeof(number));
	return table_known(number);
}

struct cell table_get_size(const void *row, size_t of)
{
	size_t number;
	memcpy(&number, (const char *)row + of, sizeof(number));
	return table_number((double)number);
}

struct cell table_get_uint(const void *row, size_t of)
{
	uint32_t number;
	memcpy(&number, (const char *)row + of, sizeof(number));
	return table_number(number);
}

struct cell table_get_flag(const void *row, size_t of)
{
	return table_number(*(const bool *)((const char *)row + of));
}

void table_add(struct table *t, const void *row)
{
	size_t row_size = t->n_columns * sizeof(*t->cells);
	if (t->failed ||
		!array_reserve_sized(&t->cells, &t->cap_rows, t->n_rows + 1, row_size)) {
		t->failed = true;
		return;
	}
	struct cell *cells = t->cells + t->n_rows++ * t->n_columns;
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct column *column = &t->columns[i];
		cells[i] = column->get(row, column->of);
		if (cells[i].text) {
			cells[i].text = arena_text(&t->texts, cells[i].text);
			t->failed |= t->texts.failed;
		}
	}
}

const struct cell *table_cell(const struct table *t, size_t row, size_t column)
{
	return &t->cells[row * t->n_columns + column];
}

struct table table_part(const struct table *t, size_t first, size_t n)
{
	struct table part = *t;
	first = first < t->n_rows ? first : t->n_rows;
	part.cells = t->cells + first * t->n_columns;
	part.n_rows = n < t->n_rows - first ? n : t->n_rows - first;
	return part;
}

void table_finish(struct table *t)
{
	arena_finish(&t->texts);
	free(t->cells);
	*t = (struct table){ 0 };
}

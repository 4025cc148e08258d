/* Cells for programs. */
#include "render/rows.h"

#include <math.h>
#include <string.h>

#include "base/timetext.h"

/* How a kind's number is written: times `factor`, with so many decimals. */
static const struct machine_form {
	double factor;
	int decimals;
} forms[] = {
	[COLUMN_COUNT] = { 1, 0 },
	[COLUMN_GPU_MS] = { 1e-3, 3 },
	[COLUMN_MS] = { 1e-3, 3 },
	[COLUMN_SHARE] = { 1, 6 },
	[COLUMN_PCT] = { 1, 3 },
	[COLUMN_KIB] = { 1024 / 1e6, 3 },
	[COLUMN_MJ] = { 1e-3, 3 },
};

/* The cell as a number; "" when it is unknown. */
static void plain_number(
	char *dst, size_t cap, const struct column *column, const struct cell *cell)
{
	const struct machine_form *form = &forms[column->kind];
	number_text(dst, cap, cell->number * form->factor, form->decimals);
}

static void add_csv_text(struct str *out, const char *text)
{
	bool formula = *text && strchr("=+-@\t\r", *text);
	if (!formula && !text[strcspn(text, ",\"\r\n")]) {
		str_add(out, text);
		return;
	}
	str_add(out, formula ? "\"'" : "\"");
	for (const char *c = text; *c; c++) {
		if (*c == '"')
			str_add(out, "\"");
		str_add_bytes(out, c, 1);
	}
	str_add(out, "\"");
}

static void add_csv_cell(struct str *out, const struct column *column, const struct cell *cell)
{
	char text[400] = "";
	if (column->kind == COLUMN_TEXT) {
		add_csv_text(out, cell->text ? cell->text : "");
		return;
	}
	if (column->kind != COLUMN_MOMENT)
		plain_number(text, sizeof(text), column, cell);
	else if (isfinite(cell->number))
		moment_iso(text, sizeof(text), (int64_t)cell->number);
	str_add(out, text);
}

void csv_header(struct str *out, const struct column *columns, size_t n)
{
	const char *comma = "";
	for (size_t i = 0; i < n; i++) {
		if (!columns[i].key)
			continue;
		str_addf(out, "%s%s", comma, columns[i].key);
		comma = ",";
	}
	str_add(out, "\r\n");
}

void csv_row(struct str *out, const struct column *columns, size_t n, const struct cell *cells)
{
	const char *comma = "";
	for (size_t i = 0; i < n; i++) {
		if (!columns[i].key)
			continue;
		str_add(out, comma);
		add_csv_cell(out, &columns[i], &cells[i]);
		comma = ",";
	}
	str_add(out, "\r\n");
}

void csv_table(struct str *out, const struct table *t)
{
	csv_header(out, t->columns, t->n_columns);
	for (size_t row = 0; row < t->n_rows; row++)
		csv_row(out, t->columns, t->n_columns, table_cell(t, row, 0));
	out->failed |= t->failed;
}

void json_row(struct json *j, const struct column *columns, size_t n, const struct cell *cells)
{
	json_open(j, NULL, '{');
	for (size_t i = 0; i < n; i++) {
		const struct column *column = &columns[i];
		const struct machine_form *form =
			&forms[column->kind < COLUMN_MOMENT ? column->kind : 0];
		if (!column->key)
			continue;
		if (column->kind == COLUMN_TEXT)
			json_text(j, column->key, cells[i].text);
		else if (column->kind == COLUMN_MOMENT)
			json_moment(j, column->key,
				isfinite(cells[i].number) ? (int64_t)cells[i].number : -1);
		else
			json_number(
				j, column->key, cells[i].number * form->factor, form->decimals);
	}
	json_close(j, '}');
}

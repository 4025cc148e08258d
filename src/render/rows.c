/* Writes the cells of tables as CSV and JSON. */
#include "render/rows.h"

enum { GROUP_CAP = 64 };

/* How the numbers of a kind are written: multiplied by `factor`, with this many decimals. */
static const struct machine_form {
	double factor;
	int decimals;
} forms[] = {
	[COLUMN_COUNT] = { 1, 0 },
	[COLUMN_GPU_MS] = { 1e-3, 3 },
	[COLUMN_MS] = { 1e-3, 3 },
	[COLUMN_LENGTH] = { 1e-3, 3 },
	[COLUMN_SHARE] = { 1, 6 },
	[COLUMN_PCT] = { 1, 3 },
	[COLUMN_USE] = { 1, 1 },
	[COLUMN_KIB] = { 1024, 0 },
	[COLUMN_MJ] = { 1e-3, 3 },
	[COLUMN_KWH] = { 1, 6 },
	[COLUMN_MONEY] = { 1, 6 },
	[COLUMN_BOOL] = { 1, 0 },
};

/* `before` is written first, inside the quotes. */
static void add_quoted(struct str *out, const char *before, const char *text)
{
	str_addf(out, "\"%s", before);
	for (const char *c = text; *c; c++) {
		if (*c == '"')
			str_add(out, "\"");
		str_add_bytes(out, c, 1);
	}
	str_add(out, "\"");
}

void rows_own_text(struct str *out, const char *text)
{
	if (text[strcspn(text, ",\"\r\n")])
		add_quoted(out, "", text);
	else
		str_add(out, text);
}

void rows_text(struct str *out, const char *text)
{
	if (*text && strchr("=+-@\t\r", *text))
		add_quoted(out, "'", text);
	else
		rows_own_text(out, text);
}

static void add_csv_cell(struct str *out, const struct column *column, const struct cell *cell)
{
	const struct machine_form *form = &forms[column->kind];
	char text[400] = "";
	if (column->kind == COLUMN_TEXT) {
		rows_text(out, cell->text ? cell->text : "");
		return;
	}
	if (column->kind != COLUMN_MOMENT)
		json_number_text(
			text, sizeof(text), cell->number * form->factor, form->decimals);
	else if (isfinite(cell->number))
		str_copy(text, sizeof(text), moment_iso((int64_t)cell->number).text);
	str_add(out, text);
}

void rows_header(struct str *out, const struct column *columns, size_t n)
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

void rows_add(struct str *out, const struct column *columns, size_t n, const struct cell *cells)
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

void rows_table(struct str *out, const struct table *t)
{
	rows_header(out, t->columns, t->n_columns);
	for (size_t row = 0; row < t->n_rows; row++)
		rows_add(out, t->columns, t->n_columns, table_cell(t, row, 0));
	out->failed |= t->failed;
}

void rows_json_cells(
	struct json *j, const struct column *columns, size_t n, const struct cell *cells)
{
	char group[GROUP_CAP] = "";
	for (size_t i = 0; i < n; i++) {
		const char *name = columns[i].json ? columns[i].json : columns[i].key;
		if (!name || !*name)
			continue;
		/* Closes the open group's object and opens that of `name`, which is "group.key"
		 * or "key". */
		const char *dot = strchr(name, '.');
		size_t len = dot ? (size_t)(dot - name) : 0;
		if (strlen(group) != len || strncmp(group, name, len) != 0) {
			if (*group)
				json_close(j, '}');
			snprintf(group, GROUP_CAP, "%.*s", (int)len, name);
			if (*group)
				json_open(j, group, '{');
		}
		const char *key = dot ? dot + 1 : name;
		double x = cells[i].number;
		if (columns[i].kind == COLUMN_TEXT)
			json_text(j, key, cells[i].text);
		else if (columns[i].kind == COLUMN_MOMENT)
			json_moment(j, key, isfinite(x) ? (int64_t)x : -1);
		else if (columns[i].kind == COLUMN_BOOL && isfinite(x))
			json_bool(j, key, x != 0);
		else
			json_number(j, key, x * forms[columns[i].kind].factor,
				forms[columns[i].kind].decimals);
	}
	if (*group)
		json_close(j, '}');
}

void rows_json_row(
	struct json *j, const struct column *columns, size_t n, const struct cell *cells)
{
	json_open(j, NULL, '{');
	rows_json_cells(j, columns, n, cells);
	json_close(j, '}');
}

void rows_json_table(struct json *j, const char *key, const struct table *t)
{
	json_open(j, key, '[');
	for (size_t row = 0; row < t->n_rows; row++)
		rows_json_row(j, t->columns, t->n_columns, table_cell(t, row, 0));
	json_close(j, ']');
	j->out->failed |= t->failed;
}

void rows_json_reserved(struct json *j, const struct present *now)
{
	json_open(j, "reserved", '[');
	for (size_t i = 0; i < now->n_cards; i++) {
		const struct present_card *c = &now->cards[i];
		if (c->state != CARD_RESERVED)
			continue;
		json_open(j, NULL, '{');
		json_text(j, "uuid", c->id.uuid);
		json_number(j, "card", c->id.index, 0);
		json_text(j, "leased_to", c->leased_to);
		json_moment(j, "leased_since", c->leased_since_ms);
		json_moment(j, "reserved_since", c->state_since_ms);
		json_number(j, "leases", (double)c->n_leases, 0);
		json_close(j, '}');
	}
	json_close(j, ']');
}

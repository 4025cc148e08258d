/* Formats text into a width: truncation, wrapping, tables. */
#include "render/text.h"

#include <assert.h>

enum { INDENT = 2, GAP = 2, MAX_COLUMNS = 56, FLEXIBLE_MIN = 6, TITLE_LINES = 2 };

/* One character of `text` as the style shows it; returns the bytes taken. */
static size_t show_char(char piece[20], const char *text, const struct text_style *style)
{
	unsigned code = 0;
	size_t n = str_utf8_char(text, strlen(text), &code);
	size_t taken = n ? n : 1, len = 0;
	if (n && (n == 1 || !style->ascii)) {
		memcpy(piece, text, n);
		piece[n] = '\0';
		return taken;
	}
	for (size_t i = 0; i < taken; i++)
		len += (size_t)snprintf(
			piece + len, 20 - len, "\\x%02X", (unsigned)(unsigned char)text[i]);
	return taken;
}

size_t text_add_cut(
	struct str *out, const char *text, size_t columns, const struct text_style *style)
{
	char piece[20];
	size_t used = 0, mark_at = out->len, mark_used = 0, plain = str_plain(text);
	if (!text[plain] && plain <= columns) {
		str_add_bytes(out, text, plain);
		return plain;
	}
	while (*text) {
		text += show_char(piece, text, style);
		size_t wide = str_columns(piece);
		if (used + wide > columns) {
			/* Go back to the last position at which the truncation mark fits. */
			out->len = mark_at;
			str_add(out, columns ? (style->ascii ? "~" : "…") : "");
			return columns ? mark_used + 1 : 0;
		}
		str_add(out, piece);
		used += wide;
		if (used < columns) {
			mark_at = out->len;
			mark_used = used;
		}
	}
	return used;
}

/* The end of the word at `text`: a space, or where it must be broken. */
static size_t word_length(const char *text, size_t *columns, const struct text_style *style)
{
	char piece[20];
	size_t len = 0, room = style->columns / 2;
	*columns = 0;
	while (text[len] && text[len] != ' ') {
		size_t taken = show_char(piece, text + len, style);
		if (len && *columns + str_columns(piece) > room)
			break;
		*columns += str_columns(piece);
		len += taken;
	}
	return len;
}

void text_add_wrapped(struct str *out, const char *text, size_t at, size_t indent,
	const struct text_style *style)
{
	char piece[20];
	bool space = false;
	while (*text) {
		size_t columns = 0, len = word_length(text, &columns, style);
		if (at > indent && at + space + columns > style->columns) {
			str_addf(out, "\n%*s", (int)indent, "");
			at = indent;
			space = false;
		}
		str_add(out, space ? " " : "");
		at += space + columns;
		for (const char *end = text + len; text < end;) {
			text += show_char(piece, text, style);
			str_add(out, piece);
		}
		space = *text == ' ';
		text += strspn(text, " ");
	}
	str_add(out, "\n");
}

void text_add_colored(
	struct str *out, const char *text, const char *color, const struct text_style *style)
{
	if (style->color)
		str_addf(out, "\033[%sm%s\033[%sm", color, text, style->watch ? "0;10" : "0");
	else
		str_add(out, text);
}

void text_cell(char *dst, size_t cap, const struct column *column, const struct cell *cell,
	const struct text_style *style)
{
	double x = cell->number;
	if (column->kind == COLUMN_TEXT)
		str_copy(dst, cap, cell->text ? cell->text : "-");
	else if (!isfinite(x))
		str_copy(dst, cap, "-");
	else if (column->kind == COLUMN_COUNT)
		snprintf(dst, cap, "%.0f", x);
	else if (column->kind == COLUMN_GPU_MS)
		snprintf(dst, cap, "%.2f", x / (style->minutes ? 60e3 : 3600e3));
	else if (column->kind == COLUMN_MS)
		snprintf(dst, cap, "%.1f", x / 1000);
	else if (column->kind == COLUMN_LENGTH)
		str_copy(dst, cap, duration_text((int64_t)x).text);
	else if (column->kind == COLUMN_SHARE)
		snprintf(dst, cap, "%.1f%%", 100 * x);
	else if (column->kind == COLUMN_PCT || column->kind == COLUMN_USE)
		snprintf(dst, cap, "%.1f%%", x);
	else if (column->kind == COLUMN_BOOL)
		str_copy(dst, cap, x != 0 ? "yes" : "no");
	else if (column->kind == COLUMN_KWH || column->kind == COLUMN_MONEY)
		snprintf(dst, cap, "%.2f", x);
	else if (column->kind == COLUMN_MJ)
		snprintf(dst, cap, "%.2f", x / 3.6e9);
	else if (column->kind == COLUMN_KIB) {
		str_copy(dst, cap, size_text(x * 1024).text);
	} else {
		struct tm tm = moment_fields((int64_t)x, style->utc);
		snprintf(dst, cap, "%02d-%02d %02d:%02d", tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
			tm.tm_min);
	}
}

static size_t shown_columns(const char *text, const struct text_style *style)
{
	char piece[20];
	size_t columns = str_plain(text);
	for (text += columns; *text;) {
		text += show_char(piece, text, style);
		columns += str_columns(piece);
	}
	return columns;
}

/* A line of a title, the last at the bottom; "" where it has none. */
static void title_line(char *dst, size_t cap, const char *title, int line)
{
	const char *second = strchr(title, '\n');
	if (line == TITLE_LINES - 1)
		str_copy(dst, cap, second ? second + 1 : title);
	else
		snprintf(dst, cap, "%.*s", second ? (int)(second - title) : 0, title);
}

static size_t column_width(const struct table *t, size_t c, const struct text_style *style)
{
	const struct column *column = &t->columns[c];
	size_t least = (size_t)(column->width < 0 ? 0 : column->width);
	char text[512];
	size_t width = least;
	for (int line = 0; line < TITLE_LINES; line++) {
		title_line(text, sizeof(text), column->title, line);
		width = str_columns(text) > width ? str_columns(text) : width;
	}
	for (size_t row = 0; row < t->n_rows; row++) {
		text_cell(text, sizeof(text), column, table_cell(t, row, c), style);
		size_t wide = shown_columns(text, style);
		width = wide > width ? wide : width;
	}
	size_t most = column->width < 0 ? (size_t)-column->width : width;
	return width > most ? most : width;
}

/* How many rows have a value in the column. */
static size_t count_known(const struct table *t, size_t c)
{
	size_t n = 0;
	for (size_t row = 0; row < t->n_rows; row++) {
		const struct cell *cell = table_cell(t, row, c);
		n += cell->text ? *cell->text != '\0' : !isnan(cell->number);
	}
	return n;
}

bool text_shows(const struct table *t, size_t c)
{
	return t->columns[c].title && (!t->columns[c].optional || count_known(t, c));
}

/* The optional column that has the fewest values; n_columns: none is left. */
static size_t emptiest(const struct table *t, const size_t widths[MAX_COLUMNS], size_t keep)
{
	size_t found = t->n_columns, least = SIZE_MAX;
	for (size_t c = t->n_columns; c-- > 0;) {
		if (!widths[c] || !t->columns[c].optional || t->columns[c].needed ||
			c == keep || count_known(t, c) >= least)
			continue;
		least = count_known(t, c);
		found = c;
	}
	return found;
}

/* Widths of all columns, 0 for those that are not shown. */
static void choose_widths(
	const struct table *t, size_t widths[MAX_COLUMNS], const struct text_style *style)
{
	size_t used = 0, flexible = MAX_COLUMNS;
	for (size_t c = 0; c < t->n_columns; c++) {
		widths[c] = text_shows(t, c) ? column_width(t, c, style) : 0;
		if (!widths[c])
			continue;
		used += (used ? GAP : INDENT) + widths[c];
		if (t->columns[c].flexible)
			flexible = c;
	}
	if (flexible == MAX_COLUMNS)
		return;
	/* If shrinking the flexible column is not enough, drop optional columns: the emptiest
	 * one first, and of equals the last. */
	size_t asked =
		(size_t)(t->columns[flexible].width < 0 ? 0 : t->columns[flexible].width);
	size_t least = asked > FLEXIBLE_MIN ? asked : FLEXIBLE_MIN;
	size_t spare = widths[flexible] > least ? widths[flexible] - least : 0;
	for (size_t c; used > style->columns + spare &&
		       (c = emptiest(t, widths, flexible)) < t->n_columns;) {
		used -= GAP + widths[c];
		widths[c] = 0;
	}
	if (used <= style->columns)
		return;
	size_t over = used - style->columns;
	widths[flexible] =
		widths[flexible] > over + FLEXIBLE_MIN ? widths[flexible] - over : FLEXIBLE_MIN;
}

void text_end_line(struct str *out)
{
	while (out->len && out->data[out->len - 1] == ' ')
		out->len--;
	str_add(out, "\n");
}

/* Adds a line of the table; `row` before 0: a line of the titles. */
static void add_table_line(struct str *out, const struct table *t, int row,
	const size_t widths[MAX_COLUMNS], const struct text_style *style)
{
	char text[512];
	size_t start = out->len;
	for (size_t c = 0; c < t->n_columns; c++) {
		const struct column *column = &t->columns[c];
		if (!widths[c])
			continue;
		if (row < 0)
			title_line(text, sizeof(text), column->title, TITLE_LINES + row);
		else
			text_cell(text, sizeof(text), column, table_cell(t, (size_t)row, c),
				style);
		str_add(out, "  ");
		if (column->wraps) { /* the last one of the line */
			size_t at = str_columns(str_text(out) + start);
			text_add_wrapped(out, text, at, at, style);
			out->len -= out->len && out->data[out->len - 1] == '\n';
		} else {
			bool left = column->kind == COLUMN_TEXT;
			size_t wide = shown_columns(text, style);
			size_t pad = wide < widths[c] ? widths[c] - wide : 0;
			if (!left)
				str_add_repeat(out, " ", pad);
			wide = text_add_cut(out, text, widths[c], style);
			if (left)
				str_add_repeat(out, " ", widths[c] - wide);
		}
	}
	text_end_line(out);
}

void text_add_table(struct str *out, const struct table *t, const struct text_style *given)
{
	struct text_style own = *given;
	const struct text_style *style = &own;
	own.minutes = t->minutes;
	size_t widths[MAX_COLUMNS] = { 0 };
	assert(t->n_columns <= MAX_COLUMNS);
	choose_widths(t, widths, style);
	int first = -1; /* -2: a title has two lines */
	for (size_t c = 0; c < t->n_columns; c++)
		if (widths[c] && strchr(t->columns[c].title, '\n'))
			first = -2;
	for (int row = first; row < (int)t->n_rows; row++)
		add_table_line(out, t, row, widths, style);
	out->failed |= t->failed;
}

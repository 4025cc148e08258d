/* Writes HTML: escaped texts and tables. */
#include "render/html.h"

#include <assert.h>
#include <ctype.h>

#include "page_css.h"
#include "render/text.h"
#include "report_css.h"
#include "states_css.h"
#include "tokens_css.h"

void html_text(struct str *out, const char *text)
{
	static const char special[] = "&<>\"'";
	static const char *const replaced[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };
	while (*text) {
		size_t plain = strcspn(text, special);
		str_add_bytes(out, text, plain);
		text += plain;
		if (*text)
			str_add(out, replaced[strchr(special, *text++) - special]);
	}
}

void html_url(struct str *out, const char *text)
{
	for (const char *at = text; *at; at++) {
		unsigned char c = (unsigned char)*at;
		if ((c < 0x80 && isalnum(c)) || strchr("-._~", c))
			str_add_bytes(out, at, 1);
		else
			str_addf(out, "%%%02X", c);
	}
}

void html_addf(struct str *out, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	for (const char *at = format; *at;) {
		char piece[16];
		size_t plain = strcspn(at, "%");
		str_add_bytes(out, at, plain);
		at += plain;
		size_t len = *at ? 1 + strcspn(at + 1, "%sduf") + 1 : 0;
		assert(len < sizeof(piece));
		snprintf(piece, sizeof(piece), "%.*s", (int)len, at);
		at += len;
		if (strcmp(piece, "%s") == 0)
			html_text(out, va_arg(values, const char *));
		else if (strcmp(piece, "%-s") == 0)
			html_url(out, va_arg(values, const char *));
		else if (strcmp(piece, "%zu") == 0)
			str_addf(out, "%zu", va_arg(values, size_t));
		else if (len && piece[len - 1] == 'f')
			str_addf(out, piece, va_arg(values, double));
		else if (len && piece[len - 1] != '%')
			str_addf(out, piece, va_arg(values, int));
		else if (len)
			str_add(out, "%");
	}
	va_end(values);
}

void html_pattern_defs(struct str *out)
{
	str_add(out,
		"<pattern id=\"held\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
		"patternTransform=\"rotate(45)\"><rect class=\"held\" width=\"6\" "
		"height=\"6\"/>"
		"<rect class=\"stripe\" width=\"1.5\" height=\"6\"/></pattern>"
		"<pattern id=\"unseen\" width=\"5\" height=\"5\" "
		"patternUnits=\"userSpaceOnUse\">"
		"<rect class=\"paper\" width=\"5\" height=\"5\"/>"
		"<circle class=\"dot\" cx=\"1\" cy=\"1\" r=\"1\"/></pattern>"
		"<pattern id=\"given\" width=\"4\" height=\"4\" "
		"patternUnits=\"userSpaceOnUse\"><rect class=\"rest\" width=\"4\" "
		"height=\"4\"/>"
		"<rect class=\"given\" width=\"4\" height=\"2.5\"/></pattern>");
}

void html_patterns(struct str *out)
{
	str_add(out,
		"<svg class=\"defs\" aria-hidden=\"true\" width=\"0\" height=\"0\"><defs>");
	html_pattern_defs(out);
	str_add(out, "</defs></svg>\n");
}

void html_key(struct str *out, const char *class)
{
	str_addf(out,
		"<svg class=\"key\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">"
		"<rect class=\"%s\" width=\"12\" height=\"12\"/></svg>",
		class);
}

void html_warning(struct str *out, const char *text)
{
	html_addf(out, "<p class=\"warning\" role=\"note\">%s</p>\n", text);
}

/* A table while it is printed. */
struct shown {
	struct str *out;
	const struct table *t;
	const struct html_table_style *style;
	uint64_t columns; /* a bit for each that is shown */
};

/* No table has more columns. */
enum { COLUMNS_MAX = 64 };

/* Which columns are shown; computed once, because it reads every row. */
static uint64_t shown_columns(const struct table *t)
{
	uint64_t shown = 0;
	assert(t->n_columns <= COLUMNS_MAX);
	for (size_t i = 0; i < t->n_columns; i++)
		shown |= (uint64_t)text_shows(t, i) << i;
	return shown;
}

/* The text of a row in the column with this key; NULL: there is none. */
static const char *text_at(const struct table *t, size_t row, const char *key)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (t->columns[i].key && t->columns[i].kind == COLUMN_TEXT &&
			strcmp(t->columns[i].key, key) == 0)
			return table_cell(t, row, i)->text;
	return NULL;
}

static bool begin_link(const struct shown *s, size_t row, const char *title)
{
	const struct html_link *l = s->style->links;
	for (; l && l->title; l++) {
		const char *first = text_at(s->t, row, l->keys[0]);
		const char *second = l->keys[1] ? text_at(s->t, row, l->keys[1]) : NULL;
		if (strcmp(l->title, title) != 0 || !first || !*first ||
			(l->keys[1] && (!second || !*second)))
			continue;
		str_addf(s->out, "<a href=\"%s", l->path);
		html_url(s->out, first);
		if (second) {
			html_addf(s->out, "/%-s", second);
		}
		str_add(s->out, "\">");
		return true;
	}
	return false;
}

static void add_cell(const struct shown *s, size_t row, size_t column, bool first)
{
	const struct column *c = &s->t->columns[column];
	const struct cell *cell = table_cell(s->t, row, column);
	const struct text_style style = { .utc = s->style->utc, .minutes = s->t->minutes };
	char text[2048];
	unsigned level = 0;
	if (first && s->style->deep)
		memcpy(&level, (const char *)s->style->deep + row * s->style->deep_step,
			sizeof(level));
	text_cell(text, sizeof(text), c, cell, &style);
	str_addf(s->out, "<%s%s>", first ? "th scope=\"row\"" : "td",
		level			 ? " class=\"deep\""
		: c->kind == COLUMN_TEXT ? ""
					 : " class=\"n\"");
	bool bar = s->style->bars && strcmp(c->title, s->style->bars) == 0 &&
		   isfinite(cell->number);
	if (bar)
		str_addf(s->out,
			"<svg class=\"cell\" viewBox=\"0 0 100 10\" "
			"preserveAspectRatio=\"none\" aria-hidden=\"true\">"
			"<rect class=\"rest\" width=\"100\" height=\"10\"/>"
			"<rect class=\"idle_held\" width=\"%.1f\" height=\"10\"/></svg>",
			100 * fmin(fmax(cell->number, 0), 1));
	bool link = c->kind == COLUMN_TEXT && begin_link(s, row, c->title);
	str_add(s->out, bar ? "<span class=\"value\">" : "");
	html_addf(s->out, link ? "%s</a>" : "%s", text);
	str_add(s->out, bar ? "</span>" : "");
	str_add(s->out, first ? "</th>" : "</td>");
}

void html_table(struct str *out, const struct table *t, const struct html_table_style *style)
{
	const struct shown s = {
		.out = out, .t = t, .style = style, .columns = shown_columns(t)
	};
	/* Makes a wide table scrollable with the keyboard on a narrow screen. */
	html_addf(out,
		"<div class=\"wide\" tabindex=\"0\" role=\"region\" "
		"aria-label=\"%s\"><table>\n<caption>%s</caption>\n<thead><tr>",
		style->caption, style->caption);
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct column *c = &t->columns[i];
		if (!(s.columns >> i & 1))
			continue;
		if (!*c->title) /* a screen reader would read out an empty heading */
			str_add(out, "<td></td>");
		else
			html_addf(out,
				c->kind == COLUMN_TEXT
					? "<th scope=\"col\">%s</th>"
					: "<th scope=\"col\" class=\"n\">%s</th>",
				c->title);
	}
	str_add(out, "</tr></thead>\n<tbody>\n");
	for (size_t row = 0; row < t->n_rows && !out->failed; row++) {
		bool first = true;
		str_add(out, "<tr>");
		for (size_t i = 0; i < t->n_columns; i++) {
			if (!(s.columns >> i & 1))
				continue;
			add_cell(&s, row, i, first);
			first = false;
		}
		str_add(out, "</tr>\n");
	}
	str_add(out, "</tbody></table></div>\n");
	out->failed |= t->failed;
}

static const char *const parts[STYLE_PARTS] = {
	[STYLE_TOKENS] = tokens_css,
	[STYLE_STATES] = states_css,
	[STYLE_PAGE] = page_css,
	[STYLE_REPORT] = report_css,
};

void html_style(struct str *out, enum style_part first, enum style_part last)
{
	for (int part = first; part <= (int)last; part++)
		str_add(out, parts[part]);
}

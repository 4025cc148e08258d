/* Builds lines of styled text that fit the width of the screen. */
#include "top/top_frame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void top_frame_init(struct top_frame *f, size_t columns, bool ascii)
{
	*f = (struct top_frame){ .style = { .columns = columns, .ascii = ascii } };
}

void top_frame_finish(struct top_frame *f)
{
	str_finish(&f->text);
	free(f->spans);
	*f = (struct top_frame){ 0 };
}

void top_frame_start(struct top_frame *f, size_t columns)
{
	f->style.columns = columns;
	f->n_spans = f->used = f->lines = 0;
	f->apart = false;
	str_clear(&f->text);
}

/* Records the style of the text from `from` on, `columns` wide. Extends the last span if
 * possible. */
static void add_span(struct top_frame *f, enum top_style style, size_t from, size_t columns)
{
	size_t len = f->text.len - from, column = f->used;
	struct top_span *last = f->n_spans && !f->apart ? &f->spans[f->n_spans - 1] : NULL;
	if (len == 0)
		return;
	f->used += columns;
	f->apart = false;
	if (last && last->style == style && style != TOP_NEWLINE) {
		last->len += len;
		return;
	}
	if (!array_reserve(&f->spans, &f->cap_spans, f->n_spans + 1)) {
		f->text.failed = true;
		return;
	}
	f->spans[f->n_spans++] = (struct top_span){ from, len, column, style };
}

static size_t room(const struct top_frame *f)
{
	return f->used < f->style.columns ? f->style.columns - f->used : 0;
}

void top_frame_add(struct top_frame *f, enum top_style style, const char *text)
{
	size_t from = f->text.len;
	if (room(f)) {
		size_t columns = text_add_cut(&f->text, text, room(f), &f->style);
		add_span(f, style, from, columns);
	}
}

void top_frame_addf(struct top_frame *f, enum top_style style, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	top_frame_add(f, style, text);
}

/* Appends a character (one column wide) several times. */
static void add_repeat(
	struct top_frame *f, enum top_style style, const char *text, size_t times)
{
	size_t from = f->text.len;
	if (times > room(f))
		times = room(f);
	str_add_repeat(&f->text, text, times);
	add_span(f, style, from, times);
}

void top_frame_fill(struct top_frame *f, enum top_style style, size_t column)
{
	if (column > f->used)
		add_repeat(f, style, " ", column - f->used);
}

void top_frame_add_field(
	struct top_frame *f, enum top_style style, const char *text, size_t width, bool left)
{
	size_t start = f->used;
	if (width > room(f))
		width = room(f);
	size_t wide = left ? 0 : str_columns(text);
	f->apart = true;
	if (!left && wide < width)
		add_repeat(f, style, " ", width - wide);
	size_t from = f->text.len;
	size_t columns = text_add_cut(&f->text, text, start + width - f->used, &f->style);
	add_span(f, style, from, columns);
	top_frame_fill(f, style, start + width);
}

void top_frame_end_line(struct top_frame *f)
{
	size_t from = f->text.len;
	str_add(&f->text, "\n");
	add_span(f, TOP_NEWLINE, from, 0);
	f->used = 0;
	f->lines++;
}

void top_frame_cut(struct top_frame *f, size_t lines)
{
	size_t kept = 0, seen = 0;
	if (f->lines <= lines)
		return;
	while (kept < f->n_spans && seen < lines)
		seen += f->spans[kept++].style == TOP_NEWLINE;
	f->n_spans = kept;
	f->text.len = kept ? f->spans[kept - 1].from + f->spans[kept - 1].len : 0;
	if (f->text.data)
		f->text.data[f->text.len] = '\0';
	f->lines = seen;
	f->used = 0;
}

void top_frame_add_bar(struct top_frame *f, enum top_style style, double part, size_t width)
{
	bool ascii = f->style.ascii;
	size_t inside = ascii && width > 2 ? width - 2 : width;
	double clipped = isnan(part) ? 0 : fmin(fmax(part, 0), 1);
	size_t full = (size_t)lround(clipped * (double)inside);
	if (inside == 0)
		return;
	if (full == 0 && clipped > 0.005)
		full = 1;
	if (ascii)
		top_frame_add(f, TOP_DIM, "[");
	add_repeat(f, style, ascii ? "|" : "█", full);
	add_repeat(f, TOP_DIM, ascii ? " " : "░", inside - full);
	if (ascii)
		top_frame_add(f, TOP_DIM, "]");
}

void top_frame_add_spark(
	struct top_frame *f, enum top_style style, const double *values, size_t n)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const signs[] = { "_", ".", "-", "=", "+", "*", "#", "@" };
	for (size_t i = 0; i < n; i++) {
		if (isnan(values[i])) {
			add_repeat(f, TOP_DIM, f->style.ascii ? " " : "·", 1);
			continue;
		}
		double clipped = fmin(fmax(values[i], 0), 100);
		size_t level = (size_t)fmin(clipped / 12.5, 7);
		add_repeat(f, style, f->style.ascii ? signs[level] : blocks[level], 1);
	}
}

void top_frame_print(const struct top_frame *f, struct str *out)
{
	const char *at = str_text(&f->text);
	while (*at) {
		size_t len = strcspn(at, "\n"), kept = len;
		while (kept && at[kept - 1] == ' ')
			kept--;
		str_add_bytes(out, at, kept);
		str_add(out, "\n");
		at += len + (at[len] == '\n');
	}
	out->failed |= f->text.failed;
}

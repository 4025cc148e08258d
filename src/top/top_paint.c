/* Compares a frame with the content of the terminal, and writes what has changed. */
#include "top/top_paint.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* The position of the cursor and its current style. */
struct brush {
	const struct top_pen *pen;
	struct str *out;
	size_t line, column; /* of the cursor; SIZE_MAX: not known */
	enum top_style style;
};

static void use_style(struct brush *b, enum top_style style)
{
	if (b->style == style)
		return;
	if (b->style != TOP_PLAIN)
		str_add_bytes(b->out, str_text(&b->pen->off), b->pen->off.len);
	str_add_bytes(b->out, str_text(&b->pen->on[style]), b->pen->on[style].len);
	b->style = style;
}

static void go_to(struct brush *b, size_t line, size_t column)
{
	if (b->line != line || b->column != column)
		b->pen->move(b->out, line, column);
	b->line = line;
	b->column = column;
}

/* The spans of a line, up to a newline, and the text that they are parts of. */
struct painted_line {
	const struct top_span *span; /* NULL: there is no such line */
	const char *text;
};

static bool same_span(const struct top_span *a, const char *a_text, const struct top_span *b,
	const char *b_text)
{
	return a->style == b->style && a->column == b->column && a->len == b->len &&
	       memcmp(a_text + a->from, b_text + b->from, b->len) == 0;
}

/* Writes the spans of one line that differ from what the terminal shows there. */
static void paint_line(
	struct brush *b, size_t line, struct painted_line now, struct painted_line shown)
{
	const struct top_span *span = now.span, *old = shown.span;
	while (span->style != TOP_NEWLINE) {
		bool there = old && old->style != TOP_NEWLINE &&
			     same_span(old, shown.text, span, now.text);
		size_t end = span[1].column;
		if (!there) {
			go_to(b, line, span->column);
			use_style(b, span->style);
			str_add_bytes(b->out, now.text + span->from, span->len);
			b->column = end;
		}
		if (old && old->style != TOP_NEWLINE)
			old++;
		span++;
	}
	while (old && old->style != TOP_NEWLINE)
		old++;
	if (!old || old->column <= span->column)
		return;
	go_to(b, line, span->column);
	use_style(b, TOP_PLAIN);
	str_add_bytes(b->out, str_text(&b->pen->erase), b->pen->erase.len);
}

/* The span after the next newline; NULL: there is no further line. */
static const struct top_span *next_line(
	const struct top_span *span, const struct top_span *spans, size_t n)
{
	if (!span)
		return NULL;
	while (span->style != TOP_NEWLINE)
		span++;
	span++;
	return (size_t)(span - spans) < n ? span : NULL;
}

static void remember(struct top_painting *shown, const struct top_frame *f)
{
	shown->known = array_reserve(&shown->spans, &shown->cap_spans, f->n_spans);
	if (!shown->known)
		return;
	str_clear(&shown->text);
	str_add_bytes(&shown->text, str_text(&f->text), f->text.len);
	if (f->n_spans)
		memcpy(shown->spans, f->spans, f->n_spans * sizeof(*f->spans));
	shown->n_spans = f->n_spans;
	shown->known = !shown->text.failed;
}

void top_paint(struct top_painting *shown, const struct top_frame *f, const struct top_pen *pen,
	struct str *out)
{
	struct brush b = { pen, out, SIZE_MAX, SIZE_MAX, TOP_PLAIN };
	const struct top_span *span = f->n_spans ? f->spans : NULL;
	const struct top_span *old = shown->n_spans ? shown->spans : NULL;
	/* Out of memory: the frame is incomplete, so the previous one stays. */
	if (f->text.failed)
		return;
	if (!shown->known) {
		str_add_bytes(out, str_text(&pen->off), pen->off.len);
		str_add_bytes(out, str_text(&pen->clear), pen->clear.len);
		old = NULL;
	}
	for (size_t line = 0; span || old; line++) {
		static const struct top_span nothing = { .style = TOP_NEWLINE };
		struct painted_line now = { span ? span : &nothing, f->text.data };
		paint_line(&b, line, now, (struct painted_line){ old, shown->text.data });
		span = next_line(span, f->spans, f->n_spans);
		old = next_line(old, shown->spans, shown->n_spans);
	}
	use_style(&b, TOP_PLAIN);
	remember(shown, f);
}

void top_painting_finish(struct top_painting *shown)
{
	str_finish(&shown->text);
	free(shown->spans);
	*shown = (struct top_painting){ 0 };
}

void top_pen_finish(struct top_pen *pen)
{
	for (size_t i = 0; i < TOP_STYLES; i++)
		str_finish(&pen->on[i]);
	str_finish(&pen->off);
	str_finish(&pen->clear);
	str_finish(&pen->erase);
}

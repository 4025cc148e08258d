/* Builds lines of styled text that fit the width of the screen; compares them with the content
 * of the terminal, and writes what has changed. */
#include "top/top_frame.h"

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
	size_t from = f->text.len;
	if (width > room(f))
		width = room(f);
	size_t wide = left ? width : str_columns(text);
	size_t before = wide < width ? width - wide : 0;
	f->apart = true;
	str_add_repeat(&f->text, " ", before);
	size_t used = before + text_add_cut(&f->text, text, width - before, &f->style);
	str_add_repeat(&f->text, " ", width - used);
	add_span(f, style, from, width);
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
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█", "·" };
	static const char *const signs[] = { "_", ".", "-", "=", "+", "*", "#", "@", " " };
	enum { UNKNOWN = 8 };
	size_t same = 0, before = UNKNOWN; /* neighbours are often the same */
	for (size_t i = 0; i <= n; i++, same++) {
		size_t level = UNKNOWN;
		if (i < n && !isnan(values[i]))
			level = (size_t)fmin(fmin(fmax(values[i], 0), 100) / 12.5, 7);
		if (i < n && level == before)
			continue;
		add_repeat(f, before == UNKNOWN ? TOP_DIM : style,
			(f->style.ascii ? signs : blocks)[before], same);
		before = level;
		same = 0;
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

/* Writes the spans of one line that differ from what the terminal shows there. */
static void paint_line(
	struct brush *b, size_t line, struct painted_line now, struct painted_line shown)
{
	const struct top_span *span = now.span, *old = shown.span;
	while (span->style != TOP_NEWLINE) {
		bool there =
			old && old->style != TOP_NEWLINE && old->style == span->style &&
			old->column == span->column && old->len == span->len &&
			memcmp(shown.text + old->from, now.text + span->from, span->len) == 0;
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

void top_frame_paint(struct top_painting *shown, const struct top_frame *f,
	const struct top_pen *pen, struct str *out)
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

void top_frame_finish_painting(struct top_painting *shown)
{
	str_finish(&shown->text);
	free(shown->spans);
	*shown = (struct top_painting){ 0 };
}

void top_frame_finish_pen(struct top_pen *pen)
{
	for (size_t i = 0; i < TOP_STYLES; i++)
		str_finish(&pen->on[i]);
	str_finish(&pen->off);
	str_finish(&pen->clear);
	str_finish(&pen->erase);
}

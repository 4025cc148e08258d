/* A screen as lines of styled text, before any terminal has seen it: what `gua top` draws, what
 * it prints where there is no terminal, and what its tests look at. */
#ifndef GUA_TOP_FRAME_H
#define GUA_TOP_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "render/text.h"

enum top_style {
	TOP_PLAIN,
	TOP_STRONG,
	TOP_DIM,      /* what is there for orientation */
	TOP_TITLE,    /* the first line */
	TOP_HEADING,  /* of columns */
	TOP_SORTED,   /* the heading of the column that sorts */
	TOP_ACTIVE,   /* computes */
	TOP_IDLE,     /* holds and does not compute */
	TOP_FREE,     /* nobody holds it */
	TOP_LOST,     /* faults */
	TOP_SELECTED, /* the row that keys act on */
	TOP_KEY,      /* a key's name in the last line */
	TOP_LABEL,    /* and what it does */
	TOP_STYLES,
	TOP_NEWLINE = TOP_STYLES, /* a line ends */
};

/* A stretch of the text in one style. A field is a stretch of its own, so that it can be sent
 * alone when it alone has changed. */
struct top_span {
	size_t from, len; /* bytes of frame.text */
	size_t column;	  /* where it begins; of a newline: the width of its line */
	enum top_style style;
};

struct top_frame {
	struct text_style style; /* columns, ASCII */
	struct str text;	 /* all lines; each ends with a newline */
	struct top_span *spans;	 /* in order; they cover the text */
	size_t n_spans, cap_spans;
	size_t used;  /* columns of the line that is being made */
	size_t lines; /* that are complete */
	bool apart;   /* the next stretch does not go on with the last one */
};

void top_frame_init(struct top_frame *f, size_t columns, bool ascii);
void top_frame_finish(struct top_frame *f);
/* Empties it for the next screen, which has so many columns. */
void top_frame_start(struct top_frame *f, size_t columns);

/* Appends to the line, cut at the edge of the screen. The text is never a format. */
void top_add(struct top_frame *f, enum top_style style, const char *text);
void top_addf(struct top_frame *f, enum top_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Appends the text cut to, and filled up to, `width` columns. */
void top_add_field(
	struct top_frame *f, enum top_style style, const char *text, size_t width, bool left);
/* Appends a character (one column) several times. */
void top_add_repeat(struct top_frame *f, enum top_style style, const char *text, size_t times);
/* Fills the line with blanks up to a column. */
void top_fill(struct top_frame *f, enum top_style style, size_t column);
void top_end_line(struct top_frame *f);
/* Drops the lines behind the first `lines`. */
void top_frame_cut(struct top_frame *f, size_t lines);

/* A bar of `width` columns for a part of 0..1; NAN: an empty one. */
void top_add_bar(struct top_frame *f, enum top_style style, double part, size_t width);
/* One column for each value of 0..100; NAN: a blank. */
void top_add_spark(struct top_frame *f, enum top_style style, const double *values, size_t n);

/* Appends the frame without styles and without blanks at the ends of lines. */
void top_frame_print(const struct top_frame *f, struct str *out);

#endif

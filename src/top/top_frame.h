/* A screen as lines of styled text, independent of a terminal. `gua top` draws it, prints it if
 * there is no terminal, and its tests check it. */
#pragma once

#include "model/state.h"
#include "render/text.h"

enum top_style {
	TOP_PLAIN,
	TOP_STRONG,
	TOP_DIM,			       /* less important text */
	TOP_TITLE,			       /* the first line */
	TOP_HEADING,			       /* headings of columns */
	TOP_SORTED,			       /* the heading of the sort column */
	TOP_SELECTED,			       /* the row that keys act on */
	TOP_KEY,			       /* a key's name in the last line */
	TOP_LABEL,			       /* what that key does */
	TOP_STATE,			       /* + enum card_state: as state_looks has it */
	TOP_ACTIVE = TOP_STATE + CARD_ACTIVE,  /* computes */
	TOP_IDLE = TOP_STATE + CARD_IDLE_HELD, /* holds memory and does not compute */
	TOP_LOST = TOP_STATE + CARD_SUSPECT,   /* faults */
	TOP_STYLES = TOP_STATE + CARD_SHOWN_STATES,
	TOP_NEWLINE = TOP_STYLES, /* end of a line */
};

/* A span of text in one style. A field is a separate span, so that it can be sent alone if only
 * it has changed. */
struct top_span {
	size_t from, len; /* bytes of frame.text */
	size_t column;	  /* where it starts; for a newline: the width of its line */
	enum top_style style;
};

struct top_frame {
	struct text_style style; /* columns, ASCII */
	struct str text;	 /* all lines; each ends with a newline */
	struct top_span *spans;	 /* in order; they cover the text */
	size_t n_spans, cap_spans;
	size_t used;  /* columns used in the current line */
	size_t lines; /* number of complete lines */
	bool apart;   /* the next text starts a new span */
};

void top_frame_init(struct top_frame *f, size_t columns, bool ascii);
void top_frame_finish(struct top_frame *f);
/* Empties the frame for the next screen, which has `columns` columns. */
void top_frame_start(struct top_frame *f, size_t columns);

/* Appends to the line, cut at the edge of the screen. The text is never a format. */
void top_frame_add(struct top_frame *f, enum top_style style, const char *text);
void top_frame_addf(struct top_frame *f, enum top_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Appends the text, cut or padded to `width` columns. */
void top_frame_add_field(
	struct top_frame *f, enum top_style style, const char *text, size_t width, bool left);
/* Fills the line with blanks up to a column. */
void top_frame_fill(struct top_frame *f, enum top_style style, size_t column);
void top_frame_end_line(struct top_frame *f);
/* Drops the lines after the first `lines`. */
void top_frame_cut(struct top_frame *f, size_t lines);

/* Appends a bar of `width` columns for a share of 0..1; NAN: an empty bar. */
void top_frame_add_bar(struct top_frame *f, enum top_style style, double part, size_t width);
/* Appends one column for each value of 0..100; NAN: a blank. */
void top_frame_add_spark(
	struct top_frame *f, enum top_style style, const double *values, size_t n);

/* Appends the frame without styles and without blanks at the ends of lines. */
void top_frame_print(const struct top_frame *f, struct str *out);

/* The control sequences of a terminal. */
struct top_pen {
	struct str
		on[TOP_STYLES]; /* switches from plain to this style; empty: it looks plain */
	struct str off;		/* back to plain */
	struct str clear;	/* empties the screen */
	struct str erase;	/* empties the line from the cursor on */
	/* Appends the sequence that moves the cursor. */
	void (*move)(struct str *out, size_t line, size_t column);
};

/* What a terminal shows. */
struct top_painting {
	struct str text; /* text of the shown frame */
	struct top_span *spans;
	size_t n_spans, cap_spans;
	bool known; /* false: the content of the screen is unknown */
};

/* Appends what makes the terminal show the frame, and remembers the frame. */
void top_frame_paint(struct top_painting *shown, const struct top_frame *f,
	const struct top_pen *pen, struct str *out);

void top_frame_finish_painting(struct top_painting *shown);
void top_frame_finish_pen(struct top_pen *pen);

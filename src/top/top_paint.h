/* Computes what to send to a terminal to show a frame, given what it already shows. Independent
 * of the terminal: the pen has its control sequences. */
#ifndef GUA_TOP_PAINT_H
#define GUA_TOP_PAINT_H

#include "top/top_frame.h"

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
void top_paint(struct top_painting *shown, const struct top_frame *f, const struct top_pen *pen,
	struct str *out);

void top_painting_finish(struct top_painting *shown);
/* Makes the pen of the terminal that curses has opened (top_pen.c). False: the terminal cannot
 * be used. */
bool top_pen_make(struct top_pen *pen, bool color);
void top_pen_finish(struct top_pen *pen);

#endif

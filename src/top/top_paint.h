/* What to send to a terminal so that it shows a frame, given what it shows already. Knows no
 * terminal: its sequences are the pen's. */
#ifndef GUA_TOP_PAINT_H
#define GUA_TOP_PAINT_H

#include "top/top_frame.h"

/* How a terminal is drawn on. */
struct top_pen {
	struct str on[TOP_STYLES]; /* from plain to a style; empty: looks plain */
	struct str off;		   /* back to plain */
	struct str clear;	   /* empties the screen */
	struct str erase;	   /* empties the line from the cursor on */
	/* Appends what moves the cursor. */
	void (*move)(struct str *out, size_t line, size_t column);
};

/* What a terminal shows. */
struct top_painting {
	struct str text; /* of the frame that it shows */
	struct top_span *spans;
	size_t n_spans, cap_spans;
	bool known; /* false: anything may be on the screen */
};

/* Appends what makes the terminal show the frame, and remembers that it does. */
void top_paint(struct top_painting *shown, const struct top_frame *f, const struct top_pen *pen,
	struct str *out);

void top_painting_finish(struct top_painting *shown);
/* The pen of the terminal that curses has open (top_pen.c). False: it cannot be drawn on. */
bool top_pen_make(struct top_pen *pen, bool color);
void top_pen_finish(struct top_pen *pen);

#endif

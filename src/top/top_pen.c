/* Gets the control sequences of the terminal from terminfo. */
#include "top/top_paint.h"

/* After our headers: term.h defines words like "columns" as macros. */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

/* The look of each style, with and without colours. */
static const struct look {
	int front, back; /* -1: the terminal's own */
	attr_t with, without;
} looks[TOP_STYLES] = {
	[TOP_PLAIN] = { -1, -1, A_NORMAL, A_NORMAL },
	[TOP_STRONG] = { -1, -1, A_BOLD, A_BOLD },
	[TOP_DIM] = { -1, -1, A_DIM, A_DIM },
	[TOP_TITLE] = { COLOR_WHITE, COLOR_BLUE, A_BOLD, A_REVERSE },
	[TOP_HEADING] = { COLOR_BLACK, COLOR_GREEN, A_NORMAL, A_REVERSE },
	[TOP_SORTED] = { COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE | A_BOLD },
	[TOP_ACTIVE] = { COLOR_GREEN, -1, A_NORMAL, A_NORMAL },
	[TOP_IDLE] = { COLOR_YELLOW, -1, A_BOLD, A_BOLD },
	[TOP_FREE] = { COLOR_CYAN, -1, A_NORMAL, A_NORMAL },
	[TOP_LOST] = { COLOR_RED, -1, A_BOLD, A_BOLD },
	[TOP_SELECTED] = { COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE },
	[TOP_KEY] = { -1, -1, A_BOLD, A_BOLD },
	[TOP_LABEL] = { COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE },
};

/* The sequence that moves the cursor of the terminal. */
static const char *move_sequence;

/* The target of put(): tputs(3) passes no context to its function. */
static struct str *sink;

static int put(int c)
{
	char byte = (char)c;
	str_add_bytes(sink, &byte, 1);
	return c;
}

static void add_sequence(struct str *out, const char *sequence)
{
	if (!sequence)
		return;
	sink = out;
	tputs(sequence, 1, put);
}

/* The sequence that terminfo has for a name; NULL: none. */
static char *sequence_of(const char *name)
{
	char *sequence = tigetstr(name);
	return sequence == (char *)-1 ? NULL : sequence;
}

static void move_cursor(struct str *out, size_t line, size_t column)
{
	add_sequence(out, tiparm(move_sequence, (int)line, (int)column));
}

bool top_pen_make(struct top_pen *pen, bool color)
{
	const char *front = sequence_of("setaf"), *back = sequence_of("setab");
	bool colors = color && has_colors() && front && back;
	add_sequence(&pen->off, sequence_of("sgr0"));
	add_sequence(&pen->off, colors ? sequence_of("op") : NULL);
	add_sequence(&pen->clear, sequence_of("clear"));
	add_sequence(&pen->erase, sequence_of("el"));
	move_sequence = sequence_of("cup");
	pen->move = move_cursor;
	for (size_t i = 0; i < TOP_STYLES; i++) {
		const struct look *look = &looks[i];
		struct str *on = &pen->on[i];
		attr_t attributes = colors ? look->with : look->without;
		add_sequence(on, attributes & A_BOLD ? sequence_of("bold") : NULL);
		add_sequence(on, attributes & A_DIM ? sequence_of("dim") : NULL);
		add_sequence(on, attributes & A_REVERSE ? sequence_of("rev") : NULL);
		if (colors && look->front >= 0)
			add_sequence(on, tiparm(front, look->front));
		if (colors && look->back >= 0)
			add_sequence(on, tiparm(back, look->back));
	}
	return move_sequence && pen->clear.len && pen->erase.len;
}

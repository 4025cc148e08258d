/* Curses for `gua top`: styles become attributes, keys become ours. */
#define NCURSES_WIDECHAR 1
#include "view/top_screen.h"

#include <curses.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "view/top_state.h"

struct top_screen {
	SCREEN *screen;
	int in_fd;
	attr_t attributes[TOP_STYLES];
	short pairs[TOP_STYLES];
};

/* How a style looks with colours, and without them. */
static const struct look {
	short front, back; /* -1: the terminal's own */
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

static void choose_looks(struct top_screen *s, bool color)
{
	bool colors = color && has_colors() && start_color() == OK;
	if (colors)
		use_default_colors();
	for (short i = 0; i < TOP_STYLES; i++) {
		s->attributes[i] = colors ? looks[i].with : looks[i].without;
		s->pairs[i] = 0;
		if (!colors || (looks[i].front < 0 && looks[i].back < 0))
			continue;
		s->pairs[i] = (short)(i + 1);
		init_pair(s->pairs[i], looks[i].front, looks[i].back);
	}
}

int top_screen_open(struct top_screen **out, FILE *in, FILE *to, bool color, struct err *e)
{
	struct top_screen *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, ERR_WORLD, "out of memory");
	s->screen = newterm(NULL, to, in);
	if (!s->screen) {
		free(s);
		return err_set(e, ERR_WORLD,
			"this terminal is not known to curses (TERM): try --once");
	}
	s->in_fd = fileno(in);
	set_escdelay(25);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
	mouseinterval(0);
	choose_looks(s, color);
	*out = s;
	return 0;
}

void top_screen_close(struct top_screen *s)
{
	if (!s)
		return;
	endwin();
	delscreen(s->screen);
	free(s);
}

void top_screen_size(const struct top_screen *s, size_t *rows, size_t *columns)
{
	(void)s;
	*rows = (size_t)LINES;
	*columns = (size_t)COLS;
}

void top_screen_show(struct top_screen *s, const struct top_frame *f)
{
	int line = 0;
	erase();
	move(0, 0);
	for (size_t i = 0; i < f->n_spans && line < LINES; i++) {
		const struct top_span *span = &f->spans[i];
		if (span->style == TOP_NEWLINE) {
			move(++line, 0);
			continue;
		}
		attr_set(s->attributes[span->style], s->pairs[span->style], NULL);
		addnstr(f->text.data + span->from, (int)span->len);
	}
	attr_set(A_NORMAL, 0, NULL);
	refresh();
}

static int mouse_key(size_t *at)
{
	MEVENT event;
	if (getmouse(&event) != OK)
		return TOP_KEY_RESIZE;
	*at = event.y > 0 ? (size_t)event.y : 0;
	if (event.bstate & BUTTON4_PRESSED)
		return TOP_KEY_WHEEL_UP;
	if (event.bstate & BUTTON5_PRESSED)
		return TOP_KEY_WHEEL_DOWN;
	return event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED) ? TOP_KEY_CLICK
								  : TOP_KEY_RESIZE;
}

static int function_key(int key, size_t *at)
{
	static const int keys[][2] = {
		{ KEY_UP, TOP_KEY_UP },
		{ KEY_DOWN, TOP_KEY_DOWN },
		{ KEY_LEFT, TOP_KEY_LEFT },
		{ KEY_RIGHT, TOP_KEY_RIGHT },
		{ KEY_PPAGE, TOP_KEY_PAGE_UP },
		{ KEY_NPAGE, TOP_KEY_PAGE_DOWN },
		{ KEY_HOME, TOP_KEY_HOME },
		{ KEY_END, TOP_KEY_END },
		{ KEY_ENTER, TOP_KEY_ENTER },
		{ KEY_BACKSPACE, TOP_KEY_BACKSPACE },
		{ KEY_DC, TOP_KEY_BACKSPACE },
	};
	if (key == KEY_MOUSE)
		return mouse_key(at);
	if (key >= KEY_F(1) && key <= KEY_F(12))
		return TOP_KEY_F0 + (key - KEY_F(0));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i][0] == key)
			return keys[i][1];
	return TOP_KEY_RESIZE;
}

/* Whether the other end of the terminal has been closed. */
static bool is_gone(const struct top_screen *s)
{
	struct pollfd fd = { .fd = s->in_fd, .events = POLLIN };
	return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR | POLLNVAL));
}

int top_screen_key(struct top_screen *s, int wait_ms, size_t *at)
{
	wint_t key = 0;
	*at = 0;
	timeout(wait_ms);
	int rc = get_wch(&key);
	if (rc == ERR)
		return is_gone(s) ? TOP_KEY_HANGUP : -1;
	if (rc == KEY_CODE_YES)
		return function_key((int)key, at);
	if (key == '\r' || key == '\n')
		return TOP_KEY_ENTER;
	if (key == 27)
		return TOP_KEY_ESCAPE;
	if (key == 8 || key == 127)
		return TOP_KEY_BACKSPACE;
	if (key == 12) {
		clearok(stdscr, TRUE);
		return TOP_KEY_RESIZE;
	}
	return (int)key;
}

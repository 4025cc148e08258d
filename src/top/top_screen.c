/* Uses curses for the terminal's modes, keys, mouse and control sequences. The content is
 * compared span by span (top_frame_paint) and sent in one write. Curses would compare every
 * character and send each change separately, which was most of the cost of a refresh. */
#include "top/top_screen.h"

#include <poll.h>
#include <signal.h>

#include "top/top_state.h"

/* After our headers: term.h defines words like "columns" as macros. */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

/* The look of each style, with and without colours. */
static const struct look {
	int front, back; /* -1: the terminal's own */
	attr_t with, without;
} looks[TOP_STATE] = {
	[TOP_PLAIN] = { -1, -1, A_NORMAL, A_NORMAL },
	[TOP_STRONG] = { -1, -1, A_BOLD, A_BOLD },
	[TOP_DIM] = { -1, -1, A_DIM, A_DIM },
	[TOP_TITLE] = { COLOR_WHITE, COLOR_BLUE, A_BOLD, A_REVERSE },
	[TOP_HEADING] = { COLOR_BLACK, COLOR_GREEN, A_NORMAL, A_REVERSE },
	[TOP_SORTED] = { COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE | A_BOLD },
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
	/* Most terminals have this one, and tiparm() takes ten times as long. */
	if (strcmp(move_sequence, "\033[%i%p1%d;%p2%dH") == 0) {
		str_add(out, "\033[");
		str_add(out, str_whole((int64_t)line + 1, ";").text);
		str_add(out, str_whole((int64_t)column + 1, "H").text);
	} else {
		add_sequence(out, tiparm(move_sequence, (int)line, (int)column));
	}
}

/* Makes the pen of the terminal that curses has opened. False: the terminal cannot be used. */
static bool make_pen(struct top_pen *pen, bool color)
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
		struct look look = looks[i < TOP_STATE ? i : TOP_PLAIN];
		if (i >= TOP_STATE) { /* the curses numbers of colours are those of state_looks
				       */
			const struct state_look *state = &state_looks[i - TOP_STATE];
			bool dim = state->color == STATE_DIM;
			look.front = dim ? -1 : state->color;
			look.with = state->bold ? A_BOLD : dim ? A_DIM : A_NORMAL;
			look.without = look.with;
		}
		struct str *on = &pen->on[i];
		attr_t attributes = colors ? look.with : look.without;
		add_sequence(on, attributes & A_BOLD ? sequence_of("bold") : NULL);
		add_sequence(on, attributes & A_DIM ? sequence_of("dim") : NULL);
		add_sequence(on, attributes & A_REVERSE ? sequence_of("rev") : NULL);
		if (colors && look.front >= 0)
			add_sequence(on, tiparm(front, look.front));
		if (colors && look.back >= 0)
			add_sequence(on, tiparm(back, look.back));
	}
	return move_sequence && pen->clear.len && pen->erase.len;
}

struct top_screen {
	SCREEN *screen;
	WINDOW *keys; /* a pad: reading keys from it draws nothing */
	int in_fd, out_fd;
	bool narrow; /* the terminal scrolls if its last cell is written: never write it */
	struct top_pen pen;
	struct top_painting shown;
	struct str out; /* what is being sent */
};

/* After the program was stopped and continued: other programs may have drawn on the
 * terminal. */
static volatile sig_atomic_t continued;

static void on_continue(int signal)
{
	(void)signal;
	continued = 1;
}

void top_screen_mouse(struct top_screen *s, bool on)
{
	const mmask_t wanted =
		BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED;
	(void)s; /* curses knows one screen */
	mousemask(on ? wanted : 0, NULL);
}

int top_screen_open(struct top_screen **out, FILE *in, FILE *to, bool color, struct err *e)
{
	struct sigaction action = { .sa_handler = on_continue };
	struct top_screen *s = calloc(1, sizeof(*s));
	if (!s)
		return err_memory(e);
	s->screen = newterm(NULL, to, in);
	bool able = s->screen && make_pen(&s->pen, color);
	s->keys = able ? newpad(1, 1) : NULL;
	if (!s->keys) {
		top_screen_close(s);
		return err_set(e, ERR_WORLD,
			"curses has no description of this terminal (TERM): install the "
			"package ncurses-term, set TERM=xterm-256color, or use --once");
	}
	s->in_fd = fileno(in);
	s->out_fd = fileno(to);
	s->narrow = tigetflag("am") > 0 && tigetflag("xenl") <= 0;
	set_escdelay(25);
	cbreak();
	noecho();
	nonl();
	keypad(s->keys, TRUE);
	wtimeout(s->keys, 0);
	curs_set(0);
	mouseinterval(0);
	sigaction(SIGCONT, &action, NULL);
	refresh(); /* curses takes the screen over, empty */
	*out = s;
	return 0;
}

void top_screen_close(struct top_screen *s)
{
	if (!s)
		return;
	if (s->keys)
		delwin(s->keys);
	if (s->screen) {
		endwin();
		delscreen(s->screen);
	}
	top_frame_finish_painting(&s->shown);
	top_frame_finish_pen(&s->pen);
	str_finish(&s->out);
	free(s);
}

void top_screen_size(const struct top_screen *s, size_t *rows, size_t *width)
{
	*rows = (size_t)LINES;
	*width = COLS > 1 && s->narrow ? (size_t)COLS - 1 : (size_t)COLS;
}

/* Errors are ignored: the next poll() reports a closed terminal. */
static void send_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);
		struct pollfd ready = { .fd = fd, .events = POLLOUT };
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			poll(&ready, 1, -1);
		} else if (n == 0 || errno != EINTR) {
			return;
		}
	}
}

void top_screen_show(struct top_screen *s, const struct top_frame *f)
{
	if (continued) {
		continued = 0;
		s->shown.known = false;
	}
	str_clear(&s->out);
	top_frame_paint(&s->shown, f, &s->pen, &s->out);
	if (s->out.failed)
		s->shown.known = false;
	else
		send_all(s->out_fd, str_text(&s->out), s->out.len);
}

static int function_key(int key, struct top_spot *at)
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
	if (key == KEY_MOUSE) {
		MEVENT event;
		if (getmouse(&event) != OK)
			return TOP_KEY_RESIZE;
		at->line = event.y > 0 ? (size_t)event.y : 0;
		at->column = event.x > 0 ? (size_t)event.x : 0;
		if (event.bstate & BUTTON4_PRESSED)
			return TOP_KEY_WHEEL_UP;
		if (event.bstate & BUTTON5_PRESSED)
			return TOP_KEY_WHEEL_DOWN;
		return event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED) ? TOP_KEY_CLICK
									  : TOP_KEY_RESIZE;
	}
	if (key >= KEY_F(1) && key <= KEY_F(12))
		return TOP_KEY_F0 + (key - KEY_F(0));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i][0] == key)
			return keys[i][1];
	return TOP_KEY_RESIZE;
}

int top_screen_key(struct top_screen *s, int wait_ms, int other_fd, struct top_spot *at)
{
	wint_t key = 0;
	*at = (struct top_spot){ 0 };
	int rc = wget_wch(s->keys, &key);
	if (rc == ERR) {
		struct pollfd fds[] = { { .fd = s->in_fd, .events = POLLIN },
			{ .fd = other_fd, .events = POLLIN } };
		/* Input, the other descriptor, or a signal; or the other end is closed. */
		int ready = poll(fds, 2, wait_ms);
		if (ready > 0 && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return TOP_KEY_HANGUP;
		rc = ready ? wget_wch(s->keys, &key) : ERR;
	}
	if (rc == ERR)
		return continued ? TOP_KEY_RESIZE : -1;
	if (rc == KEY_CODE_YES && key == KEY_RESIZE)
		s->shown.known = false;
	if (rc == KEY_CODE_YES)
		return function_key((int)key, at);
	if (key == '\r' || key == '\n')
		return TOP_KEY_ENTER;
	if (key == 27)
		return TOP_KEY_ESCAPE;
	if (key == 8 || key == 127)
		return TOP_KEY_BACKSPACE;
	if (key == 12) {
		s->shown.known = false;
		return TOP_KEY_RESIZE;
	}
	return (int)key;
}

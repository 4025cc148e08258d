/* Asks the environment and the kernel about the terminal. */
#include "cmd/share/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

bool terminal_is_dumb(void)
{
	const char *term = getenv("TERM");
	return !term || !*term || strcmp(term, "dumb") == 0;
}

bool terminal_may_color(void)
{
	const char *no_color = getenv("NO_COLOR");
	return !no_color || !*no_color;
}

bool terminal_has_color(void)
{
	return isatty(STDOUT_FILENO) && terminal_may_color() && !terminal_is_dumb();
}

int terminal_choose_color(const char *when, bool *color, bool *color256, struct err *e)
{
	bool always = when && (!*when || strcmp(when, "always") == 0);
	bool never = when && strcmp(when, "never") == 0;
	if (when && !always && !never && strcmp(when, "auto") != 0)
		return err_set(e, ERR_USAGE,
			"--color: '%s' is not a choice; write auto, always or never", when);
	*color = always || (!never && terminal_has_color());
	/* TERM or COLORTERM name a terminal with 256 colours. */
	const char *term = secure_getenv("TERM"), *more = secure_getenv("COLORTERM");
	*color256 = *color && ((term && strstr(term, "256color")) ||
				      (more && (strcmp(more, "truecolor") == 0 ||
						       strcmp(more, "24bit") == 0)));
	return 0;
}

bool terminal_is_utf8(void)
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

struct terminal_size terminal_size(int fd)
{
	struct winsize size = { 0 };
	if (ioctl(fd, TIOCGWINSZ, &size) != 0)
		return (struct terminal_size){ 0, 0 };
	return (struct terminal_size){ size.ws_row, size.ws_col };
}

/* The width of lines: the terminal's, or 80 if it is unknown. Without a terminal a line is not
 * cut, for use with grep. */
static size_t columns_of_lines(void)
{
	enum { USUAL_COLUMNS = 80, UNCUT_COLUMNS = 2000 };
	size_t columns = terminal_size(STDOUT_FILENO).columns;
	if (columns)
		return columns;
	return isatty(STDOUT_FILENO) ? USUAL_COLUMNS : UNCUT_COLUMNS;
}

struct text_style terminal_style(bool ascii, bool utc)
{
	return (struct text_style){ .columns = columns_of_lines(),
		.ascii = ascii || !terminal_is_utf8(),
		.color = terminal_has_color(),
		.utc = utc };
}

enum { BAR_WIDTH = 30, REDRAW_MS = 100 };

void terminal_progress_init(struct progress *p, const char *unit)
{
	*p = (struct progress){ .unit = unit, .terminal = isatty(STDERR_FILENO) };
	sigemptyset(&p->signals);
	sigaddset(&p->signals, SIGINT);
	sigaddset(&p->signals, SIGTERM);
	sigaddset(&p->signals, SIGHUP);
}

int terminal_progress_hold_signals(struct progress *p)
{
	return sigprocmask(SIG_BLOCK, &p->signals, NULL);
}

int terminal_progress_step(void *progress, int64_t done, int64_t total)
{
	struct progress *p = progress;
	const struct timespec at_once = { 0, 0 };
	int64_t now = clock_monotonic_us() / 1000;
	if (p->terminal && total > 0 && (!p->shown || now - p->drawn_ms >= REDRAW_MS)) {
		char fill[BAR_WIDTH + 1];
		int64_t part = done >= total ? BAR_WIDTH : done * BAR_WIDTH / total;
		memset(fill, '.', BAR_WIDTH);
		memset(fill, '#', (size_t)part);
		fill[BAR_WIDTH] = '\0';
		fprintf(stderr, "\r[%s] %" PRId64 "/%" PRId64 " %s", fill, done, total,
			p->unit);
		fflush(stderr);
		p->shown = true;
		p->drawn_ms = now;
	}
	return sigtimedwait(&p->signals, NULL, &at_once) > 0;
}

void terminal_progress_erase(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

/* Shows the text through a pager. False: it could not be started, and nothing was shown. */
static bool show_paged(const char *command, const struct str *text)
{
	enum { NOT_FOUND = 127, NOT_EXECUTABLE = 126 };
	/* As git does: less ends if the text fits, shows colours, and leaves it on the screen.
	 */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	fflush(stdout);
	FILE *pager = popen(command, "we");
	if (!pager)
		return false;
	/* Only now, so that the pager does not inherit it: keys that interrupt are for the
	 * pager, and a pager that ends early is no error. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	fwrite(text->data, 1, text->len, pager);
	int status = pclose(pager);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	return !(WIFEXITED(status) &&
		 (WEXITSTATUS(status) == NOT_FOUND || WEXITSTATUS(status) == NOT_EXECUTABLE));
}

int terminal_page(const struct command *self, struct str *out, bool none)
{
	static const char *const names[] = { "GUA_PAGER", "PAGER" };
	const char *command = NULL;
	size_t rows = terminal_size(STDOUT_FILENO).rows, lines = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !command; i++)
		command = secure_getenv(names[i]);
	command = command ? command : "less";
	for (size_t i = 0; i < out->len; i++)
		lines += out->data[i] == '\n';
	if (none || terminal_is_dumb() || !*command || strcmp(command, "cat") == 0 || !rows ||
		out->failed || lines < rows || !show_paged(command, out))
		return cmd_print(self, out);
	str_finish(out);
	return 0;
}

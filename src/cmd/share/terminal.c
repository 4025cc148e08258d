/* Asks the environment and the kernel about the terminal. */
#include "cmd/share/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

bool terminal_has_256_colors(void)
{
	const char *term = secure_getenv("TERM"), *more = secure_getenv("COLORTERM");
	return terminal_has_color() && ((term && strstr(term, "256color")) ||
					       (more && (strcmp(more, "truecolor") == 0 ||
								strcmp(more, "24bit") == 0)));
}

bool terminal_is_utf8(void)
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

struct terminal_size terminal_size_of(int fd)
{
	struct winsize size = { 0 };
	if (ioctl(fd, TIOCGWINSZ, &size) != 0)
		return (struct terminal_size){ 0, 0 };
	return (struct terminal_size){ size.ws_row, size.ws_col };
}

struct terminal_size terminal_size(void)
{
	return terminal_size_of(STDOUT_FILENO);
}

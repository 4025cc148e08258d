/* Starts the pager and gives it the text. */
#include "cmd/share/pager.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd/share/terminal.h"

/* The command of the pager; NULL: the user wants none. */
static const char *pager_command(void)
{
	static const char *const names[] = { "GUA_PAGER", "PAGER" };
	const char *command = "less";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = secure_getenv(names[i]);
		if (!value)
			continue;
		command = value;
		break;
	}
	return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

static size_t count_lines(const struct str *text)
{
	size_t n = 0;
	for (size_t i = 0; i < text->len; i++)
		n += text->data[i] == '\n';
	return n;
}

/* False: it could not be started, and nothing was shown. */
static bool show(const char *command, const struct str *text)
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

int pager_print(const struct command *self, struct str *out, bool none)
{
	size_t rows = terminal_size().rows;
	const char *command = none || terminal_is_dumb() ? NULL : pager_command();
	bool shown = command && rows && !out->failed && count_lines(out) >= rows &&
		     show(command, out);
	if (!shown)
		return cmd_print(self, out);
	str_finish(out);
	return 0;
}

/* gpu-usage-audit daemon: gua daemon, as units and scripts that were written for the Python
 * tool of that name expect it. It stays in the foreground and prints a line for each tick. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd/cmd_daemon.h"

/* A terminal shows the lines only while this program is in its foreground. */
static bool is_wanted(void)
{
	return !isatty(STDOUT_FILENO) || tcgetpgrp(STDOUT_FILENO) == getpgrp();
}

/* Prints the line, if that does not block: the recorder waits for no reader. */
static void print_line(void *context, const char *line)
{
	(void)context;
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	if (is_wanted() && poll(&out, 1, 0) == 1 && (out.revents & POLLOUT))
		dprintf(STDOUT_FILENO, "%s\n", line);
}

static int run(const struct command *self, int argc, char **argv)
{
	return daemon_stay(self, argc, argv, print_line);
}

const struct command cmd_audit_daemon = {
	.name = "daemon",
	.called = "gpu-usage-audit daemon",
	.summary = "record what the cards do, in the foreground, with a line for each tick",
	.usage = "[--db PATH] [--interval D] [OPTIONS]",
	.details = "Under this name the recorder stays in the foreground, as the Python tool\n"
		   "gpu-usage-audit does; 'gua daemon' goes to the background.",
	.options = daemon_options,
	.run = run,
};

/* gua top: handed over to gua-top, the one program that links a terminal library. */
#include "cmd/top.h"

#include "cmd/cmd.h"
#include "cmd/hand_over.h"

#define AT(field) .offset = offsetof(struct top_values, field)

static const struct option_row options[] = {
	{ OPTION_TEXT, 'd', "delay", "SECONDS", "time between two readings (default 1)",
		AT(delay) },
	FILTER_ROWS(struct top_values, filter, 'u', 'p', 'i'),
	{ OPTION_CHOICE, 's', "sort", "BY", "order of the processes at start",
		.choices = "card|user|pid|mem|sm|cpu|host|age|idle|what|command", AT(sort) },
	{ OPTION_FLAG, 't', "tree", .help = "begin with the tree", AT(tree) },
	{ OPTION_FLAG, 'r', "readonly", .help = "no signals: the key does nothing",
		AT(readonly) },
	{ OPTION_FLAG, '1', "once", .help = "print one frame as text and end", AT(once) },
	{ OPTION_FLAG, 0, "ascii", .help = "no character beyond ASCII", AT(ascii) },
	{ OPTION_FLAG, 0, "no-color", .help = "no colour (as with NO_COLOR)", AT(no_color) },
	LIVE_ROWS(struct top_values, live),
	{ 0 },
};

static int run(const struct command *self, int argc, char **argv)
{
	struct err e = { 0 };
	struct top_values v = { 0 };
	int status = 0;
	hand_over(self->name, argv);
	if (cmd_options_only(self, argc, argv, &v, &status))
		return status;
	err_set(&e, ERR_WORLD, "the program gua-top is not installed");
	return cmd_fail(self, &e);
}

const struct command cmd_top = {
	.name = "top",
	.summary = "interactive: the cards and who is on them, idle holders first",
	.usage = "[--delay SECONDS] [--sort BY] [--user USER] [--readonly] [OPTIONS]",
	.details = "Where standard output is no terminal: one frame as text.",
	.options = options,
	.handed_over = true,
	.run = run,
};

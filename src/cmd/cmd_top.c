/* gua top: runs gua-top, the only program that links a terminal library. */
#include "cmd/cmd_top.h"

#include "cmd/cmd.h"

#define AT(field) .offset = offsetof(struct top_values, field)

static const struct option_row options[] = {
	{ OPTION_TEXT, 'd', "delay", "SECONDS", "time between two readings (default 1)",
		AT(delay) },
	FILTER_ROWS(struct top_values, filter, 'u', 'p', 'i'),
	{ OPTION_CHOICE, 's', "sort", "BY", "order of the processes at start (default idle)",
		.choices = "card|user|pid|mem|sm|cpu|host|age|idle|what|command", AT(sort) },
	{ OPTION_FLAG, 't', "tree", .help = "start with the tree", AT(tree) },
	{ OPTION_FLAG, 'r', "readonly", .help = "never send signals", AT(readonly) },
	{ OPTION_FLAG, '1', "once", .help = "print one frame as text and exit", AT(once) },
	{ OPTION_FLAG, 0, "ascii", .help = "use only ASCII characters", AT(ascii) },
	{ OPTION_FLAG, 0, "no-color", .help = "use no colours (as with NO_COLOR)",
		AT(no_color) },
	{ OPTION_FLAG, 0, "no-mouse", .help = "leave the mouse to the terminal", AT(no_mouse) },
	LIVE_ROWS(struct top_values, live),
	{ 0 },
};

const struct command cmd_top = {
	.name = "top",
	.summary = "show the cards and their holders interactively, idle ones first",
	.usage = "[--delay SECONDS] [--sort BY] [--user USER] [--readonly] [OPTIONS]",
	.details = "If standard output is not a terminal, one frame is printed as text.",
	.options = options,
	.values_size = sizeof(struct top_values),
	.handed_over = true,
};

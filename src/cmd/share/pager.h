/* Shows long text on a terminal through the user's pager, as git does. */
#pragma once

#include <stdbool.h>

#include "cmd/cmd.h"

/* The row of the option that switches it off. */
#define PAGER_ROW(type, member)                                                                \
	{                                                                                      \
		OPTION_FLAG, 0, "no-pager",                                                    \
			.help = "use no pager, also if the text is longer than the terminal",  \
			.offset = offsetof(type, member)                                       \
	}

/* Prints the text as cmd_print() does, or through GUA_PAGER, PAGER or less if standard output
 * is a terminal with fewer lines. Finishes `out`; returns the exit status. */
int pager_print(const struct command *self, struct str *out, bool none);

/* gua start --dry-run: says what a recorder would do, or why it could not start, and changes
 * nothing. */
#ifndef GUA_CMD_REHEARSE_H
#define GUA_CMD_REHEARSE_H

#include "cmd/share/cmd_live.h"

struct rehearsal {
	const char *db;
	int64_t interval_ms;
	bool foreground;
};

/* Prints the result; returns the exit status: 0 if the recorder would start. `live` names the
 * source. */
int rehearse(const struct command *self, const struct rehearsal *r, struct live_values *live);

#endif

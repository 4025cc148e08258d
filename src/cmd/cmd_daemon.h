/* The options that `gua daemon` and `gua start` share, and the function that runs them. */
#ifndef GUA_CMD_CMD_DAEMON_H
#define GUA_CMD_CMD_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"
#include "cmd/cmd.h"

extern const struct option_row daemon_options[];
extern const char daemon_details[];

/* The same, always in the foreground. `line` is given one line for each tick. */
typedef void daemon_line(void *context, const char *line);

/* `gpu-usage-audit daemon`, which stays in the foreground as the tool of that name does. */
extern const struct command cmd_audit_daemon;

#endif

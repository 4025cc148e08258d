/* The options that `gua daemon` and `gua start` share, and the function that runs them. */
#ifndef GUA_CMD_DAEMON_H
#define GUA_CMD_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"
#include "cmd/cmd.h"

extern const struct option_row daemon_options[];
extern const char daemon_details[];

int daemon_main(const struct command *self, int argc, char **argv);

#endif

/* The sub-track command, also reached as gpu-tracker's. */
#ifndef GUA_CMD_SUBTRACK_H
#define GUA_CMD_SUBTRACK_H

#include "cmd/cmd.h"

/* The command is named sub-track; a C name cannot have a dash. */
extern const struct command cmd_subtrack;

#endif

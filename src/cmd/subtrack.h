/* The sub-track command, also reached as gpu-tracker's. */
#ifndef GUA_CMD_SUBTRACK_H
#define GUA_CMD_SUBTRACK_H

#include "cmd/cmd.h"

/* The real name of the command has a dash, which no C name has. */
extern const struct command cmd_subtrack;

#endif

/* Tracking with options that were parsed already: for gua track and for gpu-tracker's command
 * line. */
#ifndef GUA_CMD_CMD_TRACK_H
#define GUA_CMD_CMD_TRACK_H

#include "cmd/cmd.h"
#include "cmd/track_options.h"

/* Checks the options, runs the command (`operands`, NULL-terminated, may be empty) and writes
 * the report; returns the exit status. Frees what `v` owns. */
int track_with_options(const struct command *self, struct track_values *v, char **operands);

#endif

/* Finds the CUDA_VISIBLE_DEVICES of what gua track follows. */
#ifndef GUA_CMD_TRACK_VISIBLE_H
#define GUA_CMD_TRACK_VISIBLE_H

#include "cmd/track_options.h"

/* The value in the environment of the command, which is gua's, or of the process of --pid when
 * it was started. NULL: not set, not needed, or it cannot be read. To be freed. */
char *track_visible(const struct track_values *v);

#endif

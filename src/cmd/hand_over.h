/* `gua NAME` is gua-NAME when NAME is not built in, as in git. */
#ifndef GUA_CMD_HAND_OVER_H
#define GUA_CMD_HAND_OVER_H

#include <stdbool.h>

/* Becomes gua-NAME: the one beside the running program, else the one that was installed with
 * it. Returns only when there is none. argv[0] is the command's name. */
void hand_over(const char *name, char **argv);
/* Whether there is one. */
bool hand_over_finds(const char *name);

#endif

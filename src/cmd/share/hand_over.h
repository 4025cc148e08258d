/* `gua NAME` runs gua-NAME if NAME is not built in, as in git. */
#ifndef GUA_CMD_SHARE_HAND_OVER_H
#define GUA_CMD_SHARE_HAND_OVER_H

#include <limits.h>
#include <stdbool.h>

/* Executes gua-NAME: the one next to the running program, else the one that was installed with
 * it. Returns only if there is none. argv[0] is the command's name. */
void hand_over(const char *name, char **argv);
/* Whether gua-NAME exists. */
bool hand_over_finds(const char *name);

/* The path of gua-NAME; false: it is not there. */
bool hand_over_path(const char *name, char path[PATH_MAX]);

/* The path of the running program; false: it is not known. */
bool hand_over_self(char path[PATH_MAX]);

#endif

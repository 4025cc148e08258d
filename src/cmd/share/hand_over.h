/* `gua NAME` runs gua-NAME if NAME is not built in, as in git. */
#pragma once

#include "cmd/cmd.h"

/* Executes gua-NAME: the one next to the running program, else the one that was installed with
 * it. argv[0] is the command's name. Returns only if there is none, with that error. */
int hand_over(const char *name, char **argv, struct err *e);

/* The path of gua-NAME; false: it is not there. */
bool hand_over_path(const char *name, char path[PATH_MAX]);

/* The path of the running program; false: it is not known. */
bool hand_over_self(char path[PATH_MAX]);

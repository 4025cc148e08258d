/* `gua NAME` runs gua-NAME if NAME is not built in, as in git. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "cmd/cmd.h"

/* Executes gua-NAME: the one next to the running program, else the one that was installed with
 * it. Returns only if there is none. argv[0] is the command's name. */
void hand_over(const char *name, char **argv);
/* Sets the error that gua-NAME is not installed; returns its code. */
int hand_over_missing(const char *name, struct err *e);

/* The path of gua-NAME; false: it is not there. */
bool hand_over_path(const char *name, char path[PATH_MAX]);

/* The path of the running program; false: it is not known. */
bool hand_over_self(char path[PATH_MAX]);

/* `gua NAME` runs gua-NAME if NAME is not built in, as in git. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "cmd/cmd.h"

/* Executes gua-NAME: the one next to the running program, else the one that was installed with
 * it. Returns only if there is none. argv[0] is the command's name. */
void hand_over(const char *name, char **argv);
/* Runs a command that is handed over. Returns only if the program is not installed: then it
 * parses the options into `values`, for --help, prints what is missing, and returns the exit
 * status. */
int hand_over_run(const struct command *self, int argc, char **argv, void *values);
/* Prints that gua-NAME is not installed; returns the exit status. */
int hand_over_missing(const struct command *self, const char *name);

/* The path of gua-NAME; false: it is not there. */
bool hand_over_path(const char *name, char path[PATH_MAX]);

/* The path of the running program; false: it is not known. */
bool hand_over_self(char path[PATH_MAX]);

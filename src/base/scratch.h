/* A directory for temporary files that other users cannot enter. A helper removes it with all
 * files in it when this process has ended, even if it was killed. */
#pragma once

#include "base/base.h"

struct scratch {
	char path[PATH_MAX];
	struct helper *keeper;
};

/* Makes a directory below `parent`. `*s` must stay where it is until scratch_close(). */
int scratch_open(struct scratch *s, const char *parent, struct err *e);
/* Removes it. Does nothing if it was not opened. */
void scratch_close(struct scratch *s);

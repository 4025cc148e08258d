/* Going to the background: the process that was started waits until the one in the background
 * says that it works, or why it does not. */
#ifndef GUA_CMD_DETACH_H
#define GUA_CMD_DETACH_H

#include "base/err.h"

struct detached {
	int fd;	 /* pipe between the two: read end in front, write end in the background */
	int pid; /* in front, after detach_wait(): the process in the background */
};

/* 0: this is the process in the background, in a session of its own, stderr in `log_file`; 1:
 * this is the one in front; negative: an error. */
int detach(struct detached *d, const char *log_file, struct err *e);

/* In front: waits; fails with what the other said. */
int detach_wait(struct detached *d, struct err *e);

/* In the background: it works; or it ends, with the reason in `e` (nothing is said after
 * detach_ready()). */
void detach_ready(struct detached *d);
void detach_failed(struct detached *d, const struct err *e);

#endif

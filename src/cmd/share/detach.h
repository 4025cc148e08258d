/* Runs a program in the background. The foreground process waits until the background process
 * reports success or an error. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct detached {
	int fd; /* pipe between the two: read end in the foreground, write end in the background
		 */
	int pid; /* in the foreground, after detach_wait(): pid of the background process */
};

/* Whether a service manager or a container waits for this process itself. Then it must not go
 * to the background: a background process would be ended together with it. */
bool detach_is_waited_for(void);

/* Returns 0 in the background process, which has its own session and writes stderr to
 * `log_file`; 1 in the foreground process; negative on error. */
int detach(struct detached *d, const char *log_file, struct err *e);

/* In the foreground: waits for the report; fails with the error of the background process. */
int detach_wait(struct detached *d, struct err *e);

/* In the background: opens the file at this path as stderr; it may be another file than before.
 */
int detach_open_log(const char *path, struct err *e);

/* In the background: reports success, or the error in `e` (no effect after detach_ready()). */
void detach_ready(struct detached *d);
void detach_failed(struct detached *d, const struct err *e);

/* Writes this process's pid. Returns whether there is a file to remove later; logs a warning
 * if the pid could not be written. */
bool detach_write_pid(const char *path);

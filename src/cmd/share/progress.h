/* A progress bar on a terminal, for work that a signal may end between two steps. */
#ifndef GUA_CMD_SHARE_PROGRESS_H
#define GUA_CMD_SHARE_PROGRESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *unit; /* "rows" */
	bool terminal;	  /* stderr is a terminal */
	bool shown;	  /* there is a bar to erase */
	int64_t drawn_ms; /* monotonic time of the last drawing, to limit the rate */
	sigset_t signals; /* those that end the work */
};

void progress_init(struct progress *p, const char *unit);
/* From here on, signals that would end the program wait for progress_step(), so that what was
 * begun can be undone. 0, or -1. */
int progress_hold_signals(struct progress *p);
/* Draws the bar of a struct progress; not 0 if a signal asks to stop. */
int progress_step(void *progress, int64_t done, int64_t total);
void progress_erase(struct progress *p);

#endif

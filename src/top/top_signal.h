/* Sends a signal to the process that was shown, never to a later process with the same pid. */
#ifndef GUA_TOP_SIGNAL_H
#define GUA_TOP_SIGNAL_H

#include <stddef.h>

#include "base/err.h"
#include "model/process.h"

/* The signals that can be sent. */
extern const struct top_signal {
	const char *name;
	int number;
} top_signals[];
extern const size_t n_top_signals;

/* Opens a pidfd, compares the start time, then sends the signal. ERR_WORLD: it was not sent;
 * `e` says why. */
int top_signal_send(const struct process_id *id, int number, struct err *e);

#endif

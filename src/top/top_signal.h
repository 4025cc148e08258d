/* Sending a signal to the process that was shown, and to no other that has its pid by now. */
#ifndef GUA_TOP_SIGNAL_H
#define GUA_TOP_SIGNAL_H

#include "base/err.h"
#include "model/process.h"

/* Holds the process by a pidfd, compares its start time, then signals. ERR_WORLD: it was not
 * sent, and why. */
int top_signal_send(const struct process_id *id, int number, struct err *e);

#endif

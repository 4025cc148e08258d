/* The steps of idle_history_read(). Only for query/idle_*.c. */
#ifndef GUA_QUERY_IDLE_PRIVATE_H
#define GUA_QUERY_IDLE_PRIVATE_H

#include "query/idle_history.h"

/* Reads the sessions with their processes. */
int idle_read_sessions(struct idle_history *h, struct err *e);
/* Reads spans, then marks and gaps, for the sessions that are known. */
int idle_read_spans(struct idle_history *h, struct err *e);
int idle_read_marks(struct idle_history *h, struct err *e);
int idle_read_gaps(struct idle_history *h, struct err *e);
/* The earliest moment that matters: when the first of the stretches began. */
int64_t idle_first_ms(const struct idle_history *h);
/* Present only: reads spells that have ended, of all known processes. */
int idle_read_closed(struct idle_history *h, struct err *e);
/* Present only: reads the other processes of the sessions, those that have ended. */
int idle_read_ended(struct idle_history *h, struct err *e);

#endif

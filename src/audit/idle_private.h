/* The steps of idle_history_read(). Only for audit/idle_*.c. */
#ifndef GUA_AUDIT_IDLE_PRIVATE_H
#define GUA_AUDIT_IDLE_PRIVATE_H

#include "audit/idle_history.h"

/* Reads the sessions with their processes. */
int idle_read_sessions(struct idle_history *h, struct err *e);
/* Present only: reads the other processes of the sessions, those that have ended. */
int idle_read_ended(struct idle_history *h, struct err *e);
/* Reads which crowd rows contain short processes of the sessions. */
int idle_read_crowds(struct idle_history *h, struct err *e);
/* Reads the gaps; then spans and marks, which need them. */
int idle_read_gaps(struct idle_history *h, struct err *e);
int idle_read_rows(struct idle_history *h, struct err *e);
/* Reads the current holders: spans that are still open. */
int idle_read_held(struct idle_history *h, struct err *e);

/* The earliest moment that matters: when the first process was first seen. */
int64_t idle_first_ms(const struct idle_history *h);
void idle_join_gaps(struct idle_history *h);

#endif

/* The steps of idle_history_read(). Only for audit/idle_*.c. */
#ifndef GUA_AUDIT_IDLE_PRIVATE_H
#define GUA_AUDIT_IDLE_PRIVATE_H

#include "audit/idle_history.h"

/* Reads the sessions with their processes. */
int idle_read_sessions(struct idle_history *h, struct err *e);
/* Present only: reads the other processes of the sessions, those that have ended. */
int idle_read_ended(struct idle_history *h, struct err *e);
/* Reads which rows short processes of the sessions share. */
int idle_read_crowds(struct idle_history *h, struct err *e);
/* Reads what nobody observed; then spans and marks, by which gaps are bridged. */
int idle_read_gaps(struct idle_history *h, struct err *e);
int idle_read_rows(struct idle_history *h, struct err *e);
/* Reads who holds what now: spans that go on. */
int idle_read_held(struct idle_history *h, struct err *e);

/* The earliest moment that matters: when the first of the processes came. */
int64_t idle_first_ms(const struct idle_history *h);
void idle_join_gaps(struct idle_history *h);

#endif

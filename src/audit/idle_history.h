/* Reads what the store knows about the idle time of sessions (model/idle_history.h). */
#pragma once

#include "base/base.h"
#include "model/idle_history.h"

/* Reads it in one transaction. Finish *h even after a failure. */
int idle_history_read(struct idle_history *h, struct err *e);
void idle_history_finish(struct idle_history *h);

/* Sorts spans, marks and gaps. Counts a process that used a card when the card was lost as
 * using it until the card was seen again. Finds the blind time. Also used by tests. */
int idle_history_settle(struct idle_history *h, struct err *e);
/* How many sessions held a card at a moment of the past; -1 with `e` set on failure. */
int64_t idle_history_count(struct idle_history *h, int64_t at_ms, struct err *e);

/* The idle power of a card: the mean power in watts over its idle time in the 14 days before
 * `now_ms`, if there is at least a quarter of an hour of it. A held card may draw more than an
 * empty one, so the result is the larger of the two means. NAN: unknown. */
double idle_history_power(const struct idle_history *h, const char *uuid, int64_t now_ms);

/* The steps of idle_history_read() in idle_slots.c: reads the gaps; then spans and marks, which
 * need them; then the current holders, whose spans are still open. */
int idle_slots_read_gaps(struct idle_history *h, struct err *e);
int idle_slots_read(struct idle_history *h, struct err *e);
int idle_slots_read_held(struct idle_history *h, struct err *e);
/* The steps in idle_leases.c, if h->leases: reads leases as sessions; then when they were used,
 * and when it was not known whether they had ended. */
int idle_leases_read(struct idle_history *h, struct err *e);
int idle_leases_read_use(struct idle_history *h, struct err *e);
/* The earliest moment that matters: when the first process was first seen. */
int64_t idle_history_first_ms(const struct idle_history *h);
/* Sorts the gaps and joins those of a card that touch. */
void idle_history_join_gaps(struct idle_history *h);

/* The leases of the host, as the recorder follows them from one reading to the next. */
#pragma once

#include "model/lease.h"

struct watch;

/* Takes the leases as they are now: time that is not accounted yet is judged by them. One that
 * is missing has ended at its time limit or, if that has not passed, half-way between the
 * last reading and this one. */
int watch_leases_take(struct watch *w, const struct leases *all, int64_t now_ms, struct err *e);
/* The clock was set: leases that have begun have begun by the new time, too. */
void watch_leases_step(struct watch *w, int64_t new_now_ms);
/* Adds the sums of leases to the ledger. */
void watch_leases_tick(struct watch *w);
/* Forgets the leases that have ended and are stored. */
void watch_leases_stored(struct watch *w);
/* Notes at the end of a run when each lease was seen last. */
void watch_leases_close(struct watch *w);
/* Whether a process uses a lease, for the accounts; `watch` is a struct watch. */
bool watch_leases_is_used_by(const void *watch, uint32_t lease, uint32_t process);

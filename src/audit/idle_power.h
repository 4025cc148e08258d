/* The idle floor of a card: the power that it takes while nobody computes on it, learned from
 * the store. */
#ifndef GUA_AUDIT_IDLE_POWER_H
#define GUA_AUDIT_IDLE_POWER_H

#include <stdint.h>

#include "base/err.h"

struct sqlite3;

/* The mean power in watt over the card's idle time of the 14 days before `now_ms`, from a
 * quarter of an hour of it on. A held card may take more than one without a process, so it is
 * the larger of the two means. NAN: not known. */
int idle_power_read(
	double *watt, struct sqlite3 *db, const char *uuid, int64_t now_ms, struct err *e);
/* The same from the store at `path`. */
int idle_power_of(
	double *watt, const char *path, const char *uuid, int64_t now_ms, struct err *e);

#endif

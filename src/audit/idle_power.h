/* The idle power of a card: the power that it draws while nobody computes on it, learned
 * from the store. */
#ifndef GUA_AUDIT_IDLE_POWER_H
#define GUA_AUDIT_IDLE_POWER_H

#include <stdint.h>

#include "base/err.h"

struct sqlite3;

/* The mean power in watts over the card's idle time in the 14 days before `now_ms`, if there
 * is at least a quarter of an hour of it. A held card may draw more than an empty one, so
 * the result is the larger of the two means. NAN: unknown. */
int idle_power_read(
	double *watt, struct sqlite3 *db, const char *uuid, int64_t now_ms, struct err *e);
/* The same from the store at `path`. */
int idle_power_of(
	double *watt, const char *path, const char *uuid, int64_t now_ms, struct err *e);

#endif

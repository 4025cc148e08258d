/* The memory of a bare CUDA context on each model of card, learned from the store: see
 * classify/context.h. */
#ifndef GUA_AUDIT_FLOORS_H
#define GUA_AUDIT_FLOORS_H

#include "base/err.h"
#include "classify/context.h"

struct sqlite3;

/* Learns from the newest records and forgets what was learned before. If it fails, nothing is
 * learned. */
int floors_read(struct context_floors *f, struct sqlite3 *db, struct err *e);

#endif

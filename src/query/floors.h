/* What a bare CUDA context takes on each model of card, learned from what was recorded: see
 * classify/context.h. */
#ifndef GUA_QUERY_FLOORS_H
#define GUA_QUERY_FLOORS_H

#include "base/err.h"
#include "classify/context.h"

struct sqlite3;

/* Learns from the newest records; what was learned before is forgotten. When it fails nothing
 * is learned. */
int floors_read(struct context_floors *f, struct sqlite3 *db, struct err *e);

#endif

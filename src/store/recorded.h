/* Which time of which cards a store already covers. An import reads it before it writes, so
 * that nothing is counted twice. */
#pragma once

#include "model/reading.h"

struct sqlite3;

/* A stretch of unix seconds. */
struct recorded_span {
	int64_t from, to; /* `to` is not part of it */
};

struct recorded_card {
	int64_t gpu; /* id in the store */
	char uuid[UUID_CAP];
	struct recorded_span *spans; /* in order, none touches another */
	size_t n, cap;
};

/* Zero-initialise. */
struct recorded {
	struct recorded_card *cards;
	size_t n;
};

/* Reads the slots of all cards of a host. */
int recorded_read(struct recorded *r, struct sqlite3 *db, const char *hostname, struct err *e);
void recorded_finish(struct recorded *r);
/* Whether the store has a slot of this card that contains this moment. */
bool recorded_has(const struct recorded *r, const char *uuid, int64_t at_ms);

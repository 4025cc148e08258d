/* What the store has of the last minutes, one number per minute: how much a card was used, and
 * how much one process used it. For the live views. */
#ifndef GUA_QUERY_RECENT_H
#define GUA_QUERY_RECENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct sqlite3;

/* Opens a store for reading. ERR_WORLD, and *db is NULL, if it cannot be opened. */
int recent_open(struct sqlite3 **db, const char *path, struct err *e);
void recent_close(struct sqlite3 *db);

/* Fills pct[0..n) with the mean utilisation of each minute from `from_minute` (since 1970) on;
 * NAN where nothing was observed. */
int recent_card(struct sqlite3 *db, const char *uuid, int64_t from_minute, double *pct,
	size_t n, struct err *e);

/* The same for one process on the card: its own SM use or, if the driver does not report that,
 * the share of the minute in which it was active. Returns 1 if the store knows the process,
 * else 0. */
int recent_process(struct sqlite3 *db, const char *uuid, uint32_t pid, uint64_t start_ticks,
	int64_t from_minute, double *pct, size_t n, struct err *e);

#endif

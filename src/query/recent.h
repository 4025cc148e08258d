/* What the store has of the last minutes, one number a minute: how much a card was used, and
 * how much one process used it. For the live views. */
#ifndef GUA_QUERY_RECENT_H
#define GUA_QUERY_RECENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct sqlite3;

/* A store that is open for reading; NULL and ERR_WORLD when it cannot be. */
int recent_open(struct sqlite3 **db, const char *path, struct err *e);
void recent_close(struct sqlite3 *db);

/* Fills pct[0..n) with the mean utilisation of each minute from `from_minute` (since 1970) on;
 * NAN where nothing was observed. */
int recent_card(struct sqlite3 *db, const char *uuid, int64_t from_minute, double *pct,
	size_t n, struct err *e);

/* The same of one process on the card: its own SM use, or where the driver has none, the part
 * of the minute in which it was active. Returns 1 when the store knows the process, 0 when it
 * does not. */
int recent_process(struct sqlite3 *db, const char *uuid, uint32_t pid, uint64_t start_ticks,
	int64_t from_minute, double *pct, size_t n, struct err *e);

#endif

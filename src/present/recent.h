/* What the store has of the last minutes, one number per minute: how much a card was used, and
 * how much one process used it. For the live views. */
#ifndef GUA_PRESENT_RECENT_H
#define GUA_PRESENT_RECENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/process.h"

struct sqlite3;

/* Opens a store for reading. ERR_WORLD, and *db is NULL, if it cannot be opened. */
int recent_open(struct sqlite3 **db, const char *path, struct err *e);
void recent_close(struct sqlite3 *db);

/* One number for each of `n` minutes. */
struct recent_minutes {
	int64_t from; /* the first one, in minutes since 1970 */
	size_t n;
	double *pct; /* set; NAN where nothing was observed */
};

/* Sets the mean utilisation of a card in each minute. */
int recent_card(struct sqlite3 *db, const char *uuid, const struct recent_minutes *minutes,
	struct err *e);

/* The same for one process on the card: its own SM use or, if the driver does not report that,
 * the share of the minute in which it was active. Returns 1 if the store knows the process,
 * else 0. */
int recent_process(struct sqlite3 *db, const char *uuid, const struct process_id *id,
	const struct recent_minutes *minutes, struct err *e);

#endif

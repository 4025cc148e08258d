/* What a store says about its recorder: for `gua status`. */
#ifndef GUA_STORE_STATUS_H
#define GUA_STORE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/reading.h"

struct store_status {
	bool any_run; /* a recorder has written here */
	char hostname[128], source[SOURCE_LIST_CAP], version[32];
	/* Times are between 1970 and 9999 and lengths below a year, whatever the file holds. */
	int64_t started_ms, last_tick_ms, interval_ms;
	int64_t ended_ms; /* of the last run, or -1: running or killed */
	char how_ended[32];
	int64_t cards[CARD_STATUS_COUNT]; /* how many, by status */
	int64_t file_bytes, wal_bytes;
};

/* The latest moment that is shown: 9999-12-31T23:59:59.999Z. */
#define STATUS_LAST_MS INT64_C(253402300799999)
/* The value if it is between 0 and `max`; else the nearest of the two. */
int64_t status_bound(int64_t value, int64_t max);

int status_read(struct store_status *s, const char *path, struct err *e);

#endif

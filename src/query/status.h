/* What a store says about its recorder: for `gua status`. */
#ifndef GUA_QUERY_STATUS_H
#define GUA_QUERY_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/reading.h"

struct store_status {
	bool any_run; /* a recorder has written here */
	char source[SOURCE_LIST_CAP], version[32];
	int64_t started_ms, last_tick_ms, interval_ms;
	int64_t ended_ms; /* of the last run, or -1: running or killed */
	char how_ended[32];
	int64_t cards[CARD_STATUS_COUNT]; /* how many, by status */
	int64_t file_bytes, wal_bytes;
};

int status_read(struct store_status *s, const char *path, struct err *e);

#endif

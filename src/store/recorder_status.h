/* How the recorder of a store is, and its problems: for `gua status` and the web server. */
#pragma once

#include "store/statusfile.h"

/* What a store says about its recorder. */
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
int64_t recorder_status_bound(int64_t value, int64_t max);
/* Reads the status from a store, without waiting long for a lock. */
int recorder_status_store(struct store_status *s, const char *path, struct err *e);

/* What is known: from the recorder's status file, and from the store. */
struct recorder_status {
	const char *db; /* the caller's */
	int64_t now_ms;
	struct published recorder;
	struct store_status store;
	struct err unreadable;	       /* why the store could not be read; code 0: it was */
	int64_t started_ms, tick_ms;   /* of the recorder, or of the last run; -1: none */
	struct published_fault own[2]; /* faults that were found here, not by the recorder */
	size_t n_own;
};

/* Reads both. Fails when there is neither a recorder nor a readable store; even then, all that
 * is known is filled in. */
int recorder_status_read(
	struct recorder_status *s, const char *db, int64_t now_ms, struct err *e);
/* The fault with this number, from 0; NULL: there is none. */
const struct published_fault *recorder_status_fault(const struct recorder_status *s, size_t i);
/* How the last run ended; "": it did not, or there was none. */
const char *recorder_status_end(const struct recorder_status *s);

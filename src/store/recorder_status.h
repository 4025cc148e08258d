/* How the recorder of a store is, and its problems: for `gua status` and the web server. */
#ifndef GUA_STORE_RECORDER_STATUS_H
#define GUA_STORE_RECORDER_STATUS_H

#include "store/status.h"
#include "store/statusfile.h"

/* What is known: from the recorder's status file, and from the store. */
struct recorder_status {
	const char *db; /* the caller's */
	int64_t now_ms;
	struct published recorder;
	struct store_status store;
	struct err unreadable;	       /* why the store could not be read; code 0: it was */
	int64_t started_ms, tick_ms;   /* of the recorder, or of the last run; -1: none */
	struct published_fault own[2]; /* found here, not by the recorder */
	size_t n_own;
};

/* Fails when there is neither a recorder nor a store that can be read; what is known is filled
 * in even then. */
int recorder_status_read(
	struct recorder_status *s, const char *db, int64_t now_ms, struct err *e);
/* The fault with this number, from 0; NULL: there is none. */
const struct published_fault *recorder_status_fault(const struct recorder_status *s, size_t i);
/* How the last run ended; "": it did not, or there was none. */
const char *recorder_status_end(const struct recorder_status *s);

#endif

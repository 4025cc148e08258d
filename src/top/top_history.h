/* How much each card was used in the last minutes, for the small graphs: from the store, and
 * from the readings since. */
#pragma once

#include "base/base.h"

enum { TOP_HISTORY_MINUTES = 120 };

struct top_minute {
	int64_t minute; /* since 1970 */
	double sum;	/* of readings of 0..100 */
	unsigned n;	/* how many */
};

struct top_history {
	struct top_minute (*cards)[TOP_HISTORY_MINUTES]; /* by minute modulo their number */
	size_t n_cards;
};

void top_history_finish(struct top_history *h);
/* Adds a reading, and the card if it is new; NAN and what memory does not suffice for are
 * ignored. */
void top_history_add(struct top_history *h, size_t card, int64_t at_ms, double pct);
/* The means of the `n` minutes up to the one of `now_ms`, oldest first; NAN: none. */
void top_history_get(
	const struct top_history *h, size_t card, int64_t now_ms, double *pct, size_t n);

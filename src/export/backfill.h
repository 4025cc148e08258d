/* The past as OpenMetrics 1.0 with timestamps, to fill an engine with what it has not scraped.
 */
#ifndef GUA_EXPORT_BACKFILL_H
#define GUA_EXPORT_BACKFILL_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "export/history.h"

struct backfill {
	int64_t step_s;	    /* time between two samples of a series */
	const char *labels; /* labels that all series get, such as instance="gpu01"; "" */
	/* Takes what is in `out` when there is enough of it, and empties it. */
	int (*flush)(struct str *out, void *context, struct err *e);
	void *context;
};

/* Prints all families. Within a slot, counters grow evenly. */
int backfill_print(struct str *out, struct history *h, const struct backfill *b, struct err *e);

#endif

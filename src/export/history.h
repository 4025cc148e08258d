/* The past of a store as counters: what an exporter would have shown, slot by slot, to
 * backfill an engine. */
#pragma once

#include "export/export.h"
#include "export/scrape.h"
#include "model/scrape.h"

struct history;

/* Opens a store and finds the slots in the window. `names` must outlive it. */
int history_open(struct history **h, const char *path, struct window window,
	const struct identity_names *names, struct err *e);
void history_close(struct history *h);

/* The slots of the window in order, and the totals now: cards by row, identities by name. */
const struct scrape *history_totals(const struct history *h);

struct backfill {
	int64_t step_s;	    /* time between two samples of a series */
	const char *labels; /* labels of all series, such as instance="gpu01"; or "" */
	/* Writes out the content of `out` when it is long enough, and empties it. */
	int (*flush)(struct str *out, void *context, struct err *e);
	void *context;
};

/* Prints all families. Within a slot, counters grow evenly. */
int history_print(struct str *out, struct history *h, const struct backfill *b, struct err *e);

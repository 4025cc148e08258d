/* The past of a store as counters: what an exporter would have shown, slot by slot, to fill an
 * engine with it. One series at a time: memory grows with the number of slots only. */
#ifndef GUA_EXPORT_HISTORY_H
#define GUA_EXPORT_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/scrape.h"
#include "export/export.h"
#include "export/identity_names.h"

/* A stretch of time with one sum. */
struct history_slot {
	int64_t from_s, to_s; /* unix seconds; the newest ends at the last tick */
	int64_t cards;	      /* that have time in it */
};

enum history_what { HISTORY_TIME, HISTORY_ENERGY, HISTORY_IDENTITY };

/* A series: its value at the begin of the first slot, and what each slot adds to it, in
 * milliseconds or millijoules. */
struct history_series {
	int64_t begin;
	const int64_t *adds; /* of each slot */
};

struct history;

/* Opens a store and finds the slots in the window. `names` must outlive it. */
int history_open(struct history **h, const char *path, struct export_window window,
	const struct identity_names *names, struct err *e);
void history_close(struct history *h);

/* The slots of the window in order of time, and the totals now: cards by row, identities by
 * name. */
const struct history_slot *history_slots(const struct history *h, size_t *n);
const struct scrape *history_totals(const struct history *h);

/* Begins with the series of one state of each card (enum card_state), in the order of the
 * cards, or with one sum of each identity (enum identity_sum), in their order. */
int history_begin(struct history *h, enum history_what what, int which, struct err *e);
/* The next series; valid until the next call. */
int history_next(struct history *h, struct history_series *series, struct err *e);

#endif

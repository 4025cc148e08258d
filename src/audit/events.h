/* The events of stores, one by one. */
#ifndef GUA_AUDIT_EVENTS_H
#define GUA_AUDIT_EVENTS_H

#include "audit/gather.h"

enum { EVENT_KIND_CAP = 32, EVENT_TEXT_CAP = 256 };

/* One event while it is read. */
struct event_row {
	int64_t at_ms, value;
	uint32_t host, card; /* indexes into the audit; card IDMAP_NONE: none */
	char kind[EVENT_KIND_CAP], text[EVENT_TEXT_CAP];
};

/* Receives the events in since <= t < until. */
struct event_taker {
	struct gather *g;
	int64_t since_ms, until_ms;
	int (*take)(struct event_taker *t, const struct event_row *row, struct err *e);
	void *context;
};

/* Calls `take` for the events of a store, in no order, unless their host or card is not in
 * the audit. Times without a recorder are among them (EVENT_RECORDER_OFF): they come from the
 * runs. */
int events_of(struct event_taker *t, const struct gather_file *file, struct err *e);

#endif

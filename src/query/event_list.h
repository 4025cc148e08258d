/* The list of what happened to cards, drivers, hosts and recorders, from stores. */
#ifndef GUA_QUERY_EVENT_LIST_H
#define GUA_QUERY_EVENT_LIST_H

#include "model/table.h"
#include "query/audit.h"

/* Which events to list. */
struct event_choice {
	/* NULL: all. `card` is NULL for an event that no card has. */
	bool (*wants)(const void *context, const struct card_id *card, const char *kind);
	const void *context;
};

struct event_list {
	struct table table; /* by time, oldest first */
	bool simulated;	    /* a source that invents its data ran in the window */
};

/* Fills `*l` from the stores of the question, in its window; times in text follow its zone.
 * Call event_list_finish() even after a failure. */
int event_list_read(struct event_list *l, const struct audit_question *q,
	const struct event_choice *choice, struct err *e);
void event_list_finish(struct event_list *l);

#endif

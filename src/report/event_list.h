/* The list of events of cards, drivers, hosts and recorders, read from stores. */
#pragma once

#include "base/period.h"
#include "model/table.h"
#include "audit/audit.h"

/* Which events to list. */
struct event_choice {
	/* Whether to list an event; NULL: all. `card` is NULL for an event without a card. */
	bool (*wants)(const void *context, const struct card_id *card, const char *kind);
	const void *context;
};

/* The words with which users select events: cards as in card_is_named(), and names of kinds. */
struct event_words {
	struct text_list cards, kinds;
};
/* For struct event_choice: whether the words select the event. */
bool event_list_takes(const void *words, const struct card_id *card, const char *kind);
/* ERR_USAGE: a kind that does not exist, or an empty list. */
int event_list_check(const struct event_words *words, struct err *e);
/* Appends the names of all kinds, each with a blank after it. */
void event_list_kinds(struct str *out);
/* Sets the window, by default the last 7 days, and the zone. */
int event_list_ask(struct audit_question *q, const struct window_words *words, int64_t now_ms,
	bool utc, struct err *e);

struct event_list {
	struct table table; /* by time, oldest first */
	bool simulated;	    /* a source that invents its data ran in the window, ... */
	bool captured;	    /* ... or one that plays a capture: then simulated is true too */
};

/* Fills `*l` from the stores of the question, in its window; times in text follow its zone.
 * Call event_list_finish() even after a failure. */
int event_list_read(struct event_list *l, const struct audit_question *q,
	const struct event_choice *choice, struct err *e);
void event_list_finish(struct event_list *l);

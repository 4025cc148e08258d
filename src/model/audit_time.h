/* Parts of an audit about when: hours of the week, days, and what happened. */
#ifndef GUA_MODEL_AUDIT_TIME_H
#define GUA_MODEL_AUDIT_TIME_H

#include <stddef.h>
#include <stdint.h>

#include "model/state.h"
#include "model/tick.h"

struct audit_heat {
	int64_t ms[3]; /* active, idle-held, truly-idle; by enum card_state */
};

/* One day of the window, in local time or UTC: all cards together. */
struct audit_day {
	int64_t from_ms, to_ms;	 /* within the window */
	int64_t ms[CARD_STATES]; /* [CARD_UNOBSERVED]: what no reading covers of the next */
	int64_t window_ms;	 /* the cards' time in it */
};

struct audit_days {
	struct audit_day *items;
	size_t n;
	int64_t first; /* number of the first day, since 1970-01-01 */
};

#define AUDIT_NO_CARD SIZE_MAX

/* The events of one kind in the window; each XID number is a kind of its own. */
struct audit_event {
	enum event_kind kind;
	int64_t xid; /* -1: it is not one */
	size_t times;
	int64_t total_ms; /* of kinds that last (gap, suspend, recorder-off); else -1 */
	int64_t last_ms;  /* when the last one happened, and to which card or host */
	size_t last_host, last_card; /* card AUDIT_NO_CARD: none */
	char last_text[160];
};

#endif

/* Parts of an audit about when: hours of the week, days, and what happened. */
#ifndef GUA_MODEL_AUDIT_TIME_H
#define GUA_MODEL_AUDIT_TIME_H

#include <stdbool.h>
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

/* The time of one card in one column of the time line; of users, theirs on it, where all but
 * [CARD_UNOBSERVED] may be longer than the column. */
struct audit_column {
	int64_t ms[CARD_STATES]; /* [CARD_UNOBSERVED]: what no reading covers of the next */
	int64_t window_ms;	 /* the card's time in it */
};

/* The events of one kind in a column, to a card or to a host. */
struct audit_mark {
	size_t host, card; /* card AUDIT_NO_CARD: none */
	size_t column;
	enum event_kind kind;
	size_t times;
	int64_t last_ms, last_value; /* when the last one happened; the XID number, the ms */
};

/* The time line: the window in equal columns, each card by itself. The first column may begin
 * before the window, and the last may end after it. */
struct audit_columns {
	int64_t first_ms, width_ms;
	size_t n;		    /* 0: there is none */
	struct audit_column *items; /* n of the first card, n of the second, and so on */
	struct audit_mark *marks;
	size_t n_marks;
	bool too_many; /* cards: therefore there is none */
};

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

/* The columns of a time line. Only for audit/. */
#ifndef GUA_AUDIT_COLUMNS_H
#define GUA_AUDIT_COLUMNS_H

#include "audit/event_rows.h"
#include "audit/gather.h"

/* Makes the columns, if they were asked for, and reads the cards' time in each: 60 to 200 of
 * them, unless the window has fewer slots. */
int gather_columns(struct gather *g, struct err *e);
/* Forgets all time but what was not observed: what follows is of users. */
void columns_clear(struct audit_columns *c, size_t n_cards);
/* Adds `ms` of `state` on a card in the slot that starts there (unix seconds). */
void columns_add(struct audit_columns *c, uint32_t card, int64_t slot, int state, int64_t ms);
/* Counts an event; `known` has those that are already counted. */
int columns_mark(struct audit *a, struct idmap *known, const struct event_row *row,
	enum event_kind kind, struct err *e);

#endif

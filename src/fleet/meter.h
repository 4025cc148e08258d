/* Counters of a fleet at the edges of a window: for each card or user of a host and each state,
 * the last value before an edge and the first one after it. */
#ifndef GUA_FLEET_METER_H
#define GUA_FLEET_METER_H

#include "base/err.h"
#include "base/names.h"

/* The two edges of a window. */
enum edge { EDGE_START, EDGE_END, EDGES };

enum meter_slot {
	METER_BEFORE_START, /* the last value up to the edge */
	METER_AFTER_START,  /* the first value after it */
	METER_BEFORE_END,
	METER_AFTER_END,
	METER_FIRST, /* the least value in the window, of series that begin in it */
	METER_SLOTS,
};

enum { METER_STATES = 5 }; /* by enum card_state, or enum holder_state */

struct meter {
	double at[METER_SLOTS]; /* NAN: no value */
	double lost;		/* what resets in the window took away */
};

struct meter_row {
	uint32_t host;
	const char *name; /* UUID or identity */
	char gpu[16];	  /* label of a card: "0", "0:1" */
	uint32_t info;	  /* the survey's */
	struct meter states[METER_STATES];
};

/* Zero-initialise. */
struct meters {
	struct names names; /* their scope is the host */
	struct meter_row *rows;
	size_t n;
};

/* The row, added when it is new. NULL: out of memory. */
struct meter_row *meters_find(struct meters *m, uint32_t host, const char *name, struct err *e);
void meters_finish(struct meters *m);

/* When the counters of a host were accounted, at an edge; NAN: not known. */
struct edge_times {
	double edge, before, after;
};
/* The value at an edge, on the line between the values around it; the value before it if that
 * is all there is, or if the one after it belongs to another store. NAN: none before it. */
double edge_value(double before, double after, const struct edge_times *t);

#endif

/* Adds slots of time to the hours of the week and to the days of an audit. Only for audit/. */
#ifndef GUA_AUDIT_HEAT_H
#define GUA_AUDIT_HEAT_H

#include "model/audit.h"

/* The hours of the week in local time, or in UTC. */
struct heat_clock {
	bool utc;
	int64_t hour;	  /* the last one that was looked up, unix seconds; 0: none yet */
	int64_t offset_s; /* its offset from UTC */
	bool days_only;	  /* add to the days, not to the hours of the week */
};
struct heat_slot {
	int64_t start, seconds; /* unix time, and length */
};
/* Adds `ms` of `state` in the slot to the heatmap and to its day. */
void heat_add(
	struct audit *a, struct heat_clock *h, struct heat_slot slot, int state, int64_t ms);

/* Adds to the day of a local time (seconds since 1970 on the wall). */
void days_add(struct audit_days *d, int64_t local_s, int state, int64_t ms);
/* Adds a card's window to the days that it covers. */
void days_add_window(struct audit_days *d, int64_t from_ms, int64_t to_ms);
/* Sets the unobserved time of each day. */
void days_settle(struct audit_days *d);
/* Forgets all time but that: what follows is of users. */
void days_clear(struct audit_days *d);

#endif

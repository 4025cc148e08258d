/* Adds slots of time to the hours of the week and to the days of an audit. */
#ifndef GUA_AUDIT_HOURS_H
#define GUA_AUDIT_HOURS_H

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
void hours_add(
	struct audit *a, struct heat_clock *h, struct heat_slot slot, int state, int64_t ms);

/* Adds a card's window to the days that it covers. */
void hours_add_window(struct audit_days *d, int64_t from_ms, int64_t to_ms);
/* Sets the unobserved time of each day. */
void hours_settle(struct audit_days *d);
/* Clears all time except unobserved time; the time of users is added next. */
void hours_clear(struct audit_days *d);

#endif

/* The state that a live view keeps between refreshes, for cards and for processes. */
#ifndef GUA_LIVE_MEMORY_H
#define GUA_LIVE_MEMORY_H

#include "classify/classify.h"
#include "live/live_data.h"

/* Of a card; same order as live.cards. */
struct live_memory {
	double util_pct; /* newest sample, or NAN */
	enum card_state state;
	int64_t since_ms;   /* in that state; -1: not known */
	bool longer;	    /* or longer: there is no earlier reading */
	int64_t idle_ms;    /* not active since, in whichever state; -1: active, or not known */
	bool seen;	    /* state and since_ms are of an earlier refresh */
	int64_t from_ms;    /* newest sample of the drain before; -1: none */
	int64_t newest_ms;  /* newest sample; -1: none yet */
	int64_t covered_ms; /* every sample since then was seen; -1: none yet */
	struct held held;   /* by the holders, now */
	bool empty;	    /* the last look listed no process */
	bool latched;	    /* the newest samples are not believed: see is_latched() */
	bool ask;	    /* the store is to be asked since when */
	bool lent;	    /* it was, and had not written yet what was just before own_ms */
	int64_t own_ms, own_idle_ms; /* since_ms and idle_ms without its answer */
	bool missed; /* since the newest sample an answer was lost, with those that it had */
	bool gap;    /* this drain does not go on where the one before ended */
};

/* Of a process; same order as live.processes. */
struct live_mark {
	int64_t described_ms; /* first sight of the life that the place has the identity of */
	uint32_t user;	      /* same number, same user */
	int stat_fd;	      /* its PROC/PID/stat, kept open where it can be; or -1 */
	int64_t ticks;	      /* CPU time, or -1 */
	int64_t at_us;	      /* boot time when that was; 0: never */
	int64_t watched_ms;   /* since when this view knows what it does */
	int64_t active_ms;    /* this view saw it active; -1: it did not */
	bool recorded;	      /* a recorder at work knows the following */
	int64_t recorded_idle_ms;
	bool recorded_longer;
};

/* Processes of one refresh. */
struct live_list {
	struct live_process *items;
	struct live_mark *marks;
	size_t n, cap;
	size_t next; /* where the search for a life goes on */
};

#endif

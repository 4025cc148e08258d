/* The state that a live view keeps between refreshes, for cards and for processes. */
#ifndef GUA_PRESENT_MEMORY_H
#define GUA_PRESENT_MEMORY_H

#include "classify/classify.h"
#include "model/present.h"

/* What is remembered of a card; same order as live.cards. */
struct live_memory {
	double util_pct; /* newest sample, or NAN */
	enum card_state state;
	int64_t since_ms;   /* in that state since; -1: not known */
	bool longer;	    /* it may be longer: there is no earlier reading */
	int64_t idle_ms;    /* not active since, in any state; -1: active, or not known */
	bool seen;	    /* state and since_ms come from an earlier refresh */
	int64_t from_ms;    /* newest sample of the previous drain; -1: none */
	int64_t newest_ms;  /* newest sample; -1: none yet */
	int64_t covered_ms; /* no sample since then was missed; -1: none yet */
	struct held held;   /* what the holders hold now */
	bool empty;	    /* the last look listed no process */
	bool latched;	    /* the newest samples are not believed: see is_latched() */
	bool ask;	    /* ask the store since when the card has been in its state */
	bool lent; /* the store has answered, but its last tick is before own_ms: ask again */
	int64_t own_ms, own_idle_ms; /* since_ms and idle_ms without the store's answer */
	bool missed; /* an answer was lost after the newest sample, with the samples in it */
	bool gap;    /* samples are missing between the previous drain and this one */
};

/* What is remembered of a process; same order as live.processes. */
struct live_mark {
	int64_t described_ms; /* when the process with this entry's identity was first seen */
	uint32_t user;	      /* equal numbers mean the same user */
	int stat_fd;	      /* its PROC/PID/stat, kept open if possible; or -1 */
	int64_t ticks;	      /* CPU time, or -1 */
	int64_t at_us;	      /* boot time when `ticks` was read; 0: never */
	int64_t watched_ms;   /* this view has watched it since then */
	int64_t active_ms;    /* last time that this view saw it active; -1: never */
	bool recorded; /* a running recorder knows the process; the next two are its values */
	int64_t recorded_idle_ms;
	bool recorded_longer;
};

/* Processes of one refresh. */
struct live_list {
	struct present_process *items;
	struct live_mark *marks;
	size_t n, cap;
	size_t next; /* where the next search for a process starts */
};

#endif

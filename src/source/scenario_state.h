/* What a play remembers. Private to scenario_play.c and scenario_ask.c. */
#ifndef GUA_SOURCE_SCENARIO_STATE_H
#define GUA_SOURCE_SCENARIO_STATE_H

#include "source/scenario_play.h"

enum { XIDS_KEPT = 64 };

/* Use of a card, steady or in turns of on and off. */
struct load {
	int pct;
	int64_t on_us, off_us; /* 0: steady */
	int64_t since_us;      /* where the first turn began */
};

/* A process on a card. */
struct seat_now {
	bool held;
	int64_t mem_bytes; /* or -1 */
	struct load load;
	int64_t sum, newest_us; /* scratch of play_uses() */
};

/* Who used a card in one sample. */
struct part {
	uint32_t seat, pct;
};

struct card_state_now {
	enum card_status status;
	int code;
	bool vanished, garbage;
	int64_t grow_by, grow_to;
	int64_t orphan_bytes;
	struct load own_load; /* by nobody in the list */
	uint32_t *loading;    /* seats with a load, its instances' included */
	size_t n_loading;
	struct play_sample *ring; /* ring_cap of them */
	struct part *parts;	  /* ring_cap x parts_stride */
	size_t parts_stride;
	size_t ring_next, ring_used;
	int64_t next_sample;	   /* number of the first sample not yet taken */
	int util_pct;		   /* of the newest one */
	int64_t energy_mw_samples; /* sum of the samples' power */
	int64_t energy_from;	   /* scenario time of the last reset */
};

/* One life of a process after the other. */
struct life {
	bool alive, lived;
	bool seated;  /* it is or was on a card */
	uint32_t pid; /* from its file; 0: not read */
	int64_t started_us;
};

struct fault_on {
	uint32_t fault;
	int64_t round_us; /* start of the round that turned it on */
};

struct xid {
	uint32_t card;
	int64_t xid;
};

struct play {
	const struct scenario *scenario;
	bool virtual_time;
	int64_t t_us;	      /* now */
	int64_t wall_less_us; /* wall clock less scenario time, steps not included */
	int64_t step_us;      /* sum of the steps so far */
	int64_t suspended_us; /* sum of the suspends so far */
	bool suspended;	      /* now */
	size_t next_event;    /* in this round */
	int64_t round_us;     /* when this round began */
	bool finished;	      /* no event is left */
	size_t ring_cap;
	struct card_state_now *cards; /* as scenario.cards */
	struct seat_now *seats;	      /* as scenario.seats */
	struct life *lives;	      /* as scenario.processes */
	struct fault_on *on;	      /* faults that are on, the latest last */
	size_t n_on;
	struct xid xids[XIDS_KEPT];
	uint64_t n_xids; /* ever */
};

#endif

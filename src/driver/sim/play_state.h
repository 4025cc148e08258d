/* The state of a play. Private to play*.c. */
#pragma once

#include "driver/sim/play.h"

/* Entries that are kept of processes that left a card. */
enum { DEAD_KEPT = 128 };

/* What accounting mode keeps of a process on a card, from when it came to when it left. */
struct accounted {
	uint32_t process, life; /* the process, and the number of its life */
	uint32_t pid;		/* 0: not known yet; while it runs its seat's process has it */
	int64_t start_us, start_wall_us, end_us;
	int64_t peak_bytes;  /* or -1 */
	int64_t used, on_us; /* its use, percent x microseconds, and how long the card was on */
};

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
	int64_t sum;		  /* scratch of play_uses() */
	size_t newest;		  /* also scratch: index in the ring */
	struct accounted account; /* while it is held */
};

/* A process that used a card in one sample: percent x microseconds. */
struct part {
	uint32_t seat;
	int64_t pct_us;
};

struct card_state_now {
	enum card_status status;
	int code;
	struct play_quirks quirks;
	int64_t orphan_bytes;
	struct load own_load; /* load that comes from no listed process */
	uint32_t *loading;    /* seats with a load, including those of its instances */
	size_t n_loading;
	struct play_sample *ring; /* ring_room of them */
	struct part *parts;	  /* ring_room x parts_stride */
	size_t parts_stride;
	size_t ring_next, ring_used;
	struct accounted *dead; /* DEAD_KEPT of them, by their end; NULL: accounting is off */
	size_t n_dead;
	int64_t added_us;	       /* all time before this is in the following sums */
	int64_t on_us;		       /* how long the card was on */
	int64_t util_pct_us;	       /* utilisation over time */
	int64_t energy_mj, energy_nj;  /* energy since the last reset, and what is left over */
	int64_t use_mw, cool_until_us; /* power that the last use added, and until when the card
					  cools down */
	int64_t next_sample;	       /* number of the first sample not yet taken */
	int64_t sample_us, sample_pct_us; /* the sample that is being made: length and use */
	uint32_t n_parts;		  /* and processes */
	struct play_power powers[POWER_RING_MAX]; /* the ring of power ... */
	size_t n_powers;			  /* ... and how many were ever put there */
};

/* The current life of a process; a process may live several times. */
struct played_life {
	bool alive, lived;
	uint32_t number; /* of this life, from 1 */
	bool seated;	 /* it is or was on a card */
	uint32_t pid;	 /* from its file; 0: not read */
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
	int64_t t_us;		       /* now */
	int64_t wall_less_us;	       /* wall clock less scenario time, steps not included */
	int64_t step_us, suspended_us; /* sums of the steps and of the suspends so far */
	bool suspended;		       /* now */
	size_t next_event;	       /* in this round */
	int64_t round_us;	       /* when this round began */
	bool finished;		       /* no event is left */
	size_t ring_cap, ring_room; /* samples that a ring shows; ring_room has one more, which
				       is being made */
	int64_t sample_us;	    /* how long a sample of the driver is */
	struct card_state_now *cards; /* as scenario.cards */
	struct seat_now *seats;	      /* as scenario.seats */
	struct played_life *lives;    /* as scenario.processes */
	struct fault_on *on;	      /* faults that are on, the latest last */
	size_t n_on;
	struct xid xids[XIDS_KEPT];
	uint64_t n_xids; /* ever */
};

/* play_account.c: a process is on a card; `comes`: it was not before. */
void play_account_hold(struct play *p, uint32_t seat, bool comes, int64_t t_us);
void play_account_leave(struct play *p, uint32_t seat, int64_t t_us);
/* The pid of a process has become known. */
void play_account_name(struct play *p, uint32_t process);

/* What the recorder passes to the store at a tick: sums and facts, in one transaction. Cards
 * and processes are referred to by their index in the arrays. The store maps them to its ids
 * and keeps these in `store_id`, so that a tick that could not be written can be written
 * completely later. */
#pragma once

#include "model/event.h"
#include "model/lease.h"
#include "model/process.h"
#include "model/spell.h"
#include "model/state.h"

/* The finest slot: one minute. Slots are named by their start, unix seconds. */
#define SLOT_SECONDS 60

/* Sums of one card in one state in one slot. Sums may be negative: energy, and the time for
 * which it is known, can arrive one tick later than the time itself. */
struct usage_sum {
	int64_t slot;  /* unix seconds, multiple of SLOT_SECONDS */
	uint32_t card; /* index into tick.cards */
	enum card_state state;
	int64_t ms;	     /* measured time */
	int64_t util_pct_ms; /* sum of utilisation percent x ms */
	int64_t energy_mj;   /* of the time with known energy */
	int64_t energy_ms;   /* that time */
	/* How far the time can be off: dependent errors add up, independent ones as squares. */
	int64_t unsure_ms, unsure_ms2;
	int64_t sm_active_pct_ms; /* sum of the mean SM activity x ms ... */
	int64_t sm_active_ms;	  /* ... over the time for which it is known */
};

/* Sums of one process on one card in one slot. */
struct holding_sum {
	int64_t slot;
	uint32_t card;			    /* index into tick.cards */
	uint32_t process;		    /* index into tick.processes */
	int64_t ms[HOLDER_STATES];	    /* its time on the card, by its own state */
	int64_t presence_ms[HOLDER_STATES]; /* what counts for its user, by the user's state: at
					       each moment one process per user and card counts,
					       the others have 0; the sum over a user's
					       processes is the user's presence */
	int64_t active_share_ms;	    /* its part of the card's active time ... */
	int64_t idle_share_ms; /* ... and of its idle-held time: the parts of all holders add up
				  to the card's time */
	int64_t sm_pct_ms;     /* sum of its own SM percent x ms; -1: not reported */
	int64_t mem_peak_kib;  /* or -1: the driver does not report it */
	int64_t engine_ms;     /* its time with use of an encoder, a decoder, JPEG or flow */
	/* For policy: the highest use in a drain, in whole percents: its own SM use, or that
	 * of its card if only its session can have used it; -1: unknown. And the time in
	 * which it is unknown whose use it was. */
	int64_t sm_max_pct, own_unknown_ms;
};

/* Sums of one lease on one card in one slot. Its time is active or idle-held by the processes
 * that use it, of unknown use where the card's is, else untouched, and never unobserved. */
struct lease_sum {
	int64_t slot;
	uint32_t card;	     /* index into tick.cards */
	uint32_t lease;	     /* index into tick.leases */
	int64_t reserved_ms; /* its part of the card's reserved time: parts of all leases add up
				to it */
	int64_t unknown_ms;  /* its part of the card's truly-idle time in which it is not known
				whether leases had ended */
	int64_t active_ms, idle_held_ms, use_unknown_ms, untouched_ms;
};

/* A card as the recorder knows it. */
struct card_entry {
	struct card_id id;
	char source[SOURCE_CAP]; /* of its readings; "" when unknown */
	enum card_status status;
	int64_t first_seen_ms, last_seen_ms; /* last_seen: accounted up to here */
	int64_t store_id;		     /* 0: the store does not have it yet */
	bool dirty;			     /* changed since it was stored */
	bool listed; /* its processes were listed in this run: its open stretches are known */
	struct card_now now; /* as of the tick */
};

/* A process life as the recorder knows it. */
struct process_entry {
	struct process_id id;
	int64_t first_seen_ms, last_seen_ms;
	int64_t last_active_ms; /* last moment with own activity, or -1: never seen active */
	int64_t ended_ms;	/* when it was seen to have ended, or -1 */
	int64_t store_id;
	bool dirty;
	bool has_spell; /* a spell refers to it: it keeps a row of its own */
};

/* A lease as the recorder knows it. */
struct lease_entry {
	struct lease lease; /* without its cards */
	int64_t from_ms; /* it counts from then on: its begin, also after the clock was set */
	int64_t first_seen_ms, last_seen_ms;
	int64_t ended_ms; /* or -1 */
	int64_t store_id;
	bool dirty;
};

struct event {
	int64_t at_ms;
	enum event_kind kind;
	int card;      /* index into tick.cards, or -1 */
	int64_t value; /* by kind */
	char text[160];
};

/* What a holder has on a card now, for `gua who` and the live views. */
struct holder_now {
	uint32_t card, process; /* indexes */
	unsigned kind;		/* process_kind bits */
	int64_t mem_bytes;	/* or -1 */
	int64_t since_ms;	/* first seen on this card */
	int64_t last_active_ms; /* or -1 */
};

struct tick {
	int64_t at_ms; /* when it was taken; becomes run.last_tick_ms */
	struct card_entry *cards;
	size_t n_cards;
	struct process_entry *processes;
	size_t n_processes;
	int64_t slot_ms; /* length of a slot of the sums; 0: the store need not know */
	const struct usage_sum *usage;
	size_t n_usage;
	const struct holding_sum *holding;
	size_t n_holding;
	struct lease_entry *leases;
	size_t n_leases;
	const struct lease_sum *leased;
	size_t n_leased;
	bool has_leases; /* a scheduler says here what it gives away */
	const struct event *events;
	size_t n_events;
	const struct holder_now
		*holders; /* all current holders: they replace the stored ones */
	size_t n_holders;
	/* All stretches that go on (SPELL_OPEN) on cards that were listed: they replace the
	 * stored ones. And the spells that ended, or changed after they had ended. */
	const struct spell *spells;
	size_t n_spells;
};

/* What a run of the recorder is started with. */
struct run_info {
	char hostname[128];
	char machine_id[64];  /* /etc/machine-id, or "" */
	char environment[16]; /* bare docker k8s ... */
	char driver[VERSION_CAP];
	char boot_id[BOOT_ID_CAP];
	char source[SOURCE_LIST_CAP]; /* "nvml", "nvml,sim": simulated is never shown as real */
	int64_t started_ms;
	int64_t interval_ms, drain_ms, glance_ms;
	struct rules rules;
	bool one_look; /* the run ends after the first look */
	enum privacy privacy;
};

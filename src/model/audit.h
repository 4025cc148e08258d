/* The audit: sums of what the cards did in a window and which users held them. Engines fill
 * it: stores (audit/gather.h), or metrics of a fleet (fleet/survey.h). Reports are made from
 * it.
 *
 * An engine calls audit_init(), adds with the functions in audit/audit.h, and ends with
 * audit_add_up(). It fills
 *   - since_ms, until_ms, resolution_ms, rules, rules_mixed, strict, oldest_ms, newest_ms;
 *   - hosts that have a card, each with all of its members;
 *   - cards by host, then index, then instance: all members. All of a card's window is in ms[],
 *     time without a reading in ms[CARD_UNOBSERVED]; energy_known_ms and unsure_ms are at most
 *     as long as the time that they are of; then their prices and floors;
 *   - identities, most presence first, and, if asked, processes, in the order that was asked
 *     for: how many were left out is in n_processes_left_out, and their time in left_out.
 *     `path` and `id` of a process are the engine's;
 *   - breakdown and by_card, if asked: the rows of each level. The shares of a level's rows and
 *     unattributed_ms add up to the cards' active and idle-held time (MEASURE_CARDS: the shares
 *     alone);
 *   - heat and days: all cards' time by hour of the week and by day; columns; events, by kind;
 *   - spells, if asked: how many were left out is in spells.n_left_out.
 * Texts are safe; unknown is -1. audit_add_up() does the sums over cards. */
#pragma once

#include "base/base.h"
#include "model/audit_time.h"
#include "model/identity.h"
#include "model/process.h"
#include "model/state.h"

/* What time costs in an audit: money by the price of the card, and energy. All of it follows
 * shares: a card's active time is divided by SM use, its idle-held time by memory held, and
 * its time with unknown use by presence, so that holders add up to cards. */
/* The parts of a cost. Those before COST_PARTS add up to the whole. */
enum cost_part {
	COST_ACTIVE,
	COST_IDLE_HELD,
	COST_USE_UNKNOWN,
	COST_RESERVED,
	COST_HELD_PARTS, /* a holder has the parts before this */
	COST_TRULY_IDLE = COST_HELD_PARTS,
	COST_UNOBSERVED,
	COST_PARTS,
	/* Beside the others: the price of the time in which a holder was idle on a card that
	 * another user kept active. That time is part of the other user's cost. */
	COST_SQUATTING = COST_PARTS,
	COSTS
};

/* The cost of a holder, of a card or of several. Time without a price, and time with unknown
 * energy, is counted only in its own member. */
struct audit_cost {
	double money[COSTS];
	bool priced;			/* some card had a price; false: the cost is unknown */
	int64_t priced_ms, unpriced_ms; /* time on cards with and without a price */
	double energy_mj;		/* by the same shares */
	double floor_mj; /* part of it: what the idle card would have drawn anyway, an estimate;
			    NAN: not known for all of it */
	int64_t energy_ms; /* time with known energy */
};

/* The time of an identity. */
struct audit_sums {
	int64_t ms[HOLDER_STATES]; /* by state; the measure says what it is */
	int64_t active_share_ms;   /* its part of the cards' active time ... */
	int64_t idle_share_ms;	   /* ... of their idle-held time ... */
	int64_t context_share_ms;  /* (of this, the part of processes with a bare context) */
	int64_t unknown_share_ms;  /* ... and, by presence, of that with unknown use */
	int64_t reserved_ms;	/* its part, by its leases, of the cards' reserved time: in no
				   other    member */
	struct audit_cost cost; /* of the shares */
	int64_t peak_mem_kib;	/* of its largest process; -1 unknown */
	int64_t last_active_ms; /* last activity of its processes in the window; -1: never */
};
#define AUDIT_SUMS_NONE                                                                        \
	{                                                                                      \
		.peak_mem_kib = -1, .last_active_ms = -1                                       \
	}

/* A user: sums.ms is presence, by the user's state on the card. */
struct audit_identity {
	char identity[USER_CAP];
	struct audit_sums sums;
};

/* One process on one card. */
struct audit_process {
	size_t host, card, identity, path; /* indexes; path: which store */
	int64_t id;			   /* of its row there */
	uint32_t pid;
	int64_t started_ms;		  /* -1 unknown */
	const char *texts[PROCESS_TEXTS]; /* the audit's; NULL: none */
	struct audit_sums sums;		  /* by its own state */
	bool context;			  /* it never had more than a bare context there */
};

/* A process of a user that holds a card idle now: only of hosts whose recorder is running. */
struct audit_present {
	size_t host, card; /* indexes */
	uint32_t pid;
	int64_t mem_bytes; /* -1 unknown */
	int64_t idle_ms;   /* at least this long */
	const char *what;  /* notebook, job, container or command; the audit's, like the next */
	const char *job, *container, *pod; /* NULL: none */
	bool notebook;
};

#define AUDIT_NONE UINT32_MAX	       /* an index that is not known yet */
#define AUDIT_SEVERAL (UINT32_MAX - 1) /* an index: several different ones */

/* One identity of a breakdown. A year has tens of thousands. */
struct audit_row {
	const char *key;   /* name, the audit's; NULL: the time of those that have none */
	const char *shown; /* the name for people; NULL: the key */
	struct audit_sums sums;
	int64_t unobserved_ms;	   /* MEASURE_CARDS; like sums.ms, it has no squatting then */
	uint32_t outer;		   /* second level: its row of the first level */
	uint32_t user, host, card; /* indexes in the audit, or AUDIT_SEVERAL */
	uint32_t n_processes;
	uint32_t last_process; /* the engine's, for counting processes */
	uint32_t n_cards;      /* MEASURE_CARDS, like the next */
	uint32_t pid;	       /* kind process, like started_ms */
	int64_t known_ms;      /* when the first of them was seen; -1 unknown */
	int64_t started_ms;    /* -1 unknown */
};

/* Time by one kind of identity, or by two, one within the other. */
struct audit_breakdown {
	struct by by; /* n 0: none was asked for */
	enum measure measures[BY_MAX];
	struct audit_row *rows[BY_MAX]; /* by level, in no order */
	size_t n[BY_MAX];
};

struct audit_host {
	char hostname[128], machine_id[64], environment[16], driver[VERSION_CAP];
	bool simulated; /* some of its data in the window is simulated: reports say so, */
	bool captured, imported; /* and that it was played from a capture, or imported */
	bool recording;		 /* a run is live: its last tick is recent */
	bool ran;		 /* a run overlaps the window */
	bool measured; /* a recorder ran there: not all of its data is imported or simulated */
	bool has_leases;      /* a scheduler said in the window what it gave away */
	uint32_t number;      /* the engine's, like the next */
	bool left_out;	      /* the audit does not include it */
	bool expected;	      /* it was expected by name, from the start of the window on */
	const char *metrics;  /* of a fleet: whose metrics of it were read; NULL: no fleet */
	int64_t known_ms;     /* when a card of it was first seen; -1 unknown */
	bool late;	      /* known_ms is within the window: its own window is shorter */
	int64_t last_tick_ms; /* of its newest run, or -1 */
	int64_t interval_ms;  /* between the ticks of that run */
	int64_t until_ms;     /* end of its window: the last tick when a run is live */
	size_t n_cards;	      /* in cards[] */
};

struct audit_card {
	size_t host;
	struct card_id id;
	char source[SOURCE_CAP], status[16];		     /* source "": unknown */
	int64_t first_seen_ms, last_seen_ms, from_ms, to_ms; /* from, to: of its window */
	int64_t ms[CARD_STATES];	/* [CARD_UNOBSERVED]: the rest of its window */
	int64_t energy_mj[CARD_STATES]; /* of the time with known energy */
	int64_t energy_known_ms[CARD_STATES];
	int64_t util_pct_ms; /* over the time with known utilisation; -1 unknown */
	int64_t unsure_ms;   /* observed time that may belong to another state; -1 unknown */
	int64_t unsure_ms2;  /* the square of a part of it: errors that do not depend on each
				other */
	int64_t sm_active_pct_ms, sm_active_ms; /* mean SM activity; 0 ms: not known */
	uint32_t number;			/* the engine's, like the next two */
	bool has_rows, left_out;		/* the card has a slot; see struct audit_host */
	double price;				/* of one GPU-hour; NAN: none is known */
	double floor_w; /* power without any work, an estimate; NAN: not known */
};

struct audit {
	int64_t since_ms, until_ms; /* the window that was used: slots are taken whole */
	int64_t asked_since_ms, asked_until_ms; /* the one that was asked for, up to now */
	bool clipped_start,
		clipped_end;   /* the two differ by more than a minute: see audit_clip() */
	int64_t resolution_ms; /* widest slot in it: the largest error at an edge */
	struct rules rules;
	bool rules_mixed,
		strict; /* rules differed (these are the newest); some run had strict privacy */
	struct audit_host *hosts;
	size_t n_hosts;
	struct audit_card *cards; /* by host, then index */
	size_t n_cards;
	int64_t ms[CARD_STATES]; /* sums over cards, like the next three */
	int64_t energy_mj[CARD_STATES], energy_known_ms[CARD_STATES], unsure_ms;
	bool has_leases; /* of some host leases are known: else there is no reserved time */
	int64_t lease_unknown_ms; /* truly-idle time on cards whose leases may have ended */
	struct audit_cost cost, held_cost; /* sums over cards, and over identities */
	struct audit_identity *identities; /* most presence first */
	size_t n_identities;
	int64_t unattributed_ms;	 /* active and idle-held time in no identity's share */
	struct audit_process *processes; /* in the order that was asked for */
	size_t n_processes, n_processes_left_out;
	struct audit_sums left_out; /* sums of the processes that were left out */
	struct audit_breakdown breakdown;
	struct audit_present *present; /* of the user that was asked for, longest idle first */
	size_t n_present;
	bool of_users;			/* everything except the cards covers only some users */
	struct audit_breakdown by_card; /* of_users: their time on each card */
	struct audit_spells spells;
	struct audit_leases leases;
	struct audit_orphans orphans;
	struct arena texts;	       /* of processes, breakdowns and spells */
	struct audit_heat heat[7][24]; /* Sunday first */
	struct audit_days days;
	struct audit_columns columns; /* if asked */
	struct audit_event *events;
	size_t n_events;
	int64_t oldest_ms, newest_ms; /* of all data, whatever the window; -1 none */
	struct audit_stores stores;
	struct audit_fleet fleet; /* where the audit comes from metrics, instead of stores */
};
/* Whether all of it is from samples of other exporters, which show no squatters. */
static inline bool audit_is_sampled(const struct audit *a)
{
	return a->fleet.sampled_ms && !a->fleet.n_counted;
}

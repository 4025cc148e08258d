/* Rounds: everything that the recorder asks the driver at one moment, and the pace at which it
 * asks. */
#pragma once

#include "base/base.h"
#include "driver/source.h"

enum { SPACING_RECENT = 8 };

/* The costs of the newest calls, to space them so that they take at most a given share of the
 * time. Costs differ a thousandfold between drivers, so they are measured, not assumed. The
 * smallest one counts: the others were delayed by other work. */
struct spacing {
	int64_t recent_us[SPACING_RECENT];
	size_t n; /* how many costs there were in all */
};

void round_spacing_add(struct spacing *s, int64_t cost_us);
/* Returns the time between two calls at which they take `share` of the time (0..1), within the
 * limits. */
int64_t round_spacing_us(
	const struct spacing *s, double share, int64_t least_us, int64_t most_us);

/* The pace of glances: when the next one is due, and what it reads besides memory. It is
 * learned from what glances cost. Every distance is slightly random, so that a periodic job is
 * not always seen in the same phase. The struct has only plain numbers: a copy makes the same
 * decisions, so the process that asks the driver can glance by itself. Times are microseconds
 * of the boot clock. */

struct round;

struct pace {
	int64_t least_us, most_us; /* limits of the time between two glances */
	int64_t apart_us;	   /* the current time between two glances */
	int64_t next_glance_us;
	int64_t next_energy_us; /* earliest glance that reads energy */
	int64_t next_shared_us; /* earliest glance that drains the cards that several users
				   share */
	/* CPU cost of glances, of reading energy, of draining shared cards; elapsed time. */
	struct spacing glances, energy, shared, walls;
	uint64_t random;
};

/* Starts at `now_us`; the limits must be set. */
void round_pace_start(struct pace *p, int64_t now_us);
/* Sets in `round` what a glance at this moment reads besides memory. */
void round_pace_ask(const struct pace *p, int64_t now_us, struct round *round);
/* After a round that took `took_us`: sets when the next glance is due. */
void round_pace_done(
	struct pace *p, int64_t now_us, const struct round *round, int64_t took_us);
/* After this long without a glance, process lists are read even if used memory is the same. */
int64_t round_pace_stall_us(const struct pace *p);
/* Returns a random number between 0 and 1. */
double round_pace_chance(struct pace *p);

/* A round: everything that the recorder asks the driver at one moment, in one job of the
 * driver's thread: utilisation when it is due, a glance at every card's memory, and then the
 * process lists of the cards with changed memory. The use of each process is known only as a
 * mean since the last drain, so cards with several users are drained more often than the
 * others.
 *
 * A source in a process of its own (driver/host/apart.h) makes a whole round there, and can
 * also patrol: it makes the glances before the round by itself. It answers when the round is
 * made, or earlier when something has changed. Then one job makes several rounds. */

/* What a round should do, and what it did, for one card. */
struct round_card {
	bool want;	   /* asked: look at its processes, even if its memory is unchanged */
	bool shared;	   /* asked: drain it when shared cards are drained */
	bool drained;	   /* done: it has new samples */
	bool looked;	   /* done: its process list was read */
	int64_t mem_bytes; /* used memory at its last look; -1 unknown */
	/* Read when all cards are looked at; NAN: unknown. */
	double temperature_c, power_limit_w;
};

struct patrol {
	int64_t until_us;    /* boot clock: when the round is due; 0: now, without a patrol */
	bool only;	     /* the patrol does not end with a round */
	int64_t deadline_ms; /* a glance that takes this long ends the patrol */
	int64_t begun_us;    /* boot clock: when the round before the patrol was begun */
	struct pace pace;    /* the pace of its glances */
	struct clock_watch clocks; /* a clock step or suspend since then ends the patrol */
};

struct round {
	struct clock *clock; /* borrowed */
	/* Requests; the owner sets them between rounds. */
	bool scan;	      /* look for cards first */
	bool drain;	      /* utilisation of all cards */
	bool shared;	      /* utilisation of the cards that several users share */
	bool look_all;	      /* the process lists of all cards */
	bool energy;	      /* the energy counter; a drain reads it anyway */
	struct patrol patrol; /* the patrol before these */
	/* Results. */
	bool made;		    /* private: round_next() has not returned it yet */
	bool more;		    /* another round was made after it */
	bool due;		    /* it is the round at the end of a patrol */
	int64_t begun_us, ended_us; /* boot clock */
	int64_t begun_ms, ended_ms; /* wall clock */
	int64_t energy_ms;	    /* wall clock: when energy was read; 0 it was not */
	bool drained;		    /* some cards have new samples */
	bool glanced; /* memory was read; false: the driver failed after the drain */
	struct round_card *cards;
	size_t n_cards, cap_cards;
	bool *flags;		/* private: the cards to look at ... */
	bool looks;		/* ... and whether there are any */
	int64_t cost_us;	/* of glance and looks, by clock_cost_us() */
	int64_t shared_cost_us; /* of draining shared cards */
	int64_t energy_cost_us; /* of reading energy at the glance */
};

int round_new(struct round **r, struct clock *clock, struct err *e);
/* For worker_own(): frees a struct round. */
void round_free(void *round);
/* For worker_own(): the context is a struct round. Fails when the driver as a whole fails. */
int round_run(struct source *s, void *round, struct err *e);
/* After round_run(): reads the results of the next round that it has made. 1: they are in `r`
 * and in the source; 0: no round is left; negative: that round failed, and is the last. */
int round_next(struct source *s, struct round *r, struct err *e);
/* Whether the source can make glances by itself. */
bool round_can_patrol(const struct source *s);
/* Makes room for the cards of a source; asks for a look at new ones. */
int round_reserve(struct round *r, size_t n, struct err *e);
/* Asks for a look at a card in the next round; without a round (NULL) it does nothing. */
void round_want(struct round *r, size_t card);

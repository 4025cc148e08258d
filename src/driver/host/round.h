/* A round: everything that the recorder asks the driver at one moment, in one job of the
 * driver's thread: utilisation when it is due, a glance at every card's memory, and then the
 * process lists of the cards with changed memory. The use of each process is known only as a
 * mean since the last drain, so cards with several users are drained more often than the
 * others.
 *
 * A source in a process of its own (driver/host/apart.h) makes a whole round there, and can
 * also patrol: it makes the glances before the round by itself, and answers when the round is
 * made, or earlier when something has changed. Then one job makes several rounds. */
#ifndef GUA_DRIVER_HOST_ROUND_H
#define GUA_DRIVER_HOST_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/clock_watch.h"
#include "driver/host/pace.h"
#include "driver/source.h"

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
	bool only;	     /* no round is due at its end */
	int64_t deadline_ms; /* a glance that takes so long ends it */
	int64_t begun_us;    /* boot clock: when the last round before it was begun */
	struct pace pace;    /* of its glances */
	struct clock_watch clocks; /* a step or suspend since then ends it */
};

struct round {
	struct clock *clock; /* borrowed */
	/* Requests; the owner sets them between rounds. */
	bool scan;	      /* look for cards first */
	bool drain;	      /* utilisation of all cards */
	bool shared;	      /* utilisation of the cards that several users share */
	bool look_all;	      /* the process lists of all cards */
	bool energy;	      /* the energy counter; a drain reads it anyway */
	struct patrol patrol; /* before that */
	/* Results. */
	bool made;		    /* private: round_next() has not returned it yet */
	bool more;		    /* another one was made after it */
	bool due;		    /* it is the round at the end of a patrol */
	int64_t begun_us, ended_us; /* boot clock */
	int64_t begun_ms, ended_ms; /* wall clock */
	int64_t energy_ms;	    /* wall clock: when energy was read; 0 it was not */
	bool drained;		    /* some cards have new samples */
	bool glanced; /* memory was read; false: the driver failed after the drain */
	struct round_card *cards;
	size_t n_cards, cap_cards;
	bool *flags;		/* private: which cards to look at ... */
	bool looks;		/* ... and whether there is one */
	int64_t cost_us;	/* of glance and looks, by clock_cost_us() */
	int64_t shared_cost_us; /* of draining shared cards */
	int64_t energy_cost_us; /* of reading energy at the glance */
};

int round_new(struct round **r, struct clock *clock, struct err *e);
/* For worker_own(): frees a struct round. */
void round_free(void *round);
/* For worker_own(): the context is a struct round. Fails when the driver as a whole fails. */
int round_run(struct source *s, void *round, struct err *e);
/* After round_run(): the results of the next round that it has made. 1: they are in `r` and in
 * the source; 0: there is none left; negative: that round has failed, and is the last. */
int round_next(struct source *s, struct round *r, struct err *e);
/* Whether the source can make glances by itself. */
bool round_can_patrol(const struct source *s);
/* Makes room for the cards of a source; asks for a look at new ones. */
int round_reserve(struct round *r, size_t n, struct err *e);
/* Asks for a look at a card in the next round; without a round (NULL) it does nothing. */
void round_want(struct round *r, size_t card);

#endif

/* Energy by state: the growth of a card's energy counter between two readings is divided over
 * the states that the card was in between them. */
#pragma once

#include "classify/ledger.h"
#include "model/state.h"

#define ENERGY_PIECES 96
#define ENERGY_POINTS 24

/* A stretch of a card's time in one slot, state and utilisation. */
struct energy_piece {
	int64_t slot, from_ms, to_ms;
	enum card_state state;
	double util_pct;
	/* Set by energy_piece(): */
	int64_t since_ms; /* the card has been in this state since then */
	bool cooling;	  /* idle, and the card was in use a moment ago */
};

/* What a card draws in an idle state: the mean of its last minute in it. */
struct energy_level {
	double mw;
	int64_t ms; /* how much time is in the mean, at most a minute; 0: mw is not known */
};
enum { ENERGY_HELD, ENERGY_EMPTY, ENERGY_LEVELS };

/* A reading of the counter. */
struct energy_point {
	int64_t at_ms;
	double mj;
};

/* The energy of one card that is not divided yet. Call energy_reset() first. */
struct energy_split {
	struct energy_piece pieces[ENERGY_PIECES]; /* accounted, energy not divided yet */
	size_t n_pieces;
	struct energy_point
		points[ENERGY_POINTS]; /* readings at times that are not accounted yet */
	size_t n_points;
	struct energy_level levels[ENERGY_LEVELS];
	int64_t used_ms, used_slot; /* when its last use ended, and the slot; -1: none */
	bool broken; /* readings were lost since the last call of energy_was_broken() */
};

/* What energy_divide() divided: the energy of idle-held time, and that time. */
struct energy_idle {
	bool any; /* there was an interval to divide */
	int64_t mj, ms;
};

void energy_reset(struct energy_split *s);
/* Adds a reading. After NAN, or one below the last, the energy since the last is unknown. */
void energy_read(struct energy_split *s, int64_t at_ms, double mj);
/* Adds time that was accounted; pieces come in time order. */
void energy_piece(struct energy_split *s, const struct energy_piece *piece);
/* Divides all intervals that end by `covered_ms`, up to which time is accounted. */
struct energy_idle energy_divide(
	struct energy_split *s, uint32_t card, int64_t covered_ms, struct ledger *ledger);

/* Whether there is an interval to divide. */
bool energy_is_due(const struct energy_split *s, int64_t covered_ms);
/* Whether the energy since `at_ms` will be known when the counter is read again. */
bool energy_is_metered(const struct energy_split *s, int64_t at_ms);
/* The first reading after `at_ms`; INT64_MAX: there is none yet. */
int64_t energy_next_ms(const struct energy_split *s, int64_t at_ms);
/* Whether readings were lost since the last call, so that some energy stays unknown. */
bool energy_was_broken(struct energy_split *s);

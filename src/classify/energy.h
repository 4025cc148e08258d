/* Energy by state: the growth of a card's energy counter between two readings is divided over
 * the states that the card was in between them. */
#ifndef GUA_CLASSIFY_ENERGY_H
#define GUA_CLASSIFY_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "classify/ledger.h"
#include "model/state.h"

#define ENERGY_PIECES 96
#define ENERGY_POINTS 24

/* A stretch of a card's time in one slot, state and utilisation. */
struct energy_piece {
	int64_t slot, from_ms, to_ms;
	enum card_state state;
	double util_pct;
};

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
	double idle_mw;	  /* its power when it was last idle; NAN: not seen */
	bool idle_before; /* it was idle in the previous interval */
};

void energy_reset(struct energy_split *s);
/* Adds a reading. After NAN, or one below the last, the energy since the last is unknown. */
void energy_read(struct energy_split *s, int64_t at_ms, double mj);
/* Adds time that was accounted; pieces come in time order. */
void energy_piece(struct energy_split *s, const struct energy_piece *piece);
/* Divides all intervals that end by `covered_ms`, up to which time is accounted. */
void energy_divide(
	struct energy_split *s, uint32_t card, int64_t covered_ms, struct ledger *ledger);

#endif

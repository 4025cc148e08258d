/* Energy by state: what a card's counter grew between two readings, divided over what the card
 * did between them. */
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

/* One card's. energy_reset() first. */
struct energy_split {
	struct energy_piece pieces[ENERGY_PIECES]; /* accounted, energy not divided yet */
	size_t n_pieces;
	struct energy_point
		points[ENERGY_POINTS]; /* readings whose time is not accounted yet */
	size_t n_points;
	double idle_mw;	  /* what the card drew when it last did nothing; NAN: not seen */
	bool idle_before; /* it did nothing between the two readings before */
};

void energy_reset(struct energy_split *s);
/* A reading; NAN, or one that is below the last: what was used since is not known. */
void energy_read(struct energy_split *s, int64_t at_ms, double mj);
/* Time that was accounted; pieces come in time order. */
void energy_piece(struct energy_split *s, const struct energy_piece *piece);
/* Divides what can be: all readings up to `covered_ms`, up to where time is accounted. */
void energy_divide(
	struct energy_split *s, uint32_t card, int64_t covered_ms, struct ledger *ledger);

#endif

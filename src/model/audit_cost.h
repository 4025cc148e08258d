/* What time costs in an audit: money by the price of the card, and energy. All of it follows
 * shares: a card's active time is divided by SM use, its idle-held time by memory held, and
 * its time with unknown use by presence, so that holders add up to cards. */
#ifndef GUA_MODEL_AUDIT_COST_H
#define GUA_MODEL_AUDIT_COST_H

#include <stdbool.h>
#include <stdint.h>

/* The parts of a cost. Those before COST_PARTS add up to the whole. */
enum cost_part {
	COST_ACTIVE,
	COST_IDLE_HELD,
	COST_USE_UNKNOWN,
	COST_HELD_PARTS, /* a holder has the parts before this */
	COST_TRULY_IDLE = COST_HELD_PARTS,
	COST_UNOBSERVED,
	COST_PARTS,
	/* Beside the others: the price of the time in which a holder was idle on a card that
	 * another user kept active. That time is part of the other user's cost. */
	COST_SQUATTING = COST_PARTS,
	COSTS
};

/* The cost of a holder, of a card or of several. Time on cards without a price, and time whose
 * energy is not known, is in no sum but its own. */
struct audit_cost {
	double money[COSTS];
	bool priced;			/* some card had a price: else money is not known */
	int64_t priced_ms, unpriced_ms; /* time on cards with and without a price */
	double energy_mj;		/* by the same shares */
	double floor_mj;   /* of it: what the idle card would have taken anyway, an estimate;
			      NAN: not known for all of it */
	int64_t energy_ms; /* time with known energy */
};

#endif

/* What the recorder says about a card at a tick, for pages and exporters that show the present.
 * What the driver does not report is NAN (doubles) or -1 (integers). */
#ifndef GUA_MODEL_CARD_NOW_H
#define GUA_MODEL_CARD_NOW_H

#include <stdint.h>

struct card_now {
	double util_pct;	    /* mean since the previous tick */
	double power_w;		    /* the same */
	double power_limit_w;	    /* in force */
	double temperature_c;	    /* of the chip */
	int64_t mem_used_bytes;	    /* by the driver's account */
	int64_t idle_held_since_ms; /* idle-held without a pause since then; -1: not idle-held
				     */
};

/* Nothing is known. */
void card_now_clear(struct card_now *now);

/* What the store has about a card from earlier runs. */
struct card_past {
	int64_t seen_ms; /* accounted up to here; -1: the card is new; INT64_MAX: unknown */
	int64_t idle_held_since_ms; /* see struct card_now; as of then */
};

#endif

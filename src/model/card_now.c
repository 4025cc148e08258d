/* Clears the readings of a card. */
#include "model/card_now.h"

#include <math.h>

void card_now_clear(struct card_now *now)
{
	*now = (struct card_now){ .util_pct = NAN,
		.power_w = NAN,
		.power_limit_w = NAN,
		.temperature_c = NAN,
		.mem_used_bytes = -1,
		.idle_held_since_ms = -1 };
}

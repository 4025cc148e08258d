/* The readings of each card that a tick hands to the store, for pages and exporters. */
#pragma once

#include "record/watch.h"

/* Forgets what was read: for a new card, and after the clock was set. */
void watch_now_start(struct watched *card);
/* Takes a reading of the energy counter (NAN: there is none). */
void watch_now_energy(struct watched *card, int64_t at_ms, double energy_mj);
/* Takes the readings of card `i` from a round in which all cards were looked at. */
void watch_now_take(struct watched *card, const struct card_reading *r,
	const struct round *round, size_t i);
/* Fills in the readings of all cards of the tick, whose sums must be filled in already. What
 * was not read since the last tick is unknown. */
void watch_now_tick(struct watch *w, const struct tick *t);

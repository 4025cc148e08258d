/* The ring of samples that a driver keeps for each card: how far it reaches back, and for how
 * long a sample is valid. */
#pragma once

#include "base/base.h"
#include "model/reading.h"

/* The longest time that a driver's ring may hold. A card that was accounted until less than
 * this ago continues without a gap, and time without readings becomes unobserved only after
 * this long. */
#define RING_MS 10000

struct ring_hold {
	int64_t hold_ms;    /* samples further apart than this leave a gap ... */
	int64_t period_ms;  /* ... after which a sample accounts for no more than this */
	int64_t dry_ms;	    /* replaces hold_ms for a ring that stops while a card is idle */
	int64_t reading_ms; /* the period that a single reading covers */
	bool whole; /* samples are shorter than the time between them (demonstrations) */
};

/* Computes it for samples of this kind. `period_us` is the longest time between two samples of
 * the ring (0: not known). `drain_ms` is the longest time between two drains, which is the
 * distance of single readings. */
struct ring_hold ring_hold_of(enum util_kind kind, int64_t period_us, int64_t drain_ms);

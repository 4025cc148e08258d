/* Computes how long samples hold. */
#include "sample/ring.h"

/* The shortest time that a sample of a ring holds, however short the period is. */
#define RING_HOLD_MS 2000
/* Single readings: a drain may be late by this. */
#define LATE_MS 1000
/* How long a sample accounts before a gap when its period is not known. */
#define PERIOD_MS 1000

struct ring_hold ring_hold_of(enum util_kind kind, int64_t period_us, int64_t drain_ms)
{
	int64_t period_ms = period_us / 1000;
	if (kind != UTIL_RING)
		return (struct ring_hold){ drain_ms * 3 / 2 + LATE_MS, PERIOD_MS };
	return (struct ring_hold){
		.hold_ms = 2 * period_ms > RING_HOLD_MS ? 2 * period_ms : RING_HOLD_MS,
		.period_ms = period_ms > 0 ? period_ms : PERIOD_MS,
	};
}

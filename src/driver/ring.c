/* Computes for how long a sample is valid. */
#include "driver/ring.h"

/* A sample of a ring is valid for at least this long, however short the period is. */
#define RING_HOLD_MS 2000
/* For single readings: a drain may be late by this. */
#define LATE_MS 1000
/* How much time a sample accounts for after a gap when its period is not known: NVML says that
 * the period is between a sixth of a second and a second. */
#define PERIOD_MS 1000
#define READING_MS 167

struct ring_hold ring_hold_of(enum util_kind kind, int64_t period_us, int64_t drain_ms)
{
	int64_t period_ms = period_us / 1000;
	int64_t late_ms = drain_ms * 3 / 2 + LATE_MS;
	if (kind != UTIL_RING)
		return (struct ring_hold){ .hold_ms = late_ms,
			.period_ms = PERIOD_MS,
			.reading_ms = READING_MS,
			.whole = kind == UTIL_UNKNOWN };
	return (struct ring_hold){
		.hold_ms = 2 * period_ms > RING_HOLD_MS ? 2 * period_ms : RING_HOLD_MS,
		.dry_ms = late_ms,
		.period_ms = period_ms > 0 ? period_ms : PERIOD_MS,
		.whole = period_ms > PERIOD_MS,
	};
}

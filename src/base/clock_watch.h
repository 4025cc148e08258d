/* Notices that the wall clock was set, or that the host was suspended. Wall and boot clock move
 * together, and so do boot and monotonic clock. If the difference of wall and boot clock
 * changes, it is a step; if that of boot and monotonic clock changes, it is a suspend. */
#ifndef GUA_BASE_CLOCK_WATCH_H
#define GUA_BASE_CLOCK_WATCH_H

#include <stdint.h>

#include "base/clock.h"

struct clock_watch {
	int64_t wall_less_us; /* wall minus boot clock, as last computed */
	int64_t suspended_us; /* boot minus monotonic clock, as last computed */
};

void clock_watch_start(struct clock_watch *w, const struct moment *now);
/* Returns by how much the wall clock was set since the last call that found a step, or since
 * the start; 0: it was not. Small corrections add up until they are a step. */
int64_t clock_watch_step_us(struct clock_watch *w, const struct moment *now);
/* Returns how long the host was suspended since the last call; 0: it was not, or only for a
 * short time. */
int64_t clock_watch_suspend_us(struct clock_watch *w, const struct moment *now);

#endif

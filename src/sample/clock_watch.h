/* Notices that the wall clock was set and that the host was suspended. Wall and boot clock move
 * together, and so do boot and monotonic clock: what changes the difference of two of them is a
 * step, or a suspend. */
#ifndef GUA_SAMPLE_CLOCK_WATCH_H
#define GUA_SAMPLE_CLOCK_WATCH_H

#include <stdint.h>

#include "base/clock.h"

struct clock_watch {
	int64_t wall_less_us; /* wall minus boot clock, as last reckoned */
	int64_t suspended_us; /* boot minus monotonic clock, as last reckoned */
};

void clock_watch_start(struct clock_watch *w, const struct moment *now);
/* By how much the wall clock was set since the last call that found a step, or the start; 0: it
 * was not. Small corrections add up until they are a step. */
int64_t clock_watch_step_us(struct clock_watch *w, const struct moment *now);
/* How long the host was suspended since the last call; 0: it was not, or not worth a word. */
int64_t clock_watch_suspend_us(struct clock_watch *w, const struct moment *now);

#endif

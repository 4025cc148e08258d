/* A moment that is known only to lie between two others. */
#pragma once

#include "base/base.h"

/* A moment that is known to lie between `lo` and `hi`; `at` is the moment that counts. Unix
 * milliseconds. */
struct edge {
	int64_t lo, at, hi;
};
#define EDGE_ALWAYS ((struct edge){ INT64_MIN, INT64_MIN, INT64_MIN })
#define EDGE_NEVER ((struct edge){ INT64_MAX, INT64_MAX, INT64_MAX })
static inline struct edge edge_exactly(int64_t at_ms)
{
	return (struct edge){ at_ms, at_ms, at_ms };
}

/* A moment between the two: the middle counts. */
static inline struct edge edge_between(int64_t lo_ms, int64_t hi_ms)
{
	return lo_ms < hi_ms ? (struct edge){ lo_ms, lo_ms + (hi_ms - lo_ms) / 2, hi_ms }
			     : edge_exactly(hi_ms);
}

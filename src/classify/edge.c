/* Makes moments that are known only as a range. */
#include "classify/edge.h"

struct edge edge_exactly(int64_t at_ms)
{
	return (struct edge){ at_ms, at_ms, at_ms };
}

struct edge edge_between(int64_t lo_ms, int64_t hi_ms)
{
	if (lo_ms >= hi_ms)
		return edge_exactly(hi_ms);
	return (struct edge){ lo_ms, lo_ms + (hi_ms - lo_ms) / 2, hi_ms };
}

/* Computes how far apart to do something, from its cost and the share of time it may take. */
#include "driver/host/spacing.h"

void spacing_add(struct spacing *s, int64_t cost_us)
{
	s->recent_us[s->n++ % SPACING_RECENT] = cost_us;
}

int64_t spacing_us(const struct spacing *s, double share, int64_t least_us, int64_t most_us)
{
	size_t n = s->n < SPACING_RECENT ? s->n : SPACING_RECENT;
	int64_t cost_us = n ? INT64_MAX : 0;
	for (size_t i = 0; i < n; i++)
		if (s->recent_us[i] < cost_us)
			cost_us = s->recent_us[i];
	double apart_us = (double)cost_us / share;
	if (apart_us < (double)least_us)
		return least_us;
	return apart_us > (double)most_us ? most_us : (int64_t)apart_us;
}

/* How far apart to do something so that it takes at most a given share of the time. Its cost
 * differs a thousandfold between drivers, so it is measured, not assumed. */
#ifndef GUA_DRIVER_HOST_SPACING_H
#define GUA_DRIVER_HOST_SPACING_H

#include <stddef.h>
#include <stdint.h>

enum { SPACING_RECENT = 8 };

/* The newest costs. The smallest one counts: the others were delayed by other work. */
struct spacing {
	int64_t recent_us[SPACING_RECENT];
	size_t n; /* how many there were in all */
};

void spacing_add(struct spacing *s, int64_t cost_us);
/* Returns the time between two of them at which they take `share` of the time (0..1), within
 * the limits. */
int64_t spacing_us(const struct spacing *s, double share, int64_t least_us, int64_t most_us);

#endif

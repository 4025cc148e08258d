/* How far apart something is done so that it takes no more than a share of the time. What it
 * costs differs a thousandfold from driver to driver, so it is measured, not assumed. */
#ifndef GUA_SAMPLE_SPACING_H
#define GUA_SAMPLE_SPACING_H

#include <stddef.h>
#include <stdint.h>

enum { SPACING_RECENT = 8 };

/* The newest costs. The least of them counts: the others met other work. */
struct spacing {
	int64_t recent_us[SPACING_RECENT];
	size_t n; /* how many there were in all */
};

void spacing_add(struct spacing *s, int64_t cost_us);
/* The distance at which it costs `share` of the time (0..1), within the bounds. */
int64_t spacing_us(const struct spacing *s, double share, int64_t least_us, int64_t most_us);

#endif

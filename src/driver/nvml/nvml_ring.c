/* Learns the properties of the driver's ring from its samples. */
#include "driver/nvml/nvml_ring.h"

#include "driver/nvml/nvml_decode.h"

/* September 2001 in microseconds: a later stamp is from the wall clock, because no host is up
 * for 31 years. */
#define WALL_LEAST_US 1000000000000000LL

enum {
	PERIOD_MOST_US = 1000000,  /* NVML: a sixth of a second to a second */
	SPACINGS = 128,		   /* newest samples that are used for the median */
	ENOUGH_US = 20000000,	   /* a ring that spans this much is long enough */
	WHOLE_EVERY_US = 30000000, /* how often a ring that may still grow is read completely */
	WHOLE_SOON_US = 1000000,   /* when it is read completely for the second time, to see
				      whether it was full */
};

enum nvml_stamps nvml_ring_stamps_learn(
	enum nvml_stamps before, int64_t newest_us, const struct moment *now)
{
	if (newest_us <= 0)
		return before;
	if (newest_us >= WALL_LEAST_US)
		return NVML_STAMPS_WALL;
	/* The monotonic clock is never ahead of the boot clock. A stamp that is later than the
	 * monotonic clock can only be from the boot clock, and that is remembered. */
	if (before == NVML_STAMPS_BOOT || newest_us > now->mono_us + NVML_AHEAD_US)
		return NVML_STAMPS_BOOT;
	return NVML_STAMPS_MONOTONIC;
}

int64_t nvml_ring_stamps_now(enum nvml_stamps stamps, const struct moment *now)
{
	return stamps == NVML_STAMPS_BOOT	 ? now->boot_us
	       : stamps == NVML_STAMPS_MONOTONIC ? now->mono_us
						 : now->wall_us;
}

int64_t nvml_ring_stamps_to_wall(enum nvml_stamps stamps, const struct moment *now)
{
	return now->wall_us - nvml_ring_stamps_now(stamps, now);
}

void nvml_ring_forget(struct nvml_ring *r)
{
	r->wholes = 0;
	r->count = r->new_since = 0;
	r->full = false;
}

bool nvml_ring_wants_whole(const struct nvml_ring *r, int64_t mono_us)
{
	if (r->wholes == 0)
		return true;
	if (nvml_ring_span_us(r) >= ENOUGH_US)
		return false;
	return mono_us - r->whole_us >= (r->wholes == 1 ? WHOLE_SOON_US : WHOLE_EVERY_US);
}

static int compare(const void *a, const void *b)
{
	return array_compare(*(const int64_t *)a, *(const int64_t *)b);
}

/* Returns the median time between two samples, without the pauses of a driver that takes no
 * samples while a card is idle; 0: too few samples. */
static int64_t median_spacing_us(const struct util_sample *all, size_t n)
{
	int64_t spacings[SPACINGS];
	size_t m = 0;
	for (size_t i = n; i-- > 1 && m < SPACINGS;) {
		spacings[m] = all[i].wall_us - all[i - 1].wall_us;
		m += spacings[m] <= PERIOD_MOST_US * 3 / 2;
	}
	if (m < 2)
		return 0;
	qsort(spacings, m, sizeof(spacings[0]), compare);
	return spacings[m / 2] < PERIOD_MOST_US ? spacings[m / 2] : PERIOD_MOST_US;
}

void nvml_ring_learn(
	struct nvml_ring *r, const struct util_sample *all, size_t n, int64_t mono_us)
{
	int64_t period_us = median_spacing_us(all, n);
	if (period_us > 0)
		r->period_us = period_us;
	/* The ring has fewer samples than before plus those that came since, so it drops the
	 * oldest. */
	r->full = r->wholes > 0 && (r->full || n < r->count + r->new_since);
	r->full |= (int64_t)n * r->period_us >= ENOUGH_US;
	r->count = n;
	r->new_since = 0;
	r->whole_us = mono_us;
	r->wholes = r->wholes ? 2 : 1;
}

int64_t nvml_ring_span_us(const struct nvml_ring *r)
{
	return r->full ? (int64_t)r->count * r->period_us : 0;
}

size_t nvml_ring_lost(const struct nvml_ring *r, size_t n, int64_t oldest_us)
{
	if (!r->full || n < r->count || r->period_us == 0 || r->seen_us == 0)
		return 0;
	int64_t hole_us = oldest_us - r->seen_us;
	if (hole_us <= 2 * r->period_us)
		return 0;
	return (size_t)((hole_us + r->period_us / 2) / r->period_us - 1);
}

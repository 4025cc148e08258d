/* What the samples show about the driver's ring: how often it samples, how much it keeps,
 * whether samples were lost, and which clock its stamps come from. Pure functions. */
#pragma once

#include "base/base.h"
#include "model/reading.h"

/* The clock of the driver's stamps: usually the wall clock; on some boards they count from
 * boot, with or without the time in suspend. */
enum nvml_stamps {
	NVML_STAMPS_UNKNOWN,
	NVML_STAMPS_WALL,
	NVML_STAMPS_BOOT,
	NVML_STAMPS_MONOTONIC,
};

/* Finds which clock it is, from the newest stamp of an answer and the clock assumed before. */
enum nvml_stamps nvml_ring_stamps_learn(
	enum nvml_stamps before, int64_t newest_us, const struct moment *now);
/* The current moment on that clock. */
int64_t nvml_ring_stamps_now(enum nvml_stamps stamps, const struct moment *now);
/* What to add to a stamp to get the wall clock. */
int64_t nvml_ring_stamps_to_wall(enum nvml_stamps stamps, const struct moment *now);

/* The ring of a card. All zero: nothing is known. */
struct nvml_ring {
	int64_t seen_us;   /* utilisation is known up to here, by the driver's clock */
	int64_t whole_us;  /* CLOCK_MONOTONIC when it was last read completely */
	unsigned wholes;   /* how often that was; saturates at 2 */
	size_t count;	   /* samples that it had then */
	size_t new_since;  /* samples that it returned since then */
	bool full;	   /* it drops the oldest samples: it holds `count`, not more */
	int64_t period_us; /* median time between two samples; 0: not known */
	bool lost;	   /* at the last drain; logged when it starts */
};

/* Forgets the length of the ring: the ring started again, or some of its stamps are not
 * plausible. */
void nvml_ring_forget(struct nvml_ring *r);
/* Whether to read the whole ring, not only new samples: at first, again soon after, and then
 * from time to time while it may still grow. */
bool nvml_ring_wants_whole(const struct nvml_ring *r, int64_t mono_us);
/* Learns from all samples of the ring, in time order. */
void nvml_ring_learn(
	struct nvml_ring *r, const struct util_sample *all, size_t n, int64_t mono_us);
/* The time that it spans; 0: not known yet. */
int64_t nvml_ring_span_us(const struct nvml_ring *r);
/* Returns how many samples were lost between the newest one read before and these n new ones,
 * the oldest of which is at `oldest_us`. It is 0 unless the whole ring was returned and there
 * is a gap before it. */
size_t nvml_ring_lost(const struct nvml_ring *r, size_t n, int64_t oldest_us);

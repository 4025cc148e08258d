/* Converts the driver's buffers into readings: pure functions that check every value. */
#pragma once

#include "model/reading.h"
#include "driver/nvml/nvml_abi.h"

/* A stamp up to this far ahead of our clock is accepted: the card has a clock of its own. */
#define NVML_AHEAD_US 500000

/* Samples as the driver returned them. */
struct nvml_samples {
	const struct nvml_sample *rows;
	size_t n;
	int type; /* of their values: NVML_VALUE_... */
};

/* Decodes samples by their value type into `to` (as large as `from`), in time order. Drops
 * samples that are not newer than `seen_us`, are ahead of `now_us` or are not a percentage.
 * Returns how many are left. */
size_t nvml_decode_samples(const struct nvml_samples *from, int64_t seen_us, int64_t now_us,
	struct util_sample *to);

/* The value of a sample, or NAN for a type that is not known. */
double nvml_decode_value(const struct nvml_sample *sample, int type);

/* Process lists are read into a buffer filled with this byte, to find out how much the driver
 * wrote. */
enum { NVML_FILL = 0xAA };
/* Returns the bytes of an entry: as many as were written (16, 24 or 32 for each of n), or
 * `expected` when that is not clear. */
size_t nvml_decode_stride(const unsigned char *bytes, size_t size, size_t n, size_t expected);

/* Returns an amount of memory; UNKNOWN_BYTES for more than any card has, because sums of it
 * would overflow. */
int64_t nvml_decode_memory(uint64_t bytes);

/* Adds a process to `to` (n used, room for one more). A pid that is already there is merged:
 * kinds are joined, and the larger known memory counts. Pid 0 is ignored. Returns the new n. */
size_t nvml_decode_merge_process(
	struct card_process *to, size_t n, uint32_t pid, unsigned kind, uint64_t mem_bytes);

/* Turns n records of the older call into those of the newer one, in place: `records` has room
 * for these. What the older call does not report becomes an invalid percentage. */
void nvml_decode_widen_uses(void *records, size_t n);

/* Decodes a record of a process' use; false when it is not usable: not a percentage, not newer
 * than `seen_us`, or ahead of `now_us`. */
bool nvml_decode_use(const struct nvml_process_sample_v1 *from, int64_t seen_us, int64_t now_us,
	struct process_util *to);

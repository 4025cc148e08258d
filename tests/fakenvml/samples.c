/* The fake library's rings of samples: power, use, use of memory. */
#include "fake.h"

#include <string.h>

#include "exports.h"

/* The longest ring of the language, 60 s at 50 a second, and an entry without a stamp. */
enum { ENTRIES_MAX = 60 * 50 + 1 };

enum { TYPE_POWER, TYPE_USE, TYPE_MEMORY_USE };

static struct abi_sample entry(int64_t t_us, int64_t wall_us, int64_t value)
{
	struct abi_sample sample = { .stamp_us = fake_stamp(t_us, wall_us) };
	sample.value.u = (uint32_t)value;
	return sample;
}

static unsigned power_ring(struct fake *f, size_t unit, struct abi_sample *out)
{
	static struct play_power powers[POWER_RING_MAX]; /* under the lock */
	size_t n = play_power_ring(f->play, unit, powers);
	for (size_t i = 0; i < n; i++)
		out[i] = entry(powers[i].t_us, powers[i].wall_us, powers[i].mw);
	return (unsigned)n;
}

static unsigned use_ring(struct fake *f, size_t unit, int type, struct abi_sample *out)
{
	size_t n = play_ring_size(f->play, unit);
	for (size_t i = 0; i < n; i++) {
		const struct play_sample *sample = play_ring_at(f->play, unit, i);
		out[i] = entry(sample->t_us, sample->wall_us,
			type == TYPE_USE ? sample->util_pct : sample->util_pct / 2);
	}
	return (unsigned)n;
}

/* What some drivers do to a ring: neighbours change places, and the second entry is one that
 * was never filled. Returns the new number. */
static unsigned garble(struct abi_sample *samples, unsigned n)
{
	for (unsigned i = 0; i + 1 < n; i += 3) {
		struct abi_sample earlier = samples[i];
		samples[i] = samples[i + 1];
		samples[i + 1] = earlier;
	}
	memmove(samples + 2, samples + 1, (n - 1) * sizeof(samples[0]));
	samples[1] = (struct abi_sample){ .stamp_us = 0 };
	samples[1].value.u = 99;
	return n + 1;
}

/* Entries that are newer than `last_seen` into `out`. */
static unsigned collect(
	struct fake *f, size_t unit, int type, uint64_t last_seen, struct abi_sample *out)
{
	unsigned n = 0, found = type == TYPE_POWER ? power_ring(f, unit, out)
						   : use_ring(f, unit, type, out);
	for (unsigned i = 0; i < found; i++)
		if (out[i].stamp_us > last_seen)
			out[n++] = out[i];
	return n > 0 && play_quirks(f->play, unit)->garbage ? garble(out, n) : n;
}

EXPORT int nvmlDeviceGetSamples(void *device, int type, unsigned long long last_seen,
	int *value_type, unsigned *count, struct abi_sample *samples)
{
	static struct abi_sample entries[ENTRIES_MAX]; /* under the lock */
	ENTER_DEVICE(device, "type=%d last=%llu buffer=%u", type, last_seen,
		samples && count ? *count : 0);
	bool known = type >= TYPE_POWER && type <= TYPE_MEMORY_USE;
	if (!known || card->parent >= 0 || (type != TYPE_POWER && card->has_mig))
		return fake_leave(NOT_SUPPORTED);
	if (!count || !value_type)
		return fake_leave(INVALID_ARGUMENT);
	unsigned n = collect(f, unit, type, last_seen, entries);
	unsigned given = samples && n > *count ? *count : n;
	if (samples)
		memcpy(samples, entries, given * sizeof(entries[0]));
	*value_type = 1;
	*count = given;
	return fake_leave(n ? SUCCESS : NOT_FOUND);
}

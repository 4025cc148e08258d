/* Utilisation of a card: the driver's ring of samples, drained from where the last drain ended,
 * or one polled reading. */
#include "source/nvml.h"
#include "source/nvml_decode.h"

enum {
	RING_ENTRIES = 256,	 /* twice what the ring is known to hold */
	RING_MOST = 4096,	 /* and more than it ever will */
	SIZE_TRIES = 6,		 /* for a list that grows while it is read */
	POLL_AFTER_US = 1000000, /* the ring is not behind, it is still, after that long */
};

/* Asks for samples newer than the newest one seen; *n is how many came. A buffer that came back
 * full may have been too small: not every driver says so. */
static int read_ring(struct nvml_source *s, struct nvml_card *c, int *type, unsigned *n)
{
	unsigned long long since = (unsigned long long)c->util_seen_us;
	size_t want = RING_ENTRIES;
	int code = NVML_TOO_SMALL;
	for (int tries = 0; tries < SIZE_TRIES && want <= RING_MOST; tries++) {
		if (!nvml_reserve(&c->raw_samples, want, sizeof(struct nvml_sample)))
			return NVML_NO_MEMORY;
		*n = (unsigned)c->raw_samples.cap;
		code = NVML_CALL(s->lib.api.samples, c->handle, NVML_SAMPLE_GPU, since, type, n,
			c->raw_samples.data);
		bool full = code == NVML_OK && *n >= c->raw_samples.cap;
		if (code != NVML_TOO_SMALL && !full)
			return code;
		want = 2 * (*n > c->raw_samples.cap ? *n : c->raw_samples.cap);
	}
	return code;
}

static int drain_ring(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	int type = NVML_VALUE_U32;
	unsigned n = 0;
	int code = read_ring(s, c, &type, &n);
	if (code == NVML_NOT_FOUND)
		n = 0;
	else if (code != NVML_OK)
		return code;
	if (n > c->raw_samples.cap)
		n = (unsigned)c->raw_samples.cap;
	if (!nvml_reserve(&c->samples, c->raw_samples.cap, sizeof(struct util_sample)))
		return NVML_NO_MEMORY;
	r->util_kind = UTIL_RING;
	r->samples = c->samples.data;
	r->n_samples = nvml_decode_samples(c->raw_samples.data, n, type, c->util_seen_us,
		clock_now(s->clock).wall_us, c->samples.data);
	return NVML_OK;
}

static int poll_rates(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	struct nvml_rates rates = { 0 };
	int code = NVML_CALL(s->lib.api.rates, c->handle, &rates);
	if (code != NVML_OK)
		return code;
	if (rates.gpu_pct > 100)
		return NVML_NO_DATA;
	if (!nvml_reserve(&c->samples, 1, sizeof(struct util_sample)))
		return NVML_NO_MEMORY;
	struct util_sample *sample = c->samples.data;
	*sample = (struct util_sample){ .wall_us = clock_now(s->clock).wall_us,
		.util_pct = rates.gpu_pct };
	r->util_kind = UTIL_POLLED;
	r->samples = sample;
	r->n_samples = 1;
	return NVML_OK;
}

static int attempt_util(struct nvml_source *s, size_t card, int way, void *out)
{
	(void)out;
	return way == 0 ? drain_ring(s, card) : poll_rates(s, card);
}

void nvml_drain_util(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	int64_t now_us = clock_now(s->clock).wall_us;
	/* After a clock step back the newest stamp lies in the future: everything would be old.
	 */
	if (c->util_seen_us > now_us)
		c->util_seen_us = now_us;
	if (nvml_do(s, card, NVML_JOB_UTIL, attempt_util, NULL) != NVML_OK)
		return;
	/* A ring that stands still says nothing; the rates may. The way in force stays. */
	bool still = r->n_samples == 0 && now_us - c->util_seen_us >= POLL_AFTER_US;
	if (still)
		nvml_try(s, card, NVML_JOB_UTIL, 1, attempt_util, NULL);
	if (r->n_samples)
		c->util_seen_us = r->samples[r->n_samples - 1].wall_us;
}

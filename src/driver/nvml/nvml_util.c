/* Utilisation of a card: the driver's ring of samples, drained from where the last drain ended,
 * or readings that are polled at drains and at glances. */
#include "driver/nvml/nvml.h"
#include "driver/nvml/nvml_decode.h"

enum {
	RING_ENTRIES = 256,	 /* twice what the ring is known to hold */
	RING_MOST = 4096,	 /* more than it will ever hold */
	SIZE_TRIES = 6,		 /* for a list that grows while it is read */
	POLL_AFTER_US = 1000000, /* after this long without a sample the ring has stopped */
};

/* Asks for samples newer than `since_us`; they are valid until the next call. A buffer that
 * came back full may have been too small: some drivers do not report that. */
static int read_ring(
	struct nvml_source *s, struct nvml_card *c, int64_t since_us, struct nvml_samples *raw)
{
	unsigned n = 0;
	size_t want = RING_ENTRIES;
	*raw = (struct nvml_samples){ .type = NVML_VALUE_U32 };
	int code = NVML_TOO_SMALL;
	for (int tries = 0; tries < SIZE_TRIES && want <= RING_MOST; tries++) {
		if (!nvml_reserve(&s->raw_samples, want, sizeof(struct nvml_sample)))
			return NVML_NO_MEMORY;
		/* An entry that is counted but not filled must not be one of another card. */
		memset(s->raw_samples.data, 0, s->raw_samples.cap * sizeof(struct nvml_sample));
		n = (unsigned)s->raw_samples.cap;
		code = NVML_CALL(s->lib.api.samples, c->handle, NVML_SAMPLE_GPU,
			(unsigned long long)since_us, &raw->type, &n, s->raw_samples.data);
		bool full = code == NVML_OK && n >= s->raw_samples.cap;
		if (code != NVML_TOO_SMALL && !full)
			break;
		want = 2 * (n > s->raw_samples.cap ? n : s->raw_samples.cap);
	}
	if (code == NVML_NOT_FOUND)
		n = 0;
	raw->rows = s->raw_samples.data;
	raw->n = n < s->raw_samples.cap ? n : s->raw_samples.cap;
	return code == NVML_NOT_FOUND ? NVML_OK : code;
}

static int64_t newest_stamp_us(const struct nvml_sample *samples, size_t n)
{
	int64_t newest_us = 0;
	for (size_t i = 0; i < n; i++)
		if (samples[i].wall_us <= INT64_MAX && (int64_t)samples[i].wall_us > newest_us)
			newest_us = (int64_t)samples[i].wall_us;
	return newest_us;
}

/* Readings that were polled while the ring was empty come before its new samples. */
static size_t join_polled(struct nvml_card *c, struct util_sample *ring, size_t n)
{
	size_t older = 0;
	while (older < c->n_polled && c->polled[older].wall_us < ring[0].wall_us)
		older++;
	memmove(ring + older, ring, n * sizeof(*ring));
	memcpy(ring, c->polled, older * sizeof(*ring));
	c->n_polled = 0;
	return n + older;
}

/* Learns from what the ring returned, by the driver's clock; returns the new samples. */
static struct util_sample *take_ring(struct nvml_source *s, size_t card, bool whole, size_t *n)
{
	struct nvml_card *c = &s->cards[card];
	struct util_sample *all = c->samples.data;
	size_t first = 0;
	while (first < *n && all[first].wall_us <= c->ring.seen_us)
		first++;
	c->ring.new_since += *n - first;
	if (whole)
		nvml_ring_learn(&c->ring, all, *n, clock_now(s->clock).mono_us);
	*n -= first;
	if (*n == 0)
		return all;
	/* When a drain comes too late, the ring has dropped samples that were not read. */
	struct nvml_ring *ring = &s->cards[card].ring;
	struct card_reading *r = &s->base.cards[card];
	r->n_lost = nvml_ring_lost(ring, *n, all[first].wall_us);
	if (r->n_lost && !ring->lost)
		log_warning("card %d: %zu samples were lost, because they were read too late: "
			    "the driver keeps samples for %.1f s",
			r->id.index, r->n_lost, (double)nvml_ring_span_us(ring) / 1e6);
	ring->lost = r->n_lost > 0;
	c->ring.seen_us = all[first + *n - 1].wall_us;
	return all + first;
}

static int drain_ring(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	struct nvml_samples raw;
	bool whole = nvml_ring_wants_whole(&c->ring, clock_now(s->clock).mono_us);
	int64_t from_us = whole ? 0 : c->ring.seen_us;
	int code = read_ring(s, c, from_us, &raw);
	if (code != NVML_OK)
		return code;
	if (!nvml_reserve(&c->samples, raw.n + NVML_POLLED, sizeof(struct util_sample)))
		return NVML_NO_MEMORY;
	struct moment now = clock_now(s->clock);
	c->stamps = nvml_ring_stamps_learn(c->stamps, newest_stamp_us(raw.rows, raw.n), &now);
	size_t n = nvml_decode_samples(
		&raw, from_us, nvml_ring_stamps_now(c->stamps, &now), c->samples.data);
	struct util_sample *fresh = take_ring(s, card, whole, &n);
	for (size_t i = 0; i < n; i++)
		fresh[i].wall_us += nvml_ring_stamps_to_wall(c->stamps, &now);
	r->util_kind = UTIL_RING;
	r->samples = fresh;
	r->n_samples = n && c->n_polled ? join_polled(c, fresh, n) : n;
	return NVML_OK;
}

/* Keeps a reading for the drain; when there are too many, it keeps the newest. */
void nvml_util_keep_polled(struct nvml_card *c, int64_t wall_us, double util_pct)
{
	if (c->n_polled == NVML_POLLED)
		memmove(c->polled, c->polled + 1, --c->n_polled * sizeof(c->polled[0]));
	c->polled[c->n_polled++] = (struct util_sample){ wall_us, util_pct };
}

static int poll_rates(struct nvml_source *s, struct nvml_card *c)
{
	struct nvml_rates rates = { 0 };
	int code = NVML_CALL(s->lib.api.rates, c->handle, &rates);
	if (code != NVML_OK)
		return code;
	if (rates.gpu_pct > 100)
		return NVML_NO_DATA;
	nvml_util_keep_polled(c, clock_now(s->clock).wall_us, rates.gpu_pct);
	return NVML_OK;
}

/* Puts the readings that were polled since the last drain into the reading of the card. */
static void hand_out_polled(struct nvml_source *s, size_t card, enum util_kind kind)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	if (!nvml_reserve(&c->samples, NVML_POLLED, sizeof(struct util_sample)))
		return;
	memcpy(c->samples.data, c->polled, c->n_polled * sizeof(c->polled[0]));
	r->util_kind = kind;
	r->samples = c->samples.data;
	r->n_samples = c->n_polled;
	c->n_polled = 0;
}

/* Reads the ring, or polls: a drain hands out what was polled. */
static int attempt_util(struct nvml_source *s, size_t card, int way, void *drains)
{
	if (way == 0)
		return drain_ring(s, card);
	int code = poll_rates(s, &s->cards[card]);
	if (code == NVML_OK && *(const bool *)drains)
		hand_out_polled(s, card, UTIL_POLLED);
	return code;
}

static const struct nvml_task drain_task = { NVML_JOB_UTIL, attempt_util, &(bool){ true } };
static const struct nvml_task glance_task = { NVML_JOB_UTIL, attempt_util, &(bool){ false } };

void nvml_util_drain(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	struct moment now = clock_now(s->clock);
	int64_t now_us = nvml_ring_stamps_now(c->stamps, &now);
	/* After a clock step back the newest stamp lies in the future, and every sample would
	 * count as old. */
	if (c->ring.seen_us > now_us) {
		c->ring.seen_us = now_us;
		nvml_ring_forget(&c->ring); /* samples in the ring by then are not counted */
	}
	c->since_us = c->ring.seen_us;
	if (nvml_job_is_unsupported(c, NVML_JOB_UTIL) && c->gpm.works)
		return;
	if (nvml_job_do(s, card, &drain_task) != NVML_OK)
		return;
	/* A ring that has stopped has no new samples, but the utilisation rates may work. The
	 * way in use does not change. A card that has just come back has no sample yet, and its
	 * rates say nothing. */
	c->dry = r->n_samples == 0 && now_us - c->ring.seen_us >= POLL_AFTER_US &&
		 now.mono_us - c->back_mono_us >= POLL_AFTER_US;
	if (c->dry)
		nvml_job_try(s, card, &drain_task, 1);
}

void nvml_util_finish(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	struct moment now = clock_now(s->clock);
	if (nvml_job_is_unsupported(c, NVML_JOB_UTIL) && c->gpm.works) {
		hand_out_polled(s, card, UTIL_MEAN);
	} else if (nvml_job_is_unsupported(c, NVML_JOB_UTIL)) {
		nvml_util_keep_polled(c, now.wall_us, NAN);
		hand_out_polled(s, card, UTIL_UNKNOWN);
	}
	/* Without samples from the ring, the next drain asks for the use of processes since
	 * this one. */
	bool polled = r->util_kind == UTIL_POLLED || r->util_kind == UTIL_UNKNOWN;
	if (polled && c->stamps != NVML_STAMPS_UNKNOWN)
		c->ring.seen_us = nvml_ring_stamps_now(c->stamps, &now);
}

void nvml_util_glance(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	if (nvml_job_is_unsupported(c, NVML_JOB_UTIL) && c->gpm.works)
		return;
	if (nvml_job_is_unsupported(c, NVML_JOB_UTIL))
		nvml_util_keep_polled(c, clock_now(s->clock).wall_us, NAN);
	else if (c->dry || c->ways[NVML_JOB_UTIL].way == 1)
		nvml_job_try(s, card, &glance_task, 1);
}

void nvml_util_note_rings(struct nvml_source *s)
{
	int64_t period_us = 0, span_us = 0;
	for (size_t i = 0; i < s->base.n_cards; i++) {
		const struct nvml_ring *ring = &s->cards[i].ring;
		int64_t own_us = s->cards[i].handle ? nvml_ring_span_us(ring) : 0;
		if (s->cards[i].handle && ring->period_us > period_us)
			period_us = ring->period_us;
		if (own_us && (span_us == 0 || own_us < span_us))
			span_us = own_us;
	}
	s->base.sample_period_us = period_us;
	s->base.ring_us = span_us;
}

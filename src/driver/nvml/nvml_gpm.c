/* Reads GPM counters. */
#include "driver/nvml/nvml.h"

enum {
	APART_US = 100000,    /* two samples that are closer than this have no data */
	METRIC_GRAPHICS = 1,  /* percent of the time in which anything ran */
	METRIC_SM_ACTIVE = 2, /* percent of the multiprocessors that were busy */
};

/* Whether the device has GPM; asks once. */
static bool is_supported(struct nvml_source *s, struct nvml_device *d)
{
	if (d->gpm < 0) {
		struct nvml_gpm_support support = { .version = 1 };
		s->gpm_used = true;
		int code = NVML_CALL(s->lib.api.gpm_support, d->handle, &support);
		d->gpm = code == NVML_OK && support.is_supported;
	}
	return d->gpm;
}

/* The driver adds up the compute instances of a GPU instance, so its number is the use of a
 * compute instance only if there is just one. */
static bool is_alone(const struct nvml_source *s, size_t card)
{
	const struct card_id *id = &s->base.cards[card].id;
	for (size_t i = 0; i < s->base.n_cards; i++)
		if (i != card && s->cards[i].handle &&
			s->cards[i].device == s->cards[card].device &&
			s->base.cards[i].id.gpu_instance == id->gpu_instance)
			return false;
	return id->gpu_instance >= 0 && id->compute_instance >= 0;
}

static bool may_read(struct nvml_source *s, size_t card)
{
	const struct nvml_card *c = &s->cards[card];
	struct nvml_device *d = &s->devices[c->device];
	bool instance = s->base.cards[card].id.mig_index >= 0;
	return !s->gpm_stopped && !c->gpm.dead && d->handle && s->lib.api.gpm_metrics &&
	       (!instance || is_alone(s, card)) && is_supported(s, d);
}

static int read_sample(struct nvml_source *s, size_t card, void *sample)
{
	const struct nvml_card *c = &s->cards[card];
	const struct card_id *id = &s->base.cards[card].id;
	nvml_enter(s, id->index, "nvmlGpmSampleGet");
	if (id->mig_index < 0)
		return NVML_CALL(s->lib.api.gpm_sample, c->handle, sample);
	return NVML_CALL(s->lib.api.gpm_mig_sample, s->devices[c->device].handle,
		(unsigned)id->gpu_instance, sample);
}

/* A percentage between two samples, or NAN. */
static double read_metric(
	struct nvml_source *s, const struct nvml_gpm *g, int from, int to, uint32_t id)
{
	if (from == NVML_GPM_NONE)
		return NAN;
	struct nvml_gpm_metrics get = { .version = 1,
		.count = 1,
		.samples = { g->samples[from], g->samples[to] },
		.metric = { .id = id } };
	int code = NVML_CALL(s->lib.api.gpm_metrics, &get);
	if (code != NVML_OK || get.metric.code != NVML_OK)
		return NAN;
	return get.metric.value >= 0 && get.metric.value <= 100 ? get.metric.value : NAN;
}

/* After a reading that failed: the next one starts again. */
static void give_up(struct nvml_source *s, size_t card, int code)
{
	struct nvml_card *c = &s->cards[card];
	c->gpm.works = false;
	c->gpm.base = c->gpm.last = NVML_GPM_NONE;
	c->gpm.dead = nvml_job_is_for_good(code);
	if (s->base.cards[card].id.mig_index >= 0)
		c->n_polled = 0;
	/* Other codes say nothing about the card; the calls that do not use GPM decide. */
	if (nvml_job_is_lost(code) || code == NVML_UNINITIALISED)
		nvml_job_heed(s, card, code);
}

void nvml_gpm_read(struct nvml_source *s, size_t card, bool drains)
{
	struct nvml_card *c = &s->cards[card];
	struct nvml_gpm *g = &c->gpm;
	bool instance = s->base.cards[card].id.mig_index >= 0;
	if (!instance && !drains)
		return;
	if (!may_read(s, card)) {
		g->works = false;
		return;
	}
	struct moment now = clock_now(s->clock);
	if (g->last != NVML_GPM_NONE && now.mono_us - g->last_mono_us < APART_US)
		return;
	/* A sample that neither the last drain nor the last reading needs. */
	int fresh = 0;
	while (fresh == g->base || fresh == g->last)
		fresh++;
	if (!g->samples[fresh] &&
		NVML_CALL(s->lib.api.gpm_alloc, &g->samples[fresh]) != NVML_OK)
		g->samples[fresh] = NULL;
	int code = g->samples[fresh] ? read_sample(s, card, g->samples[fresh]) : NVML_NO_MEMORY;
	if (code != NVML_OK) {
		give_up(s, card, code);
		return;
	}
	double util_pct = instance ? read_metric(s, g, g->last, fresh, METRIC_GRAPHICS) : NAN;
	if (!isnan(util_pct))
		nvml_util_keep_polled(c, now.wall_us, util_pct);
	if (drains) {
		s->base.cards[card].sm_active_pct =
			read_metric(s, g, g->base, fresh, METRIC_SM_ACTIVE);
		g->base = fresh;
	}
	g->last = fresh;
	g->last_mono_us = now.mono_us;
	g->works = true;
	if (instance)
		nvml_job_turn_to(s, card, NVML_JOB_UTIL, 2, NVML_NOT_SUPPORTED);
}

void nvml_gpm_free(struct nvml_source *s, size_t card)
{
	struct nvml_gpm *g = &s->cards[card].gpm;
	for (size_t i = 0; i < sizeof(g->samples) / sizeof(g->samples[0]); i++)
		if (g->samples[i])
			NVML_CALL(s->lib.api.gpm_free, g->samples[i]);
	*g = (struct nvml_gpm){ .base = NVML_GPM_NONE, .last = NVML_GPM_NONE };
}

void nvml_gpm_stop(struct nvml_source *s, size_t card, int code)
{
	const struct card_id *id = &s->base.cards[card].id;
	if (s->gpm_stopped || !s->gpm_used)
		return;
	log_warning("card %d/%d: after GPM counters were read, the driver no longer reports "
		    "its memory (%s); the counters are not read again, and the use of MIG "
		    "instances is unknown",
		id->index, id->mig_index, nvml_lib_code_text(code));
	s->gpm_stopped = s->gpm_mend = true;
	for (size_t i = 0; i < s->base.n_cards; i++) {
		nvml_gpm_free(s, i);
		if (s->base.cards[i].id.mig_index < 0)
			continue;
		s->cards[i].n_polled = 0;
		s->cards[i].ways[NVML_JOB_UTIL].way = NVML_WAY_NONE;
	}
}

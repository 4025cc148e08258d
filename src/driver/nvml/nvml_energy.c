/* Energy and power of a card: the driver's counter where there is one, else power integrated
 * over time, joined into one sum that never decreases. */
#include "driver/nvml/nvml.h"

/* More than any board draws: a counter that grows faster is wrong. */
#define MAX_POWER_MW 20e6

static int read_power(struct nvml_source *s, size_t card, int way, void *out)
{
	unsigned mw = 0;
	(void)way;
	int code = NVML_CALL(s->lib.api.power, s->cards[card].handle, &mw);
	*(double *)out = mw;
	return code;
}

static int read_energy(struct nvml_source *s, size_t card, int way, void *out)
{
	unsigned long long mj = 0;
	if (way > 0)
		return read_power(s, card, way, out);
	int code = NVML_CALL(s->lib.api.energy, s->cards[card].handle, &mj);
	*(double *)out = (double)mj;
	return code;
}

static void add_mj(struct nvml_energy *n, double mj)
{
	n->total_mj = (isnan(n->total_mj) ? 0 : n->total_mj) + mj;
}

bool nvml_energy_is_plausible(const struct nvml_device *d, double power_mw)
{
	return !(power_mw > d->power_limit_mw * 1.5);
}

static bool is_plausible(struct nvml_source *s, size_t card, double power_mw)
{
	struct nvml_card *c = &s->cards[card];
	int64_t now_ms = clock_wall_ms(s->clock);
	double limit_mw = s->devices[c->device].power_limit_mw;
	if (nvml_energy_is_plausible(&s->devices[c->device], power_mw)) {
		fault_clear(&c->bad_power, now_ms);
		return true;
	}
	fault_raise(&c->bad_power, now_ms,
		"card %d: the driver reports %.0f W, but the card's limit is %.0f W: its power "
		"counts as unknown",
		s->base.cards[card].id.index, power_mw / 1e3, limit_mw / 1e3);
	return false;
}

void nvml_energy_read(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	double value = 0;
	r->energy_mj = NAN;
	const struct nvml_task task = { NVML_JOB_ENERGY, read_energy, &value };
	if (nvml_job_do(s, card, &task) != NVML_OK)
		return;
	int64_t mono_us = clock_now(s->clock).mono_us;
	if (c->ways[NVML_JOB_ENERGY].way == 0) {
		/* A counter that went down, or went up faster than any board can draw, was
		 * reset: the energy used around that moment is unknown and is not estimated. */
		double used = value - c->energy.counter_mj;
		double most = MAX_POWER_MW * ((double)(mono_us - c->energy.mono_us) / 1e6 + 1);
		if (isnan(c->energy.total_mj))
			c->energy.total_mj = value;
		else
			add_mj(&c->energy, used >= 0 && used <= most ? used : 0);
		c->energy.counter_mj = value;
		c->energy.power_mw = NAN;
		c->energy.mono_us = mono_us;
	} else if (is_plausible(s, card, value)) {
		/* The time is from CLOCK_MONOTONIC, because a suspended host draws nothing. */
		double seconds = (double)(mono_us - c->energy.mono_us) / 1e6;
		bool goes_on = !isnan(c->energy.power_mw) && seconds > 0;
		add_mj(&c->energy, goes_on ? (c->energy.power_mw + value) / 2 * seconds : 0);
		c->energy.counter_mj = NAN;
		c->energy.power_mw = value;
		c->energy.mono_us = mono_us;
	} else {
		c->energy.power_mw = NAN;
		return;
	}
	r->energy_mj = c->energy.total_mj;
}

void nvml_energy_read_power(struct nvml_source *s, size_t card)
{
	double mw = 0;
	const struct nvml_task task = { NVML_JOB_POWER, read_power, &mw };
	if (nvml_job_do(s, card, &task) == NVML_OK && is_plausible(s, card, mw))
		s->base.cards[card].power_mw = mw;
}

void nvml_energy_read_limit(struct nvml_source *s, struct nvml_device *d)
{
	unsigned mw = 0;
	int code = NVML_CALL(s->lib.api.power_limit, d->handle, &mw);
	d->power_limit_mw = code == NVML_OK && mw > 0 ? (double)mw : NAN;
}

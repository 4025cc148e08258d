/* Computes when to glance, from the limits and the measured cost. */
#include "driver/host/pace.h"

#include "driver/host/round.h"

/* The share of one core that glances may take: for memory and the looks that follow, for
 * energy, and for draining shared cards. WALL_SHARE is of elapsed time, because the driver
 * serves one caller at a time. */
#define GLANCE_SHARE 0.00015
#define ENERGY_SHARE 0.00005
#define SHARED_SHARE 0.00005
#define WALL_SHARE 0.01
/* A stall: no glance for twice the time between glances plus this. */
#define STALL_US 1000000

void pace_start(struct pace *p, int64_t now_us)
{
	p->apart_us = p->least_us;
	p->random = (uint64_t)now_us | 1;
	p->next_glance_us = p->next_energy_us = p->next_shared_us = now_us;
}

double pace_chance(struct pace *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (double)(p->random >> 11) / (double)(1ULL << 53);
}

void pace_ask(const struct pace *p, int64_t now_us, struct round *round)
{
	round->energy = now_us >= p->next_energy_us;
	round->shared = now_us >= p->next_shared_us;
}

/* Learns what the parts of a round cost. */
static void learn(struct pace *p, const struct round *round, int64_t took_us)
{
	spacing_add(&p->glances, round->cost_us);
	if (round->drain)
		return;
	spacing_add(&p->walls, took_us);
	if (round->energy)
		spacing_add(&p->energy, round->energy_cost_us);
	if (round->shared)
		spacing_add(&p->shared, round->shared_cost_us);
}

void pace_done(struct pace *p, int64_t now_us, const struct round *round, int64_t took_us)
{
	learn(p, round, took_us);
	int64_t cpu_us = spacing_us(&p->glances, GLANCE_SHARE, p->least_us, p->most_us);
	int64_t wall_us = spacing_us(&p->walls, WALL_SHARE, p->least_us, p->most_us);
	p->apart_us = cpu_us > wall_us ? cpu_us : wall_us;
	p->next_glance_us =
		now_us + (int64_t)((double)p->apart_us * (0.8 + 0.4 * pace_chance(p)));
	if (round->energy || round->drain)
		p->next_energy_us =
			now_us + spacing_us(&p->energy, ENERGY_SHARE, 0, p->most_us);
	if (round->shared || round->drain)
		p->next_shared_us =
			now_us + spacing_us(&p->shared, SHARED_SHARE, 0, p->most_us);
}

int64_t pace_stall_us(const struct pace *p)
{
	return 2 * p->apart_us + STALL_US;
}

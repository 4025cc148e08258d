/* Computes when to glance, drain, look and tick, from the options and the measured cost. */
#include "record/schedule.h"

/* The share of one core that glances may take: for memory and the looks that follow, for
 * energy, and for draining shared cards. WALL_SHARE is of elapsed time, because the driver
 * serves one caller at a time. */
#define GLANCE_SHARE 0.00015
#define ENERGY_SHARE 0.00005
#define SHARED_SHARE 0.00005
#define WALL_SHARE 0.01
/* How often to look for new cards when nothing has failed. */
#define RESCAN_US (600 * 1000000LL)
/* The first wait after a failure, and the wait after a process has ended. */
#define FIRST_WAIT_US 1000000
#define SOON_US 100000

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Returns a random number between 0 and 1. */
static double chance(struct schedule *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (double)(s->random >> 11) / (double)(1ULL << 53);
}

void schedule_start(struct schedule *s, int64_t now_us)
{
	s->start_us = now_us;
	s->apart_us = s->glance_us;
	s->random = (uint64_t)now_us | 1;
	s->next_drain_us = s->next_glance_us = s->next_energy_us = s->next_shared_us = now_us;
	s->next_scan_us = now_us + RESCAN_US;
	schedule_tick(s, now_us);
}

void schedule_tick(struct schedule *s, int64_t now_us)
{
	int64_t past_us = now_us - s->start_us;
	s->next_tick_us = s->start_us + (past_us / s->interval_us + 1) * s->interval_us;
	int64_t before_us = min64(s->apart_us, s->interval_us / 2);
	s->next_look_us = s->next_tick_us - (int64_t)(chance(s) * (double)before_us);
}

int64_t schedule_next(const struct schedule *s)
{
	int64_t next_us = min64(s->next_tick_us, s->next_scan_us);
	if (s->health == HEALTH_DOWN)
		return next_us;
	next_us = min64(next_us, s->next_look_us);
	return min64(next_us, min64(s->next_drain_us, s->next_glance_us));
}

bool schedule_is_tick(const struct schedule *s, int64_t now_us)
{
	return now_us >= s->next_tick_us;
}

int64_t schedule_wait(int64_t before_us, int64_t most_us)
{
	return min64(before_us ? 2 * before_us : FIRST_WAIT_US, most_us);
}

static void wait_longer(struct schedule *s, int64_t now_us)
{
	s->wait_us = schedule_wait(s->wait_us, s->retry_us);
	s->next_scan_us = now_us + s->wait_us;
}

bool schedule_ask(struct schedule *s, int64_t now_us, enum health health, struct round *round)
{
	bool wrong = health != HEALTH_GOOD;
	if (!wrong && s->wait_us) {
		s->wait_us = 0;
		s->next_scan_us = now_us + RESCAN_US;
		s->next_drain_us = now_us; /* the ring may still have that time */
	}
	if (wrong && !s->wait_us)
		wait_longer(s, now_us);
	s->health = health;
	bool look = now_us >= s->next_look_us;
	round->scan = now_us >= s->next_scan_us;
	round->drain = look || round->scan || now_us >= s->next_drain_us;
	round->look_all = look || round->scan;
	round->energy = now_us >= s->next_energy_us;
	round->shared = now_us >= s->next_shared_us;
	if (round->scan && wrong)
		wait_longer(s, now_us);
	else if (round->scan)
		s->next_scan_us = now_us + RESCAN_US;
	if (health == HEALTH_DOWN)
		return round->scan;
	return round->drain || now_us >= s->next_glance_us;
}

/* Learns what the parts of a round cost. */
static void learn(struct schedule *s, const struct round *round, int64_t took_us)
{
	spacing_add(&s->glances, round->cost_us);
	if (round->drain)
		return;
	spacing_add(&s->walls, took_us);
	if (round->energy)
		spacing_add(&s->energy, round->energy_cost_us);
	if (round->shared)
		spacing_add(&s->shared, round->shared_cost_us);
}

void schedule_done(struct schedule *s, int64_t now_us, const struct round *round,
	int64_t took_us, int64_t ring_us)
{
	int64_t most_us = s->drain_us > s->glance_us ? s->drain_us : s->glance_us;
	if (s->health == HEALTH_DOWN) /* it answers again: glances and drains continue */
		s->health = HEALTH_GOOD;
	learn(s, round, took_us);
	int64_t cpu_us = spacing_us(&s->glances, GLANCE_SHARE, s->glance_us, most_us);
	int64_t wall_us = spacing_us(&s->walls, WALL_SHARE, s->glance_us, most_us);
	s->apart_us = cpu_us > wall_us ? cpu_us : wall_us;
	s->next_glance_us = now_us + (int64_t)((double)s->apart_us * (0.8 + 0.4 * chance(s)));
	if (round->look_all)
		s->next_look_us = INT64_MAX;
	if (round->energy || round->drain)
		s->next_energy_us = now_us + spacing_us(&s->energy, ENERGY_SHARE, 0, most_us);
	if (round->shared || round->drain)
		s->next_shared_us = now_us + spacing_us(&s->shared, SHARED_SHARE, 0, most_us);
	if (!round->drain)
		return;
	/* The ring must not drop samples between two drains. */
	int64_t apart_us = s->drain_us;
	if (ring_us > 0 && ring_us / 2 < apart_us)
		apart_us = ring_us / 2;
	s->next_drain_us = now_us + (int64_t)((double)apart_us * (0.8 + 0.2 * chance(s)));
}

void schedule_soon(struct schedule *s, int64_t now_us)
{
	s->next_glance_us = min64(s->next_glance_us, now_us + SOON_US);
}

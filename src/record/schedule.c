/* Computes when to glance, drain, look and tick, from the options and the pace of glances. */
#include "record/schedule.h"

/* How often to look for new cards when nothing has failed. */
#define RESCAN_US (600 * 1000000LL)
/* The first wait after a failure. */
#define FIRST_WAIT_US 1000000
/* For this long, a lost card is tried again at the shortest interval: after a short loss,
 * the ring still has the samples of that time. */
#define EAGER_US (60 * 1000000LL)

void schedule_start(struct schedule *s, int64_t now_us)
{
	s->start_us = now_us;
	s->pace.least_us = s->glance_us;
	s->pace.most_us = s->drain_us > s->glance_us ? s->drain_us : s->glance_us;
	round_pace_start(&s->pace, now_us);
	s->next_drain_us = now_us;
	s->next_scan_us = now_us + RESCAN_US;
	schedule_tick(s, now_us);
}

void schedule_tick(struct schedule *s, int64_t now_us)
{
	int64_t past_us = now_us - s->start_us;
	s->next_tick_us = s->start_us + (past_us / s->interval_us + 1) * s->interval_us;
	int64_t before_us = clock_earlier(s->pace.apart_us, s->interval_us / 2);
	s->next_look_us =
		s->next_tick_us - (int64_t)(round_pace_chance(&s->pace) * (double)before_us);
}

int64_t schedule_next_stop(const struct schedule *s)
{
	int64_t next_us = clock_earlier(s->next_tick_us, s->next_scan_us);
	if (s->health == HEALTH_DOWN)
		return next_us;
	return clock_earlier(next_us, clock_earlier(s->next_look_us, s->next_drain_us));
}

int64_t schedule_next(const struct schedule *s)
{
	int64_t next_us = schedule_next_stop(s);
	return s->health == HEALTH_DOWN ? next_us
					: clock_earlier(next_us, s->pace.next_glance_us);
}

/* Whether a glance with this health would affect nothing but the pace. */
static bool is_settled(const struct schedule *s, enum health health)
{
	bool wrong = health != HEALTH_GOOD;
	return health != HEALTH_DOWN && s->health == health && wrong == (s->wait_us != 0);
}

bool schedule_can_patrol(const struct schedule *s, int64_t now_us, enum health health)
{
	int64_t own_us = clock_earlier(s->next_tick_us, s->next_scan_us);
	return is_settled(s, health) && now_us < own_us && schedule_next(s) < own_us;
}

bool schedule_is_tick(const struct schedule *s, int64_t now_us)
{
	return now_us >= s->next_tick_us;
}

int64_t schedule_wait(int64_t before_us, int64_t most_us)
{
	return clock_earlier(before_us ? 2 * before_us : FIRST_WAIT_US, most_us);
}

static void wait_longer(struct schedule *s, int64_t now_us)
{
	bool eager = s->health == HEALTH_LOST && now_us - s->wrong_us < EAGER_US;
	s->wait_us = schedule_wait(eager ? 0 : s->wait_us, s->retry_us);
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
	bool lost = health == HEALTH_LOST && s->health == HEALTH_CARD;
	s->health = health;
	if ((wrong && !s->wait_us) || lost) {
		s->wrong_us = now_us;
		wait_longer(s, now_us);
	}
	bool look = now_us >= s->next_look_us;
	round->scan = now_us >= s->next_scan_us;
	round->drain = look || round->scan || now_us >= s->next_drain_us;
	round->look_all = look || round->scan;
	round_pace_ask(&s->pace, now_us, round);
	if (round->scan && wrong)
		wait_longer(s, now_us);
	else if (round->scan)
		s->next_scan_us = now_us + RESCAN_US;
	if (health == HEALTH_DOWN)
		return round->scan;
	return round->drain || now_us >= s->pace.next_glance_us;
}

void schedule_done(struct schedule *s, int64_t now_us, const struct round *round,
	int64_t took_us, int64_t ring_us)
{
	if (s->health == HEALTH_DOWN) /* it answers again: glances and drains continue */
		s->health = HEALTH_GOOD;
	round_pace_done(&s->pace, now_us, round, took_us);
	/* A look long before the tick does not stand for the one that the tick needs. */
	if (round->look_all && now_us >= s->next_look_us)
		s->next_look_us = INT64_MAX;
	if (!round->drain)
		return;
	/* The ring must not drop samples between two drains. */
	int64_t apart_us = s->drain_us;
	if (ring_us > 0 && ring_us / 2 < apart_us)
		apart_us = ring_us / 2;
	s->next_drain_us = now_us + (int64_t)((double)apart_us *
					      (0.8 + 0.2 * round_pace_chance(&s->pace)));
}

/* Decides when the recorder glances, drains and ticks, and when it tries again after a failure.
 * Only ticks are regular. Everything that asks the driver happens at slightly random times, so
 * that a periodic job is not always seen in the same phase. For the same reason nothing that a
 * process does changes when the next glance is: an exit that is noticed at once would set the
 * phase of the glances after it. Times are microseconds of the boot
 * clock. */
#pragma once

#include "driver/host/round.h"

/* Whether everything works, or something must be tried again. */
enum health {
	HEALTH_GOOD,
	HEALTH_LOST, /* a card is lost, and the driver answers: it may be back at any moment */
	HEALTH_CARD, /* a card sleeps, is denied or must not be asked: the others continue */
	HEALTH_DOWN, /* the driver does not answer */
};

struct schedule {
	int64_t interval_us, drain_us, glance_us, retry_us; /* from the options */
	int64_t start_us;     /* ticks are multiples of the interval from here */
	int64_t next_tick_us; /* when the readings are stored */
	int64_t next_look_us; /* shortly before that: read all process lists */
	int64_t next_drain_us;
	int64_t next_scan_us; /* when to look for cards again */
	enum health health;   /* at the last round */
	int64_t wait_us;      /* retry delay; 0 while healthy */
	int64_t wrong_us;     /* since when something has been wrong; valid while not healthy */
	struct pace pace;     /* of glances */
};

/* Starts at `now_us`; the first four fields must be set. `retry_us` is the longest wait between
 * two tries.
 */
void schedule_start(struct schedule *s, int64_t now_us);

/* Returns when the next work is due. */
int64_t schedule_next(const struct schedule *s);
/* The same without glances: until then, glances may be left to the source. */
int64_t schedule_next_stop(const struct schedule *s);
/* Whether the next work can be left to the source: it is neither a tick nor a scan, and none
 * of these is overdue, because a patrol that ends in the past makes no glance. */
bool schedule_can_patrol(const struct schedule *s, int64_t now_us, enum health health);
bool schedule_is_tick(const struct schedule *s, int64_t now_us);
/* Sets in `round` what is due. What has failed is tried again after 1, 2, 4 ... seconds; a lost
 * card every second for a minute before that. False: the driver must not be asked now. */
bool schedule_ask(struct schedule *s, int64_t now_us, enum health health, struct round *round);
/* A round was made and took `took_us`; the driver's ring covers `ring_us` (0: not known). */
void schedule_done(struct schedule *s, int64_t now_us, const struct round *round,
	int64_t took_us, int64_t ring_us);
/* Schedules the next tick after now: a missed tick is skipped. */
void schedule_tick(struct schedule *s, int64_t now_us);

/* How long to wait before the next try, after a wait of `before_us` (0: the first). */
int64_t schedule_wait(int64_t before_us, int64_t most_us);

/* When the recorder does what: glances, drains, ticks, and another try when something failed.
 * Only ticks are regular. Everything that asks the driver happens at slightly random times, so
 * that a job that repeats in step is not always seen in the same phase. Times are microseconds
 * of the boot clock. */
#ifndef GUA_RECORD_SCHEDULE_H
#define GUA_RECORD_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "sample/round.h"
#include "sample/spacing.h"

/* Whether all is well, or something is to be tried again. */
enum health {
	HEALTH_GOOD,
	HEALTH_CARD, /* a card is lost: the others go on */
	HEALTH_DOWN, /* the driver does not answer */
};

struct schedule {
	int64_t interval_us, drain_us, glance_us, retry_us; /* as asked for */
	int64_t start_us;     /* ticks are multiples of the interval from here */
	int64_t next_tick_us; /* what was seen is stored */
	int64_t next_look_us; /* shortly before: all process lists */
	int64_t next_drain_us, next_glance_us;
	int64_t next_energy_us; /* earliest glance that reads energy */
	int64_t next_shared_us; /* and that drains the cards that several users share */
	int64_t next_scan_us;	/* look for cards again */
	enum health health;	/* at the last round */
	int64_t wait_us;	/* before the next try while it is not good, else 0 */
	int64_t apart_us;	/* time between glances now */
	/* CPU of glances, of reading energy, of draining shared cards; time by the clock. */
	struct spacing glances, energy, shared, walls;
	uint64_t random;
};

/* Starts at `now_us`; the first four fields must be set. `retry_us` is the longest wait between
 * two tries.
 */
void schedule_start(struct schedule *s, int64_t now_us);

/* When there is something to do next. */
int64_t schedule_next(const struct schedule *s);
bool schedule_is_tick(const struct schedule *s, int64_t now_us);
/* Says in `round` what is due; what has failed is tried again after 1, 2, 4 ... seconds. False:
 * the driver is not to be asked now. */
bool schedule_ask(struct schedule *s, int64_t now_us, enum health health, struct round *round);
/* A round was made and took `took_us`; the driver's ring spans `ring_us` (0: not known). */
void schedule_done(struct schedule *s, int64_t now_us, const struct round *round,
	int64_t took_us, int64_t ring_us);
/* The next tick after now: one that was missed is not caught up. */
void schedule_tick(struct schedule *s, int64_t now_us);
/* A process came or went: the next glance is soon. */
void schedule_soon(struct schedule *s, int64_t now_us);

/* How long to wait before the next try, after a wait of `before_us` (0: the first). */
int64_t schedule_wait(int64_t before_us, int64_t most_us);

#endif

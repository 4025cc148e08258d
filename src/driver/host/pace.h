/* The pace of glances: when the next one is due, and what it reads beside memory. It is learned
 * from what glances cost, and every distance is slightly random, so that a periodic job is not
 * always seen in the same phase. Plain numbers: a copy makes the same decisions, so the process
 * that asks the driver can glance by itself. Times are microseconds of the boot clock. */
#ifndef GUA_DRIVER_HOST_PACE_H
#define GUA_DRIVER_HOST_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/host/spacing.h"

struct round;

struct pace {
	int64_t least_us, most_us; /* limits of the time between two glances */
	int64_t apart_us;	   /* that time now */
	int64_t next_glance_us;
	int64_t next_energy_us; /* earliest glance that reads energy */
	int64_t next_shared_us; /* earliest glance that drains the cards that several users
				   share */
	/* CPU cost of glances, of reading energy, of draining shared cards; and elapsed time.
	 */
	struct spacing glances, energy, shared, walls;
	uint64_t random;
};

/* Starts at `now_us`; the limits must be set. */
void pace_start(struct pace *p, int64_t now_us);
/* Sets in `round` what a glance now reads beside memory. */
void pace_ask(const struct pace *p, int64_t now_us, struct round *round);
/* A round was made and took `took_us`: sets when the next glance is due. */
void pace_done(struct pace *p, int64_t now_us, const struct round *round, int64_t took_us);
/* A time without a glance after which process lists are read even if memory is the same. */
int64_t pace_stall_us(const struct pace *p);
/* Returns a random number between 0 and 1. */
double pace_chance(struct pace *p);

#endif

/* The host's own memory and CPU, for the `system` rows. */
#ifndef GUA_TRACK_HOST_H
#define GUA_TRACK_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "track/result.h"

struct host {
	int memory_fd, cpu_fd; /* or -1 */
	int64_t cores;
	int64_t capacity_bytes, used_bytes, max_used_bytes; /* -1 unknown */
	int64_t busy_ticks, all_ticks;			    /* since boot; -1 unknown */
	int64_t first_busy_ticks, first_all_ticks;	    /* when tracking began */
};

void host_open(struct host *h, int proc_fd);
void host_close(struct host *h);
void host_look(struct host *h);
/* Percent of one core between two readings of the ticks; NAN when there is no time between. */
double host_cpu_pct(const struct host *h, int64_t busy_before, int64_t all_before);

#endif

/* The fields of a tracker, for the files of this folder. */
#pragma once

#include "proc/limits.h"
#include "track/gpu.h"
#include "track/memory.h"
#include "track/tracker.h"
#include "track/tree.h"

/* CPU of the groups and of the host at one moment, such as the start of a window. */
struct cpu_mark {
	double at_s;
	double cpu_s[TRACK_GROUPS];
	int64_t busy_ticks, all_ticks;
};

/* The highest use over one window; NAN: none yet. */
struct cpu_max {
	double pct[TRACK_GROUPS], system_pct;
};

/* The host's own memory and CPU, for the `system` rows. */
struct host {
	int memory_fd, cpu_fd; /* or -1 */
	int64_t cores;
	struct limits limits;	       /* of the first process; -1: the host's */
	int64_t used_bytes;	       /* -1 unknown */
	int64_t busy_ticks, all_ticks; /* since boot; -1 unknown */
};

struct tracker {
	struct tracker_options o;
	struct clock clock; /* the real one */
	struct tree tree;
	struct memory memory;
	struct host host;
	struct gpu *gpu;	   /* NULL: not asked for */
	int64_t start_us, next_us; /* boot time */
	int early;		   /* how many early looks are still to come */
	double last_end_s;	   /* when the latest end of a member was seen, or -1 */
	bool stopped;
	double stopped_s;
	double before[TRACK_GROUPS][COUNTERS]; /* at the start of tracking: not counted */
	double sums[TRACK_GROUPS][COUNTERS];   /* since then; never decreases */
	struct cpu_mark first;		       /* when tracking began */
	struct cpu_mark sample_mark;	       /* at the previous sample */
	struct cpu_mark window;		       /* at the start of the interval for maxima */
	struct cpu_mark window_before;	       /* at the start of the one before; or the same */
	double sample_pct[TRACK_GROUPS], sample_system_pct;
	struct cpu_max max; /* over the windows that are complete */
	int64_t threads[TRACK_GROUPS];
	struct track_result result; /* complete after tracker_result() */
	size_t cap_processes;
};

/* The maxima up to the last sample. All of the time counts: a rest that is too short for a
 * window of its own makes the last window longer. */
struct cpu_max tracker_cpu_max(const struct tracker *t);
/* A maximum is never below a mean over the same time, whatever could not be seen of it: NAN is
 * unknown. */
double tracker_max(double max, double mean);
/* Adds a warning to the result, once. */
void tracker_warn(struct track_result *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

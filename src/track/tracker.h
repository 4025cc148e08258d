/* A tracker follows one process and everything below it. It has no thread and no output of its
 * own: its owner calls tracker_sample() at the time that tracker_next_us() returns, from any
 * loop: that of `gua track`, or libgua's helper process or thread. Links libc and libm only. */
#pragma once

#include <sys/resource.h>

#include "model/state.h"
#include "driver/source.h"
#include "track/tree.h"
#include "track/result.h"

struct tracker;

/* The name of a process that samples for a tracker; trackers do not count such a process. */
#define TRACK_HELPER_NAME "gua-helper"

/* The owner checks them. */
struct tracker_options {
	pid_t pid;		      /* process to follow; must exist */
	int64_t interval_ms;	      /* 10 ms and more */
	int64_t expected_cores;	      /* 0: all of the host */
	const char *const *gpu_uuids; /* cards that count in utilisation; NULL: all */
	size_t n_gpu_uuids;
	bool own_gpus; /* only cards that the tree may use or was seen on are in the result;
			  without gpu_uuids, only these count in utilisation */
	const char *visible_gpus; /* its CUDA_VISIBLE_DEVICES, see visible.h; NULL: not set */
	struct source_options
		source;	       /* where GPU numbers come from; name NULL: no GPU at all */
	struct rules rules;    /* for active and idle-held time */
	int64_t started_us;    /* boot time at which the owner started it; 0: it was already
				  running, and tracking begins now */
	const char *root;      /* where /proc is: "" for the real one */
	const pid_t *excluded; /* the tracker's own helpers: never part of the tree */
	size_t n_excluded;
	int own_threads; /* threads of the first process that are the tracker's: not counted */
	const struct track_files *files; /* how files that may block are read; NULL: directly */
	const char *slurm_job;		 /* SLURM_JOB_ID in its environment; NULL: not set */
	bool subreaper; /* the owner adopts orphans and reports every wait4() */
};

/* Starts following; takes the first sample. A missing driver is a note, not a failure. */
int tracker_open(struct tracker **t, const struct tracker_options *o, struct err *e);
void tracker_close(struct tracker *t);

/* Boot time at which the next sample is due, microseconds. */
int64_t tracker_next_us(const struct tracker *t);
/* Takes a sample; `out` may be NULL. Returns false when no process of the tree is left. */
bool tracker_sample(struct tracker *t, struct track_sample *out);
/* `pid` has ended and has not been waited for (waitid() with WNOWAIT): reads its last numbers
 * and notes the time. Call it before wait4() and tracker_reaped(): without it the time of the
 * first process cannot be separated exactly from that of the children that it waited for. */
void tracker_exiting(struct tracker *t, pid_t pid);
/* Whether `pid`, which may have ended, is a helper of a tracker and must not be counted. */
bool tracker_is_helper(struct tracker *t, pid_t pid);
/* The owner has reaped `pid` with wait4(): takes the exact CPU time, peaks, faults and switches
 * of it and of the children that it had waited for. */
void tracker_reaped(struct tracker *t, pid_t pid, int status, const struct rusage *usage);
/* Ends the tracking: takes a last sample and completes the sums. */
void tracker_stop(struct tracker *t);
/* The numbers so far (after tracker_stop(): the final ones); valid until the next call. */
const struct track_result *tracker_result(struct tracker *t);

/* The driver's calls, made in a thread of their own so that a call that hangs does not take the
 * recorder with it: every job has a deadline. The source's readings may be looked at between
 * jobs only. */
#ifndef GUA_SAMPLE_WORKER_H
#define GUA_SAMPLE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "source/source.h"

enum worker_job { JOB_OPEN, JOB_SCAN, JOB_DRAIN, JOB_LOOK, JOB_CLOSE };

struct worker;

/* Starts the thread; opens nothing yet. `options` is copied, what it points to is borrowed. */
int worker_new(struct worker **w, const struct source_options *options, int64_t deadline_ms,
	struct err *e);
/* Closes the source and ends the thread. A thread that hangs in the driver is left behind. */
void worker_free(struct worker *w);

/* Runs one job and waits for it. ERR_BUSY: the driver has not answered within the deadline, or
 * has still not answered to an earlier job; otherwise what the source returned. */
int worker_run(struct worker *w, enum worker_job job, struct err *e);

/* The same in two steps, for an owner that has other things to do meanwhile. False: an earlier
 * job is still under way. */
bool worker_begin(struct worker *w, enum worker_job job);
/* What the job that was begun returned, after at most `wait_ms`; ERR_BUSY: it goes on. */
int worker_result(struct worker *w, int64_t wait_ms, struct err *e);

/* The opened source, or NULL: not open, or a job is under way. */
struct source *worker_source(struct worker *w);

#endif

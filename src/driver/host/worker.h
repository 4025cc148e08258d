/* Makes the driver's calls in a thread of their own, so that a call that is stuck does not
 * block the program: every job has a deadline. The source's readings may be read only between
 * jobs.
 *
 * The thread is also needed where the calls are made in another process (driver/host/apart.h):
 * the recorder and the views wait for that process, for signals and for the exit of processes
 * at the same time. libgua has only the thread. */
#pragma once

#include "base/base.h"
#include "driver/source.h"

enum worker_job { JOB_OPEN, JOB_SCAN, JOB_DRAIN, JOB_LOOK, JOB_OWN };

struct worker;

/* What JOB_OWN does, after it has opened the source if necessary: an owner that wants several
 * answers runs one job for all of them. */
typedef int worker_call(struct source *s, void *context, struct err *e);

/* Starts the thread; opens nothing yet. `options` is copied; what it points to is borrowed. A
 * deadline of 0 is for sources that cannot block, such as the simulated one on a virtual clock:
 * there is no thread, and a job is done when worker_begin() returns. */
int worker_new(struct worker **w, const struct source_options *options, int64_t deadline_ms,
	struct err *e);
/* Sets what JOB_OWN does. The worker owns the context from now on, because a stuck thread may
 * still use it when the owner has gone: `release` is called when it is no longer used. Between
 * jobs the owner may use it too. */
void worker_own(
	struct worker *w, worker_call *call, void *context, void (*release)(void *context));
/* How long a program that is about to end waits for the driver to close. */
#define WORKER_CLOSING_MS 1000
/* Closes the source and ends the thread. If the thread is stuck in the driver, or does not
 * close it within `wait_ms`, it is left running and this returns false; the thread still uses
 * what the options point to. With a host (source_host.h) the thread always ends, because its
 * call is interrupted. */
bool worker_end(struct worker *w, int64_t wait_ms);
/* The same, with the deadline of all jobs. */
void worker_free(struct worker *w);

/* Runs one job and waits for it. ERR_BUSY: the driver has not answered within the deadline, or
 * has not yet answered an earlier job; otherwise what the source returned. */
int worker_run(struct worker *w, enum worker_job job, struct err *e);

/* The same in two steps, for an owner that has other work meanwhile. False: an earlier job is
 * still running. */
bool worker_begin(struct worker *w, enum worker_job job);
/* Returns the result of the job, after at most `wait_ms`; ERR_BUSY: it is still running. */
int worker_result(struct worker *w, int64_t wait_ms, struct err *e);
/* The same; ERR_BUSY also as soon as `stop_fd` is readable (-1: none). */
int worker_result_or_stop(struct worker *w, int64_t wait_ms, int stop_fd, struct err *e);
/* How long the current job has been running, or how long the last one took. */
int64_t worker_took_ms(struct worker *w);
/* For poll(2): readable from the end of the job that was begun until its result is read; -1:
 * not available. Ask again for each job. */
int worker_fd(struct worker *w);

/* Returns the open source; NULL: it is not open, or a job is running. */
struct source *worker_source(struct worker *w);
/* Returns the open source; NULL: it is not open. While a job is running, only fields that never
 * change may be read (ops, hostname). */
struct source *worker_opened(struct worker *w);

/* The driver's calls, made in a thread of their own so that a call that hangs does not take the
 * program with it: every job has a deadline. The source's readings may be looked at between
 * jobs only. */
#ifndef GUA_SAMPLE_WORKER_H
#define GUA_SAMPLE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "source/source.h"

enum worker_job { JOB_OPEN, JOB_SCAN, JOB_DRAIN, JOB_LOOK, JOB_OWN };

struct worker;

/* What JOB_OWN does, after opening the source when it is not: an owner that wants several
 * answers at once goes into the thread once. */
typedef int worker_call(struct source *s, void *context, struct err *e);

/* Starts the thread; opens nothing yet. `options` is copied, what it points to is borrowed. */
int worker_new(struct worker **w, const struct source_options *options, int64_t deadline_ms,
	struct err *e);
/* Says what JOB_OWN is. The context belongs to the worker from now on, because a thread that
 * hangs may still use it when the owner has gone: `release` is called once nobody does. Between
 * jobs the owner may use it too. */
void worker_own(
	struct worker *w, worker_call *call, void *context, void (*release)(void *context));
/* For a program that has said all: nobody waits long for a driver to be closed. */
#define WORKER_CLOSING_MS 1000
/* Closes the source and ends the thread. A thread that hangs in the driver, or does not close
 * it within `wait_ms`, is left behind: false. It still uses what the options point to. */
bool worker_end(struct worker *w, int64_t wait_ms);
/* The same, with the deadline of all jobs. */
void worker_free(struct worker *w);

/* Runs one job and waits for it. ERR_BUSY: the driver has not answered within the deadline, or
 * has still not answered to an earlier job; otherwise what the source returned. */
int worker_run(struct worker *w, enum worker_job job, struct err *e);

/* The same in two steps, for an owner that has other things to do meanwhile. False: an earlier
 * job is still under way. */
bool worker_begin(struct worker *w, enum worker_job job);
/* What the job that was begun returned, after at most `wait_ms`; ERR_BUSY: it goes on. */
int worker_result(struct worker *w, int64_t wait_ms, struct err *e);
/* How long the job under way has been so, or how long the last one took. */
int64_t worker_took_ms(struct worker *w);
/* For poll(2): readable once the job that was begun is done, until its result is asked for; -1:
 * there is none to be had. Ask again for each job. */
int worker_fd(struct worker *w);

/* The opened source, or NULL: not open, or a job is under way. */
struct source *worker_source(struct worker *w);
/* The same, or NULL: not open. While a job is under way only what never changes may be looked
 * at: who it is (ops, hostname). */
struct source *worker_opened(struct worker *w);

#endif

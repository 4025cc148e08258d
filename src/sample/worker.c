/* One thread, one job at a time, a deadline. */
#include "sample/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct worker {
	struct source_options options;
	int64_t deadline_ms;
	struct source *source; /* touched by the thread while busy, by the owner otherwise */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	bool busy;	/* a job is under way */
	bool ending;	/* the thread is to end */
	bool abandoned; /* the owner is gone: the thread frees */
	enum worker_job job;
	int result;
	struct err error;
};

static const char *const job_names[] = {
	[JOB_OPEN] = "being opened",
	[JOB_SCAN] = "being asked for its cards",
	[JOB_DRAIN] = "being asked for utilisation",
	[JOB_LOOK] = "being asked for processes",
	[JOB_CLOSE] = "being closed",
};

static int do_job(struct worker *w, enum worker_job job, struct err *e)
{
	if (job == JOB_OPEN && !w->source)
		return source_open(&w->source, &w->options, e);
	if (job == JOB_CLOSE) {
		source_close(w->source);
		w->source = NULL;
		return 0;
	}
	if (!w->source)
		return err_set(e, ERR_WORLD, "the source is not open");
	if (job == JOB_DRAIN)
		return source_drain(w->source, e);
	if (job == JOB_LOOK)
		return source_look(w->source, e);
	return source_scan(w->source, e);
}

static void destroy(struct worker *w)
{
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
	free(w);
}

static void *worker_main(void *argument)
{
	struct worker *w = argument;
	pthread_mutex_lock(&w->lock);
	while (!w->ending) {
		if (!w->busy) {
			pthread_cond_wait(&w->changed, &w->lock);
			continue;
		}
		enum worker_job job = w->job;
		struct err e = { 0 };
		pthread_mutex_unlock(&w->lock);
		int result = do_job(w, job, &e);
		pthread_mutex_lock(&w->lock);
		w->result = result;
		w->error = e;
		w->busy = false;
		pthread_cond_broadcast(&w->changed);
	}
	bool abandoned = w->abandoned;
	pthread_mutex_unlock(&w->lock);
	if (abandoned)
		destroy(w);
	return NULL;
}

/* Signals belong to the recorder's own thread. */
static int start_thread(struct worker *w)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int worker_new(struct worker **w, const struct source_options *options, int64_t deadline_ms,
	struct err *e)
{
	struct worker *new = calloc(1, sizeof(*new));
	if (!new)
		return err_set(e, ERR_WORLD, "out of memory");
	new->options = *options;
	new->deadline_ms = deadline_ms;
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&new->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&new->lock, NULL);
	int rc = start_thread(new);
	if (rc) {
		destroy(new);
		return err_set(e, ERR_WORLD, "cannot start a thread: %s", strerror(rc));
	}
	*w = new;
	return 0;
}

/* Waits, with the lock held, until the job is done; false: the deadline has passed. */
static bool wait_done(struct worker *w, int64_t wait_ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (w->busy)
		if (pthread_cond_timedwait(&w->changed, &w->lock, &until) != 0)
			break;
	return !w->busy;
}

bool worker_begin(struct worker *w, enum worker_job job)
{
	pthread_mutex_lock(&w->lock);
	bool idle = !w->busy;
	if (idle) {
		w->job = job;
		w->busy = true;
		pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	return idle;
}

int worker_result(struct worker *w, int64_t wait_ms, struct err *e)
{
	pthread_mutex_lock(&w->lock);
	int result = 0;
	if (wait_done(w, wait_ms)) {
		result = w->result;
		if (result && e)
			*e = w->error;
	} else {
		result = err_set(e, ERR_BUSY, "the driver does not answer (it hangs since %s)",
			job_names[w->job]);
	}
	pthread_mutex_unlock(&w->lock);
	return result;
}

int worker_run(struct worker *w, enum worker_job job, struct err *e)
{
	/* A job that is under way still hangs: nothing is gained by waiting for it again. */
	bool begun = worker_begin(w, job);
	int result = worker_result(w, begun ? w->deadline_ms : 0, e);
	if (begun || result == ERR_BUSY)
		return result;
	/* It has just come back: its answer was to an earlier job. */
	return worker_begin(w, job) ? worker_result(w, w->deadline_ms, e) : ERR_BUSY;
}

struct source *worker_source(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	struct source *source = w->busy ? NULL : w->source;
	pthread_mutex_unlock(&w->lock);
	return source;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	bool hung = worker_run(w, JOB_CLOSE, NULL) == ERR_BUSY;
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	w->abandoned = hung;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (hung) {
		pthread_detach(w->thread);
		return;
	}
	pthread_join(w->thread, NULL);
	destroy(w);
}

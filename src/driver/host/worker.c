/* Runs jobs in one thread, one at a time, with a deadline. */
#include "driver/host/worker.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#define SOON_MS 50
/* How long a host may take to end its work after it was interrupted. */
#define HOST_ENDS_MS 10000

struct worker {
	struct source_options options;
	int64_t deadline_ms;
	struct source *source; /* used by the thread while busy, by the owner otherwise */
	worker_call *call;     /* JOB_OWN, with its context */
	void *context;
	void (*release)(void *context);
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	bool busy;	/* a job is running */
	bool ending;	/* the thread must close the source and end */
	bool ended;	/* the thread has ended */
	bool abandoned; /* the owner is gone: the thread frees the worker */
	enum worker_job job;
	int result;
	struct err error;
	int64_t begun_us, took_us; /* monotonic; took_us is of the last job */
	int done_fd;		   /* opened when the owner polls; or -1 */
	bool polled;		   /* done_fd must be signalled at the end of this job */
};

static const char *const job_names[] = {
	[JOB_OPEN] = "being opened",
	[JOB_SCAN] = "being asked for its cards",
	[JOB_DRAIN] = "being asked for utilisation",
	[JOB_LOOK] = "being asked for processes",
	[JOB_OWN] = "being asked for readings",
};

static bool has_thread(const struct worker *w)
{
	return w->deadline_ms > 0;
}

static int do_job(struct worker *w, enum worker_job job, struct err *e)
{
	if (!w->source && (job == JOB_OPEN || job == JOB_OWN)) {
		struct source *source = NULL;
		int rc = source_open(&source, &w->options, e);
		/* The source is published as soon as it is open, because this job may continue
		 * with it. */
		pthread_mutex_lock(&w->lock);
		w->source = rc ? NULL : source;
		pthread_mutex_unlock(&w->lock);
		if (rc)
			return rc;
	}
	if (!w->source)
		return err_set(e, ERR_WORLD, "the source is not open");
	switch (job) {
	case JOB_OPEN:
		return 0;
	case JOB_SCAN:
		return source_scan(w->source, e);
	case JOB_DRAIN:
		return source_drain(w->source, NULL, e);
	case JOB_LOOK:
		return source_look(w->source, NULL, e);
	case JOB_OWN:
		return w->call(w->source, w->context, e);
	}
	return 0;
}

static void destroy(struct worker *w)
{
	if (w->release)
		w->release(w->context);
	file_close(w->done_fd);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
	free(w);
}

/* Wakes the waiting owner without the lock, so that it can continue at once. It takes one more
 * system call only for an owner that polls. */
static void finish_job(struct worker *w, int result, const struct err *e)
{
	pthread_mutex_lock(&w->lock);
	w->result = result;
	w->error = *e;
	w->busy = false;
	w->took_us = clock_monotonic_us() - w->begun_us;
	if (w->polled)
		eventfd_write(w->done_fd, 1);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_broadcast(&w->changed);
}

/* Waits for the next job; false: the thread must end. */
static bool next_job(struct worker *w, enum worker_job *job)
{
	pthread_mutex_lock(&w->lock);
	while (!w->busy && !w->ending)
		pthread_cond_wait(&w->changed, &w->lock);
	bool any = !w->ending;
	*job = w->job;
	pthread_mutex_unlock(&w->lock);
	return any;
}

/* Whether the owner is gone; also notes for the owner whether the thread has ended. */
static bool is_abandoned(struct worker *w, bool ended)
{
	pthread_mutex_lock(&w->lock);
	bool abandoned = w->abandoned;
	w->ended = ended;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return abandoned;
}

static void *worker_main(void *argument)
{
	struct worker *w = argument;
	enum worker_job job;
	while (next_job(w, &job)) {
		struct err e = { 0 };
		int result = do_job(w, job, &e);
		finish_job(w, result, &e);
	}
	/* The options of the source may have been freed with the owner. */
	if (!is_abandoned(w, false))
		source_close(w->source);
	if (is_abandoned(w, true))
		destroy(w);
	return NULL;
}

/* Blocks signals in the thread: the owner's thread handles them. */
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
		return err_memory(e);
	new->options = *options;
	new->deadline_ms = deadline_ms;
	new->done_fd = -1;
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&new->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&new->lock, NULL);
	int rc = has_thread(new) ? start_thread(new) : 0;
	if (rc) {
		destroy(new);
		return err_set(e, ERR_WORLD, "cannot start a thread: %s", strerror(rc));
	}
	*w = new;
	return 0;
}

void worker_own(
	struct worker *w, worker_call *call, void *context, void (*release)(void *context))
{
	w->call = call;
	w->context = context;
	w->release = release;
}

static struct timespec in_ms(int64_t ms)
{
	int64_t us = clock_monotonic_us() + ms * 1000;
	return (struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
}

bool worker_begin(struct worker *w, enum worker_job job)
{
	pthread_mutex_lock(&w->lock);
	bool idle = !w->busy;
	if (idle) {
		w->job = job;
		w->busy = true;
		w->begun_us = clock_monotonic_us();
	}
	pthread_mutex_unlock(&w->lock);
	if (idle && has_thread(w)) {
		pthread_cond_broadcast(&w->changed);
	} else if (idle) {
		struct err e = { 0 };
		int result = do_job(w, job, &e);
		finish_job(w, result, &e);
	}
	return idle;
}

/* Fills `e` with the call in which the driver is stuck, or at least the job. */
static int not_done(struct worker *w, struct err *e)
{
	struct source_host *host = w->options.host;
	char where[128] = "";
	if (host)
		host->where(host, where, sizeof(where));
	return err_set(e, ERR_BUSY, "the driver does not answer (stuck %s %s)",
		where[0] ? "in" : "while", where[0] ? where : job_names[w->job]);
}

int worker_result(struct worker *w, int64_t wait_ms, struct err *e)
{
	struct timespec until = in_ms(wait_ms);
	pthread_mutex_lock(&w->lock);
	while (w->busy)
		if (pthread_cond_timedwait(&w->changed, &w->lock, &until) != 0)
			break;
	int result = w->busy ? not_done(w, e) : w->result;
	if (!w->busy) {
		eventfd_t times;
		if (w->polled)
			eventfd_read(w->done_fd, &times);
		w->polled = false;
		if (result && e)
			*e = w->error;
	}
	pthread_mutex_unlock(&w->lock);
	return result;
}

int worker_result_or_stop(struct worker *w, int64_t wait_ms, int stop_fd, struct err *e)
{
	/* A healthy driver answers soon; then this costs no more than worker_result(). */
	bool soon = stop_fd < 0 || wait_ms < SOON_MS;
	int64_t until_us = clock_monotonic_us() + wait_ms * 1000;
	int rc = worker_result(w, soon ? wait_ms : SOON_MS, e);
	while (rc == ERR_BUSY && !soon) {
		struct pollfd fds[] = { { .fd = worker_fd(w), .events = POLLIN },
			{ .fd = stop_fd, .events = POLLIN } };
		int64_t left_ms = (until_us - clock_monotonic_us()) / 1000;
		int ready = poll(fds, 2, left_ms > 0 ? (int)left_ms : 0);
		soon = ready == 0 || (ready < 0 && errno != EINTR) ||
		       (ready > 0 && fds[1].revents);
		rc = worker_result(w, 0, e);
	}
	return rc;
}

int worker_run(struct worker *w, enum worker_job job, struct err *e)
{
	/* An earlier job that is still running is stuck: do not wait for it again. */
	bool begun = worker_begin(w, job);
	int result = worker_result(w, begun ? w->deadline_ms : 0, e);
	if (begun || result == ERR_BUSY)
		return result;
	/* The earlier job has just ended; its result is not for this job. */
	return worker_begin(w, job) ? worker_result(w, w->deadline_ms, e) : ERR_BUSY;
}

int64_t worker_took_ms(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	int64_t took_us = w->busy ? clock_monotonic_us() - w->begun_us : w->took_us;
	pthread_mutex_unlock(&w->lock);
	return took_us / 1000;
}

int worker_fd(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	if (w->done_fd < 0)
		w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	bool new = w->done_fd >= 0 && !w->polled;
	w->polled = w->done_fd >= 0;
	if (new && !w->busy)
		eventfd_write(w->done_fd, 1);
	pthread_mutex_unlock(&w->lock);
	return w->done_fd;
}

struct source *worker_opened(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	struct source *source = w->source;
	pthread_mutex_unlock(&w->lock);
	return source;
}

struct source *worker_source(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	struct source *source = w->busy ? NULL : w->source;
	pthread_mutex_unlock(&w->lock);
	return source;
}

/* A thread that does not end in time is left running, and frees the worker itself. */
bool worker_end(struct worker *w, int64_t wait_ms)
{
	pthread_t thread = w->thread;
	struct source_host *host = w->options.host;
	if (!has_thread(w)) {
		source_close(w->source);
		destroy(w);
		return true;
	}
	struct timespec until = in_ms(host ? HOST_ENDS_MS : wait_ms);
	if (host)
		host->interrupt(host);
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_broadcast(&w->changed);
	/* Do not wait for a job that is stuck, unless it was interrupted. */
	while ((!w->busy || host) && !w->ended)
		if (pthread_cond_timedwait(&w->changed, &w->lock, &until) != 0)
			break;
	bool ended = w->ended;
	w->abandoned = !ended;
	pthread_mutex_unlock(&w->lock);
	if (ended) {
		pthread_join(thread, NULL);
		destroy(w);
	} else {
		pthread_detach(thread);
	}
	return ended;
}

void worker_free(struct worker *w)
{
	if (w)
		worker_end(w, w->deadline_ms);
}

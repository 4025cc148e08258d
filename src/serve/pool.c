/* Threads, the jobs that wait for them, and a small cache of their results. */
#include "serve/pool.h"

#include <pthread.h>

/* Slots: answers that are kept, and questions that wait. Large answers are not kept. */
enum { SLOTS = 96 };
enum { KEPT_BYTES = 2 << 20, KEPT_ONE_BYTES = 1 << 20, STACK_BYTES = 1 << 20 };

/* Largest number of questions that wait or run: in all, and of one client. This leaves slots
 * for answers. */
enum { HEAVY_NICE = 5 };

static const struct {
	size_t all, of_client;
} limits[POOL_LANES] = {
	[POOL_FIRST] = { 16, 16 },
	[POOL_QUICK] = { 16, 8 },
	[POOL_HEAVY] = { 32, 4 },
};

enum state { JOB_QUEUED, JOB_RUNNING, JOB_DONE };

struct pool {
	struct pool_ops ops;
	pthread_mutex_t lock;
	pthread_cond_t more; /* a job was added to the queue, or the pool stops */
	struct pool_job *slots[SLOTS];
	size_t kept_bytes, bytes; /* bytes of results: in the cache; in all */
	pthread_t threads[POOL_LANES];
	size_t n_threads;
	enum pool_lane n_lanes; /* lanes that have a thread */
	atomic_bool stopping;
};

static void unref(struct pool *p, struct pool_job *job)
{
	if (--job->refs > 0)
		return;
	if (job->result)
		p->ops.drop(job->result);
	p->bytes -= job->bytes;
	free((void *)job->question.bytes);
	free(job->waiters);
	free(job);
}

/* Removes an answer from the cache; callers that use it keep their reference. */
static void forget(struct pool *p, size_t slot)
{
	struct pool_job *job = p->slots[slot];
	p->slots[slot] = NULL;
	p->kept_bytes -= job->bytes;
	unref(p, job);
}

static bool is_fresh(struct pool *p, const struct pool_job *job, int64_t now_us)
{
	int64_t age_us = now_us - job->answered_us;
	if (age_us < job->question.sure_us)
		return true;
	return age_us < job->question.max_age_us &&
	       job->version == p->ops.version(p->ops.context);
}

/* The slot of an equal question that is waiting, or that has a fresh answer; SLOTS: there is
 * none. */
static size_t find(struct pool *p, const struct pool_question *q, int64_t now_us)
{
	for (size_t i = 0; i < SLOTS; i++) {
		struct pool_job *job = p->slots[i];
		if (!job || job->question.len != q->len ||
			memcmp(job->question.bytes, q->bytes, q->len) != 0)
			continue;
		if (job->state != JOB_DONE || is_fresh(p, job, now_us))
			return i;
		forget(p, i);
	}
	return SLOTS;
}

/* The slot of the oldest answer; SLOTS: no slot has an answer. */
static size_t find_oldest(const struct pool *p)
{
	size_t oldest = SLOTS;
	for (size_t i = 0; i < SLOTS; i++) {
		const struct pool_job *job = p->slots[i];
		if (job && job->state == JOB_DONE &&
			(oldest == SLOTS || job->answered_us < p->slots[oldest]->answered_us))
			oldest = i;
	}
	return oldest;
}

/* Finds a free slot, or frees the one of the oldest answer; SLOTS: all are waiting. */
static size_t make_room(struct pool *p)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (!p->slots[i])
			return i;
	size_t oldest = find_oldest(p);
	if (oldest < SLOTS)
		forget(p, oldest);
	return oldest;
}

/* Puts a question into a slot; NULL: there is no room. */
static struct pool_job *add_job(struct pool *p, const struct pool_question *q, int64_t now_us)
{
	size_t slot = make_room(p);
	struct pool_job *job = slot < SLOTS ? calloc(1, sizeof(*job)) : NULL;
	char *bytes = job ? malloc(q->len + 1) : NULL;
	if (!bytes) {
		free(job);
		return NULL;
	}
	memcpy(bytes, q->bytes, q->len);
	bytes[q->len] = '\0';
	job->question = *q;
	job->question.bytes = bytes;
	job->asked_us = now_us;
	job->state = JOB_QUEUED;
	job->refs = 2; /* one reference for the slot, one until it is answered */
	p->slots[slot] = job;
	pthread_cond_broadcast(&p->more);
	return job;
}

static bool add_waiter(struct pool *p, struct pool_job *job, void *waiter)
{
	if (!array_one_more(&job->waiters, job->n_waiters))
		return false;
	job->waiters[job->n_waiters++] = waiter;
	job->refs++;
	p->ops.sleep(waiter);
	return true;
}

/* Whether one more question may wait. */
static enum pool_found may_wait(const struct pool *p, const struct pool_question *q)
{
	size_t all = 0, of_client = 0;
	for (size_t i = 0; i < SLOTS; i++) {
		const struct pool_job *job = p->slots[i];
		if (!job || job->state == JOB_DONE || job->question.lane != q->lane)
			continue;
		all++;
		of_client += job->question.client == q->client;
	}
	if (p->stopping || all >= limits[q->lane].all)
		return POOL_BUSY;
	return of_client >= limits[q->lane].of_client ? POOL_GREEDY : POOL_WAIT;
}

enum pool_found pool_ask(
	struct pool *p, const struct pool_question *q, void *waiter, struct pool_job **job)
{
	enum pool_found found = POOL_BUSY, may = POOL_WAIT;
	int64_t now_us = clock_monotonic_us();
	*job = NULL;
	pthread_mutex_lock(&p->lock);
	size_t slot = find(p, q, now_us);
	struct pool_job *j = slot < SLOTS ? p->slots[slot] : NULL;
	if (!j)
		may = may_wait(p, q);
	if (!j && may == POOL_WAIT)
		j = add_job(p, q, now_us);
	if (may != POOL_WAIT) {
		found = may;
	} else if (j && j->state == JOB_DONE) {
		j->refs++;
		found = POOL_READY;
	} else if (j && !p->stopping && add_waiter(p, j, waiter)) {
		found = POOL_WAIT;
	}
	if (found == POOL_READY || found == POOL_WAIT)
		*job = j;
	pthread_mutex_unlock(&p->lock);
	return found;
}

void pool_release(struct pool *p, struct pool_job *job)
{
	if (!job)
		return;
	pthread_mutex_lock(&p->lock);
	unref(p, job);
	pthread_mutex_unlock(&p->lock);
}

size_t pool_bytes(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	size_t bytes = p->bytes;
	pthread_mutex_unlock(&p->lock);
	return bytes;
}

const atomic_bool *pool_stopping(const struct pool *p)
{
	return &p->stopping;
}

/* Takes the oldest job of the slowest lane that has one, up to the thread's own lane; NULL:
 * there is none that this thread may run now. */
static struct pool_job *take_job(struct pool *p, enum pool_lane lane)
{
	struct pool_job *found = NULL;
	for (size_t i = 0; i < SLOTS; i++) {
		struct pool_job *job = p->slots[i];
		if (!job || job->state != JOB_QUEUED || job->question.lane > lane)
			continue;
		if (!found || job->question.lane > found->question.lane ||
			(job->question.lane == found->question.lane &&
				job->asked_us < found->asked_us))
			found = job;
	}
	if (found)
		found->state = JOB_RUNNING;
	return found;
}

static void finish_job(struct pool *p, struct pool_job *job, void *result)
{
	size_t bytes = p->ops.size(result), slot = 0;
	while (p->slots[slot] != job) /* only answers are forgotten */
		slot++;
	job->result = result;
	job->bytes = bytes;
	p->bytes += bytes;
	job->answered_us = clock_monotonic_us();
	job->state = JOB_DONE;
	p->kept_bytes += bytes;
	/* A large answer goes to those who wait for it, and is not kept. */
	if (bytes > KEPT_ONE_BYTES || job->question.max_age_us == 0)
		forget(p, slot);
	while (p->kept_bytes > KEPT_BYTES)
		forget(p, find_oldest(p));
	for (size_t i = 0; i < job->n_waiters; i++)
		p->ops.wake(job->waiters[i]);
	job->n_waiters = 0;
	unref(p, job);
	pthread_cond_broadcast(&p->more);
}

static void *run_thread(void *pool)
{
	struct pool *p = pool;
	pthread_mutex_lock(&p->lock);
	enum pool_lane lane = p->n_lanes++;
	if (lane == POOL_HEAVY)
		(void)!nice(HEAVY_NICE); /* for this thread only, so that other threads have
					    priority */
	for (;;) {
		struct pool_job *job = take_job(p, lane);
		if (!job && p->stopping)
			break;
		if (!job) {
			pthread_cond_wait(&p->more, &p->lock);
			continue;
		}
		job->version = p->ops.version(p->ops.context);
		pthread_mutex_unlock(&p->lock);
		void *result = p->ops.answer(p->ops.context, &job->question, job->asked_us);
		pthread_mutex_lock(&p->lock);
		finish_job(p, job, result);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int pool_open(struct pool **pool, const struct pool_ops *ops, struct err *e)
{
	struct pool *p = calloc(1, sizeof(*p));
	*pool = p;
	if (!p)
		return err_memory(e);
	p->ops = *ops;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->more, NULL);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	while (p->n_threads < POOL_LANES &&
		pthread_create(&p->threads[p->n_threads], &attributes, run_thread, p) == 0)
		p->n_threads++;
	pthread_attr_destroy(&attributes);
	bool started = p->n_threads == POOL_LANES;
	return started ? 0 : err_set(e, ERR_WORLD, "cannot start threads");
}

void pool_stop(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_broadcast(&p->more);
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < p->n_threads; i++)
		pthread_join(p->threads[i], NULL);
	p->n_threads = 0;
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	if (p->n_threads)
		pool_stop(p);
	for (size_t i = 0; i < SLOTS; i++)
		if (p->slots[i])
			forget(p, i);
	pthread_cond_destroy(&p->more);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* A list of sockets and a thread that shuts down those that are too slow. */
#include "serve/deadlines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"

enum { LOOK_S = 1, STACK_BYTES = 64 * 1024 };

struct deadline {
	int fd;
	_Atomic int64_t at_us;
	struct deadline *next, *before;
};

struct deadlines {
	pthread_mutex_t lock;
	pthread_cond_t stop;
	pthread_t thread;
	bool started, stopping;
	struct deadline head; /* of a ring */
};

static void cut_slow(struct deadlines *d)
{
	int64_t now_us = clock_monotonic_us();
	for (struct deadline *one = d->head.next; one != &d->head; one = one->next)
		if (one->at_us <= now_us) /* its owner sees the end and closes it */
			shutdown(one->fd, SHUT_RDWR);
}

static void *run_thread(void *deadlines)
{
	struct deadlines *d = deadlines;
	pthread_mutex_lock(&d->lock);
	while (!d->stopping) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += LOOK_S;
		pthread_cond_timedwait(&d->stop, &d->lock, &until);
		cut_slow(d);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

int deadlines_open(struct deadlines **deadlines, struct err *e)
{
	struct deadlines *d = calloc(1, sizeof(*d));
	pthread_condattr_t clock;
	pthread_attr_t attributes;
	*deadlines = d;
	if (!d)
		return err_memory(e);
	d->head.next = d->head.before = &d->head;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&d->stop, &clock);
	pthread_condattr_destroy(&clock);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	d->started = pthread_create(&d->thread, &attributes, run_thread, d) == 0;
	pthread_attr_destroy(&attributes);
	return d->started ? 0 : err_set(e, ERR_WORLD, "cannot start threads");
}

void deadlines_close(struct deadlines *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	pthread_cond_signal(&d->stop);
	pthread_mutex_unlock(&d->lock);
	if (d->started)
		pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->stop);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

struct deadline *deadline_begin(struct deadlines *d, int fd, int64_t ms)
{
	struct deadline *one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->fd = fd;
	deadline_set(one, ms);
	pthread_mutex_lock(&d->lock);
	one->next = &d->head;
	one->before = d->head.before;
	one->before->next = d->head.before = one;
	pthread_mutex_unlock(&d->lock);
	return one;
}

void deadline_end(struct deadlines *d, struct deadline *one)
{
	if (!one)
		return;
	pthread_mutex_lock(&d->lock);
	one->before->next = one->next;
	one->next->before = one->before;
	pthread_mutex_unlock(&d->lock);
	free(one);
}

void deadline_set(struct deadline *one, int64_t ms)
{
	if (one)
		one->at_us = clock_monotonic_us() + ms * 1000;
}

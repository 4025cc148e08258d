/* Threads that answer questions, and a cache of recent answers. Equal questions at the same
 * time are answered once, and a fresh answer is reused, so that a flood of requests costs
 * little; a slow question does not delay others.
 *
 * The pool knows nothing about HTTP: results belong to its owner, and callbacks make those
 * who wait for a result sleep and wake. */
#pragma once

#include <stdatomic.h>

#include "base/base.h"

struct pool;

/* How long an answer takes. Each lane has a thread that runs no slower lane, so that no
 * question waits behind slower ones. */
enum pool_lane {
	POOL_FIRST, /* takes a few milliseconds, and there are few different questions */
	POOL_QUICK, /* takes as long, but a client can invent any number of different ones */
	POOL_HEAVY,
	POOL_LANES
};

/* A question. Two questions are equal if their bytes are. */
struct pool_question {
	const void *bytes;
	size_t len;
	enum pool_lane lane;
	uint64_t client;    /* who asks: each client may have only a few questions waiting */
	int64_t max_age_us; /* an answer may be this old ... */
	int64_t sure_us;    /* ... or this old even if the data has changed since */
};

/* A question that is being answered or has been answered. */
struct pool_job {
	void *result;		       /* set when it is answered */
	struct pool_question question; /* its bytes belong to the job */
	/* Private. */
	int state;
	unsigned refs;
	size_t bytes; /* of the result */
	int64_t asked_us, answered_us;
	uint64_t version;
	void **waiters;
	size_t n_waiters;
};

struct pool_ops {
	/* Answers a question, in a thread of the pool. `asked_us` is when it came. Never
	 * returns NULL. */
	void *(*answer)(void *context, const struct pool_question *q, int64_t asked_us);
	size_t (*size)(const void *result);
	void (*drop)(void *result);
	/* Called while the pool is locked: they must not call the pool. */
	void (*sleep)(void *waiter);
	void (*wake)(void *waiter);
	/* A number that changes when the data behind the answers changes. */
	uint64_t (*version)(void *context);
	void *context;
};

enum pool_found {
	POOL_READY,  /* *job has a result */
	POOL_WAIT,   /* the waiter sleeps; it will be woken when *job has a result */
	POOL_BUSY,   /* there are too many questions: *job is NULL */
	POOL_GREEDY, /* this client has too many questions: *job is NULL */
};

/* Starts a thread for each lane. */
int pool_open(struct pool **p, const struct pool_ops *ops, struct err *e);
/* Asks a question; the caller calls pool_release() on the job after it has used the result. */
enum pool_found pool_ask(
	struct pool *p, const struct pool_question *q, void *waiter, struct pool_job **job);
void pool_release(struct pool *p, struct pool_job *job);
/* Bytes of all results: those in the cache, and those in use. */
size_t pool_bytes(struct pool *p);
/* Set by pool_stop(): the threads should abandon their work. */
const atomic_bool *pool_stopping(const struct pool *p);
/* Wakes all waiters, with a result for each, and ends the threads. pool_ask() returns
 * POOL_BUSY from then on. */
void pool_stop(struct pool *p);
void pool_close(struct pool *p);

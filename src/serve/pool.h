/* Threads that answer questions, and the answers of a moment ago. Equal questions at the same
 * time are answered once, and an answer that is still fresh is given again, so that a flood of
 * requests costs little; a question that takes long does not hold up others.
 *
 * The pool knows nothing of HTTP: results are the owner's, and it is told when those who wait
 * for one must sleep and wake. */
#ifndef GUA_SERVE_POOL_H
#define GUA_SERVE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pool;

/* How long an answer takes. Each lane has a thread that takes no slower one, so that no
 * question waits behind those of a slower lane. */
enum pool_lane {
	POOL_FIRST, /* a few milliseconds, and there are few such questions */
	POOL_QUICK, /* the same, but anybody can make up more of them */
	POOL_HEAVY,
	POOL_LANES
};

/* What is asked. Two are equal if their bytes are. */
struct pool_question {
	const void *bytes;
	size_t len;
	enum pool_lane lane;
	uint64_t client;    /* who asks: some may wait for many answers, one may not */
	int64_t max_age_us; /* an answer may be this old ... */
	int64_t sure_us;    /* ... or this old whatever happened since */
};

/* A question that is being answered, or was. */
struct pool_job {
	void *result;		       /* set when it is answered */
	struct pool_question question; /* bytes are the job's own */
	/* The pool's own. */
	int state;
	unsigned refs;
	size_t bytes; /* of the result */
	bool cached;  /* the pool has it, so that it can be given again */
	int64_t asked_us, answered_us;
	uint64_t version;
	void **waiters;
	size_t n_waiters;
	struct pool_job *next; /* in the queue */
};

struct pool_ops {
	/* Answers; runs in a thread of the pool. `asked_us` says when the question came. Never
	 * NULL. */
	void *(*answer)(void *context, const struct pool_question *q, int64_t asked_us);
	size_t (*size)(const void *result);
	void (*drop)(void *result);
	/* Called while the pool is locked: must not call it. */
	void (*sleep)(void *waiter);
	void (*wake)(void *waiter);
	/* A number that changes when answers do. */
	uint64_t (*version)(void *context);
	void *context;
};

enum pool_found {
	POOL_READY,  /* *job has a result */
	POOL_WAIT,   /* the waiter sleeps; it will be woken when *job has a result */
	POOL_BUSY,   /* too much is being asked: *job is NULL */
	POOL_GREEDY, /* too much is being asked by this client: *job is NULL */
};

/* Starts a thread for each lane. */
int pool_open(struct pool **p, const struct pool_ops *ops, struct err *e);
/* Asks; the caller calls pool_release() on the job when it has used the result. */
enum pool_found pool_ask(
	struct pool *p, const struct pool_question *q, void *waiter, struct pool_job **job);
void pool_release(struct pool *p, struct pool_job *job);
/* Bytes of all results that exist: those that are kept, and those that are being used. */
size_t pool_bytes(struct pool *p);
/* Whether threads should give up what they do: set by pool_stop(). */
const atomic_bool *pool_stopping(const struct pool *p);
/* Wakes all who wait, with a result for each, and ends the threads. Asking is POOL_BUSY from
 * then on. */
void pool_stop(struct pool *p);
void pool_close(struct pool *p);

#endif

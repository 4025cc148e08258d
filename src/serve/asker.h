/* Questions for the pool, and the routes that answer them. */
#ifndef GUA_SERVE_ASK_H
#define GUA_SERVE_ASK_H

#include <stdatomic.h>

#include "serve/pool.h"
#include "serve/route.h"
#include "serve/world.h"

/* A request as bytes: equal requests are equal bytes. */
struct question {
	const struct route *route;
	enum pool_lane lane;
	size_t len;
	char bytes[REQUEST_MAX_BYTES + 1024];
};

/* Fills a question; false: it does not fit. `q` has been parsed from `target`. */
bool asker_question(struct question *question, const struct route *route, const char *target,
	const struct request *q, const char *user);
/* The question as `client` asks it, for the pool. */
struct pool_question asker_pool_question(const struct question *question, uint64_t client);

/* What the threads of the pool share. */
struct asker;
struct asker *asker_new(const struct serve_world *world); /* NULL: out of memory */
void asker_free(struct asker *a);
/* Answers are abandoned when the flag is set. */
void asker_stop_with(struct asker *a, const atomic_bool *stopping);
/* The operations of the pool, except sleep and wake. A result is a struct response. */
struct pool_ops asker_ops(struct asker *a);

#endif

/* Questions for the pool, and what answers them: the routes. */
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

/* Fills it; false: it does not fit. `q` has been parsed from `target`. */
bool question_init(struct question *question, const struct route *route, const char *target,
	const struct request *q, const char *user);
/* As `client` asks it. */
struct pool_question question_asked(const struct question *question, uint64_t client);

/* What threads of the pool use. */
struct asker;
struct asker *asker_new(const struct serve_world *world); /* NULL: out of memory */
void asker_free(struct asker *a);
/* Answers are given up when the flag is set. */
void asker_stop_with(struct asker *a, const atomic_bool *stopping);
/* The operations of the pool, all but sleep and wake. A result is a struct response. */
struct pool_ops asker_ops(struct asker *a);

#endif

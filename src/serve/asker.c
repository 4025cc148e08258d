/* Answers questions in the threads of the pool. */
#include "serve/asker.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "serve/response.h"
#include "store/foreign.h"

/* Longest time for an answer, and longest wait of a question in the queue; then it is
 * abandoned. */
enum { ANSWER_MS = 10000, QUEUE_MS = 5000 };
/* An answer is reused for this long, and longer if the store has not changed. */
enum { SURE_MS = 1000 };
/* Largest answer in bytes. */
enum { ANSWER_BYTES = 4 << 20 };
/* How often the stores are checked for changes. */
enum { VERSION_US = 100000 };
/* After an answer that took this long, free memory is returned to the system. */
enum { LONG_US = 20000 };

struct asker {
	const struct serve_world *world;
	struct clock clock;
	const atomic_bool *stopping;
	/* Under the pool's lock. */
	uint64_t version;
	int64_t version_us;
};

/* The fixed part of a question; it is followed by the texts: target, Accept header, user. */
struct question_head {
	const struct route *route;
	enum media media;
};

static bool add_text(struct question *q, const char *text)
{
	size_t len = strlen(text) + 1;
	if (q->len + len > sizeof(q->bytes))
		return false;
	memcpy(q->bytes + q->len, text, len);
	q->len += len;
	return true;
}

bool asker_question(struct question *question, const struct route *route, const char *target,
	const struct request *q, const char *user)
{
	struct question_head head;
	memset(&head, 0, sizeof(head)); /* also the padding between the members, because
					   questions are compared as bytes */
	head.route = route;
	head.media = q->media;
	/* A path without parameters is one question, however the client wrote it. */
	bool plain = q->n_params == 0 && !strchr(route->path, '*');
	question->route = route;
	question->lane = route->first && plain		? POOL_FIRST
			 : route->first || route->quick ? POOL_QUICK
							: POOL_HEAVY;
	question->len = sizeof(head);
	memcpy(question->bytes, &head, sizeof(head));
	return add_text(question, plain ? route->path : target) &&
	       add_text(question, route->negotiate ? route->negotiate(q->accept) : "") &&
	       add_text(question, route->personal ? user : "");
}

struct pool_question asker_pool_question(const struct question *question, uint64_t client)
{
	const struct route *r = question->route;
	unsigned ms = r->cache_ms > SURE_MS ? r->cache_ms : SURE_MS;
	return (struct pool_question){ .bytes = question->bytes,
		.len = question->len,
		.lane = question->lane,
		.client = client,
		.max_age_us = (int64_t)ms * 1000,
		.sure_us = SURE_MS * 1000 };
}

/* The time limit of a request. */
struct limit {
	const atomic_bool *stopping;
	int64_t until_us;
};

static int must_end(void *limit)
{
	const struct limit *l = limit;
	return *l->stopping || clock_monotonic_us() > l->until_us;
}

static bool text_must_end(void *limit)
{
	return must_end(limit);
}

static void answer_in_time(
	struct asker *asker, const struct route *route, struct request *q, struct answer *a)
{
	struct limit limit = { asker->stopping, clock_monotonic_us() + ANSWER_MS * 1000 };
	struct foreign_stop stop = { must_end, &limit };
	struct str_limit text = { ANSWER_BYTES, text_must_end, &limit };
	struct request limited = *q;
	limited.stop = &stop;
	limited.limit = &text;
	route_answer(route, &limited, a);
	if (must_end(&limit) && a->status != 200) {
		answer_fail(a, q, 503,
			"The answer took too long; ask for a shorter window, or try again.");
		a->retry_s = 5;
	}
	a->body.limit = NULL; /* it ends here */
}

static void *answer(void *context, const struct pool_question *asked, int64_t asked_us)
{
	struct asker *asker = context;
	struct question_head head;
	struct request q;
	struct err e = { 0 };
	struct answer a = { .status = 200 };
	int64_t began_us = clock_monotonic_us();
	const char *target = (const char *)asked->bytes + sizeof(head);
	const char *accept = target + strlen(target) + 1;
	const char *user = accept + strlen(accept) + 1;
	memcpy(&head, asked->bytes, sizeof(head));
	int rc = request_parse(&q, target, strlen(target), &e);
	q.media = head.media;
	q.accept = *accept ? accept : NULL;
	q.user = *user ? user : NULL;
	q.world = asker->world;
	q.now_ms = q.world->now_ms ? q.world->now_ms : clock_wall_ms(&asker->clock);
	if (rc)
		answer_err(&a, &q, &e);
	else if (*asker->stopping || began_us - asked_us > QUEUE_MS * 1000)
		answer_fail(&a, &q, 503, "The server is busy or stops; try again in a moment.");
	else
		answer_in_time(asker, head.route, &q, &a);
	struct response *r = response_new(&a, head.route);
	request_finish(&q);
	if (clock_monotonic_us() - began_us > LONG_US)
		malloc_trim(0);
	return r;
}

static size_t size(const void *response)
{
	return ((const struct response *)response)->bytes;
}

static void drop(void *response)
{
	response_free(response);
}

/* Adds to a checksum what changes with each write to a file, and when another file replaces
 * it. */
static uint64_t add_file(uint64_t sum, const char *path, const char *suffix)
{
	char name[4096 + 16];
	struct stat st;
	snprintf(name, sizeof(name), "%s%s", path, suffix);
	if (stat(name, &st) != 0)
		return sum * 31 + 1;
	const uint64_t parts[] = { st.st_dev, st.st_ino, (uint64_t)st.st_size,
		(uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec };
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		sum = (sum ^ parts[i]) * UINT64_C(1099511628211);
	return sum;
}

static uint64_t version(void *context)
{
	struct asker *a = context;
	const struct store_list *stores = a->world->stores;
	int64_t now_us = clock_monotonic_us();
	if (a->version && now_us - a->version_us < VERSION_US)
		return a->version;
	uint64_t sum = 1;
	for (size_t i = 0; i < stores->n; i++) {
		sum = add_file(sum, stores->paths[i], "");
		sum = add_file(sum, stores->paths[i], "-wal");
	}
	a->version = sum ? sum : 1;
	a->version_us = now_us;
	return a->version;
}

struct asker *asker_new(const struct serve_world *world)
{
	struct asker *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->world = world;
	clock_init_real(&a->clock);
	return a;
}

void asker_free(struct asker *a)
{
	free(a);
}

void asker_stop_with(struct asker *a, const atomic_bool *stopping)
{
	a->stopping = stopping;
}

struct pool_ops asker_ops(struct asker *a)
{
	return (struct pool_ops){
		.answer = answer, .size = size, .drop = drop, .version = version, .context = a
	};
}

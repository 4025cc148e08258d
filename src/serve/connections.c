/* A ring of connections, and a thread that shuts down those that are too slow. */
#include "serve/connections.h"

#include <pthread.h>
#include <sys/socket.h>

enum { LOOK_S = 1, STACK_BYTES = 64 * 1024 };

struct connections {
	pthread_mutex_t lock;
	pthread_cond_t stop;
	pthread_t thread;
	bool started, stopping;
	size_t max_all, max_of_client;
	struct connection head; /* of the ring */
};

/* Shuts down the socket; its owner sees the end of the connection and closes it. */
static void cut(struct connection *one)
{
	one->cut = true;
	shutdown(one->fd, SHUT_RDWR);
}

/* The next connection that is not shut down; the head of the ring: there is none. */
static struct connection *next_open(const struct connections *c, const struct connection *after)
{
	struct connection *one = after->next;
	while (one != &c->head && one->cut)
		one = one->next;
	return one;
}
#define EACH(c, one)                                                                           \
	struct connection *one = next_open(c, &(c)->head);                                     \
	one != &(c)->head;                                                                     \
	one = next_open(c, one)

/* Clients are counted in this many groups; two clients in the same group count as one. */
enum { GROUPS = 256 };

/* The group with the most connections, or bytes of answers; connections of proxies do not
 * count, nor does `but`. */
static uint64_t largest_group(
	const struct connections *c, const struct connection *but, bool by_bytes)
{
	size_t sums[GROUPS] = { 0 };
	uint64_t most = 0;
	for (EACH(c, one))
		if (one != but)
			sums[one->client % GROUPS] += by_bytes ? one->bytes : !one->unlimited;
	for (uint64_t i = 1; i < GROUPS; i++)
		most = sums[i] > sums[most] ? i : most;
	return most;
}

/* A connection is spared for this long after it was opened or changed its state. */
enum { FRESH_US = 2000000 };

/* Which of two connections is closed first. */
static bool goes_first(
	const struct connection *a, const struct connection *b, int64_t fresh_from_us)
{
	bool fresh = a->since_us >= fresh_from_us, other = b->since_us >= fresh_from_us;
	if (fresh != other)
		return other;
	/* The state of fresh connections is not compared: it says little yet. */
	return a->state != b->state && !fresh ? a->state < b->state : a->since_us < b->since_us;
}

/* The connection to close first among those with this remainder of the client number, except
 * `but`; with `takes`, only those that receive an answer. NULL: there is none. */
static struct connection *find_victim(const struct connections *c, uint64_t modulus,
	uint64_t rest, const struct connection *but, bool takes)
{
	int64_t fresh_from_us = clock_monotonic_us() - FRESH_US;
	struct connection *victim = NULL;
	for (EACH(c, one))
		if (one->client % modulus == rest && one != but && (!takes || one->bytes) &&
			(!victim || goes_first(one, victim, fresh_from_us)))
			victim = one;
	return victim;
}

static void *run_thread(void *connections)
{
	struct connections *c = connections;
	pthread_mutex_lock(&c->lock);
	while (!c->stopping) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += LOOK_S;
		pthread_cond_timedwait(&c->stop, &c->lock, &until);
		int64_t now_us = clock_monotonic_us();
		for (EACH(c, one))
			if (one->until_us <= now_us)
				cut(one);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int connections_open(
	struct connections **connections, size_t max_all, size_t max_of_client, struct err *e)
{
	struct connections *c = calloc(1, sizeof(*c));
	pthread_condattr_t clock;
	pthread_attr_t attributes;
	*connections = c;
	if (!c)
		return err_memory(e);
	c->max_all = max_all;
	c->max_of_client = max_of_client;
	c->head.next = c->head.before = &c->head;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&c->stop, &clock);
	pthread_condattr_destroy(&clock);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	c->started = pthread_create(&c->thread, &attributes, run_thread, c) == 0;
	pthread_attr_destroy(&attributes);
	return c->started ? 0 : err_set(e, ERR_WORLD, "cannot start threads");
}

void connections_close(struct connections *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_cond_signal(&c->stop);
	pthread_mutex_unlock(&c->lock);
	if (c->started)
		pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->stop);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void set(struct connection *one, enum connection_state state, int64_t ms, size_t bytes)
{
	one->state = state;
	one->since_us = clock_monotonic_us();
	one->until_us = one->since_us + ms * 1000;
	one->bytes = bytes;
}

void connections_add(struct connections *c, struct connection *one, int64_t ms)
{
	pthread_mutex_lock(&c->lock);
	one->cut = false;
	set(one, CONNECTION_QUIET, ms, 0);
	one->next = &c->head;
	one->before = c->head.before;
	one->before->next = c->head.before = one;
	/* One connection is closed if `one` exceeds the limit. */
	size_t all = 0, of_client = 0;
	struct connection *victim = NULL;
	for (EACH(c, other)) {
		all++;
		of_client += other->client == one->client;
	}
	if (of_client > c->max_of_client && !one->unlimited)
		victim = find_victim(c, UINT64_MAX, one->client, one, false);
	else if (all > c->max_all)
		victim = find_victim(c, GROUPS, largest_group(c, one, false), one, false);
	if (victim)
		cut(victim);
	pthread_mutex_unlock(&c->lock);
}

void connections_remove(struct connections *c, struct connection *one)
{
	pthread_mutex_lock(&c->lock);
	one->before->next = one->next;
	one->next->before = one->before;
	pthread_mutex_unlock(&c->lock);
}

void connections_set(struct connections *c, struct connection *one, enum connection_state state,
	int64_t ms, size_t bytes)
{
	pthread_mutex_lock(&c->lock);
	set(one, state, ms, bytes);
	pthread_mutex_unlock(&c->lock);
}

void connections_give_back(struct connections *c, const struct connection *but, size_t bytes)
{
	size_t given = 0;
	struct connection *victim;
	pthread_mutex_lock(&c->lock);
	while (given < bytes &&
		(victim = find_victim(c, GROUPS, largest_group(c, but, true), but, true))) {
		given += victim->bytes;
		cut(victim);
	}
	pthread_mutex_unlock(&c->lock);
}

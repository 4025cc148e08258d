/* The connections of the server: how many one client has, how long each may take, and what the
 * answers that are being sent take of memory. Where there are too many, one is closed that
 * nobody misses: of the client that has the most, the one that has been quiet for the longest.
 * So a new client is always answered, however many connections others hold open. */
#ifndef GUA_SERVE_CONNECTIONS_H
#define GUA_SERVE_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct connections;

/* What a connection is doing; in this order they are closed for others. */
enum connection_state {
	CONNECTION_QUIET,   /* nothing, or it sends a request */
	CONNECTION_READING, /* it takes an answer */
	CONNECTION_WAITING, /* for an answer */
};

struct connection {
	int fd;
	uint64_t client; /* connections with the same number are one client's */
	bool unlimited;	 /* of a proxy: it has as many as there may be */
	/* The module's own, under its lock. */
	enum connection_state state;
	int64_t since_us, until_us;
	size_t bytes; /* of the answer that it takes */
	bool cut;     /* it has been shut down, and is about to end */
	struct connection *next, *before;
};

/* Starts a thread that looks once a second for those that are too slow. */
int connections_open(
	struct connections **c, size_t max_all, size_t max_of_client, struct err *e);
void connections_close(struct connections *c);

/* Adds a connection, which the caller owns; its socket must stay open until it is removed. It
 * is shut down after this time, unless connection_set() comes first. */
void connection_add(struct connections *c, struct connection *one, int64_t ms);
void connection_remove(struct connections *c, struct connection *one);
/* Says what it does from now on, and for how long it may; `bytes` are those of its answer. */
void connection_set(struct connections *c, struct connection *one, enum connection_state state,
	int64_t ms, size_t bytes);
/* Shuts down connections that take answers, other than `but`, until about this many bytes are
 * given back: those of the client whose answers are the largest, the oldest first. */
void connections_give_back(struct connections *c, const struct connection *but, size_t bytes);

#endif

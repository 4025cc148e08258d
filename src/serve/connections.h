/* The connections of the server: how many each client has, how long each may take, and how
 * much memory the answers take that are being sent. When there are too many, the one that
 * has been quiet for longest is closed, of the client that has the most. So a new client is
 * always answered, however many connections others hold open. */
#pragma once

#include "base/base.h"

struct connections;

/* What a connection is doing; connections in earlier states are closed first. */
enum connection_state {
	CONNECTION_QUIET,   /* idle, or sending a request */
	CONNECTION_READING, /* receiving an answer */
	CONNECTION_WAITING, /* waiting for an answer */
};

struct connection {
	int fd;
	uint64_t client; /* connections with the same number are one client's */
	bool unlimited;	 /* belongs to a proxy: no limit for one client applies */
	/* Private, under the module's lock. */
	enum connection_state state;
	int64_t since_us, until_us;
	size_t bytes; /* size of the answer that it receives */
	bool cut;     /* it has been shut down, and is about to end */
	struct connection *next, *before;
};

/* Starts a thread that checks once a second for connections that are too slow. */
int connections_open(
	struct connections **c, size_t max_all, size_t max_of_client, struct err *e);
void connections_close(struct connections *c);

/* Adds a connection, which the caller owns; its socket must stay open until it is removed.
 * It is shut down after this time unless connections_set() is called before. */
void connections_add(struct connections *c, struct connection *one, int64_t ms);
void connections_remove(struct connections *c, struct connection *one);
/* Sets what it does now, and how long that may take; `bytes`: the size of its answer. */
void connections_set(struct connections *c, struct connection *one, enum connection_state state,
	int64_t ms, size_t bytes);
/* Shuts down connections that receive answers, except `but`, until about this many bytes are
 * freed: first those of the client with the largest answers, oldest first. */
void connections_give_back(struct connections *c, const struct connection *but, size_t bytes);

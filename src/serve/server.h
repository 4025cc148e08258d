/* The server: libmicrohttpd with our own listening socket, limits, and headers. */
#ifndef GUA_SERVE_SERVER_H
#define GUA_SERVE_SERVER_H

#include "base/err.h"
#include "serve/route.h"
#include "serve/world.h"

struct server_options {
	int fd; /* listens; the server closes it */
	const struct serve_world *world;
	const struct route *routes;
};

struct server;

/* Starts its threads; the options' world and routes must outlive it. */
int server_open(struct server **s, const struct server_options *o, struct err *e);
void server_close(struct server *s);

#endif

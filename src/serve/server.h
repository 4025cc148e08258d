/* The server: libmicrohttpd with our own listening socket, limits, and headers. Its threads
 * read requests and write responses; the threads of a pool answer them. */
#pragma once

#include "serve/gate.h"
#include "serve/route.h"

struct server_options {
	int fd; /* the listening socket; the server closes it */
	const struct serve_world *world;
	const struct route *routes;
	struct gate gate;
	const char *tls_cert, *tls_key; /* PEM texts; NULL: no TLS */
};

struct server;

/* Starts its threads. What the options point to must outlive it, except for the secrets,
 * which the server owns from then on, even after a failure. */
int server_open(struct server **s, const struct server_options *o, struct err *e);
/* Replaces the secrets: waits until no request uses the old ones, and frees them. */
void server_replace_secrets(struct server *s, struct secrets *secrets);
void server_close(struct server *s);

/* A request as handlers see it: the parts of its path and its parameters, decoded and
 * checked. Bytes from a client are untrusted; this is their only parser, and it has a fuzz
 * target. */
#ifndef GUA_SERVE_REQUEST_H
#define GUA_SERVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { REQUEST_MAX_PARTS = 8, REQUEST_MAX_PARAMS = 32, REQUEST_MAX_BYTES = 4096 };

/* The format that a client prefers, for a route that has several. */
enum media { MEDIA_HTML, MEDIA_JSON, MEDIA_CSV, MEDIA_TEXT };

struct request_param {
	const char *name, *value; /* valid UTF-8 without control characters */
};

struct foreign_stop;
struct serve_world; /* of serve/world.h: stores and configuration */

struct request {
	/* The path between slashes, decoded: "/card/GPU-1" has "card" and "GPU-1"; "/" has
	 * none. */
	const char *parts[REQUEST_MAX_PARTS];
	size_t n_parts;
	struct request_param params[REQUEST_MAX_PARAMS]; /* in the order of the query */
	size_t n_params;
	const char *accept; /* the Accept header; NULL: none was sent */
	enum media media;   /* what it prefers */
	const char *user;   /* the user that asks, verified; NULL: unknown */
	int64_t now_ms;
	const struct serve_world *world;
	struct foreign_stop *stop; /* of store/foreign.h: ends a query that takes too long */
	const struct str_limit *limit; /* limits the size of the answer; NULL: no limit */
	struct arena texts;	       /* memory of this request; freed with it */
};

/* Reads the target of a request line: "/card/GPU-1?since=7d". ERR_USAGE: the server does not
 * accept it. Call request_finish() in any case. */
int request_parse(struct request *q, const char *target, size_t len, struct err *e);
void request_finish(struct request *q);

/* The value of the first parameter with this name; NULL: there is none. */
const char *request_param(const struct request *q, const char *name);

/* Reads an Accept header (NULL: none was sent) and returns the preferred format. */
enum media request_accept(const char *header);

#endif

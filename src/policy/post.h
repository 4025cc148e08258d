/* What gua-enforce asks gua-post to do: one HTTP POST, written to its standard input. On a
 * command line other users could read the URL, which may hold a secret. */
#ifndef GUA_POLICY_POST_H
#define GUA_POLICY_POST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* A request is at most this long; a deadline at most this late. */
enum { POST_REQUEST_MOST = 256 * 1024, POST_LONGEST_MS = 5000 };

struct post_request {
	int64_t timeout_ms;
	const char *url;
	const char *header; /* one more header; "": none */
	const char *body;   /* JSON */
	size_t body_len;
};

/* Appends the request. ERR_USAGE: the URL or the header has a line break, or all is too long.
 */
int post_write(struct str *out, const struct post_request *r, struct err *e);
/* Reads it back; texts point into `bytes`, which is changed. ERR_USAGE: it is not a request. */
int post_read(struct post_request *r, char *bytes, size_t len, struct err *e);

/* The program gua-post, as the caller found it. */
struct post_program {
	const char *path;	/* NULL: it is not installed */
	const char *const *env; /* where curl looks for a proxy */
};

#endif

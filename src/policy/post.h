/* The request of gua-enforce to gua-post: one HTTP POST, written to its standard input. A
 * command line would show other users the URL, which may contain a secret. */
#pragma once

#include "base/base.h"

/* Largest request in bytes; longest timeout in ms. */
enum { POST_REQUEST_MOST = 256 * 1024, POST_LONGEST_MS = 5000 };

struct post_request {
	int64_t timeout_ms;
	const char *url;
	const char *header; /* one more header; "": none */
	const char *body;   /* JSON */
	size_t body_len;
};

/* Appends the request. ERR_USAGE: the URL or the header has a line break, or the request is
 * too long. */
int post_write(struct str *out, const struct post_request *r, struct err *e);
/* Reads it back; texts point into `bytes`, which is changed. ERR_USAGE: it is not a request. */
int post_read(struct post_request *r, char *bytes, size_t len, struct err *e);

/* The program gua-post, as the caller found it. */
struct post_program {
	const char *path;	/* NULL: it is not installed */
	const char *const *env; /* the variables in which curl looks for a proxy */
};

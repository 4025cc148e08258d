/* Reads JSON as it arrives, in pieces of any size, and reports each token: an answer of a
 * fleet engine can be larger than memory. Strict (RFC 8259), with limits for nesting and the
 * length of a token. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum stream_token {
	STREAM_OBJECT,
	STREAM_OBJECT_END,
	STREAM_ARRAY,
	STREAM_ARRAY_END,
	STREAM_KEY,
	STREAM_STRING,
	STREAM_NUMBER,
	STREAM_LITERAL, /* true, false or null */
};

enum { STREAM_DEPTH = 32, STREAM_TOKEN_MAX = 65536 };

/* Takes a token. `text` is that of a key, string, number or literal, without escapes and with a
 * NUL after it; it is valid until the function returns. */
typedef int stream_take(
	void *context, enum stream_token token, const char *text, size_t len, struct err *e);

struct stream {
	stream_take *take;
	void *context;
	/* Private. */
	int state;	  /* what is expected next, or the token that is being read */
	unsigned depth;	  /* open objects and arrays */
	uint32_t objects; /* bit d: the one at depth d is an object */
	bool key;	  /* the string that is being read is a key */
	unsigned digits;  /* number of digits of a \u escape that are still missing */
	unsigned code, high;
	struct str text;
	uint64_t n_bytes;
};

void stream_start(struct stream *s, stream_take *take, void *context);
/* Reads the next bytes. ERR_WORLD: this is not JSON, a limit was exceeded, or take() failed. */
int stream_feed(struct stream *s, const char *bytes, size_t len, struct err *e);
/* Ends the text. ERR_WORLD: it is incomplete. */
int stream_end(struct stream *s, struct err *e);
void stream_finish(struct stream *s);

/* Copies the rows of a store that reports about a window need into a new store. A host sends it
 * to another one: `gua export --format store`, for `gua report --ssh`. */
#pragma once

#include "base/base.h"

struct extract_wish {
	const char *path;	    /* the store; it is only read */
	int64_t since_ms, until_ms; /* since <= t < until */
	const char *directory; /* for the new file, which has a name there only for a moment */
};

/* Makes the new store and opens it for reading, as bytes, at its beginning. The caller closes
 * `*fd`. The copy shows the store at one moment, even while a recorder writes. */
int extract_store(int *fd, const struct extract_wish *wish, struct err *e);

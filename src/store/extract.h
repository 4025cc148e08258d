/* Copies what reports about a window read of a store into a new store. A host sends it to
 * another one: `gua export --format store`, for `gua report --ssh`. */
#ifndef GUA_STORE_EXTRACT_H
#define GUA_STORE_EXTRACT_H

#include <stdint.h>

#include "base/err.h"

struct extract_wish {
	const char *path;	    /* the store; it is only read */
	int64_t since_ms, until_ms; /* since <= t < until */
	const char *directory;	    /* for the new file, which has no name there for long */
};

/* Opens the new store for reading, as bytes, at its beginning. `*fd` is the caller's. All of it
 * is the store at one moment, also while a recorder writes. */
int extract_store(int *fd, const struct extract_wish *wish, struct err *e);

#endif

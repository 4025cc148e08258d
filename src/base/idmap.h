/* The hash table: finds values (mostly indexes of an array) by a 64-bit key, which is an id or
 * the hash of something longer. Single values cannot be removed. */
#pragma once

#include "base/base.h"

#define IDMAP_NONE UINT32_MAX

/* Zero-initialise. */
struct idmap {
	struct idmap_slot *slots; /* the number of slots is a power of two; or NULL */
	size_t cap, n;
};

/* The value of `key`, or IDMAP_NONE. */
uint32_t idmap_get(const struct idmap *m, int64_t key);
/* Sets the value of `key`; false when out of memory. */
bool idmap_put(struct idmap *m, int64_t key, uint32_t value);

/* Adds a value to those that `key` has; false when out of memory. */
bool idmap_add(struct idmap *m, int64_t key, uint32_t value);
/* The values of `key` one after the other, then IDMAP_NONE; `*step` is 0 at first. If the key
 * is a hash, the caller compares what was hashed. */
uint32_t idmap_next(const struct idmap *m, int64_t key, size_t *step);

/* Makes room for `n` values in all: adding them cannot fail. */
bool idmap_reserve(struct idmap *m, size_t n);
/* Replaces every value v by to[v]. */
void idmap_renumber(struct idmap *m, const uint32_t *to);
/* Removes all values, and keeps the memory. */
void idmap_clear(struct idmap *m);
void idmap_finish(struct idmap *m);

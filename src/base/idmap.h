/* A map from ids to indexes of an array: open addressing, nothing is ever removed. */
#ifndef GUA_BASE_IDMAP_H
#define GUA_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDMAP_NONE UINT32_MAX

struct idmap {
	struct idmap_slot *slots; /* a power of two of them, or NULL */
	size_t cap, n;
};

/* The value of `key`, or IDMAP_NONE. */
uint32_t idmap_get(const struct idmap *m, int64_t key);
/* Sets `key`; false when out of memory. */
bool idmap_put(struct idmap *m, int64_t key, uint32_t value);
/* Replaces every value v by to[v]. */
void idmap_renumber(struct idmap *m, const uint32_t *to);
void idmap_finish(struct idmap *m);

#endif

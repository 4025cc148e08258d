/* Memory with one lifetime: many small pieces that a report or a table needs and that are freed
 * whole. A zeroed struct is an empty arena. */
#ifndef GUA_BASE_ARENA_H
#define GUA_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *newest;
	bool failed; /* out of memory: a piece was not given */
};

/* Memory of `size` bytes for any type, not zeroed; NULL: out of memory, which is remembered. */
void *arena_take(struct arena *a, size_t size);

/* A copy of a text; NULL: out of memory, which is remembered. */
const char *arena_text(struct arena *a, const char *text);

/* Frees all pieces; the arena is empty again. */
void arena_finish(struct arena *a);

#endif

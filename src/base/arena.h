/* Memory with one lifetime, for the many small pieces of a report or a table: all pieces are
 * freed together. A zeroed struct is an empty arena. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *newest;
	bool failed; /* an allocation has failed */
};

/* Returns `size` bytes for any type, not zeroed; NULL: out of memory, and `failed` is set. */
void *arena_take(struct arena *a, size_t size);

/* Copies a text; NULL: out of memory, and `failed` is set. */
const char *arena_text(struct arena *a, const char *text);
/* The same for a text as printf() makes it; "": out of memory, and `failed` is set. */
const char *arena_textf(struct arena *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
const char *arena_textv(struct arena *a, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* Moves the pieces of `from` to `to`, which now frees them; `from` is empty again. */
void arena_move(struct arena *to, struct arena *from);

/* Frees all pieces; the arena is empty again. */
void arena_finish(struct arena *a);

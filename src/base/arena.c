/* Allocates pieces one after the other from blocks; all blocks are freed together. */
#include "base/arena.h"

#include <stdalign.h>

#include "base/base.h"

enum { BLOCK_BYTES = 4000, ALIGNMENT = alignof(max_align_t) };

struct arena_block {
	struct arena_block *older;
	size_t used, cap;
	alignas(max_align_t) char bytes[];
};

/* A piece that is larger than a block gets a block of its own. */
static struct arena_block *add_block(struct arena *a, size_t size)
{
	size_t cap = size > BLOCK_BYTES ? size : BLOCK_BYTES;
	struct arena_block *block = malloc(sizeof(*block) + cap);
	if (!block)
		return NULL;
	*block = (struct arena_block){ .older = a->newest, .cap = cap };
	a->newest = block;
	return block;
}

void *arena_take(struct arena *a, size_t size)
{
	struct arena_block *block = a->newest;
	if (size > SIZE_MAX / 2) {
		a->failed = true;
		return NULL;
	}
	size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (!block || rounded > block->cap - block->used)
		block = add_block(a, rounded);
	if (!block) {
		a->failed = true;
		return NULL;
	}
	void *piece = block->bytes + block->used;
	block->used += rounded;
	return piece;
}

const char *arena_text(struct arena *a, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = arena_take(a, size);
	return copy ? memcpy(copy, text, size) : NULL;
}

const char *arena_textv(struct arena *a, const char *format, va_list args)
{
	va_list again;
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	char *text = len >= 0 ? arena_take(a, (size_t)len + 1) : NULL;
	if (text)
		vsnprintf(text, (size_t)len + 1, format, args);
	a->failed |= !text;
	return text ? text : "";
}

const char *arena_textf(struct arena *a, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const char *text = arena_textv(a, format, args);
	va_end(args);
	return text;
}

void arena_move(struct arena *to, struct arena *from)
{
	struct arena_block **oldest = &from->newest;
	while (*oldest)
		oldest = &(*oldest)->older;
	*oldest = to->newest;
	to->newest = from->newest;
	from->newest = NULL;
}

void arena_finish(struct arena *a)
{
	while (a->newest) {
		struct arena_block *block = a->newest;
		a->newest = block->older;
		free(block);
	}
	*a = (struct arena){ 0 };
}

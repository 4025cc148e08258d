/* Names in a hash table with linear probing, at most half full. */
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* The place of a name in the table, or the free place for it. The hash is FNV-1a. */
static size_t place_of(const struct names *n, uint32_t scope, const char *text)
{
	uint64_t hash = (0xcbf29ce484222325u ^ scope) * 0x100000001b3u;
	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	size_t at = (size_t)(hash ^ hash >> 32) & (n->cap - 1);
	for (; n->table[at]; at = (at + 1) & (n->cap - 1)) {
		const struct name *name = &n->items[n->table[at] - 1];
		if (name->scope == scope && strcmp(name->text, text) == 0)
			break;
	}
	return at;
}

static bool grow(struct names *n)
{
	struct names bigger = *n;
	bigger.cap = n->cap ? 2 * n->cap : 64;
	bigger.table = calloc(bigger.cap, sizeof(*bigger.table));
	if (!bigger.table)
		return false;
	for (uint32_t i = 0; i < n->n; i++)
		bigger.table[place_of(&bigger, n->items[i].scope, n->items[i].text)] = i + 1;
	free(n->table);
	*n = bigger;
	return true;
}

uint32_t names_find(struct names *n, uint32_t scope, const char *text, struct err *e)
{
	if (2 * (n->n + 1) > n->cap && !grow(n)) {
		err_memory(e);
		return IDMAP_NONE;
	}
	size_t at = place_of(n, scope, text);
	if (n->table[at])
		return n->table[at] - 1;
	const char *copy = arena_text(&n->texts, text);
	if (!copy || !array_one_more(&n->items, n->n)) {
		err_memory(e);
		return IDMAP_NONE;
	}
	n->items[n->n] = (struct name){ copy, scope };
	n->table[at] = (uint32_t)++n->n;
	return (uint32_t)n->n - 1;
}

bool names_has(const struct names *n, uint32_t scope, const char *text)
{
	return n->cap && n->table[place_of(n, scope, text)];
}

void names_finish(struct names *n)
{
	arena_finish(&n->texts);
	free(n->items);
	free(n->table);
	*n = (struct names){ 0 };
}

/* Gives numbers to names, and finds names by their hash. */
#include "base/names.h"

static int64_t key_of(uint32_t scope, const char *text)
{
	return (int64_t)(str_sum(text) ^ (uint64_t)scope << 32);
}

uint32_t names_get(const struct names *n, uint32_t scope, const char *text)
{
	size_t step = 0;
	uint32_t i;
	while ((i = idmap_next(&n->map, key_of(scope, text), &step)) != IDMAP_NONE)
		if (n->items[i].scope == scope && strcmp(n->items[i].text, text) == 0)
			break;
	return i;
}

uint32_t names_find(struct names *n, uint32_t scope, const char *text, struct err *e)
{
	uint32_t i = names_get(n, scope, text);
	if (i != IDMAP_NONE)
		return i;
	const char *copy = arena_text(&n->texts, text);
	if (!copy || !array_one_more(&n->items, n->n) ||
		!idmap_add(&n->map, key_of(scope, text), (uint32_t)n->n)) {
		err_memory(e);
		return IDMAP_NONE;
	}
	n->items[n->n] = (struct name){ copy, scope };
	return (uint32_t)n->n++;
}

bool names_has(const struct names *n, uint32_t scope, const char *text)
{
	return names_get(n, scope, text) != IDMAP_NONE;
}

void names_finish(struct names *n)
{
	arena_finish(&n->texts);
	free(n->items);
	idmap_finish(&n->map);
	*n = (struct names){ 0 };
}

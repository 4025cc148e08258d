/* Open addressing with linear probing, at most half full. */
#include "base/idmap.h"

#include <stdlib.h>

struct idmap_slot {
	int64_t key;
	uint32_t value;
	bool used;
};

static size_t place_of(const struct idmap *m, int64_t key)
{
	uint64_t hash = (uint64_t)key * 0x9E3779B97F4A7C15u;
	size_t at = (size_t)(hash >> 32) & (m->cap - 1);
	while (m->slots[at].used && m->slots[at].key != key)
		at = (at + 1) & (m->cap - 1);
	return at;
}

uint32_t idmap_get(const struct idmap *m, int64_t key)
{
	if (!m->n)
		return IDMAP_NONE;
	const struct idmap_slot *slot = &m->slots[place_of(m, key)];
	return slot->used ? slot->value : IDMAP_NONE;
}

static bool grow(struct idmap *m)
{
	struct idmap bigger = { .cap = m->cap ? 2 * m->cap : 64, .n = m->n };
	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			bigger.slots[place_of(&bigger, m->slots[i].key)] = m->slots[i];
	free(m->slots);
	*m = bigger;
	return true;
}

bool idmap_put(struct idmap *m, int64_t key, uint32_t value)
{
	if (2 * (m->n + 1) > m->cap && !grow(m))
		return false;
	struct idmap_slot *slot = &m->slots[place_of(m, key)];
	m->n += !slot->used;
	*slot = (struct idmap_slot){ .key = key, .value = value, .used = true };
	return true;
}

void idmap_renumber(struct idmap *m, const uint32_t *to)
{
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used && m->slots[i].value != IDMAP_NONE)
			m->slots[i].value = to[m->slots[i].value];
}

void idmap_finish(struct idmap *m)
{
	free(m->slots);
	*m = (struct idmap){ 0 };
}

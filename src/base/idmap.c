/* Open addressing with linear probing, at most half full. */
#include "base/idmap.h"

struct idmap_slot {
	int64_t key;
	uint32_t value;
	bool used;
};

/* Returns the next slot from probe `*step` on that has the key, or the first free one. */
static struct idmap_slot *probe(const struct idmap *m, int64_t key, size_t *step)
{
	size_t first = (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> 32);
	struct idmap_slot *slot;
	do
		slot = &m->slots[(first + (*step)++) & (m->cap - 1)];
	while (slot->used && slot->key != key);
	return slot;
}

uint32_t idmap_next(const struct idmap *m, int64_t key, size_t *step)
{
	if (!m->n)
		return IDMAP_NONE;
	const struct idmap_slot *slot = probe(m, key, step);
	return slot->used ? slot->value : IDMAP_NONE;
}

uint32_t idmap_get(const struct idmap *m, int64_t key)
{
	size_t step = 0;
	return idmap_next(m, key, &step);
}

bool idmap_reserve(struct idmap *m, size_t n)
{
	struct idmap bigger = { .cap = m->cap ? m->cap : 64 };
	while (bigger.cap < 2 * n)
		bigger.cap *= 2;
	if (bigger.cap == m->cap)
		return true;
	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			idmap_add(&bigger, m->slots[i].key, m->slots[i].value);
	free(m->slots);
	*m = bigger;
	return true;
}

bool idmap_add(struct idmap *m, int64_t key, uint32_t value)
{
	if (!idmap_reserve(m, m->n + 1))
		return false;
	size_t step = 0;
	struct idmap_slot *slot = probe(m, key, &step);
	while (slot->used)
		slot = probe(m, key, &step);
	*slot = (struct idmap_slot){ key, value, true };
	m->n++;
	return true;
}

bool idmap_put(struct idmap *m, int64_t key, uint32_t value)
{
	if (!idmap_reserve(m, m->n + 1))
		return false;
	size_t step = 0;
	struct idmap_slot *slot = probe(m, key, &step);
	m->n += !slot->used;
	*slot = (struct idmap_slot){ key, value, true };
	return true;
}

void idmap_renumber(struct idmap *m, const uint32_t *to)
{
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used && m->slots[i].value != IDMAP_NONE)
			m->slots[i].value = to[m->slots[i].value];
}

void idmap_clear(struct idmap *m)
{
	if (m->n)
		memset(m->slots, 0, m->cap * sizeof(*m->slots));
	m->n = 0;
}

void idmap_finish(struct idmap *m)
{
	free(m->slots);
	*m = (struct idmap){ 0 };
}

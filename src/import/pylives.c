/* Joins records of a pid into processes with a start and an end. */
#include "import/pylives.h"

void pylives_finish(struct pylives *l)
{
	free(l->entries);
	free(l->expire_ms);
	idmap_finish(&l->by_pid);
	memset(l, 0, sizeof(*l));
}

static void end(struct pylives *l, size_t i)
{
	l->entries[i].ended_ms = l->entries[i].last_seen_ms;
	l->entries[i].dirty = true;
}

static int64_t add(struct pylives *l, const struct sighting *s)
{
	if (l->n == l->cap) {
		size_t cap = array_next_cap(l->cap, l->n + 1);
		if (!array_resize(&l->entries, cap) || !array_resize(&l->expire_ms, cap) ||
			!idmap_reserve(&l->by_pid, cap))
			return -1;
		l->cap = cap;
	}
	struct process_entry *p = &l->entries[l->n];
	*p = (struct process_entry){
		.id = { .pid = s->pid, .started_ms = -1, .uid = -1, .owner_uid = -1 },
		.first_seen_ms = s->at_ms,
		.last_active_ms = -1,
		.ended_ms = -1,
	};
	str_copy(p->id.user, sizeof(p->id.user), s->user);
	str_copy(p->id.command, sizeof(p->id.command), s->command);
	idmap_add(&l->by_pid, s->pid, (uint32_t)l->n);
	return (int64_t)l->n++;
}

int64_t pylives_sight(struct pylives *l, const struct sighting *s)
{
	uint32_t at;
	int64_t i = -1;
	/* Find the life that continues. One that ended in the meantime is marked. */
	for (size_t step = 0;
		i < 0 && (at = idmap_next(&l->by_pid, s->pid, &step)) != IDMAP_NONE;) {
		const struct process_entry *p = &l->entries[at];
		if (p->ended_ms >= 0 || strcmp(p->id.user, s->user) != 0 ||
			strcmp(p->id.command, s->command) != 0)
			continue;
		if (s->at_ms <= l->expire_ms[at])
			i = at;
		else
			end(l, at);
	}
	if (i < 0)
		i = add(l, s);
	if (i < 0)
		return -1;
	struct process_entry *p = &l->entries[i];
	if (p->last_seen_ms < s->at_ms + s->interval_ms)
		p->last_seen_ms = s->at_ms + s->interval_ms;
	l->expire_ms[i] = s->at_ms + PYLIVES_GAP_INTERVALS * s->interval_ms;
	p->dirty = true;
	return i;
}

void pylives_end(struct pylives *l, int64_t at_ms)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->expire_ms[i] < at_ms && l->entries[i].ended_ms < 0)
			end(l, i);
}

void pylives_forget(struct pylives *l)
{
	size_t n = 0;
	idmap_clear(&l->by_pid);
	for (size_t i = 0; i < l->n; i++) {
		if (l->entries[i].ended_ms >= 0)
			continue;
		l->entries[n] = l->entries[i];
		l->expire_ms[n] = l->expire_ms[i];
		idmap_add(&l->by_pid, l->entries[n].id.pid, (uint32_t)n);
		n++;
	}
	l->n = n;
}

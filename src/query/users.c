/* Finds identities by name, and makes the sorted lists of identities and processes. */
#include "query/users.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "query/sql.h"

/* The place of `name` in the table, or the free place for it. The hash is FNV-1a. */
static size_t place_of(const struct users *u, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	size_t at = (size_t)(hash ^ hash >> 32) & (u->cap - 1);
	while (u->table[at] && strcmp(u->items[u->table[at] - 1].identity, name) != 0)
		at = (at + 1) & (u->cap - 1);
	return at;
}

static bool grow_table(struct users *u)
{
	struct users bigger = { .items = u->items, .n = u->n, .cap = u->cap ? 2 * u->cap : 64 };
	bigger.table = calloc(bigger.cap, sizeof(*bigger.table));
	if (!bigger.table)
		return false;
	for (uint32_t i = 0; i < u->n; i++)
		bigger.table[place_of(&bigger, u->items[i].identity)] = i + 1;
	free(u->table);
	*u = bigger;
	return true;
}

uint32_t users_find(struct users *u, const char *name, struct err *e)
{
	if (2 * (u->n + 1) > u->cap && !grow_table(u)) {
		err_memory(e);
		return IDMAP_NONE;
	}
	size_t at = place_of(u, name);
	if (u->table[at])
		return u->table[at] - 1;
	if (!array_one_more(&u->items, u->n)) {
		err_memory(e);
		return IDMAP_NONE;
	}
	struct audit_identity *item = &u->items[u->n];
	*item = (struct audit_identity){ .peak_mem_kib = -1, .last_active_ms = -1 };
	text_copy(item->identity, sizeof(item->identity), name);
	u->table[at] = (uint32_t)++u->n;
	return (uint32_t)u->n - 1;
}

static int compare_identities(const void *x, const void *y, void *items)
{
	const struct audit_identity *p = (struct audit_identity *)items + *(const uint32_t *)x;
	const struct audit_identity *q = (struct audit_identity *)items + *(const uint32_t *)y;
	int64_t a = audit_holder_ms(p->presence_ms), b = audit_holder_ms(q->presence_ms);
	if (a != b)
		return a > b ? -1 : 1;
	return strcmp(p->identity, q->identity);
}

int users_hand_over(struct users *u, struct audit *a, struct err *e)
{
	uint32_t *order = calloc(2 * u->n + 1, sizeof(*order)),
		 *to = order ? order + u->n : NULL;
	int rc = order ? 0 : err_memory(e);
	for (uint32_t i = 0; i < u->n && rc == 0; i++)
		order[i] = i;
	if (rc == 0)
		qsort_r(order, u->n, sizeof(*order), compare_identities, u->items);
	for (uint32_t i = 0; i < u->n && rc == 0; i++) {
		struct audit_identity *identity = audit_add_identity(a, e);
		if (identity)
			*identity = u->items[order[i]];
		to[order[i]] = i;
		rc = identity ? 0 : ERR_WORLD;
	}
	for (size_t i = 0; i < a->n_processes && rc == 0; i++)
		a->processes[i].identity = to[a->processes[i].identity];
	free(order);
	return rc;
}

void users_finish(struct users *u)
{
	free(u->items);
	free(u->table);
	*u = (struct users){ 0 };
}

static int compare_processes(const void *x, const void *y)
{
	const struct audit_process *p = x, *q = y;
	int64_t a = audit_holder_ms(p->ms), b = audit_holder_ms(q->ms);
	if (a != b)
		return a > b ? -1 : 1;
	if (p->card != q->card)
		return p->card < q->card ? -1 : 1;
	return p->id < q->id ? -1 : p->id > q->id;
}

static int read_texts(struct gather *g, struct audit_process *p, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(g->files[p->path].db, &stmt, e,
		"SELECT command, notebook, job, container, pod, unit FROM process "
		"WHERE id = %lld",
		(long long)p->id);
	if (rc == 0)
		rc = sql_step(stmt, e);
	if (rc == 1) {
		struct arena *texts = &g->a->texts;
		p->command = sql_text_copy(stmt, 0, texts);
		p->notebook = sql_text_copy(stmt, 1, texts);
		p->job = sql_text_copy(stmt, 2, texts);
		p->container = sql_text_copy(stmt, 3, texts);
		p->pod = sql_text_copy(stmt, 4, texts);
		p->unit = sql_text_copy(stmt, 5, texts);
		rc = texts->failed ? err_memory(e) : 0;
	}
	sqlite3_finalize(stmt);
	return rc;
}

int processes_choose(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	if (a->n_processes)
		qsort(a->processes, a->n_processes, sizeof(*a->processes), compare_processes);
	size_t max = g->q->max_processes;
	if (max && a->n_processes > max) {
		a->n_processes_left_out = a->n_processes - max;
		a->n_processes = max;
	}
	int rc = 0;
	for (size_t i = 0; i < a->n_processes && rc == 0; i++)
		rc = read_texts(g, &a->processes[i], e);
	return rc;
}

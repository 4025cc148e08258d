/* Finds identities by name, and makes the sorted lists of identities and processes. */
#include "audit/users.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "audit/gather_parts.h"
#include "store/sql.h"

uint32_t users_find(struct users *u, const char *name, struct err *e)
{
	uint32_t index = names_find(&u->names, 0, name, e);
	if (index == IDMAP_NONE || index < u->n)
		return index;
	if (!array_one_more(&u->items, u->n)) {
		err_memory(e);
		return IDMAP_NONE;
	}
	struct audit_identity *item = &u->items[u->n++];
	*item = (struct audit_identity){ .sums = AUDIT_SUMS_NONE };
	text_copy(item->identity, sizeof(item->identity), name);
	return index;
}

static int compare_identities(const void *x, const void *y, void *items)
{
	const struct audit_identity *p = (struct audit_identity *)items + *(const uint32_t *)x;
	const struct audit_identity *q = (struct audit_identity *)items + *(const uint32_t *)y;
	int64_t a = audit_holder_ms(p->sums.ms), b = audit_holder_ms(q->sums.ms);
	if (a != b)
		return a > b ? -1 : 1;
	return strcmp(p->identity, q->identity);
}

static void renumber(struct audit_breakdown *b, size_t n_users, const uint32_t *to)
{
	for (size_t level = 0; level < BY_MAX; level++)
		for (size_t i = 0; i < b->n[level]; i++)
			if (b->rows[level][i].user < n_users)
				b->rows[level][i].user = to[b->rows[level][i].user];
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
	if (rc == 0) {
		renumber(&a->breakdown, u->n, to);
		renumber(&a->by_card, u->n, to);
	}
	free(order);
	return rc;
}

void users_finish(struct users *u)
{
	free(u->items);
	names_finish(&u->names);
	*u = (struct users){ 0 };
}

/* Processes have no names yet: those of their users decide. */
static int compare_processes(const void *x, const void *y, void *gather)
{
	const struct gather *g = gather;
	const struct audit_process *p = x, *q = y;
	int difference = order_compare(g->q->order, &p->sums, &q->sums);
	if (difference == 0 && g->q->order == ORDER_NAME)
		difference = strcmp(g->a->identities[p->identity].identity,
			g->a->identities[q->identity].identity);
	if (difference)
		return difference;
	if (p->card != q->card)
		return p->card < q->card ? -1 : 1;
	return p->id < q->id ? -1 : p->id > q->id;
}

int process_describe(struct gather *g, size_t index, struct err *e)
{
	struct audit_process *p = &g->a->processes[index];
	sqlite3_stmt *stmt;
	int rc = sql_prepare(g->files[p->path].db, &stmt, e,
		"SELECT " PROCESS_TEXT_COLUMNS " FROM process WHERE id = %lld",
		(long long)p->id);
	if (rc == 0)
		rc = sql_step(stmt, e);
	if (rc == 1) {
		struct arena *texts = &g->a->texts;
		for (int i = 0; i < PROCESS_TEXTS; i++)
			p->texts[i] = sql_text_copy(stmt, i, texts);
		rc = texts->failed ? err_memory(e) : 0;
	}
	sqlite3_finalize(stmt);
	return rc;
}

void processes_choose(struct gather *g)
{
	struct audit *a = g->a;
	if (a->n_processes)
		qsort_r(a->processes, a->n_processes, sizeof(*a->processes), compare_processes,
			g);
	size_t max = g->q->max_processes;
	a->left_out = (struct audit_sums)AUDIT_SUMS_NONE;
	while (max && a->n_processes > max) {
		audit_sums_add(&a->left_out, &a->processes[--a->n_processes].sums);
		a->n_processes_left_out++;
	}
}

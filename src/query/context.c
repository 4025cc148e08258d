/* Finds the least memory that several lives on a model of card had in common. */
#include "query/context.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "query/sql.h"

enum {
	DAY_ROWS = 3000, /* so many are read, the newest: some milliseconds */
	MINUTE_ROWS = 1000,
	LIVES = 3,	 /* so many must agree: one alone may be a small job */
	AGREE_PCT = 110, /* none of them has more than this of what the least has */
};

void context_finish(struct context_floors *f)
{
	free(f->items);
	*f = (struct context_floors){ 0 };
}

static int add_floor(struct context_floors *f, const char *name, int64_t bytes, struct err *e)
{
	struct context_floor *grown = reallocarray(f->items, f->n + 1, sizeof(*grown));
	if (!grown)
		return err_set(e, ERR_WORLD, "out of memory");
	f->items = grown;
	f->items[f->n].bytes = bytes;
	text_copy(f->items[f->n++].name, CARD_NAME_CAP, name);
	return 0;
}

/* The lives on one model, least memory first, as they come. */
struct lives {
	char name[CARD_NAME_CAP];
	int64_t kib[LIVES]; /* the last ones */
	size_t n;
};

/* The most that a life ever had counts: one that was caught while it started, or between two
 * allocations, has more later. */
static int take_life(
	struct context_floors *f, struct lives *l, sqlite3_stmt *row, struct err *e)
{
	char name[CARD_NAME_CAP];
	sql_text(row, 0, name, sizeof(name));
	if (strcmp(name, l->name) != 0) {
		*l = (struct lives){ .n = 0 };
		text_copy(l->name, sizeof(l->name), name);
	}
	memmove(l->kib, l->kib + 1, (LIVES - 1) * sizeof(l->kib[0]));
	l->kib[LIVES - 1] = sql_int(row, 1, 0);
	l->n++;
	bool agree = l->n >= LIVES && l->kib[LIVES - 1] * 100 <= l->kib[0] * AGREE_PCT;
	if (!agree || context_floor(f, name) >= 0)
		return 0;
	return add_floor(f, name, l->kib[0] * 1024, e);
}

int context_learn(struct context_floors *f, struct sqlite3 *db, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	struct lives lives = { .n = 0 };
	context_finish(f);
	int rc = sql_prepare(db, &stmt, e,
		"WITH newest AS (SELECT * FROM (SELECT gpu, process, mem_peak_kib "
		"FROM holding_1d ORDER BY slot DESC LIMIT %d) "
		"UNION ALL SELECT * FROM (SELECT gpu, process, mem_peak_kib "
		"FROM holding_1m ORDER BY slot DESC LIMIT %d)), "
		"held AS (SELECT gpu, process, max(mem_peak_kib) AS kib FROM newest "
		"GROUP BY gpu, process HAVING kib BETWEEN %lld AND %lld) "
		"SELECT gpu.name, max(kib) AS most FROM held JOIN gpu ON gpu.id = held.gpu "
		"GROUP BY gpu.name, held.process ORDER BY gpu.name, most",
		DAY_ROWS, MINUTE_ROWS, CONTEXT_LEAST_BYTES / 1024,
		CONTEXT_LARGEST_BYTES / 1024);
	while (rc == 0 && (rc = sql_step(stmt, e)) == 1)
		rc = take_life(f, &lives, stmt, e);
	sqlite3_finalize(stmt);
	if (rc)
		context_finish(f);
	f->learned = rc == 0;
	return rc;
}

int64_t context_floor(const struct context_floors *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->items[i].name, name) == 0)
			return f->items[i].bytes;
	return -1;
}

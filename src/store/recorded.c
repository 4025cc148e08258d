/* Reads which time a store already covers, as spans. */
#include "store/recorded.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"

static struct recorded_card *find_gpu(struct recorded *r, int64_t gpu)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->cards[i].gpu == gpu)
			return &r->cards[i];
	return NULL;
}

static bool add_card(struct recorded *r, int64_t gpu, const char *uuid)
{
	if (!array_one_more(&r->cards, r->n))
		return false;
	r->cards[r->n] = (struct recorded_card){ .gpu = gpu };
	str_copy(r->cards[r->n++].uuid, UUID_CAP, uuid);
	return true;
}

static bool add_span(struct recorded_card *c, struct recorded_span span)
{
	if (c->n && c->spans[c->n - 1].to >= span.from &&
		c->spans[c->n - 1].from <= span.from) {
		if (c->spans[c->n - 1].to < span.to)
			c->spans[c->n - 1].to = span.to;
		return true;
	}
	if (!array_reserve(&c->spans, &c->cap, c->n + 1))
		return false;
	c->spans[c->n++] = span;
	return true;
}

static int span_order(const void *a, const void *b)
{
	const struct recorded_span *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

/* The spans come from three tables: sorts them and merges them. */
static void join_spans(struct recorded_card *c)
{
	size_t n = c->n;
	if (n > 1)
		qsort(c->spans, n, sizeof(c->spans[0]), span_order);
	c->n = 0;
	for (size_t i = 0; i < n; i++)
		add_span(c, c->spans[i]);
}

static int read_failed(sqlite3 *db, struct err *e)
{
	return err_set(e, ERR_WORLD, "cannot read the store: %s", sqlite3_errmsg(db));
}

static int read_cards(struct recorded *r, sqlite3 *db, const char *hostname, struct err *e)
{
	sqlite3_stmt *row = NULL;
	static const char sql[] = "SELECT gpu.id, gpu.uuid FROM gpu JOIN host ON host.id = "
				  "gpu.host WHERE host.hostname = ?";
	int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	if (rc == SQLITE_OK)
		sqlite3_bind_text(row, 1, hostname, -1, SQLITE_STATIC);
	while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
		rc = add_card(r, sqlite3_column_int64(row, 0),
			     (const char *)sqlite3_column_text(row, 1))
			     ? SQLITE_OK
			     : SQLITE_NOMEM;
	sqlite3_finalize(row);
	return rc == SQLITE_DONE ? 0 : read_failed(db, e);
}

static int read_slots(
	struct recorded *r, sqlite3 *db, const char *sql, int64_t seconds, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		int64_t slot = sqlite3_column_int64(row, 0);
		struct recorded_card *c = find_gpu(r, sqlite3_column_int64(row, 1));
		struct recorded_span span = { slot, slot + seconds };
		rc = !c || add_span(c, span) ? SQLITE_OK : SQLITE_NOMEM;
	}
	sqlite3_finalize(row);
	return rc == SQLITE_DONE ? 0 : read_failed(db, e);
}

int recorded_read(struct recorded *r, struct sqlite3 *db, const char *hostname, struct err *e)
{
	static const struct {
		const char *sql;
		int64_t seconds;
	} tables[] = {
		{ "SELECT slot, gpu FROM usage_1h ORDER BY slot, gpu", 3600 },
		{ "SELECT slot, gpu FROM usage_5m ORDER BY slot, gpu", 300 },
		{ "SELECT slot, gpu FROM usage_1m ORDER BY slot, gpu", 60 },
	};
	int rc = read_cards(r, db, hostname, e);
	for (size_t i = 0; rc == 0 && r->n && i < sizeof(tables) / sizeof(tables[0]); i++)
		rc = read_slots(r, db, tables[i].sql, tables[i].seconds, e);
	for (size_t i = 0; i < r->n; i++)
		join_spans(&r->cards[i]);
	return rc;
}

void recorded_finish(struct recorded *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->cards[i].spans);
	free(r->cards);
	*r = (struct recorded){ 0 };
}

bool recorded_has(const struct recorded *r, const char *uuid, int64_t at_ms)
{
	const struct recorded_card *c = NULL;
	for (size_t i = 0; i < r->n && !c; i++)
		if (strcmp(r->cards[i].uuid, uuid) == 0)
			c = &r->cards[i];
	size_t low = 0, high = c ? c->n : 0; /* the last span that begins at or before it */
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (c->spans[middle].from * 1000 <= at_ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && at_ms < c->spans[low - 1].to * 1000;
}

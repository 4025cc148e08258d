/* Reads which time a store already covers, as spans. */
#include "store/recorded.h"

#include "store/sql.h"

static struct recorded_card *find_gpu(struct recorded *r, int64_t gpu)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->cards[i].gpu == gpu)
			return &r->cards[i];
	return NULL;
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
	return array_compare(x->from, y->from);
}

/* Sorts the spans, which come from three tables, and joins those that touch. */
static void join_spans(struct recorded_card *c)
{
	size_t n = c->n;
	array_sort(c->spans, n, span_order);
	c->n = 0;
	for (size_t i = 0; i < n; i++)
		add_span(c, c->spans[i]);
}

static int read_cards(struct recorded *r, sqlite3 *db, const char *hostname)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(db, &row, NULL,
		"SELECT gpu.id, gpu.uuid FROM gpu JOIN host ON host.id = gpu.host "
		"WHERE host.hostname = ?");
	sql_bind(row, SQL_RAW(hostname));
	while (sql_next(&row, &rc, NULL)) {
		if (!array_one_more(&r->cards, r->n)) {
			rc = ERR_WORLD;
			continue;
		}
		struct recorded_card *c = &r->cards[r->n++];
		*c = (struct recorded_card){ .gpu = sqlite3_column_int64(row, 0) };
		str_copy(c->uuid, sizeof(c->uuid), sql_raw(row, 1));
	}
	return rc;
}

static int read_slots(struct recorded *r, sqlite3 *db, const struct slot_table *t)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(
		db, &row, NULL, "SELECT slot, gpu FROM %s ORDER BY slot, gpu", t->usage);
	while (sql_next(&row, &rc, NULL)) {
		int64_t slot = sqlite3_column_int64(row, 0);
		struct recorded_card *c = find_gpu(r, sqlite3_column_int64(row, 1));
		if (c && !add_span(c, (struct recorded_span){ slot, slot + t->seconds }))
			rc = ERR_WORLD;
	}
	return rc;
}

int recorded_read(struct recorded *r, struct sqlite3 *db, const char *hostname, struct err *e)
{
	int rc = read_cards(r, db, hostname);
	for (size_t i = 0; rc == 0 && r->n && i < SLOT_TABLES; i++)
		rc = read_slots(r, db, &slot_tables[i]);
	if (rc)
		rc = err_set(e, ERR_WORLD, "cannot read the store: %s", sqlite3_errmsg(db));
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

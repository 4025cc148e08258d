/* Reads which cards have memory that no living process explains: the recorder keeps it as a
 * holder without a process. */
#include "base/array.h"
#include "query/gather.h"
#include "query/sql.h"

static int add(struct gather *g, size_t file, sqlite3_stmt *row, struct err *e)
{
	struct audit *a = g->a;
	struct audit_orphans *all = &a->orphans;
	uint32_t card = idmap_get(&g->files[file].cards, sqlite3_column_int64(row, 0));
	if (card == IDMAP_NONE)
		return 0;
	const struct audit_host *host = &a->hosts[a->cards[card].host];
	/* What is there now says nothing about a window that ended before. */
	if (!host->recording || host->last_tick_ms > g->q->until_ms)
		return 0;
	if (!array_one_more(&all->items, all->n))
		return err_memory(e);
	all->items[all->n++] = (struct audit_orphan){ .card = card,
		.pid = (uint32_t)sql_int(row, 1, 0),
		.mem_bytes = sql_int(row, 2, -1),
		.since_ms = sql_int(row, 3, -1) };
	return 0;
}

static int read_file(struct gather *g, size_t file, struct err *e)
{
	sqlite3_stmt *row;
	int rc = sql_prepare(g->files[file].db, &row, e,
		"SELECT holder.gpu, pid, mem_bytes, since_ms FROM holder"
		" JOIN process ON process.id = holder.process"
		" WHERE pid = 0 OR user = '" USER_DEAD "' ORDER BY holder.gpu, pid");
	while (rc == 0 && (rc = sql_step(row, e)) == 1)
		rc = add(g, file, row, e);
	sqlite3_finalize(row);
	return rc;
}

int gather_orphans(struct gather *g, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < g->n_files && rc == 0; i++)
		rc = read_file(g, i, e);
	return rc;
}

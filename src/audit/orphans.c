/* Reads which cards have memory that no living process explains: the recorder keeps it as a
 * holder without a process. */
#include "base/array.h"
#include "audit/gather_parts.h"
#include "store/sql.h"

static int add(
	struct gather *g, const struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct audit *a = g->a;
	struct audit_orphans *all = &a->orphans;
	uint32_t card = file_card(file, sqlite3_column_int64(row, 0));
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

int orphans_add(struct gather *g, struct gather_file *file, struct err *e)
{
	sqlite3_stmt *row;
	int rc = sql_prepare(file->db, &row, e,
		"SELECT holder.gpu, pid, mem_bytes, since_ms FROM holder"
		" JOIN process ON process.id = holder.process"
		" WHERE pid = 0 OR user = '" USER_DEAD "' ORDER BY holder.gpu, pid");
	while (rc == 0 && (rc = sql_step(row, e)) == 1)
		rc = add(g, file, row, e);
	sqlite3_finalize(row);
	return rc;
}

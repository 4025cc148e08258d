/* Reads what one user holds now, from the holders of recorders that are running, and which
 * processes are theirs. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "audit/gather_parts.h"
#include "store/sql.h"

/* A shorter pause is work. */
#define IDLE_MS 300000

#define PRESENT_SQL                                                                            \
	"SELECT h.gpu, p.pid, h.mem_bytes, max(h.since_ms, coalesce(h.last_active_ms, 0)), "   \
	"p.job, p.container, coalesce(p.notebook_path, p.notebook, p.job_name, p.job, "        \
	"p.container, p.pod, p.command), p.notebook IS NOT NULL "                              \
	"FROM holder h JOIN process p ON p.id = h.process WHERE p.user = ?1"

static int take_present(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct audit *a = g->a;
	uint32_t card = file_card(file, sqlite3_column_int64(row, 0));
	int64_t idle_ms = g->q->now_ms - sql_int(row, 3, 0);
	if (card == IDMAP_NONE)
		return 0;
	const struct audit_host *host = &a->hosts[a->cards[card].host];
	if (!host->recording || idle_ms < IDLE_MS)
		return 0;
	if (!array_one_more(&a->present, a->n_present))
		return err_memory(e);
	a->present[a->n_present++] = (struct audit_present){ .host = a->cards[card].host,
		.card = card,
		.pid = (uint32_t)sqlite3_column_int64(row, 1),
		.mem_bytes = sql_int(row, 2, -1),
		.idle_ms = idle_ms,
		.job = sql_text_copy(row, 4, &a->texts),
		.container = sql_text_copy(row, 5, &a->texts),
		.what = sql_text_copy(row, 6, &a->texts),
		.notebook = sqlite3_column_int(row, 7) != 0 };
	return a->texts.failed ? err_memory(e) : 0;
}

/* Notes that a process is the user's. */
static int take_process(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	(void)g;
	return idmap_put(&file->person, sqlite3_column_int64(row, 0), 1) ? 0 : err_memory(e);
}

static int each_of_user(struct gather *g, struct gather_file *file, const char *sql,
	int (*take)(struct gather *, struct gather_file *, sqlite3_stmt *, struct err *),
	struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(file->db, &stmt, e, "%s", sql);
	if (rc == 0)
		sqlite3_bind_text(stmt, 1, g->q->present_of, -1, SQLITE_STATIC);
	while (rc == 0) {
		rc = sql_step(stmt, e);
		if (rc <= 0)
			break;
		rc = take(g, file, stmt, e);
	}
	sqlite3_finalize(stmt);
	return rc;
}

static int compare_present(const void *x, const void *y)
{
	const struct audit_present *p = x, *q = y;
	if (p->idle_ms != q->idle_ms)
		return p->idle_ms > q->idle_ms ? -1 : 1;
	return p->pid < q->pid ? -1 : p->pid > q->pid;
}

int person_read(struct gather *g, struct gather_file *file, struct err *e)
{
	if (!g->q->present_of)
		return 0;
	return each_of_user(g, file, "SELECT id FROM process WHERE user = ?1", take_process, e);
}

int present_add(struct gather *g, struct gather_file *file, struct err *e)
{
	return g->q->present_of ? each_of_user(g, file, PRESENT_SQL, take_present, e) : 0;
}

void present_sort(struct audit *a)
{
	if (a->n_present)
		qsort(a->present, a->n_present, sizeof(*a->present), compare_present);
}

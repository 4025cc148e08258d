/* Reads the newest slots of a card, or of one process on it. */
#include "present/recent.h"

#include <math.h>

#include "store/sql.h"
#include "store/store.h"

/* Waits only briefly for a locked store, because the view must handle keys. */
enum { WAIT_MS = 200 };

int recent_open(struct sqlite3 **db, const char *path, struct err *e)
{
	return store_open_read_within(db, path, WAIT_MS, e);
}

void recent_close(struct sqlite3 *db)
{
	sqlite3_close(db);
}

/* Takes rows (slot, sum of percent x ms, ms) and returns how many there were. */
static int take_rows(sqlite3_stmt *stmt, const struct recent_minutes *minutes, struct err *e)
{
	int rc = 0, rows = 0;
	for (size_t i = 0; i < minutes->n; i++)
		minutes->pct[i] = NAN;
	while ((rc = sql_step(stmt, e)) == 1) {
		int64_t at = sql_int(stmt, 0, 0) / 60 - minutes->from, ms = sql_int(stmt, 2, 0);
		if (at >= 0 && (size_t)at < minutes->n && ms > 0)
			minutes->pct[at] = (double)sql_int(stmt, 1, 0) / (double)ms;
		rows++;
	}
	return rc < 0 ? rc : rows;
}

int recent_card(struct sqlite3 *db, const char *uuid, const struct recent_minutes *minutes,
	struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(db, &stmt, e,
		"SELECT slot, SUM(util_pct_ms), SUM(ms) FROM usage_1m WHERE slot >= ?1 "
		"AND state < 3 AND gpu = (SELECT id FROM gpu WHERE uuid = ?2 "
		"ORDER BY last_seen_ms DESC LIMIT 1) GROUP BY slot");
	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, minutes->from * 60);
	sqlite3_bind_text(stmt, 2, uuid, -1, SQLITE_STATIC);
	rc = take_rows(stmt, minutes, e);
	sqlite3_finalize(stmt);
	return rc < 0 ? rc : 0;
}

int recent_process(struct sqlite3 *db, const char *uuid, const struct process_id *id,
	const struct recent_minutes *minutes, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(db, &stmt, e,
		"SELECT slot, COALESCE(sm_pct_ms, 100 * active_ms), active_ms + idle_held_ms + "
		"truly_idle_ms + squatting_ms FROM holding_1m WHERE slot >= ?1 "
		"AND gpu = (SELECT id FROM gpu WHERE uuid = ?2 "
		"ORDER BY last_seen_ms DESC LIMIT 1) "
		"AND process = (SELECT id FROM process WHERE pid = ?3 AND start_ticks = ?4 "
		"ORDER BY id DESC LIMIT 1)");
	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, minutes->from * 60);
	sqlite3_bind_text(stmt, 2, uuid, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 3, id->pid);
	sqlite3_bind_int64(stmt, 4, (int64_t)id->start_ticks);
	rc = take_rows(stmt, minutes, e);
	sqlite3_finalize(stmt);
	return rc < 0 ? rc : rc > 0;
}

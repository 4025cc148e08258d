/* The writer of a store: opening, runs, transactions, closing. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "store/lock.h"
#include "store/crowd.h"
#include "store/store_private.h"
#include "store/sql.h"
#include "version.h"

int store_new(struct store **result, const char *path, struct err *e)
{
	*result = NULL;
	struct store *s = calloc(1, sizeof(*s));
	if (!s)
		return err_memory(e);
	s->shm_fd = -1;
	if (!str_copy(s->path, sizeof(s->path), path)) {
		free(s);
		return err_set(e, ERR_USAGE, "the path of the store is too long");
	}
	*result = s;
	return 0;
}

int store_open(struct store **result, const char *path, struct err *e)
{
	int code = store_new(result, path, e);
	if (!code)
		code = store_connect(*result, e);
	if (code) {
		store_close(*result);
		*result = NULL;
	}
	return code;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	store_disconnect(s);
	crowd_free(s);
	free(s->card_ids);
	free(s->process_ids);
	free(s->holders);
	free(s->next);
	free(s);
}

int store_abandon(struct store *s, const char *doing, struct err *e)
{
	int rc = s->db ? sqlite3_errcode(s->db) & 0xff : SQLITE_NOMEM;
	int code = sql_fail(e, s->db, doing, s->path);
	if (rc == SQLITE_BUSY || rc == SQLITE_PROTOCOL)
		lock_name_blocker(s, BLOCKS_WRITING, e);
	s->batch_failed = s->in_batch;
	if (s->db && !sqlite3_get_autocommit(s->db))
		sql_exec(s->db, "ROLLBACK");
	if (rc != SQLITE_BUSY && rc != SQLITE_LOCKED && rc != SQLITE_FULL)
		store_disconnect(s);
	return code;
}

int store_begin(struct store *s, struct err *e)
{
	if (s->in_batch)
		return 0;
	errno = 0; /* see why_system() in sqlite.c */
	if (sql_exec(s->db, "BEGIN IMMEDIATE") != SQLITE_OK)
		return store_abandon(s, "write", e);
	return 0;
}

int store_commit(struct store *s, struct err *e)
{
	if (s->in_batch)
		return 0;
	if (sql_exec(s->db, "COMMIT") != SQLITE_OK)
		return store_abandon(s, "write", e);
	store_bound_wal(s);
	return 0;
}

int store_begin_batch(struct store *s, struct err *e)
{
	int code = store_connect(s, e);
	if (!code)
		code = store_begin(s, e);
	s->in_batch = code == 0;
	s->batch_failed = false;
	return code;
}

int store_end_batch(struct store *s, bool keep, struct err *e)
{
	bool failed = s->batch_failed;
	s->in_batch = s->batch_failed = false;
	if (failed)
		return keep ? err_set(e, ERR_WORLD, "nothing was written to the store %s",
				      s->path)
			    : 0;
	if (keep)
		return store_commit(s, e);
	/* The rows that this connection has noted as written were rolled back. */
	store_disconnect(s);
	return 0;
}

struct sqlite3 *store_handle(struct store *s)
{
	return s->db;
}

/* A statement for one use; NULL on failure, which the bind functions and once() accept. */
static sqlite3_stmt *prepare(struct store *s, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL);
	return statement;
}

/* Steps and finalizes; false on failure. *id (may be NULL) is the first column, if any. */
static bool once(sqlite3_stmt *statement, int64_t *id)
{
	int rc = statement ? sql_once(statement, id) : SQLITE_ERROR;
	sqlite3_finalize(statement);
	return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

/* An unknown value, or one from the past, does not replace a known one. */
#define NEWER(column)                                                                          \
	column " = iif(?6 OR excluded." column " = '', " column ", excluded." column ")"

static bool write_host(struct store *s)
{
	sqlite3_stmt *q = prepare(s,
		"INSERT INTO host (hostname, machine_id, environment, driver, first_seen_ms,"
		" last_seen_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5)"
		" ON CONFLICT (hostname) DO UPDATE SET"
		" " NEWER("machine_id") ", " NEWER("environment") ", " NEWER(
			"driver") ","
				  " first_seen_ms = min(first_seen_ms, excluded.first_seen_ms),"
				  " last_seen_ms = max(last_seen_ms, excluded.last_seen_ms) "
				  "RETURNING id");
	sql_bind_text(q, 1, s->info.hostname);
	sql_bind_text(q, 2, s->info.machine_id);
	sql_bind_text(q, 3, s->info.environment);
	sql_bind_text(q, 4, s->info.driver);
	sqlite3_bind_int64(q, 5, s->info.started_ms);
	sqlite3_bind_int(q, 6, s->past);
	return once(q, &s->host);
}

/* Closes what an earlier run of this host left open. Its holders count until its last tick;
 * when they were last active is in the holder table only. A process that was not seen to end is
 * closed at the moment when it was last seen. If it is still alive, a later run of the same
 * boot finds it in open_life and opens it again. */
static bool close_holders(struct store *s)
{
	static const char *const steps[] = {
		"UPDATE process SET last_seen_ms = max(last_seen_ms, coalesce((SELECT"
		" max(last_tick_ms) FROM run WHERE host = ?1 AND ended_ms IS NULL), 0)),"
		" last_active_ms = (SELECT max(at) FROM (SELECT process.last_active_ms AS at"
		" UNION ALL SELECT last_active_ms FROM holder WHERE process = process.id))"
		" WHERE id IN (SELECT process FROM holder JOIN gpu ON gpu.id = holder.gpu"
		" WHERE gpu.host = ?1)",
		"INSERT OR IGNORE INTO open_life SELECT pid, id FROM process"
		" WHERE host = ?1 AND ended_ms IS NULL",
		"DELETE FROM open_life WHERE (SELECT process.host = ?1 AND boot_id <> ?2"
		" FROM process JOIN run ON run.id = process.run"
		" WHERE process.id = open_life.process)",
		"UPDATE process SET ended_ms = last_seen_ms"
		" WHERE host = ?1 AND ended_ms IS NULL",
		"DELETE FROM holder WHERE gpu IN (SELECT id FROM gpu WHERE host = ?1)",
	};
	bool ok = true;
	for (size_t i = 0; ok && i < sizeof(steps) / sizeof(steps[0]); i++) {
		sqlite3_stmt *q = prepare(s, steps[i]);
		sqlite3_bind_int64(q, 1, s->host);
		if (sqlite3_bind_parameter_count(q) > 1)
			sql_bind_text(q, 2, s->info.boot_id);
		ok = once(q, NULL);
	}
	return ok;
}

static bool close_killed_runs(struct store *s)
{
	sqlite3_stmt *q =
		prepare(s, "UPDATE run SET ended_ms = last_tick_ms, how_ended = 'killed'"
			   " WHERE host = ?1 AND ended_ms IS NULL");
	sqlite3_bind_int64(q, 1, s->host);
	return once(q, NULL);
}

/* A file that was restored, or opened again after a fault, already has this run. */
static bool resume_run(struct store *s)
{
	s->run = 0;
	sqlite3_stmt *q = prepare(s, "UPDATE run SET ended_ms = NULL, how_ended = NULL WHERE"
				     " host = ?1 AND started_ms = ?2 AND boot_id = ?3"
				     " AND source = ?4 RETURNING id");
	sqlite3_bind_int64(q, 1, s->host);
	sqlite3_bind_int64(q, 2, s->info.started_ms);
	sql_bind_text(q, 3, s->info.boot_id);
	sql_bind_text(q, 4, s->info.source);
	return once(q, &s->run);
}

/* Writes or changes a run; the statements take the same parameters. */
static bool write_run(struct store *s, const char *sql)
{
	sqlite3_stmt *q = prepare(s, sql);
	sqlite3_bind_int64(q, 1, s->host);
	sqlite3_bind_text(q, 2, GUA_VERSION, -1, SQLITE_STATIC);
	sql_bind_text(q, 3, s->info.source);
	sql_bind_text(q, 4, s->info.boot_id);
	sqlite3_bind_int64(q, 5, s->info.started_ms);
	sqlite3_bind_int64(q, 6, s->info.interval_ms);
	sqlite3_bind_int64(q, 7, s->info.drain_ms);
	sqlite3_bind_double(q, 8, s->info.rules.active_util_pct);
	sqlite3_bind_int64(q, 9, s->info.rules.held_mem_bytes);
	sqlite3_bind_int(q, 10, s->info.rules.count_graphics);
	sqlite3_bind_int64(q, 11, s->info.glance_ms);
	sqlite3_bind_text(q, 12, privacy_names[s->info.privacy], -1, SQLITE_STATIC);
	sqlite3_bind_int64(q, 13, s->info.rules.spell_ms);
	return once(q, &s->run);
}

/* Repeated single looks, started by a timer, share one run: a row for each would make up most
 * of the file. A run that finished by itself is continued when no other run came between and it
 * is not older than a day, after which the clock is in doubt: see compact.c. A
 * recorder that keeps running has a row of its own, because it observes all time from its
 * start on; single looks do not. */
static bool continue_run(struct store *s)
{
	if (!s->info.one_look)
		return true;
	return write_run(s, "UPDATE run SET ended_ms = NULL, how_ended = NULL WHERE"
			    " id = (SELECT max(id) FROM run WHERE host = ?1)"
			    " AND how_ended = 'finished' AND version = ?2 AND source = ?3"
			    " AND boot_id = ?4 AND last_tick_ms <= ?5"
			    " AND last_tick_ms > ?5 - 86400000 AND interval_ms = ?6"
			    " AND drain_ms = ?7 AND active_util_pct = ?8"
			    " AND held_mem_bytes = ?9 AND count_graphics = ?10"
			    " AND glance_ms = ?11 AND privacy = ?12"
			    " AND spell_ms = ?13 RETURNING id");
}

static bool add_run(struct store *s)
{
	return write_run(s,
		"INSERT INTO run (host, version, source, boot_id, started_ms, last_tick_ms,"
		" interval_ms, drain_ms, active_util_pct, held_mem_bytes, count_graphics,"
		" glance_ms, privacy, spell_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9,"
		" ?10, ?11, ?12, ?13) RETURNING id");
}

static bool begin_present_run(struct store *s)
{
	if (!close_holders(s) || !close_killed_runs(s) || !resume_run(s))
		return false;
	if (s->run != 0)
		return true;
	return write_close_spells(s) && continue_run(s) && (s->run != 0 || add_run(s));
}

/* Finds an older row of this host: one that has the card, and the same machine id; or, if one
 * of them has none, no run at the same time. 0: there is none. */
static bool find_older(struct store *s, const char *uuid, int64_t *older)
{
	sqlite3_stmt *q = prepare(s,
		"SELECT host.id FROM gpu JOIN host ON host.id = gpu.host WHERE gpu.uuid = ?1 "
		"AND"
		" host.id <> ?2 AND iif(machine_id <> '' AND ?3 <> '', machine_id = ?3,"
		" NOT EXISTS (SELECT 1 FROM run WHERE run.host = host.id AND last_tick_ms >"
		" ?4 + 60000)) ORDER BY host.last_seen_ms DESC LIMIT 1");
	*older = 0;
	sql_bind_text(q, 1, uuid);
	sqlite3_bind_int64(q, 2, s->host);
	sql_bind_text(q, 3, s->info.machine_id);
	sqlite3_bind_int64(q, 4, s->info.started_ms);
	return once(q, older);
}

/* Goes on with an older row instead of the new one, which has no more than a run and events
 * yet; it gets the new name. */
static bool take_older(struct store *s, int64_t older)
{
	static const char *const steps[] = {
		"UPDATE run SET host = ?2 WHERE host = ?1",
		"UPDATE event SET host = ?2 WHERE host = ?1",
		"DELETE FROM host WHERE id = ?1",
	};
	int64_t new = s->host;
	s->host = older; /* what its last run left open is closed first */
	bool ok = close_holders(s) && close_killed_runs(s) && write_close_spells(s);
	for (size_t i = 0; ok && i < sizeof(steps) / sizeof(steps[0]); i++) {
		sqlite3_stmt *q = prepare(s, steps[i]);
		sqlite3_bind_int64(q, 1, new);
		if (sqlite3_bind_parameter_count(q) > 1)
			sqlite3_bind_int64(q, 2, older);
		ok = once(q, NULL);
	}
	sqlite3_stmt *q = ok ? prepare(s, "UPDATE host SET hostname = ?2, machine_id ="
					  " iif(?3 = '', machine_id, ?3), environment = ?4"
					  " WHERE id = ?1")
			     : NULL;
	sqlite3_bind_int64(q, 1, older);
	sql_bind_text(q, 2, s->info.hostname);
	sql_bind_text(q, 3, s->info.machine_id);
	sql_bind_text(q, 4, s->info.environment);
	return ok && once(q, NULL);
}

bool store_find_host(struct store *s, const struct tick *t)
{
	int64_t n = 0, older = 0;
	if (s->host_found || s->past || t->n_cards == 0)
		return true;
	sqlite3_stmt *q = prepare(s, "SELECT count(*) FROM gpu WHERE host = ?1");
	sqlite3_bind_int64(q, 1, s->host);
	bool ok = once(q, &n);
	for (size_t i = 0; i < t->n_cards && ok && n == 0 && older == 0; i++)
		ok = find_older(s, t->cards[i].id.uuid, &older);
	return ok && (older == 0 || take_older(s, older));
}

/* Takes the recorder's lock on the open file. Closing any descriptor of the file drops SQLite's
 * locks, so a failure closes the connection first. */
static int take_lock(struct store *s, struct err *e)
{
	struct stat st;
	if (s->past || s->locked)
		return 0;
	s->lock_fd = open(s->path, O_RDWR | O_CLOEXEC);
	if (s->lock_fd < 0)
		return err_set(
			e, ERR_WORLD, "cannot open the store %s: %s", s->path, strerror(errno));
	s->locked = true;
	int code = 0;
	if (fstat(s->lock_fd, &st) != 0 || st.st_dev != s->dev || st.st_ino != s->ino)
		code = err_set(e, ERR_BUSY, "the store %s was replaced just now", s->path);
	else
		code = lock_store(s->lock_fd, s->path, e);
	if (code)
		store_disconnect(s);
	return code;
}

int store_ensure_run(struct store *s, struct err *e)
{
	int code = store_connect(s, e);
	if (code || s->run_ready || !s->has_run)
		return code;
	code = take_lock(s, e);
	if (code)
		return code;
	code = store_begin(s, e);
	if (code)
		return code;
	if (!write_host(s) || !(s->past ? add_run(s) : begin_present_run(s)))
		return store_abandon(s, "write", e);
	code = store_commit(s, e);
	s->run_ready = code == 0;
	s->host_found = false;
	s->holders_known = code == 0;
	s->n_holders = 0;
	return code;
}

int store_begin_run(struct store *s, const struct run_info *info, struct err *e)
{
	s->info = *info;
	s->past = strcmp(info->source, "import") == 0;
	s->has_run = true;
	s->run_ready = false;
	s->ids_stale = true;
	return store_ensure_run(s, e);
}

static bool write_end(struct store *s, int64_t now_ms, const char *how)
{
	if (!s->past && !(close_holders(s) && write_close_spells(s)))
		return false;
	sqlite3_stmt *q =
		prepare(s, "UPDATE run SET ended_ms = ?2, how_ended = ?3 WHERE id = ?1");
	sqlite3_bind_int64(q, 1, s->run);
	sqlite3_bind_int64(q, 2, now_ms);
	sql_bind_text(q, 3, how);
	return once(q, NULL);
}

int store_end_run(struct store *s, int64_t now_ms, const char *how, struct err *e)
{
	if (!s->has_run)
		return 0;
	int code = store_ensure_run(s, e);
	if (!code)
		code = store_begin(s, e);
	if (code)
		return code;
	if (!write_end(s, now_ms, how))
		return store_abandon(s, "write", e);
	code = store_commit(s, e);
	if (code == 0)
		s->has_run = s->run_ready = false;
	return code;
}

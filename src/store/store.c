/* The writer of a store: its connection, transactions and runs, and what earlier runs left
 * open. */
#include "store/store.h"

#include "store/crowd.h"
#include "store/identify.h"
#include "store/lock.h"
#include "store/store_private.h"
#include "store/sql.h"
#include "version.h"

/* The -wal file is folded into the store from 4 MiB on, so that a page that each tick writes is
 * in the store once for many ticks, and is synced after each MiB and after some commits, so
 * that a power failure loses few ticks all the same. While a reader uses an older state, SQLite
 * cannot restart the file from its beginning; from 6 MiB on, each tick waits a moment for
 * readers to finish. A transaction that stays open for hours still makes the file grow, but no
 * data is lost. From 16 MiB on, this is a fault that `gua status` shows; from twice 128 MiB on,
 * a recorder commits less often. */
#define MIB (INT64_C(1) << 20)
#define WAL_SYNC MIB
#define WAL_FOLD (4 * MIB)
#define WAL_WAIT (6 * MIB)
#define WAL_FAULT (16 * MIB)
#define WAL_EXCESS (128 * MIB)
enum { WAL_WAIT_MS = 100, WAL_COMMITS = 10 };

static int count_wal_pages(void *store, sqlite3 *db, const char *name, int pages)
{
	struct store *s = store;
	(void)db;
	(void)name;
	s->wal_bytes = (int64_t)pages * s->page_bytes;
	return SQLITE_OK;
}

/* Syncs the -wal file, or folds it into the store; a failure shows at the next write. */
static void bound_wal(struct store *s)
{
	if (s->wal_bytes < s->wal_synced)
		s->wal_synced = 0; /* it begins again */
	if (++s->n_unsynced >= WAL_COMMITS ||
		(s->wal_bytes < WAL_FOLD && s->wal_bytes - s->wal_synced >= WAL_SYNC)) {
		sqlite3_file *log = NULL;
		sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
		if (log && log->pMethods)
			log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
		s->wal_synced = s->wal_bytes;
		s->n_unsynced = 0;
	}
	if (s->wal_bytes < WAL_FOLD)
		return;
	bool wait = s->wal_bytes >= WAL_WAIT;
	sqlite3_busy_timeout(s->db, wait ? WAL_WAIT_MS : 0);
	sqlite3_wal_checkpoint_v2(s->db, "main",
		wait ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
}

int store_check_wal(struct store *s, struct err *e)
{
	if (s->wal_bytes < WAL_FAULT)
		return 0;
	int code = err_set(e, ERR_WORLD,
		"%s-wal has grown to %d MiB, because another program keeps an old state of the "
		"store open",
		s->path, (int)(s->wal_bytes / MIB));
	lock_name_blocker(s, BLOCKS_FOLDING, e);
	return code;
}

unsigned store_wal_excess(const struct store *s)
{
	return (unsigned)(s->wal_bytes / WAL_EXCESS);
}

/* Closes the connection and its statements, releases the lock; the store stays usable. */
static void disconnect(struct store *s)
{
	for (size_t i = 0; i < STATEMENT_COUNT; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	crowd_disconnect(s);
	sqlite3_close(s->db);
	s->db = NULL;
	/* Closed after SQLite's connection: closing any descriptor of a file drops SQLite's
	 * locks on it. */
	if (s->locked)
		close(s->lock_fd);
	s->locked = false;
	file_close(s->shm_fd);
	s->shm_fd = -1;
	s->wal_bytes = s->wal_synced = 0;
	s->run_ready = false;
	s->ids_stale = true;
	s->holders_known = s->open_known = false;
	s->swept = 0;
}

/* Creates the empty file and its directory. */
static int make_file(const char *path, struct err *e)
{
	int rc = file_make_parent(path, 0750, e);
	if (rc)
		return rc;
	int fd = file_open_or_make(path, O_CREAT, 0640);
	if (fd < 0)
		return err_set(e, errno == ENOSPC || errno == EDQUOT ? ERR_BUSY : ERR_WORLD,
			"cannot make the store %s: %s", path, strerror(errno));
	close(fd);
	return 0;
}

int store_connect(struct store *s, struct err *e)
{
	if (s->in_batch && s->batch_failed)
		return err_set(e, ERR_WORLD,
			"nothing more is written to the store %s after an earlier failure",
			s->path);
	struct stat st;
	bool same_file = stat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
	if (s->db && (s->in_batch || same_file))
		return 0;
	disconnect(s);
	int kind = identify_store(s->path, e);
	if (kind < 0)
		return kind;
	if (kind == STORE_MISSING) {
		if (s->ino)
			log_warning("the store %s was removed: a new one begins", s->path);
		int made = make_file(s->path, e);
		if (made)
			return made;
	}
	if (stat(s->path, &st) != 0)
		return err_set(
			e, ERR_WORLD, "cannot open the store %s: %s", s->path, strerror(errno));
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	int code = store_open_writer(&s->db, s->path, e);
	if (code == ERR_BUSY)
		lock_name_blocker(s, BLOCKS_WRITING, e);
	if (code) {
		disconnect(s);
		return code;
	}
	s->page_bytes = sql_value(s->db, "PRAGMA page_size", 0, NULL);
	sqlite3_wal_hook(s->db, count_wal_pages, s);
	return 0;
}

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
	disconnect(s);
	crowd_free(s);
	free(s->card_ids);
	free(s->process_ids);
	free(s->lease_ids);
	free(s->holders);
	free(s->next);
	free(s->users);
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
		disconnect(s);
	return code;
}

int store_begin(struct store *s, struct err *e)
{
	if (s->in_batch)
		return 0;
	errno = 0; /* see why_system() in sql.c */
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
	bound_wal(s);
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
	if (keep && !sums_settle(s))
		return store_abandon(s, "write", e);
	if (keep)
		return store_commit(s, e);
	/* Rows that this connection counts as written were rolled back. */
	disconnect(s);
	return 0;
}

struct sqlite3 *store_handle(struct store *s)
{
	return s->db;
}

/* An unknown value, or one from the past, does not replace a known one. */
#define NEWER(column)                                                                          \
	column " = iif(?6 OR excluded." column " = '', " column ", excluded." column ")"

static bool write_host(struct store *s)
{
	return sql_do(s->db,
		"INSERT INTO host (hostname, machine_id, environment, driver, first_seen_ms,"
		" last_seen_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5)"
		" ON CONFLICT (hostname) DO UPDATE SET"
		" " NEWER("machine_id") ", " NEWER("environment") ", " NEWER(
			"driver") ","
				  " first_seen_ms = min(first_seen_ms, excluded.first_seen_ms),"
				  " last_seen_ms = max(last_seen_ms, excluded.last_seen_ms) "
				  "RETURNING id",
		&s->host, SQL_TEXT(s->info.hostname), SQL_TEXT(s->info.machine_id),
		SQL_TEXT(s->info.environment), SQL_TEXT(s->info.driver),
		SQL_INT(s->info.started_ms), SQL_INT(s->past));
}

/* The rules of a spell are those of the run that has ended, which is the newest of the host. */
#define OF_HOST " gpu IN (SELECT id FROM gpu WHERE host = ?1)"

/* Closes what an earlier run of this host left open. Its holders count until its last tick;
 * only the holder table knows when they were last active. A process that was not seen to end is
 * closed at the moment when it was last seen. If it is still alive, a later run of the same
 * boot finds it in open_life and opens it again. */
static bool close_holders(struct store *s)
{
	return sql_do(s->db,
		       "UPDATE process SET last_seen_ms = max(last_seen_ms, coalesce((SELECT"
		       " max(last_tick_ms) FROM run WHERE host = ?1 AND ended_ms IS NULL), 0)),"
		       " last_active_ms = (SELECT max(at) FROM (SELECT process.last_active_ms"
		       " AS at UNION ALL SELECT last_active_ms FROM holder"
		       " WHERE process = process.id))"
		       " WHERE id IN (SELECT process FROM holder JOIN gpu ON"
		       " gpu.id = holder.gpu WHERE gpu.host = ?1)",
		       NULL, SQL_INT(s->host)) &&
	       sql_do(s->db,
		       "INSERT OR IGNORE INTO open_life SELECT pid, id FROM process"
		       " WHERE host = ?1 AND ended_ms IS NULL",
		       NULL, SQL_INT(s->host)) &&
	       sql_do(s->db,
		       "DELETE FROM open_life WHERE (SELECT process.host = ?1 AND boot_id <> ?2"
		       " FROM process JOIN run ON run.id = process.run"
		       " WHERE process.id = open_life.process)",
		       NULL, SQL_INT(s->host), SQL_TEXT(s->info.boot_id)) &&
	       sql_do(s->db,
		       "UPDATE process SET ended_ms = last_seen_ms"
		       " WHERE host = ?1 AND ended_ms IS NULL",
		       NULL, SQL_INT(s->host)) &&
	       sql_do(s->db, "DELETE FROM holder WHERE" OF_HOST, NULL, SQL_INT(s->host));
}

/* A tick does not write to the rows of the host and its cards: what was seen last is in `run`
 * and `reading` until the run has ended. Then a later import can say more. */
static bool settle_seen(struct store *s)
{
	return sql_do(s->db, "UPDATE gpu SET last_seen_ms = " SQL_CARD_SEEN " WHERE host = ?1",
		       NULL, SQL_INT(s->host)) &&
	       sql_do(s->db, "UPDATE reading SET seen_ms = NULL WHERE" OF_HOST, NULL,
		       SQL_INT(s->host)) &&
	       sql_do(s->db,
		       "UPDATE host SET last_seen_ms = max(last_seen_ms, coalesce((SELECT"
		       " max(last_tick_ms) FROM run WHERE host = ?1 AND ended_ms IS NULL), 0))"
		       " WHERE id = ?1",
		       NULL, SQL_INT(s->host));
}

/* For a run that has ended or was killed: its open stretches that are long enough become spells
 * that ended with it. Those of this boot also stay open: if the next run sees one continue, the
 * spell is opened again. */
static bool close_spells(struct store *s)
{
	return sql_do(s->db,
		       "INSERT OR REPLACE INTO spell SELECT end_ms, gpu, process, begin_ms,"
		       " idle_held_ms, squatting_ms, mem_peak_kib, energy_mj, ?2"
		       " FROM open_spell WHERE" OF_HOST
		       " AND idle_held_ms + squatting_ms >= (SELECT spell_ms FROM run"
		       " WHERE host = ?1 AND source <> 'import' ORDER BY id DESC LIMIT 1)",
		       NULL, SQL_INT(s->host), SQL_INT(SPELL_STOPPED)) &&
	       sql_do(s->db,
		       "DELETE FROM open_spell WHERE" OF_HOST
		       " AND process NOT IN (SELECT process.id FROM process"
		       " JOIN run ON run.id = process.run WHERE process.host = ?1"
		       " AND boot_id = ?2 AND process.id IN (SELECT process FROM open_spell))",
		       NULL, SQL_INT(s->host), SQL_TEXT(s->info.boot_id));
}

static bool close_killed_runs(struct store *s)
{
	return sql_do(s->db,
		"UPDATE run SET ended_ms = last_tick_ms, how_ended = 'killed'"
		" WHERE host = ?1 AND ended_ms IS NULL",
		NULL, SQL_INT(s->host));
}

/* Inserts or updates a run; both statements take the same parameters. */
static bool write_run(struct store *s, const char *sql)
{
	const struct rules *rules = &s->info.rules;
	return sql_do(s->db, sql, &s->run, SQL_INT(s->host), SQL_RAW(GUA_VERSION),
		SQL_TEXT(s->info.source), SQL_TEXT(s->info.boot_id),
		SQL_INT(s->info.started_ms), SQL_INT(s->info.interval_ms),
		SQL_INT(s->info.drain_ms), SQL_REAL(rules->active_util_pct),
		SQL_INT(rules->held_mem_bytes), SQL_INT(rules->count_graphics),
		SQL_INT(s->info.glance_ms), SQL_RAW(privacy_names[s->info.privacy]),
		SQL_INT(rules->spell_ms));
}

/* Single looks that a timer repeats share one run: with a row for each, runs would make up most
 * of the file. A run that finished by itself is continued if no other run came between and it
 * is not older than a day, after which the clock is in doubt: see compact.c. A recorder that
 * keeps running has a row of its own, because it observes all time from its start on; single
 * looks do not. */
static const char continue_sql[] =
	"UPDATE run SET ended_ms = NULL, how_ended = NULL WHERE"
	" id = (SELECT max(id) FROM run WHERE host = ?1)"
	" AND how_ended = 'finished' AND version = ?2 AND source = ?3"
	" AND boot_id = ?4 AND last_tick_ms <= ?5"
	" AND last_tick_ms > ?5 - 86400000 AND interval_ms = ?6"
	" AND drain_ms = ?7 AND active_util_pct = ?8"
	" AND held_mem_bytes = ?9 AND count_graphics = ?10"
	" AND glance_ms = ?11 AND privacy = ?12"
	" AND spell_ms = ?13 RETURNING id";
static const char add_sql[] =
	"INSERT INTO run (host, version, source, boot_id, started_ms, last_tick_ms,"
	" interval_ms, drain_ms, active_util_pct, held_mem_bytes, count_graphics,"
	" glance_ms, privacy, spell_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9,"
	" ?10, ?11, ?12, ?13) RETURNING id";

static bool begin_present_run(struct store *s)
{
	s->run = 0;
	/* A file that was restored, or opened again after a fault, may have this run. */
	if (!close_holders(s) || !close_killed_runs(s) ||
		!sql_do(s->db,
			"UPDATE run SET ended_ms = NULL, how_ended = NULL WHERE host = ?1"
			" AND started_ms = ?2 AND boot_id = ?3 AND source = ?4 RETURNING id",
			&s->run, SQL_INT(s->host), SQL_INT(s->info.started_ms),
			SQL_TEXT(s->info.boot_id), SQL_TEXT(s->info.source)))
		return false;
	if (s->run != 0)
		return true;
	return close_spells(s) && (!s->info.one_look || write_run(s, continue_sql)) &&
	       (s->run != 0 || write_run(s, add_sql));
}

/* Continues with an older row instead of the new one, to which only a run and events refer so
 * far. The older row gets the new name. */
static bool take_older(struct store *s, int64_t older)
{
	int64_t new = s->host;
	s->host = older; /* what its last run left open is closed first */
	return close_holders(s) && settle_seen(s) && close_killed_runs(s) && close_spells(s) &&
	       sql_do(s->db, "UPDATE run SET host = ?2 WHERE host = ?1", NULL, SQL_INT(new),
		       SQL_INT(older)) &&
	       sql_do(s->db, "UPDATE event SET host = ?2 WHERE host = ?1", NULL, SQL_INT(new),
		       SQL_INT(older)) &&
	       sql_do(s->db, "DELETE FROM host WHERE id = ?1", NULL, SQL_INT(new)) &&
	       sql_do(s->db,
		       "UPDATE host SET hostname = ?2, machine_id ="
		       " iif(?3 = '', machine_id, ?3), environment = ?4 WHERE id = ?1",
		       NULL, SQL_INT(older), SQL_TEXT(s->info.hostname),
		       SQL_TEXT(s->info.machine_id), SQL_TEXT(s->info.environment));
}

/* Finds an older row of this host that has the card. It must have the same machine id or, if
 * one of the two has none, no run at the same time. */
bool store_find_host(struct store *s, const struct tick *t)
{
	int64_t n = 0, older = 0;
	if (s->host_found || s->past || t->n_cards == 0)
		return true;
	if (!sql_do(s->db, "SELECT count(*) FROM gpu WHERE host = ?1", &n, SQL_INT(s->host)))
		return false;
	for (size_t i = 0; i < t->n_cards && n == 0 && older == 0; i++)
		if (!sql_do(s->db,
			    "SELECT host.id FROM gpu JOIN host ON host.id = gpu.host"
			    " WHERE gpu.uuid = ?1 AND host.id <> ?2"
			    " AND iif(machine_id <> '' AND ?3 <> '', machine_id = ?3,"
			    " NOT EXISTS (SELECT 1 FROM run WHERE run.host = host.id"
			    " AND last_tick_ms > ?4 + 60000))"
			    " ORDER BY host.last_seen_ms DESC LIMIT 1",
			    &older, SQL_TEXT(t->cards[i].id.uuid), SQL_INT(s->host),
			    SQL_TEXT(s->info.machine_id), SQL_INT(s->info.started_ms)))
			return false;
	return older == 0 || take_older(s, older);
}

static void name_card(struct store *s, struct card_id *id)
{
	sqlite3_stmt *q = NULL;
	sqlite3_prepare_v2(s->db,
		"SELECT uuid, name, pci FROM gpu WHERE host = ?1 AND mig_index IS NULL"
		" AND CASE WHEN ?2 <> '' THEN pci = ?2 ELSE idx = ?3 END"
		" AND uuid NOT LIKE 'index-%' AND uuid NOT LIKE 'pci-%'"
		" ORDER BY last_seen_ms DESC LIMIT 1",
		-1, &q, NULL);
	sql_bind(q, SQL_INT(s->host), SQL_TEXT(id->pci), SQL_INT(id->index));
	if (q && sqlite3_step(q) == SQLITE_ROW) {
		sql_text(q, 0, id->uuid, sizeof(id->uuid));
		sql_text(q, 1, id->name, sizeof(id->name));
		sql_text(q, 2, id->pci, sizeof(id->pci));
	}
	sqlite3_finalize(q);
}

struct card_past store_card_past(struct store *s, struct card_id *id)
{
	struct card_past past = { .seen_ms = INT64_MAX, .idle_held_since_ms = -1 };
	sqlite3_stmt *q = NULL;
	if (!s->db || !s->run_ready)
		return past;
	if (!card_has_uuid(id) && id->mig_index < 0)
		name_card(s, id);
	sqlite3_prepare_v2(s->db,
		"SELECT " SQL_CARD_SEEN
		" AS seen, coalesce(idle_held_since_ms, -1), status FROM gpu"
		" LEFT JOIN reading ON reading.gpu = gpu.id WHERE uuid = ?1"
		" ORDER BY seen DESC LIMIT 1",
		-1, &q, NULL);
	sql_bind(q, SQL_TEXT(id->uuid));
	int rc = q ? sqlite3_step(q) : SQLITE_ERROR;
	if (rc == SQLITE_DONE)
		past.seen_ms = -1;
	if (rc == SQLITE_ROW)
		past = (struct card_past){ sqlite3_column_int64(q, 0),
			sqlite3_column_int64(q, 1),
			card_status_of((const char *)sqlite3_column_text(q, 2)) };
	sqlite3_finalize(q);
	return past;
}

/* Converts a row of store_past_spells(). */
static struct past_spell past_of(sqlite3_stmt *row)
{
	struct past_spell past = { .pid = (uint32_t)sqlite3_column_int64(row, 1),
		.start_ticks = (uint64_t)sqlite3_column_int64(row, 2),
		.spell = { .end_ms = sqlite3_column_int64(row, 3),
			.begin_ms = sqlite3_column_int64(row, 4),
			.idle_held_ms = sqlite3_column_int64(row, 5),
			.squatting_ms = sqlite3_column_int64(row, 6),
			.mem_peak_kib = sqlite3_column_int64(row, 7),
			.energy_mj = sqlite3_column_int64(row, 8),
			.how = SPELL_OPEN,
			.stored_end_ms = -1 } };
	str_copy(past.uuid, sizeof(past.uuid), sql_raw(row, 0));
	if (sqlite3_column_int(row, 9))
		past.spell.stored_end_ms = past.spell.end_ms;
	return past;
}

/* No number of a spell is as large, except in a file that another program has changed. */
#define PLAUSIBLE (INT64_C(1) << 53)

int store_past_spells(struct store *s, struct past_spell **past, size_t *n, struct err *e)
{
	*past = NULL;
	*n = 0;
	if (!s->db || !s->run_ready)
		return 0;
	sqlite3_stmt *q = NULL;
	sqlite3_prepare_v2(s->db,
		"SELECT uuid, pid, start_ticks, end_ms, begin_ms, idle_held_ms, squatting_ms,"
		" coalesce(mem_peak_kib, -1), coalesce(energy_mj, -1), EXISTS (SELECT 1 FROM"
		" spell WHERE spell.end_ms = o.end_ms AND spell.gpu = o.gpu"
		" AND spell.process = o.process) FROM open_spell AS o"
		" JOIN gpu ON gpu.id = o.gpu JOIN process ON process.id = o.process"
		" WHERE gpu.host = ?1 AND begin_ms BETWEEN 0 AND end_ms AND max(end_ms,"
		" idle_held_ms, squatting_ms, coalesce(mem_peak_kib, 0),"
		" coalesce(energy_mj, 0)) < ?2 AND min(idle_held_ms, squatting_ms) >= 0",
		-1, &q, NULL);
	sql_bind(q, SQL_INT(s->host), SQL_INT(PLAUSIBLE));
	int rc = q ? SQLITE_ROW : SQLITE_ERROR;
	while (rc == SQLITE_ROW && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		if (!array_one_more(past, *n)) {
			sqlite3_finalize(q);
			return err_memory(e);
		}
		(*past)[(*n)++] = past_of(q);
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : sql_fail(e, s->db, "read", s->path);
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
		disconnect(s);
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
	if (!write_host(s) || !settle_seen(s) ||
		!(s->past ? write_run(s, add_sql) : begin_present_run(s)))
		return store_abandon(s, "write", e);
	code = store_commit(s, e);
	s->run_ready = code == 0;
	s->host_found = s->leases_checked = s->leases_noted = false;
	s->holders_known = code == 0;
	s->n_holders = 0;
	s->open_known = false;
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

int store_end_run(struct store *s, int64_t now_ms, const char *how, struct err *e)
{
	if (!s->has_run)
		return 0;
	int code = store_ensure_run(s, e);
	if (!code)
		code = store_begin(s, e);
	if (code)
		return code;
	bool closed = s->past || (close_holders(s) && settle_seen(s) && close_spells(s));
	if (!closed ||
		!sql_do(s->db, "UPDATE run SET ended_ms = ?2, how_ended = ?3 WHERE id = ?1",
			NULL, SQL_INT(s->run), SQL_INT(now_ms), SQL_TEXT(how)))
		return store_abandon(s, "write", e);
	code = store_commit(s, e);
	if (code == 0)
		s->has_run = s->run_ready = false;
	return code;
}

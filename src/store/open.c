/* Opening: the connection and its settings. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "read_1.h"
#include "read_2.h"
#include "read_3.h"
#include "schema.h"
#include "store/crowd.h"
#include "store/foreign.h"
#include "store/identify.h"
#include "store/lock.h"
#include "store/store_private.h"
#include "store/sql.h"
#include "store/store.h"
#include "upgrade_1.h"
#include "upgrade_2.h"
#include "upgrade_3.h"
#include "views.h"

/* What an older version needs. An empty file (version 0) gets the newest schema at once. */
static const struct version {
	const char *upgrade; /* turns it into the next version */
	const char *read;    /* views with which a reader sees it as the next version */
} versions[] = {
	[1] = { upgrade_1_sql, read_1_sql },
	[2] = { upgrade_2_sql, read_2_sql },
	[3] = { upgrade_3_sql, read_3_sql },
};
_Static_assert(sizeof(versions) / sizeof(versions[0]) == STORE_VERSION,
	"a new version needs a row for the one before it");

static bool is_foreign(int64_t version)
{
	return version < 0 || version > STORE_VERSION;
}

/* Our views, whose columns differ between versions; a user's own views stay. */
static const char drop_views_sql[] = "DROP VIEW IF EXISTS state; DROP VIEW IF EXISTS usage;"
				     "DROP VIEW IF EXISTS holding;"
				     "DROP VIEW IF EXISTS day_cards;"
				     "DROP VIEW IF EXISTS day_users;"
				     "DROP VIEW IF EXISTS now_holders;"
				     "DROP VIEW IF EXISTS idle_spells;";

/* Creates or upgrades all tables, from any version; then the views, which are the same for
 * all. */
static int make_schema(sqlite3 *db, int64_t version)
{
	char number[64];
	int rc = sql_exec(db, version == 0 ? schema_sql : drop_views_sql);
	for (int64_t i = version; i > 0 && rc == SQLITE_OK && i < STORE_VERSION; i++)
		rc = sql_exec(db, versions[i].upgrade);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, views_sql);
	snprintf(number, sizeof(number), "PRAGMA user_version = %d", STORE_VERSION);
	return rc == SQLITE_OK ? sql_exec(db, number) : rc;
}

/* One transaction; the version is read again inside it, because another program may have
 * upgraded the file meanwhile. */
static int upgrade(sqlite3 *db, int64_t *version)
{
	int rc = sql_exec(db, "BEGIN IMMEDIATE");
	if (rc != SQLITE_OK)
		return rc;
	*version = sql_value(db, "PRAGMA user_version", 0, &rc);
	if (rc == SQLITE_OK && *version >= 0 && *version < STORE_VERSION)
		rc = make_schema(db, *version);
	return rc == SQLITE_OK ? sql_exec(db, "COMMIT") : rc;
}

/* The page size can only be chosen before the first table, and the schema is written before
 * WAL is switched on, so that the application id is in the header from the beginning. */
int store_upgrade(sqlite3 *db, const char *path, struct err *e)
{
	int rc = SQLITE_OK;
	int64_t version = sql_value(db, "PRAGMA user_version", 0, &rc);
	if (rc != SQLITE_OK)
		return sql_fail(e, db, "open", path);
	if (version == 0 && sql_exec(db, "PRAGMA page_size = 2048") != SQLITE_OK)
		return sql_fail(e, db, "make", path);
	if (version < STORE_VERSION && upgrade(db, &version) != SQLITE_OK)
		return sql_fail(e, db, version == 0 ? "make" : "upgrade", path);
	return is_foreign(version) ? identify_refuse_version(path, version, e) : 0;
}

/* Lets a reader read a store of this older version, without changing it. */
static int store_adapt(sqlite3 *db, int64_t version, const char *path, struct err *e)
{
	if (is_foreign(version))
		return identify_refuse_version(path, version, e);
	if (version == STORE_VERSION)
		return 0;
	if (version < 1)
		return err_set(e, ERR_WORLD,
			"%s has schema version %lld, older than 1: the recorder brings it up "
			"to date when it starts",
			path, (long long)version);
	int rc = sql_exec(db, "PRAGMA temp_store = MEMORY");
	for (int64_t i = version; rc == SQLITE_OK && i < STORE_VERSION; i++)
		rc = sql_exec(db, versions[i].read);
	return rc == SQLITE_OK ? 0 : sql_fail(e, db, "read", path);
}

/* How long a writer waits for another one. It is short, so that the next tick is not late; the
 * recorder keeps the sums and tries again. */
enum { BUSY_MS = 1000, READ_BUSY_MS = 5000 };

/* The -wal file is folded into the store from 1 MiB on. While a reader uses an older state,
 * SQLite cannot restart the file from its beginning; from 2 MiB on, each tick waits a moment
 * for readers to finish. A transaction that stays open for hours still makes the file grow,
 * but no data is lost. */
enum { WAL_FOLD_PAGES = 512, WAL_WAIT_PAGES = 1024, WAL_WAIT_MS = 100 };
/* From 16 MiB on, that is a fault which `gua status` shows. */
enum { WAL_PAGES_MIB = 256, WAL_FAULT_PAGES = 16 * WAL_PAGES_MIB };
/* From twice 128 MiB on, a recorder commits less often. */
enum { WAL_EXCESS_PAGES = 128 * WAL_PAGES_MIB };

/* Settings of the writer's connection.
 *
 * synchronous=NORMAL: with WAL, a commit is one write without fsync; checkpoints do the fsyncs.
 * kill -9 loses nothing that was committed, because the kernel has it. A power loss loses at
 * most the ticks since the last checkpoint (about 256 pages, minutes) and never damages the
 * file. FULL would be one fsync a tick, for ever, to save those minutes.
 *
 * journal_size_limit cuts the -wal file back when readers made it larger than it should be; see
 * store_bound_wal(). */
static const char settings[] = "PRAGMA synchronous = NORMAL;"
			       "PRAGMA journal_size_limit = 1048576;"
			       "PRAGMA cache_size = -1024;"
			       "PRAGMA temp_store = MEMORY;"
			       "PRAGMA foreign_keys = OFF;";

static int count_wal_pages(void *store, sqlite3 *db, const char *name, int pages)
{
	struct store *s = store;
	(void)db;
	(void)name;
	s->wal_pages = pages;
	return SQLITE_OK;
}

void store_bound_wal(struct store *s)
{
	if (s->wal_pages < WAL_FOLD_PAGES)
		return;
	bool wait = s->wal_pages >= WAL_WAIT_PAGES;
	sqlite3_busy_timeout(s->db, wait ? WAL_WAIT_MS : 0);
	sqlite3_wal_checkpoint_v2(s->db, "main",
		wait ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	sqlite3_busy_timeout(s->db, BUSY_MS);
}

int store_check_wal(struct store *s, struct err *e)
{
	if (s->wal_pages < WAL_FAULT_PAGES)
		return 0;
	int code = err_set(e, ERR_WORLD,
		"%s-wal has grown to %d MiB, because another program keeps an old state of the "
		"store open",
		s->path, s->wal_pages / WAL_PAGES_MIB);
	lock_name_blocker(s, BLOCKS_FOLDING, e);
	return code;
}

unsigned store_wal_excess(const struct store *s)
{
	return s->wal_pages > 0 ? (unsigned)s->wal_pages / WAL_EXCESS_PAGES : 0;
}

void store_disconnect(struct store *s)
{
	for (size_t i = 0; i < STATEMENT_COUNT; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	crowd_disconnect(s);
	spells_disconnect(s);
	readings_disconnect(s);
	sqlite3_close(s->db);
	s->db = NULL;
	/* Closed after SQLite: closing any descriptor of a file drops SQLite's locks on it. */
	if (s->locked)
		close(s->lock_fd);
	s->locked = false;
	if (s->shm_fd >= 0)
		close(s->shm_fd);
	s->shm_fd = -1;
	s->wal_pages = 0;
	s->run_ready = false;
	s->ids_stale = true;
	s->holders_known = false;
	s->swept = 0;
}

/* Creates the empty file and its directory. */
static int make_file(const char *path, struct err *e)
{
	int rc = file_make_parent(path, 0750, e);
	if (rc)
		return rc;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	if (fd < 0)
		return err_set(e, errno == ENOSPC || errno == EDQUOT ? ERR_BUSY : ERR_WORLD,
			"cannot make the store %s: %s", path, strerror(errno));
	close(fd);
	return 0;
}

/* Every table that is read or written. */
static const char *const tables[] = { "host", "run", "gpu", "process", "open_life", "holder",
	"spell", "open_spell", "usage_1m", "usage_5m", "usage_1h", "usage_1d", "heat_5m",
	"heat_1h", "sm_active", "holding_1m", "holding_5m", "holding_1h", "holding_1d",
	"total_gpu", "total_user", "identity", "reading", "event", "import", NULL };

/* Opens, sets up and migrates; the caller closes `*db` also after a failure. */
static int open_writer(sqlite3 **db, const char *path, struct err *e)
{
	int code = lock_check_logs(path, e);
	if (code)
		return code;
	if (sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
		SQLITE_OK)
		return sql_fail(e, *db, "open", path);
	sqlite3_extended_result_codes(*db, 0);
	sqlite3_busy_timeout(*db, BUSY_MS);
	if (sqlite3_db_readonly(*db, "main") == 1)
		return sql_fail_code(e, SQLITE_READONLY, "write", path);
	if (foreign_restrict(*db) != SQLITE_OK)
		return sql_fail(e, *db, "open", path);
	code = foreign_check_tables(*db, tables, path, e);
	if (!code)
		code = store_upgrade(*db, path, e);
	if (code)
		return code;
	if (sql_exec(*db, "PRAGMA journal_mode = WAL") != SQLITE_OK ||
		sql_exec(*db, settings) != SQLITE_OK)
		return sql_fail(e, *db, "open", path);
	return 0;
}

/* True when the open connection is on the file that is at the path now. */
static bool same_file(const struct store *s)
{
	struct stat st;
	return stat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

int store_connect(struct store *s, struct err *e)
{
	if (s->in_batch && s->batch_failed)
		return err_set(e, ERR_WORLD,
			"nothing more is written to the store %s after an earlier failure",
			s->path);
	if (s->db && (s->in_batch || same_file(s)))
		return 0;
	store_disconnect(s);
	int kind = identify_store(s->path, e);
	if (kind < 0)
		return kind;
	if (kind == STORE_MISSING) {
		int made = make_file(s->path, e);
		if (made)
			return made;
	}
	struct stat st;
	if (stat(s->path, &st) != 0)
		return err_set(
			e, ERR_WORLD, "cannot open the store %s: %s", s->path, strerror(errno));
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	int code = open_writer(&s->db, s->path, e);
	if (code == ERR_BUSY)
		lock_name_blocker(s, BLOCKS_WRITING, e);
	if (code)
		store_disconnect(s);
	else
		sqlite3_wal_hook(s->db, count_wal_pages, s);
	return code;
}

/* A store without a writer, in a directory where we may not write: SQLite cannot create the
 * -shm file that it shares with a writer, and does not need it. */
static int reopen_immutable(sqlite3 **db, const struct foreign_file *file, struct err *e)
{
	struct foreign_file alone = *file;
	alone.immutable = true;
	sqlite3_close(*db);
	*db = NULL;
	return foreign_open(db, &alone, e);
}

static int open_reader(sqlite3 **db, const struct foreign_file *file, struct err *e)
{
	int rc = SQLITE_OK, code = foreign_open(db, file, e);
	if (code)
		return code;
	int64_t version = sql_value(*db, "PRAGMA user_version", 0, &rc);
	if ((rc == SQLITE_CANTOPEN || rc == SQLITE_READONLY) && !foreign_has_log(file->path)) {
		code = reopen_immutable(db, file, e);
		if (code)
			return code;
		version = sql_value(*db, "PRAGMA user_version", 0, &rc);
	}
	if (rc != SQLITE_OK)
		return sql_fail(e, *db, "read", file->path);
	code = foreign_check_tables(*db, tables, file->path, e);
	return code ? code : store_adapt(*db, version, file->path, e);
}

/* Files that were read as stores before. To identify a file is to open and close it, and
 * closing any descriptor of a file drops the locks that SQLite has on it for all threads of the
 * process: a server would read without its locks. So this is one of the few things that a
 * process remembers. A file that another one has replaced has another inode. */
enum { KNOWN_STORES = 1 << 14 };
static struct known_store {
	dev_t dev;
	ino_t ino;
} known[KNOWN_STORES]; /* a file has one place, which another may take from it */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static struct known_store *place_of(const struct stat *st)
{
	uint64_t hash =
		((uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 40) * 0x9E3779B97F4A7C15u;
	return &known[(hash >> 32) % KNOWN_STORES];
}

static bool is_known(const struct stat *st)
{
	const struct known_store *place = place_of(st);
	pthread_mutex_lock(&known_lock);
	bool found = place->ino == st->st_ino && place->dev == st->st_dev;
	pthread_mutex_unlock(&known_lock);
	return found;
}

static void remember(const struct stat *st)
{
	pthread_mutex_lock(&known_lock);
	*place_of(st) = (struct known_store){ st->st_dev, st->st_ino };
	pthread_mutex_unlock(&known_lock);
}

/* The same as identify_store(), without opening a store that was read before. */
static int identify_again(const char *path, struct err *e)
{
	struct stat st;
	bool seen = stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
		    access(path, R_OK) == 0;
	if (seen && is_known(&st))
		return STORE_OURS;
	int kind = identify_store(path, e);
	if (seen && kind == STORE_OURS)
		remember(&st);
	return kind;
}

static int open_store(sqlite3 **db, const struct foreign_file *file, struct err *e)
{
	*db = NULL;
	int kind = identify_again(file->path, e);
	if (kind < 0)
		return kind;
	if (kind == STORE_MISSING)
		return err_set(e, ERR_WORLD,
			"there is no store at %s; record with 'gua start', or give the path of "
			"a store",
			file->path);
	if (kind == STORE_EMPTY)
		return err_set(
			e, ERR_WORLD, "%s is empty: nothing was recorded yet", file->path);
	int code = open_reader(db, file, e);
	if (code) {
		sqlite3_close(*db);
		*db = NULL;
	}
	return code;
}

int store_open_read(struct sqlite3 **db, const char *path, struct err *e)
{
	return store_open_read_within(db, path, READ_BUSY_MS, e);
}

int store_open_read_within(struct sqlite3 **db, const char *path, int wait_ms, struct err *e)
{
	const struct foreign_file file = { .path = path, .wait_ms = wait_ms };
	return open_store(db, &file, e);
}

int store_open_read_until(struct sqlite3 **db, const char *path, int wait_ms,
	struct foreign_stop *stop, struct err *e)
{
	const struct foreign_file file = { .path = path, .wait_ms = wait_ms, .stop = stop };
	return open_store(db, &file, e);
}

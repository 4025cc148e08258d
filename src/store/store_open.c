/* Opens the file of a store: updates its schema for a writer; readers read older ones. */
#include <pthread.h>
#include <sys/sysmacros.h>

#include "read_4.h"
#include "schema.h"
#include "store/foreign.h"
#include "store/identify.h"
#include "store/lock.h"
#include "store/store_private.h"
#include "store/sql.h"
#include "store/store.h"
#include "upgrade_4.h"
#include "upgrade_5.h"
#include "views.h"

/* What an older version needs. An empty file (version 0) gets the newest schema at once. */
static const struct version {
	const char *upgrade; /* turns it into the next version */
	const char *read;    /* views that show it to a reader as the next version */
} versions[] = {
	[4] = { upgrade_4_sql, read_4_sql },
};
_Static_assert(sizeof(versions) / sizeof(versions[0]) == STORE_VERSION,
	"a new version needs a row for the one before it");

/* The first version that has the sums of sums.h. */
enum { FIRST_WITH_SUMS = 5 };

/* Our views, also those that were in stores of older versions; a user's own views stay. */
static const char drop_views_sql[] = "DROP VIEW IF EXISTS state; DROP VIEW IF EXISTS usage;"
				     "DROP VIEW IF EXISTS holding;"
				     "DROP VIEW IF EXISTS day_cards;"
				     "DROP VIEW IF EXISTS day_users;"
				     "DROP VIEW IF EXISTS now_holders;"
				     "DROP VIEW IF EXISTS idle_spells;"
				     "DROP VIEW IF EXISTS leased_time;";

/* Creates or upgrades all tables, from any version; then the views, the same for all. */
static int make_schema(sqlite3 *db, int64_t version)
{
	struct sums_span hours;
	char number[64];
	int rc = sql_exec(db, version == 0 ? schema_sql : drop_views_sql);
	for (int64_t i = version; i > 0 && rc == SQLITE_OK && i < STORE_VERSION; i++)
		rc = sql_exec(db, versions[i].upgrade);
	if (rc == SQLITE_OK && version > 0)
		rc = sql_exec(db, upgrade_5_sql);
	if (rc == SQLITE_OK && version > 0 && version < FIRST_WITH_SUMS &&
		!(sums_find(db, &hours) && sums_make(db, hours)))
		rc = sqlite3_errcode(db);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, views_sql);
	snprintf(number, sizeof(number), "PRAGMA user_version = %d", STORE_VERSION);
	return rc == SQLITE_OK ? sql_exec(db, number) : rc;
}

/* Whether the file must be changed before it is written. The first files of version 5 have no
 * row numbers in open_spell. */
static bool is_old(sqlite3 *db, int64_t version)
{
	static const char count[] =
		"SELECT count(*) FROM sqlite_master WHERE name = 'open_spell' AND sql LIKE "
		"'%WITHOUT ROWID'";
	return version < STORE_VERSION ||
	       (version == STORE_VERSION && sql_value(db, count, 0, NULL) > 0);
}

/* All in one transaction. The version is read again inside it, because another program may have
 * upgraded the file meanwhile. */
static int upgrade(sqlite3 *db, int64_t *version)
{
	int rc = sql_exec(db, "BEGIN IMMEDIATE");
	if (rc != SQLITE_OK)
		return rc;
	*version = sql_value(db, "PRAGMA user_version", 0, &rc);
	if (rc == SQLITE_OK && identify_knows(*version) && is_old(db, *version))
		rc = make_schema(db, *version);
	return rc == SQLITE_OK ? sql_exec(db, "COMMIT") : rc;
}

/* The page size can only be chosen before the first table, and the schema is written before
 * WAL is switched on, so that the application id is in the header from the beginning. Small
 * pages: a tick changes a few rows in many places, and the -wal file gets whole pages. With 1
 * KiB a tick writes a sixth less than with 2 KiB, and reports take as long; with 512 bytes they
 * take 3 % longer. */
int store_open_upgrade(sqlite3 *db, const char *path, struct err *e)
{
	int rc = SQLITE_OK;
	int64_t version = sql_value(db, "PRAGMA user_version", 0, &rc);
	if (rc != SQLITE_OK)
		return sql_fail(e, db, "open", path);
	if (version == 0 && sql_exec(db, "PRAGMA page_size = 1024") != SQLITE_OK)
		return sql_fail(e, db, "make", path);
	if (is_old(db, version) && upgrade(db, &version) != SQLITE_OK)
		return sql_fail(e, db, version == 0 ? "make" : "upgrade", path);
	return identify_knows(version) ? 0 : identify_refuse_version(path, version, e);
}

/* All tables that are read or written. */
static const char *const tables[] = { "host", "run", "gpu", "process", "open_life", "holder",
	"spell", "open_spell", "usage_1m", "usage_5m", "usage_1h", "usage_hour", "usage_1d",
	"heat_1h", "sm_active", "holding_1m", "holding_5m", "holding_1h", "holding_hour",
	"holding_1d", "lease", "reserved_1m", "reserved_5m", "reserved_1h", "leased_1d",
	"total_gpu", "total_user", "identity", "reading", "event", "import", NULL };

/* Settings of the writer's connection.
 *
 * synchronous=NORMAL: with WAL, a commit is one write without fsync; checkpoints do the fsyncs.
 * kill -9 loses nothing that was committed, because the kernel has it. A power loss loses at
 * most the ticks since the last sync (see bound_wal() in store.c) and never damages the file.
 * FULL would be one fsync a tick, for ever, to save those minutes.
 *
 * journal_size_limit cuts the -wal file back when readers made it larger than it should be; see
 * bound_wal() in store.c. */
static const char settings[] = "PRAGMA synchronous = NORMAL;"
			       "PRAGMA journal_size_limit = 4194304;"
			       "PRAGMA cache_size = -192;"
			       "PRAGMA temp_store = MEMORY;"
			       "PRAGMA foreign_keys = OFF;";

int store_open_writer(sqlite3 **db, const char *path, struct err *e)
{
	int code = lock_check_logs(path, e);
	if (code)
		return code;
	if (sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
		SQLITE_OK)
		return sql_fail(e, *db, "open", path);
	sqlite3_extended_result_codes(*db, 0);
	sqlite3_busy_timeout(*db, STORE_BUSY_MS);
	if (sqlite3_db_readonly(*db, "main") == 1)
		return sql_fail_code(e, SQLITE_READONLY, "write", path);
	if (foreign_restrict(*db) != SQLITE_OK)
		return sql_fail(e, *db, "open", path);
	code = foreign_check_tables(*db, tables, path, e);
	if (!code)
		code = store_open_upgrade(*db, path, e);
	if (code)
		return code;
	if (sql_exec(*db, "PRAGMA journal_mode = WAL") != SQLITE_OK ||
		sql_exec(*db, settings) != SQLITE_OK)
		return sql_fail(e, *db, "open", path);
	return 0;
}

/* Lets a reader read a store of this older version, without changing it. */
static int adapt(sqlite3 *db, int64_t version, const char *path, struct err *e)
{
	if (!identify_knows(version))
		return identify_refuse_version(path, version, e);
	if (version == STORE_VERSION)
		return 0;
	if (version == 0)
		return err_set(e, ERR_WORLD,
			"%s has no tables yet: the recorder makes them when it starts", path);
	int rc = sql_exec(db, "PRAGMA temp_store = MEMORY");
	for (int64_t i = version; rc == SQLITE_OK && i < STORE_VERSION; i++)
		rc = sql_exec(db, versions[i].read);
	return rc == SQLITE_OK ? 0 : sql_fail(e, db, "read", path);
}

static int open_reader(sqlite3 **db, const struct foreign_file *file, struct err *e)
{
	int rc = SQLITE_OK, code = foreign_open(db, file, e);
	if (code)
		return code;
	int64_t version = sql_value(*db, "PRAGMA user_version", 0, &rc);
	if ((rc == SQLITE_CANTOPEN || rc == SQLITE_READONLY) && !foreign_has_log(file->path)) {
		/* A store without a writer, in a directory where we may not write: SQLite
		 * cannot create the -shm file that it shares with a writer, and does not need
		 * it. */
		struct foreign_file alone = *file;
		alone.immutable = true;
		sqlite3_close(*db);
		code = foreign_open(db, &alone, e);
		if (code)
			return code;
		version = sql_value(*db, "PRAGMA user_version", 0, &rc);
	}
	if (rc != SQLITE_OK)
		return sql_fail(e, *db, "read", file->path);
	code = foreign_check_tables(*db, tables, file->path, e);
	return code ? code : adapt(*db, version, file->path, e);
}

/* Files that were read as stores before. Identifying a file opens and closes it, and closing
 * any descriptor of a file drops the locks that SQLite has on it for all threads of the
 * process: a server would then read without its locks. So the process remembers these files,
 * one of few things that it remembers. A file that took the place of another one may have its
 * inode, but was made later. */
enum { KNOWN_STORES = 1 << 14 };
static struct known_store {
	uint64_t dev, ino;
	struct statx_timestamp made;
} known[KNOWN_STORES]; /* each file has one entry, which another file may take */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

/* The same as identify_store(), but does not open a store that was read before. */
static int identify_again(const char *path, struct err *e)
{
	struct statx st;
	if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_BTIME, &st) != 0 ||
		!S_ISREG(st.stx_mode) || st.stx_size == 0 || access(path, R_OK) != 0)
		return identify_store(path, e);
	const struct known_store this = { .dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
		.made = st.stx_btime };
	uint64_t hash = (this.ino ^ this.dev << 40) * 0x9E3779B97F4A7C15u;
	struct known_store *place = &known[(hash >> 32) % KNOWN_STORES];
	pthread_mutex_lock(&known_lock);
	bool found = memcmp(place, &this, sizeof(this)) == 0;
	pthread_mutex_unlock(&known_lock);
	if (found)
		return STORE_OURS;
	int kind = identify_store(path, e);
	if (kind == STORE_OURS) {
		pthread_mutex_lock(&known_lock);
		*place = this;
		pthread_mutex_unlock(&known_lock);
	}
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
			"there is no store at %s; record with 'gua start' or, as a service, "
			"'sudo gua install', or give the path of a store",
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

/* How long most readers wait for another program's lock. */
enum { READ_WAIT_MS = 5000 };

int store_open_read(struct sqlite3 **db, const char *path, struct err *e)
{
	return store_open_read_within(db, path, READ_WAIT_MS, e);
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

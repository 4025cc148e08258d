/* The versions of the schema: making it, bringing an older one up to date, reading an older
 * one. */
#include <stdio.h>

#include "read_1.h"
#include "read_2.h"
#include "read_3.h"
#include "schema.h"
#include "store/identify.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/store_private.h"
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
	return is_foreign(version) ? store_refuse_version(path, version, e) : 0;
}

int store_adapt(sqlite3 *db, int64_t version, const char *path, struct err *e)
{
	if (is_foreign(version))
		return store_refuse_version(path, version, e);
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

/* Reads the first run of a store, and checks that the file is whole. */
#include "store/origin.h"

#include <stdio.h>
#include <string.h>

#include "store/sql.h"
#include "store/store.h"

static int check_whole(sqlite3 *db, const char *path, struct err *e)
{
	sqlite3_stmt *row = NULL;
	char found[128] = "";
	int rc = sql_prepare(db, &row, e, "PRAGMA quick_check(1)");
	if (rc == 0)
		rc = sql_step(row, e);
	if (rc > 0)
		sql_text(row, 0, found, sizeof(found));
	sqlite3_finalize(row);
	if (rc < 0)
		return rc;
	return strcmp(found, "ok") == 0
		       ? 0
		       : err_set(e, ERR_WORLD, "%s is damaged: %s", path, found);
}

static int read_origin(sqlite3 *db, char origin[ORIGIN_CAP], struct err *e)
{
	sqlite3_stmt *row = NULL;
	char host[160], machine[80], source[64];
	int rc = sql_prepare(db, &row, e,
		"SELECT hostname, machine_id, source, started_ms FROM run JOIN host ON "
		"host.id = run.host ORDER BY started_ms, run.id LIMIT 1");
	if (rc == 0)
		rc = sql_step(row, e);
	*origin = '\0';
	if (rc > 0) {
		sql_text(row, 0, host, sizeof(host));
		sql_text(row, 1, machine, sizeof(machine));
		sql_text(row, 2, source, sizeof(source));
		snprintf(origin, ORIGIN_CAP, "%s %s %s %lld", host, machine, source,
			(long long)sql_int(row, 3, 0));
	}
	sqlite3_finalize(row);
	return rc < 0 ? rc : 0;
}

int store_origin(const char *path, char origin[ORIGIN_CAP], struct err *e)
{
	sqlite3 *db = NULL;
	*origin = '\0';
	int rc = store_open_read(&db, path, e);
	if (rc == 0)
		rc = check_whole(db, path, e);
	if (rc == 0)
		rc = read_origin(db, origin, e);
	sqlite3_close(db);
	return rc;
}

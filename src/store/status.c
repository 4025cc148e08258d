/* Reads the newest run and the cards of its host. */
#include "store/status.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/sql.h"
#include "store/store.h"

static const char run_sql[] =
	"SELECT source, version, started_ms, last_tick_ms, interval_ms, coalesce(ended_ms, -1),"
	" coalesce(how_ended, ''), host, coalesce((SELECT hostname FROM host WHERE host.id ="
	" run.host), '') FROM run WHERE source <> 'import' ORDER BY id DESC LIMIT 1";

/* A status is wanted now, also when a program has locked the store. */
enum { BUSY_MS = 500 };
#define YEAR_MS (366 * INT64_C(86400000))

int64_t status_bound(int64_t value, int64_t max)
{
	return value < 0 ? 0 : value > max ? max : value;
}

static int64_t column_moment(sqlite3_stmt *q, int column)
{
	return status_bound(sqlite3_column_int64(q, column), STATUS_LAST_MS);
}

/* Returns the run's host, 0 when there is no run, -1 on failure. */
static int64_t read_run(struct store_status *s, sqlite3 *db)
{
	sqlite3_stmt *q = NULL;
	int64_t host = -1;
	if (sqlite3_prepare_v2(db, run_sql, -1, &q, NULL) != SQLITE_OK)
		return -1;
	int rc = sqlite3_step(q);
	if (rc == SQLITE_DONE)
		host = 0;
	if (rc == SQLITE_ROW) {
		s->any_run = true;
		sql_text(q, 0, s->source, sizeof(s->source));
		sql_text(q, 1, s->version, sizeof(s->version));
		s->started_ms = column_moment(q, 2);
		s->last_tick_ms = column_moment(q, 3);
		s->interval_ms = status_bound(sqlite3_column_int64(q, 4), YEAR_MS);
		s->ended_ms = sqlite3_column_int64(q, 5) < 0 ? -1 : column_moment(q, 5);
		sql_text(q, 6, s->how_ended, sizeof(s->how_ended));
		host = sqlite3_column_int64(q, 7);
		sql_text(q, 8, s->hostname, sizeof(s->hostname));
	}
	sqlite3_finalize(q);
	return host;
}

static bool read_cards(struct store_status *s, sqlite3 *db, int64_t host)
{
	sqlite3_stmt *q = NULL;
	if (sqlite3_prepare_v2(db, "SELECT status FROM gpu WHERE host = ?", -1, &q, NULL) !=
		SQLITE_OK)
		return false;
	sqlite3_bind_int64(q, 1, host);
	int rc;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		const char *status = (const char *)sqlite3_column_text(q, 0);
		for (size_t i = 0; status && i < CARD_STATUS_COUNT; i++)
			s->cards[i] += strcmp(status, card_status_names[i]) == 0;
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE;
}

static int64_t size_of(const char *path, const char *suffix)
{
	char full[4096];
	struct stat st;
	snprintf(full, sizeof(full), "%s%s", path, suffix);
	return stat(full, &st) == 0 ? (int64_t)st.st_size : 0;
}

int status_read(struct store_status *s, const char *path, struct err *e)
{
	*s = (struct store_status){ .ended_ms = -1 };
	sqlite3 *db = NULL;
	int rc = store_open_read_within(&db, path, BUSY_MS, e);
	if (rc)
		return rc;
	int64_t host = read_run(s, db);
	if (host < 0 || (host > 0 && !read_cards(s, db, host)))
		rc = err_set(e, ERR_WORLD, "cannot read %s: %s", path, sql_why(db));
	sqlite3_close(db);
	s->file_bytes = size_of(path, "");
	s->wal_bytes = size_of(path, "-wal");
	return rc;
}

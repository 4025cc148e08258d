/* Copies the part of a store that a window needs, table by table, in one read transaction. */
#include "store/extract.h"

#include "store/sql.h"
#include "store/store.h"
#include "store/store_private.h"

/* ?1 and ?2 are slots, at whole days; ?3 and ?4 are the same moments in milliseconds. The
 * margin is for a window that a wider slot of another host extends, by less than an hour. */
enum { DAY_S = 86400, MARGIN_S = 3600 };
#define IN_WINDOW "slot >= ?1 AND slot < ?2"
/* The first and the last slot of the whole store are copied too: they show where its data
 * begins and ends. */
#define WITH_ENDS(table)                                                                       \
	IN_WINDOW " OR slot = (SELECT min(slot) FROM " table                                   \
		  ") OR slot = (SELECT max(slot) FROM " table ")"
/* The newest rows are copied too: a reader learns from them how much memory a bare context
 * takes (audit/audit.c). */
#define WITH_NEWEST(table, rows)                                                               \
	IN_WINDOW " OR slot >= (SELECT min(slot) FROM (SELECT slot FROM " table                \
		  " ORDER BY slot DESC LIMIT " rows "))"
#define HOLDING_IN(table) "SELECT process FROM " table " WHERE " IN_WINDOW
#define LEASES_IN "ended_ms IS NULL OR id IN (SELECT lease FROM leased_1d WHERE " IN_WINDOW ")"
#define SPELLS_IN "end_ms >= ?3 AND begin_ms < ?4"
/* clang-format off */
#define PROCESSES_IN \
	"id IN (" HOLDING_IN("holding_1m") " UNION " HOLDING_IN("holding_5m") " UNION " \
	HOLDING_IN("holding_1h") " UNION " HOLDING_IN("holding_1d") \
	" UNION SELECT process FROM holder UNION SELECT process FROM open_spell" \
	" UNION SELECT process FROM spell WHERE " SPELLS_IN ")"
/* clang-format on */

/* The tables that reports read, and which of their rows are copied. The other tables are about
 * the store itself: running totals, imports, lives for the next recorder. */
static const struct part {
	const char *table, *where;
} parts[] = {
	{ "host", "1" },
	{ "run", "1" },
	{ "gpu", "1" },
	{ "usage_1m", WITH_ENDS("usage_1m") },
	{ "usage_5m", WITH_ENDS("usage_5m") },
	{ "usage_1h", WITH_ENDS("usage_1h") },
	{ "usage_hour", IN_WINDOW },
	{ "usage_1d", IN_WINDOW },
	{ "heat_1h", IN_WINDOW },
	{ "sm_active", IN_WINDOW },
	{ "holding_1m", WITH_NEWEST("holding_1m", "1000") },
	{ "holding_5m", IN_WINDOW },
	{ "holding_1h", IN_WINDOW },
	{ "holding_hour", IN_WINDOW },
	{ "holding_1d", WITH_NEWEST("holding_1d", "3000") },
	{ "reserved_1m", IN_WINDOW },
	{ "reserved_5m", IN_WINDOW },
	{ "reserved_1h", IN_WINDOW },
	{ "leased_1d", IN_WINDOW },
	{ "lease", LEASES_IN },
	{ "holder", "1" },
	{ "open_spell", "1" },
	{ "spell", SPELLS_IN },
	{ "reading", "1" },
	{ "event", "at_ms >= ?3 AND at_ms < ?4" },
	{ "process", PROCESSES_IN },
};

struct extract {
	const struct extract_wish *wish;
	sqlite3 *from, *to;
	char path[4096]; /* of the new file */
	int64_t first_s, last_s;
};

/* Writes the names of a table's columns, separated by commas, and as many question marks. */
static int read_columns(sqlite3 *db, const char *table, struct str *names, struct str *marks)
{
	sqlite3_stmt *row = NULL;
	int rc =
		sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?)", -1, &row, NULL);
	sql_bind(row, SQL_RAW(table));
	while (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) {
		str_addf(names, "%s%s", names->len ? ", " : "", sql_raw(row, 0));
		str_add(marks, marks->len ? ", ?" : "?");
	}
	sqlite3_finalize(row);
	return rc;
}

static int copy_rows(struct extract *x, sqlite3_stmt *get, sqlite3_stmt *put, struct err *e)
{
	int n = sqlite3_column_count(get), rc;
	/* Not every statement has all four parameters. */
	sql_bind(get, SQL_INT(x->first_s), SQL_INT(x->last_s), SQL_INT(x->first_s * 1000),
		SQL_INT(x->last_s * 1000));
	while ((rc = sqlite3_step(get)) == SQLITE_ROW) {
		for (int i = 0; i < n; i++)
			sqlite3_bind_value(put, i + 1, sqlite3_column_value(get, i));
		if (!sql_run(put, NULL))
			return sql_fail(e, x->to, "write", x->path);
	}
	return rc == SQLITE_DONE ? 0 : sql_fail(e, x->from, "read", x->wish->path);
}

static int copy_table(struct extract *x, const struct part *part, struct err *e)
{
	struct str names = { 0 }, marks = { 0 }, select = { 0 }, insert = { 0 };
	sqlite3_stmt *get = NULL, *put = NULL;
	int rc = read_columns(x->to, part->table, &names, &marks);
	str_addf(&select, "SELECT %s FROM %s WHERE %s", str_text(&names), part->table,
		part->where);
	str_addf(&insert, "INSERT INTO %s (%s) VALUES (%s)", part->table, str_text(&names),
		str_text(&marks));
	if (select.failed || insert.failed || names.failed || marks.failed)
		rc = err_memory(e);
	else if (rc != SQLITE_OK ||
		 sqlite3_prepare_v2(x->to, str_text(&insert), -1, &put, NULL) != SQLITE_OK)
		rc = sql_fail(e, x->to, "write", x->path);
	else if (sqlite3_prepare_v2(x->from, str_text(&select), -1, &get, NULL) != SQLITE_OK)
		rc = sql_fail(e, x->from, "read", x->wish->path);
	else
		rc = copy_rows(x, get, put, e);
	sqlite3_finalize(get);
	sqlite3_finalize(put);
	str_finish(&names);
	str_finish(&marks);
	str_finish(&select);
	str_finish(&insert);
	return rc;
}

/* No other process uses the new file, and it is dropped on any failure, so it needs no journal.
 * Its name is removed as soon as it is open, so that nothing is left if this process is killed.
 */
static int open_new(struct extract *x, struct err *e)
{
	int rc = sqlite3_open_v2(
		x->path, &x->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	unlink(x->path);
	if (rc != SQLITE_OK || sql_exec(x->to, "PRAGMA journal_mode = OFF;"
					       "PRAGMA synchronous = OFF;"
					       "PRAGMA locking_mode = EXCLUSIVE;"
					       "PRAGMA temp_store = MEMORY") != SQLITE_OK)
		return sql_fail(e, x->to, "make", x->path);
	return store_open_upgrade(x->to, x->path, e);
}

static int copy_all(struct extract *x, struct err *e)
{
	int rc = open_new(x, e);
	if (rc == 0)
		rc = store_open_read(&x->from, x->wish->path, e);
	if (rc == 0 && sql_exec(x->from, "BEGIN") != SQLITE_OK)
		rc = sql_fail(e, x->from, "read", x->wish->path);
	if (rc == 0 && sql_exec(x->to, "BEGIN") != SQLITE_OK)
		rc = sql_fail(e, x->to, "write", x->path);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && rc == 0; i++)
		rc = copy_table(x, &parts[i], e);
	if (rc == 0 && sql_exec(x->to, "COMMIT") != SQLITE_OK)
		rc = sql_fail(e, x->to, "write", x->path);
	sqlite3_close(x->from);
	sqlite3_close(x->to);
	return rc;
}

int extract_store(int *fd, const struct extract_wish *wish, struct err *e)
{
	const int64_t most_s = INT64_C(1) << 40;
	int64_t since_s = wish->since_ms / 1000, until_s = wish->until_ms / 1000;
	struct extract x = { .wish = wish };
	until_s = until_s < most_s ? until_s : most_s;
	x.first_s = since_s > DAY_S ? (since_s - MARGIN_S) / DAY_S * DAY_S : 0;
	x.last_s = (until_s + MARGIN_S + DAY_S) / DAY_S * DAY_S;
	int len = snprintf(x.path, sizeof(x.path), "%s/gua-export-XXXXXX", wish->directory);
	*fd = len > 0 && (size_t)len < sizeof(x.path) ? mkstemp(x.path) : -1;
	if (*fd < 0)
		return err_set(e, ERR_WORLD, "cannot make a temporary file in %s: %s",
			wish->directory, strerror(errno));
	int rc = copy_all(&x, e);
	if (rc) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

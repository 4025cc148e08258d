/* Exports rows: for each kind, a list of columns and a statement that returns them in that
 * order. */
#include "query/export.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "query/sql.h"
#include "source/kind.h"
#include "store/store.h"

#define COUNT(array) (sizeof(array) / sizeof(array[0]))
enum { TEXT_CAP = 1100 };

static const struct column usage_columns[] = {
	{ .key = "slot", .kind = COLUMN_MOMENT },
	{ .key = "slot_seconds", .kind = COLUMN_COUNT },
	{ .key = "host", .kind = COLUMN_TEXT },
	{ .key = "gpu", .kind = COLUMN_TEXT },
	{ .key = "gpu_index", .kind = COLUMN_COUNT },
	{ .key = "state", .kind = COLUMN_TEXT },
	{ .key = "seconds", .kind = COLUMN_MS },
	{ .key = "mean_util_pct", .kind = COLUMN_PCT },
	{ .key = "energy_joules", .kind = COLUMN_MJ },
	{ .key = "energy_unknown_seconds", .kind = COLUMN_MS },
	{ .key = "unsure_seconds", .kind = COLUMN_MS },
	{ .key = "source", .kind = COLUMN_TEXT },
};

static const struct column holding_columns[] = {
	{ .key = "slot", .kind = COLUMN_MOMENT },
	{ .key = "slot_seconds", .kind = COLUMN_COUNT },
	{ .key = "host", .kind = COLUMN_TEXT },
	{ .key = "gpu", .kind = COLUMN_TEXT },
	{ .key = "gpu_index", .kind = COLUMN_COUNT },
	{ .key = "process", .kind = COLUMN_COUNT },
	{ .key = "pid", .kind = COLUMN_COUNT },
	{ .key = "user", .kind = COLUMN_TEXT },
	{ .key = "command", .kind = COLUMN_TEXT },
	{ .key = "active_seconds", .kind = COLUMN_MS },
	{ .key = "idle_held_seconds", .kind = COLUMN_MS },
	{ .key = "truly_idle_seconds", .kind = COLUMN_MS },
	{ .key = "squatting_seconds", .kind = COLUMN_MS },
	{ .key = "presence_seconds", .kind = COLUMN_MS },
	{ .key = "active_share_seconds", .kind = COLUMN_MS },
	{ .key = "idle_held_share_seconds", .kind = COLUMN_MS },
	{ .key = "mean_sm_pct", .kind = COLUMN_PCT },
	{ .key = "peak_mem_bytes", .kind = COLUMN_KIB },
	{ .key = "use_unknown_seconds", .kind = COLUMN_MS },
	{ .key = "source", .kind = COLUMN_TEXT },
};

static const struct column process_columns[] = {
	{ .key = "process", .kind = COLUMN_COUNT },
	{ .key = "host", .kind = COLUMN_TEXT },
	{ .key = "pid", .kind = COLUMN_COUNT },
	{ .key = "started", .kind = COLUMN_MOMENT },
	{ .key = "uid", .kind = COLUMN_COUNT },
	{ .key = "user", .kind = COLUMN_TEXT },
	{ .key = "command", .kind = COLUMN_TEXT },
	{ .key = "notebook", .kind = COLUMN_TEXT },
	{ .key = "job", .kind = COLUMN_TEXT },
	{ .key = "container", .kind = COLUMN_TEXT },
	{ .key = "pod", .kind = COLUMN_TEXT },
	{ .key = "unit", .kind = COLUMN_TEXT },
	{ .key = "first_seen", .kind = COLUMN_MOMENT },
	{ .key = "last_seen", .kind = COLUMN_MOMENT },
	{ .key = "last_active", .kind = COLUMN_MOMENT },
	{ .key = "ended", .kind = COLUMN_MOMENT },
};

static const struct column event_columns[] = {
	{ .key = "at", .kind = COLUMN_MOMENT },
	{ .key = "host", .kind = COLUMN_TEXT },
	{ .key = "gpu", .kind = COLUMN_TEXT },
	{ .key = "kind", .kind = COLUMN_TEXT },
	{ .key = "value", .kind = COLUMN_COUNT },
	{ .key = "text", .kind = COLUMN_TEXT },
};

/* The slots of all three tables in order of time. SQLite merges them without sorting. A slot
 * that is partly in the window is included. */
#define SLOTS(kind, key)                                                                       \
	"(SELECT 3600 AS seconds, * FROM " kind "_1h WHERE slot > ?1 - 3600 AND slot < ?2 "    \
	"UNION ALL SELECT 300, * FROM " kind "_5m WHERE slot > ?1 - 300 AND slot < ?2 "        \
	"UNION ALL SELECT 60, * FROM " kind "_1m WHERE slot > ?1 - 60 AND slot < ?2 "          \
	"ORDER BY slot, gpu, " key ") u"
#define OF_HOST                                                                                \
	"(SELECT hostname FROM host WHERE id = (SELECT host FROM gpu WHERE id = u.gpu)), "
#define OF_CARD                                                                                \
	OF_HOST "(SELECT uuid FROM gpu WHERE id = u.gpu), (SELECT idx FROM gpu WHERE id = "    \
		"u.gpu), "
#define OF_SOURCE "(SELECT source FROM gpu WHERE id = u.gpu) "
#define OF_PROCESS(column) "(SELECT " column " FROM process WHERE id = u.process), "

static const struct export_kind {
	const struct column *columns;
	size_t n_columns;
	const char *sql; /* ?1 and ?2: the window, unix seconds; ?3, ?4: milliseconds */
} kinds[EXPORT_WHATS] = {
	[EXPORT_USAGE] = { usage_columns, COUNT(usage_columns),
		"SELECT slot * 1000, seconds, " OF_CARD
		"CASE state WHEN 0 THEN 'active' WHEN 1 THEN 'idle_held' WHEN 2 THEN "
		"'truly_idle' "
		"WHEN 3 THEN 'unobserved' WHEN 4 THEN 'use_unknown' END, ms, "
		"CASE WHEN state < 3 AND ms > 0 THEN 1.0 * util_pct_ms / ms END, "
		"iif(energy_unknown_ms < ms, energy_mj, NULL), max(energy_unknown_ms, 0), "
		"max(unsure_ms, 0), " OF_SOURCE "FROM " SLOTS("usage", "state") },
	[EXPORT_HOLDING] = { holding_columns, COUNT(holding_columns),
		"SELECT slot * 1000, seconds, " OF_CARD
		"process, " OF_PROCESS("pid") OF_PROCESS("user") OF_PROCESS(
			"command") "active_ms, idle_held_ms, truly_idle_ms, squatting_ms, "
				   "active_ms + idle_held_ms + truly_idle_ms + squatting_ms + "
				   "use_unknown_ms - active_double_ms - idle_held_double_ms - "
				   "truly_idle_double_ms - squatting_double_ms - "
				   "use_unknown_double_ms, "
				   "active_share_ms, idle_share_ms, 1.0 * sm_pct_ms / "
				   "nullif(active_ms + idle_held_ms + truly_idle_ms + "
				   "squatting_ms, 0), mem_peak_kib, use_unknown_ms, " OF_SOURCE
				   "FROM " SLOTS("holding", "process") },
	[EXPORT_PROCESS] = { process_columns, COUNT(process_columns),
		/* For current holders, the last tick and the table `holder` have the newest
		 * values. */
		"SELECT id, (SELECT hostname FROM host WHERE id = p.host), pid, started_ms, "
		"uid, "
		"user, command, notebook, job, container, pod, unit, first_seen_ms, "
		"max(last_seen_ms, iif(h.process IS NULL, 0, (SELECT max(last_tick_ms) FROM "
		"run "
		"WHERE host = p.host))), nullif(max(coalesce(p.last_active_ms, -1), "
		"coalesce(h.last_active_ms, -1)), -1), ended_ms FROM process p "
		"LEFT JOIN (SELECT process, max(last_active_ms) AS last_active_ms FROM holder "
		"GROUP BY process) h ON h.process = p.id "
		"WHERE (last_seen_ms >= ?3 OR h.process IS NOT NULL) AND first_seen_ms < ?4 "
		"ORDER BY id" },
	[EXPORT_EVENT] = { event_columns, COUNT(event_columns),
		"SELECT at_ms, (SELECT hostname FROM host WHERE id = e.host), "
		"(SELECT uuid FROM gpu WHERE id = e.gpu), kind, value, text FROM event e "
		"WHERE at_ms >= ?3 AND at_ms < ?4 ORDER BY id" },
};

struct export
{
	sqlite3 *db;
	sqlite3_stmt *stmt;
	const struct export_kind *kind;
	char texts[EXPORT_MAX_COLUMNS][TEXT_CAP]; /* texts of the current row */
};

const struct column *export_columns(enum export_what what, size_t *n)
{
	*n = kinds[what].n_columns;
	return kinds[what].columns;
}

int export_open(struct export **x, enum export_what what, const char *path, int64_t since_ms,
	int64_t until_ms, struct err *e)
{
	struct export *new = calloc(1, sizeof(*new));
	*x = new;
	if (!new)
		return err_memory(e);
	new->kind = &kinds[what];
	int rc = store_open_read(&new->db, path, e);
	if (rc == 0)
		rc = sql_prepare(new->db, &new->stmt, e, "%s", new->kind->sql);
	if (rc)
		return rc;
	const int64_t window[] = { since_ms / 1000, (until_ms + 999) / 1000, since_ms,
		until_ms };
	for (int i = 0; i < sqlite3_bind_parameter_count(new->stmt); i++)
		sqlite3_bind_int64(new->stmt, i + 1, window[i]);
	return 0;
}

int export_next(struct export *x, struct cell cells[EXPORT_MAX_COLUMNS], struct err *e)
{
	int rc = sql_step(x->stmt, e);
	for (int i = 0; i < (int)x->kind->n_columns && rc == 1; i++) {
		bool known = sqlite3_column_type(x->stmt, i) != SQLITE_NULL;
		if (!known) {
			cells[i] = cell_number((double)NAN);
		} else if (x->kind->columns[i].kind == COLUMN_TEXT) {
			sql_text(x->stmt, i, x->texts[i], TEXT_CAP);
			cells[i] = cell_text(x->texts[i]);
		} else {
			cells[i] = cell_number(sqlite3_column_double(x->stmt, i));
		}
	}
	return rc;
}

/* A slot is at most an hour long, so rows up to an hour before or after a run may contain its
 * data. */
bool export_simulated(struct export *x, int64_t since_ms, int64_t until_ms)
{
	struct err ignored = { 0 };
	sqlite3_stmt *stmt = NULL;
	char source[SOURCE_LIST_CAP];
	bool any = false;
	if (sql_prepare(x->db, &stmt, &ignored,
		    "SELECT DISTINCT source FROM run WHERE started_ms - 3600000 < ?2 AND "
		    "max(last_tick_ms, coalesce(ended_ms, 0)) + 3600000 >= ?1") == 0) {
		sqlite3_bind_int64(stmt, 1, since_ms);
		sqlite3_bind_int64(stmt, 2, until_ms);
		while (!any && sql_step(stmt, &ignored) == 1) {
			sql_text(stmt, 0, source, sizeof(source));
			any = source_is_invented(source);
		}
	}
	sqlite3_finalize(stmt);
	return any;
}

void export_close(struct export *x)
{
	if (!x)
		return;
	sqlite3_finalize(x->stmt);
	sqlite3_close(x->db);
	free(x);
}

/* Exports rows: for each kind, a table of columns, each with its SQL expression. */
#include "export/export.h"

#include "audit/audit.h"
#include "store/sql.h"
#include "driver/source.h"
#include "store/store.h"

#define COUNT(array) (sizeof(array) / sizeof(array[0]))
enum { TEXT_CAP = 1100 };

/* A column: its name, the kind of its values, and the SQL expression that yields them. */
struct export_column {
	const char *key;
	enum column_kind kind;
	const char *sql;
};

#define OF_CARD(column) "(SELECT " column " FROM gpu WHERE id = u.gpu)"
#define OF_PROCESS(column) "(SELECT " column " FROM process WHERE id = u.process)"
#define HOST_OF(id) "(SELECT hostname FROM host WHERE id = " id ")"
#define OBSERVED_MS "active_ms + idle_held_ms + truly_idle_ms + squatting_ms"

/* Which card a row is about. */
#define CARD_COLUMNS(host)                                                                     \
	{ "host", COLUMN_TEXT, HOST_OF(host) }, { "gpu", COLUMN_TEXT, OF_CARD("uuid") },       \
	{                                                                                      \
		"gpu_index", COLUMN_COUNT, OF_CARD("idx")                                      \
	}

static const struct export_column usage_columns[] = {
	{ "slot", COLUMN_MOMENT, "slot * 1000" },
	{ "slot_seconds", COLUMN_COUNT, "seconds" },
	CARD_COLUMNS(OF_CARD("host")),
	{ "state", COLUMN_TEXT,
		"CASE state WHEN 0 THEN 'active' WHEN 1 THEN 'idle_held' "
		"WHEN 2 THEN 'truly_idle' WHEN 3 THEN 'unobserved' WHEN 4 THEN 'use_unknown' "
		"WHEN 5 THEN 'reserved' END" },
	{ "seconds", COLUMN_MS, "ms" },
	{ "mean_util_pct", COLUMN_PCT,
		"CASE WHEN state < 3 AND ms > 0 THEN 1.0 * util_pct_ms / ms END" },
	{ "energy_joules", COLUMN_MJ, "iif(energy_unknown_ms < ms, energy_mj, NULL)" },
	{ "energy_unknown_seconds", COLUMN_MS, "max(energy_unknown_ms, 0)" },
	{ "unsure_seconds", COLUMN_MS, "max(unsure_ms, 0) + round(sqrt(max(unsure_ms2, 0)))" },
	{ "source", COLUMN_TEXT, OF_CARD("source") },
};

static const struct export_column holding_columns[] = {
	{ "slot", COLUMN_MOMENT, "slot * 1000" },
	{ "slot_seconds", COLUMN_COUNT, "seconds" },
	CARD_COLUMNS(OF_CARD("host")),
	{ "process", COLUMN_COUNT, "process" },
	{ "pid", COLUMN_COUNT, OF_PROCESS("pid") },
	{ "user", COLUMN_TEXT, OF_PROCESS("user") },
	{ "command", COLUMN_TEXT, OF_PROCESS("command") },
	{ "active_seconds", COLUMN_MS, "active_ms" },
	{ "idle_held_seconds", COLUMN_MS, "idle_held_ms" },
	{ "truly_idle_seconds", COLUMN_MS, "truly_idle_ms" },
	{ "squatting_seconds", COLUMN_MS, "squatting_ms" },
	{ "presence_seconds", COLUMN_MS,
		OBSERVED_MS " + use_unknown_ms - active_double_ms - idle_held_double_ms - "
			    "truly_idle_double_ms - squatting_double_ms - "
			    "use_unknown_double_ms" },
	{ "active_share_seconds", COLUMN_MS, "active_share_ms" },
	{ "idle_held_share_seconds", COLUMN_MS, "idle_share_ms" },
	{ "mean_sm_pct", COLUMN_PCT, "1.0 * sm_pct_ms / nullif(" OBSERVED_MS ", 0)" },
	{ "peak_mem_bytes", COLUMN_KIB, "mem_peak_kib" },
	{ "use_unknown_seconds", COLUMN_MS, "use_unknown_ms" },
	{ "source", COLUMN_TEXT, OF_CARD("source") },
};

/* For current holders, the last tick and the table `holder` have the newest values. */
static const struct export_column process_columns[] = {
	{ "process", COLUMN_COUNT, "id" },
	{ "host", COLUMN_TEXT, HOST_OF("p.host") },
	{ "pid", COLUMN_COUNT, "pid" },
	{ "started", COLUMN_MOMENT, "started_ms" },
	{ "uid", COLUMN_COUNT, "uid" },
	{ "user", COLUMN_TEXT, "user" },
	{ "command", COLUMN_TEXT, "command" },
	{ "notebook", COLUMN_TEXT, "notebook" },
	{ "job", COLUMN_TEXT, "job" },
	{ "container", COLUMN_TEXT, "container" },
	{ "pod", COLUMN_TEXT, "pod" },
	{ "unit", COLUMN_TEXT, "unit" },
	{ "notebook_path", COLUMN_TEXT, "notebook_path" },
	{ "job_name", COLUMN_TEXT, "job_name" },
	{ "account", COLUMN_TEXT, "account" },
	{ "login", COLUMN_TEXT, "login" },
	{ "session", COLUMN_TEXT, "session" },
	{ "parents", COLUMN_TEXT, "parents" },
	{ "python_env", COLUMN_TEXT, "python_env" },
	{ "tag", COLUMN_TEXT, "tag" },
	{ "first_seen", COLUMN_MOMENT, "first_seen_ms" },
	{ "last_seen", COLUMN_MOMENT,
		"max(last_seen_ms, iif(h.process IS NULL, 0, "
		"(SELECT max(last_tick_ms) FROM run WHERE host = p.host)))" },
	{ "last_active", COLUMN_MOMENT,
		"nullif(max(coalesce(p.last_active_ms, -1), "
		"coalesce(h.last_active_ms, -1)), -1)" },
	{ "ended", COLUMN_MOMENT, "ended_ms" },
};

static const struct export_column event_columns[] = {
	{ "at", COLUMN_MOMENT, "at_ms" },
	{ "host", COLUMN_TEXT, HOST_OF("e.host") },
	{ "gpu", COLUMN_TEXT, "(SELECT uuid FROM gpu WHERE id = e.gpu)" },
	{ "kind", COLUMN_TEXT, "kind" },
	{ "value", COLUMN_COUNT, "value" },
	{ "text", COLUMN_TEXT, "text" },
};

static const struct export_column spell_columns[] = {
	{ "begin", COLUMN_MOMENT, "begin_ms" },
	{ "end", COLUMN_MOMENT, "iif(how_ended IS NULL, NULL, end_ms)" },
	CARD_COLUMNS(OF_CARD("host")),
	{ "process", COLUMN_COUNT, "process" },
	{ "pid", COLUMN_COUNT, OF_PROCESS("pid") },
	{ "user", COLUMN_TEXT, OF_PROCESS("user") },
	{ "command", COLUMN_TEXT, OF_PROCESS("command") },
	{ "seconds", COLUMN_MS, "end_ms - begin_ms" },
	{ "idle_held_seconds", COLUMN_MS, "idle_held_ms" },
	{ "squatting_seconds", COLUMN_MS, "squatting_ms" },
	{ "unobserved_seconds", COLUMN_MS, "end_ms - begin_ms - idle_held_ms - squatting_ms" },
	{ "peak_mem_bytes", COLUMN_KIB, "mem_peak_kib" },
	{ "energy_joules", COLUMN_MJ, "energy_mj" },
	{ "how_ended", COLUMN_TEXT,
		"CASE how_ended WHEN 0 THEN 'active' WHEN 1 THEN 'released' "
		"WHEN 2 THEN 'exited' WHEN 3 THEN 'stopped' END" },
	{ "source", COLUMN_TEXT, OF_CARD("source") },
};

static const struct export_column lease_columns[] = {
	{ "kind", COLUMN_TEXT,
		"CASE kind WHEN 0 THEN 'slurm' WHEN 1 THEN 'pod' ELSE 'pick' END" },
	{ "id", COLUMN_TEXT, "name" },
	{ "owner", COLUMN_TEXT, "owner" },
	{ "uid", COLUMN_COUNT, "uid" },
	{ "job_name", COLUMN_TEXT, "job_name" },
	{ "account", COLUMN_TEXT, "account" },
	{ "task", COLUMN_TEXT, "task" },
	{ "share", COLUMN_COUNT, "share" },
	{ "since", COLUMN_MOMENT, "since_ms" },
	{ "until", COLUMN_MOMENT, "until_ms" },
	{ "ended", COLUMN_MOMENT, "ended_ms" },
	CARD_COLUMNS("l.host"),
	{ "reserved_seconds", COLUMN_MS, "reserved_ms" },
	{ "unknown_seconds", COLUMN_MS, "unknown_ms" },
	{ "active_seconds", COLUMN_MS, "active_ms" },
	{ "idle_held_seconds", COLUMN_MS, "idle_held_ms" },
	{ "use_unknown_seconds", COLUMN_MS, "use_unknown_ms" },
	{ "untouched_seconds", COLUMN_MS, "untouched_ms" },
	{ "source", COLUMN_TEXT, OF_CARD("source") },
};
#define RESERVED_OF(slots, seconds)                                                            \
	"UNION ALL SELECT lease, gpu, reserved_ms, unknown_ms, 0, 0, 0, 0 FROM "               \
	"reserved_" slots " WHERE slot > ?1 - " seconds " AND slot < ?2 "

/* The slots of all three tables in order of time. SQLite merges them without sorting. A slot
 * that is partly in the window is included. */
#define SLOTS(kind, key)                                                                       \
	"(SELECT 3600 AS seconds, * FROM " kind "_1h WHERE slot > ?1 - 3600 AND slot < ?2 "    \
	"UNION ALL SELECT 300, * FROM " kind "_5m WHERE slot > ?1 - 300 AND slot < ?2 "        \
	"UNION ALL SELECT 60, * FROM " kind "_1m WHERE slot > ?1 - 60 AND slot < ?2 "          \
	"ORDER BY slot, gpu, " key ") u"

static const struct export_kind {
	const struct export_column *columns;
	size_t n_columns;
	const char *from; /* the rest of the SELECT; ?1 and ?2: the window in unix seconds, ?3
			     and ?4: in milliseconds */
} kinds[EXPORT_WHATS] = {
	[EXPORT_USAGE] = { usage_columns, COUNT(usage_columns), SLOTS("usage", "state") },
	[EXPORT_HOLDING] = { holding_columns, COUNT(holding_columns),
		SLOTS("holding", "process") },
	[EXPORT_PROCESS] = { process_columns, COUNT(process_columns),
		"process p LEFT JOIN (SELECT process, max(last_active_ms) AS last_active_ms "
		"FROM holder GROUP BY process) h ON h.process = p.id "
		"WHERE (last_seen_ms >= ?3 OR h.process IS NOT NULL) AND first_seen_ms < ?4 "
		"ORDER BY id" },
	[EXPORT_EVENT] = { event_columns, COUNT(event_columns),
		"event e WHERE at_ms >= ?3 AND at_ms < ?4 ORDER BY id" },
	/* Sorted by end; open spells come last. */
	[EXPORT_SPELL] = { spell_columns, COUNT(spell_columns),
		"(SELECT * FROM spell WHERE end_ms >= ?3 AND begin_ms < ?4 UNION ALL "
		"SELECT end_ms, gpu, process, begin_ms, idle_held_ms, squatting_ms, "
		"mem_peak_kib, energy_mj, NULL FROM open_spell AS o WHERE end_ms >= ?3 AND "
		"begin_ms < ?4 AND " OPEN_IS_SPELL ") u" },
	/* A lease's own time is stored by day. */
	[EXPORT_LEASE] = { lease_columns, COUNT(lease_columns),
		"lease l JOIN (SELECT lease, gpu, sum(reserved_ms) AS reserved_ms, "
		"sum(unknown_ms) AS unknown_ms, sum(active_ms) AS active_ms, "
		"sum(idle_held_ms) AS idle_held_ms, sum(use_unknown_ms) AS use_unknown_ms, "
		"sum(untouched_ms) AS untouched_ms FROM (SELECT lease, gpu, 0 AS reserved_ms, "
		"0 AS unknown_ms, active_ms, idle_held_ms, use_unknown_ms, untouched_ms FROM "
		"leased_1d WHERE slot > ?1 - 86400 AND slot < ?2 " RESERVED_OF("1h", "3600")
			RESERVED_OF("5m", "300")
				RESERVED_OF("1m", "60") ") GROUP BY lease, gpu) u ON u.lease = "
							"l.id ORDER BY l.id, u.gpu" },
};

_Static_assert(COUNT(usage_columns) <= EXPORT_MAX_COLUMNS &&
		       COUNT(holding_columns) <= EXPORT_MAX_COLUMNS &&
		       COUNT(process_columns) <= EXPORT_MAX_COLUMNS &&
		       COUNT(event_columns) <= EXPORT_MAX_COLUMNS &&
		       COUNT(spell_columns) <= EXPORT_MAX_COLUMNS &&
		       COUNT(lease_columns) <= EXPORT_MAX_COLUMNS,
	"a row has room for every column");

struct export
{
	sqlite3 *db;
	sqlite3_stmt *stmt;
	const struct export_kind *kind;
	char texts[EXPORT_MAX_COLUMNS][TEXT_CAP]; /* texts of the current row */
};

size_t export_columns(enum export_what what, struct column columns[EXPORT_MAX_COLUMNS])
{
	const struct export_kind *kind = &kinds[what];
	for (size_t i = 0; i < kind->n_columns; i++)
		columns[i] = (struct column){ .key = kind->columns[i].key,
			.kind = kind->columns[i].kind };
	return kind->n_columns;
}

int export_open(struct export **x, enum export_what what, const char *path,
	struct window window, struct err *e)
{
	struct export *new = calloc(1, sizeof(*new));
	*x = new;
	if (!new)
		return err_memory(e);
	new->kind = &kinds[what];
	int rc = store_open_read(&new->db, path, e);
	if (rc == 0) {
		struct str sql = { 0 };
		for (size_t i = 0; i < new->kind->n_columns; i++)
			str_addf(&sql, "%s%s", i ? ", " : "SELECT ", new->kind->columns[i].sql);
		str_addf(&sql, " FROM %s", new->kind->from);
		rc = sql.failed ? err_memory(e)
				: sql_prepare(new->db, &new->stmt, e, "%s", str_text(&sql));
		str_finish(&sql);
	}
	if (rc)
		return rc;
	const int64_t bounds[] = { window.since_ms / 1000, (window.until_ms + 999) / 1000,
		window.since_ms, window.until_ms };
	for (int i = 0; i < sqlite3_bind_parameter_count(new->stmt); i++)
		sqlite3_bind_int64(new->stmt, i + 1, bounds[i]);
	return 0;
}

int export_next(struct export *x, struct cell cells[EXPORT_MAX_COLUMNS], struct err *e)
{
	int rc = sql_step(x->stmt, e);
	for (int i = 0; i < (int)x->kind->n_columns && rc == 1; i++) {
		bool known = sqlite3_column_type(x->stmt, i) != SQLITE_NULL;
		if (!known) {
			cells[i] = table_number((double)NAN);
		} else if (x->kind->columns[i].kind == COLUMN_TEXT) {
			sql_text(x->stmt, i, x->texts[i], TEXT_CAP);
			cells[i] = table_text(x->texts[i]);
		} else {
			cells[i] = table_number(sqlite3_column_double(x->stmt, i));
		}
	}
	return rc;
}

/* A slot is at most an hour long, so rows an hour before or after a run may have its data. */
struct export_marks export_marks(struct export *x, struct window window)
{
	struct err ignored = { 0 };
	sqlite3_stmt *stmt = NULL;
	char source[SOURCE_LIST_CAP];
	struct export_marks marks = { false, false };
	int rc = sql_prepare(x->db, &stmt, &ignored,
		"SELECT DISTINCT source FROM run WHERE started_ms - 3600000 < ?2 AND "
		"max(last_tick_ms, coalesce(ended_ms, 0)) + 3600000 >= ?1");
	sql_bind(stmt, SQL_INT(window.since_ms), SQL_INT(window.until_ms));
	while (sql_next(&stmt, &rc, &ignored)) {
		sql_text(stmt, 0, source, sizeof(source));
		bool captured = source_is_captured(source);
		marks.captured |= captured;
		marks.simulated |= !captured && source_is_invented(source);
	}
	return marks;
}

/* Compares the hosts of one store with the name so far; *several: there is another one. */
static int read_host(char dst[EXPORT_HOST_CAP], sqlite3 *db, bool *several, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	char name[EXPORT_HOST_CAP];
	int rc = sql_prepare(db, &stmt, e, "SELECT DISTINCT hostname FROM host");
	while (sql_next(&stmt, &rc, e)) {
		sql_text(stmt, 0, name, sizeof(name));
		*several |= *dst && strcmp(dst, name) != 0;
		str_copy(dst, EXPORT_HOST_CAP, name);
	}
	return rc < 0 ? rc : 0;
}

int export_host(char dst[EXPORT_HOST_CAP], char *const *paths, size_t n, struct err *e)
{
	bool several = false;
	int rc = 0;
	*dst = '\0';
	for (size_t i = 0; i < n && rc == 0 && !several; i++) {
		sqlite3 *db = NULL;
		rc = store_open_read(&db, paths[i], e);
		if (rc == 0)
			rc = read_host(dst, db, &several, e);
		sqlite3_close(db);
	}
	if (several)
		*dst = '\0';
	return rc;
}

void export_close(struct export *x)
{
	if (!x)
		return;
	sqlite3_finalize(x->stmt);
	sqlite3_close(x->db);
	free(x);
}

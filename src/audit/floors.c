/* Reads the memory of recorded processes, model by model, least memory first. */
#include "audit/floors.h"

#include "store/sql.h"

enum {
	DAY_ROWS = 3000, /* number of rows read, the newest: takes some milliseconds */
	MINUTE_ROWS = 1000,
};

/* Takes the largest memory that a process ever had: a process that was seen while it started,
 * or between two allocations, has more later. */
static int take_row(
	struct context_floors *f, struct context_lives *l, sqlite3_stmt *row, struct err *e)
{
	char name[CARD_NAME_CAP];
	sql_text(row, 0, name, sizeof(name));
	return context_learn_life(f, l, name, sql_int(row, 1, 0) * 1024, e);
}

int floors_read(struct context_floors *f, struct sqlite3 *db, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	struct context_lives lives = { .n = 0 };
	context_finish(f);
	int rc = sql_prepare(db, &stmt, e,
		"WITH newest AS (SELECT * FROM (SELECT gpu, process, mem_peak_kib "
		"FROM holding_1d ORDER BY slot DESC LIMIT %d) "
		"UNION ALL SELECT * FROM (SELECT gpu, process, mem_peak_kib "
		"FROM holding_1m ORDER BY slot DESC LIMIT %d)), "
		"held AS (SELECT gpu, process, max(mem_peak_kib) AS kib FROM newest "
		"GROUP BY gpu, process HAVING kib BETWEEN %lld AND %lld) "
		"SELECT gpu.name, max(kib) AS most FROM held JOIN gpu ON gpu.id = held.gpu "
		"GROUP BY gpu.name, held.process ORDER BY gpu.name, most",
		DAY_ROWS, MINUTE_ROWS, CONTEXT_LEAST_BYTES / 1024, CONTEXT_MOST_BYTES / 1024);
	while (sql_next(stmt, &rc, e))
		rc = take_row(f, &lives, stmt, e);
	sqlite3_finalize(stmt);
	if (rc)
		context_finish(f);
	return rc;
}

/* Reads the energy of a card's idle time. */
#include "audit/idle_power.h"

#include <math.h>

#include "model/state.h"
#include "store/sql.h"
#include "store/store.h"

#define DAYS_S (14 * INT64_C(86400))
#define WAIT_MS 1000
#define LEAST_MS (15 * INT64_C(60000))

int idle_power_read(
	double *watt, struct sqlite3 *db, const char *uuid, int64_t now_ms, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	*watt = (double)NAN;
	int rc = sql_prepare(db, &stmt, e,
		"WITH sums AS (SELECT state, sum(energy_mj) AS mj, "
		"sum(ms - energy_unknown_ms) AS ms FROM ("
		"SELECT * FROM usage_1m UNION ALL SELECT * FROM usage_5m "
		"UNION ALL SELECT * FROM usage_1h) "
		"WHERE gpu IN (SELECT id FROM gpu WHERE uuid = ?1) AND slot >= %lld "
		"AND state IN (%d, %d) GROUP BY state) "
		"SELECT max(mj * 1.0 / ms) FROM sums WHERE ms >= %lld AND mj > 0",
		(long long)(now_ms / 1000 - DAYS_S), CARD_IDLE_HELD, CARD_TRULY_IDLE,
		(long long)LEAST_MS);
	if (rc == 0 && sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC) != SQLITE_OK)
		rc = err_memory(e);
	if (rc == 0 && (rc = sql_step(stmt, e)) == 1) {
		if (sqlite3_column_type(stmt, 0) == SQLITE_FLOAT)
			*watt = sqlite3_column_double(stmt, 0);
		rc = 0;
	}
	sqlite3_finalize(stmt);
	return rc;
}

int idle_power_of(
	double *watt, const char *path, const char *uuid, int64_t now_ms, struct err *e)
{
	sqlite3 *db = NULL;
	*watt = (double)NAN;
	int rc = store_open_read_within(&db, path, WAIT_MS, e);
	if (rc == 0)
		rc = idle_power_read(watt, db, uuid, now_ms, e);
	sqlite3_close(db);
	return rc;
}

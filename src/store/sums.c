/* The sums of complete hours: by hour, by day, and over all cards. They are worked out from
 * the slots, again for hours that were changed later, so they are always equal to them. */
#include "store/sums.h"

#include "store/sql.h"
#include "store/store_private.h"

enum { HOUR_S = 3600, DAY_S = 86400 };

#define RANGE " WHERE slot >= ?1 AND slot < ?2"
#define BOTH(kind, a, b)                                                                       \
	"(SELECT * FROM " kind a RANGE " UNION ALL SELECT * FROM " kind b RANGE ")"
#define GROUPED " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"

/* The sums of a quarter of the hour ?1, by state, with its part of the slots of an hour. */
#define IN_STATE(name, state) "ifnull(sum(iif(state = " state ", ms, 0)), 0) AS " name
#define IN_QUARTER(number, ms)                                                                 \
	"(SELECT " HEAT_STATES(IN_STATE) " FROM (SELECT state, ms FROM usage_1m"               \
					 " WHERE slot >= ?1 + 900 * " number                   \
					 " AND slot < ?1 + 900 + 900 * " number                \
					 " UNION ALL SELECT state, ms FROM usage_5m"           \
					 " WHERE slot >= ?1 + 900 * " number                   \
					 " AND slot < ?1 + 900 + 900 * " number                \
					 " UNION ALL SELECT state, " ms " FROM usage_1h" RANGE \
					 ")) AS q" number
#define ALL_QUARTERS(name, state) "q0." name " + q1." name " + q2." name " + q3." name
#define THREE_QUARTERS(name, state) "q0." name ", q1." name ", q2." name

/* The rows of an hour are added one by one: to group them, SQLite would sort thousands in
 * memory, which the recorder would keep. */

#define FIRST_IN(table) "SELECT min(slot) AS slot FROM " table " WHERE slot >= ?1"
#define OR_IN(table) " UNION ALL " FIRST_IN(table)

/* Sums of one width. Each statement is for [?1, ?2). */
struct rollup {
	int64_t width_s;
	const char *clear[4]; /* deletes the sums of any time; ends with NULL, like the next */
	const char *next;     /* the first slot that has to be added, or ?2 */
	const char *make[4];  /* adds up the slots of one hour or day */
};

/* clang-format off */
static const struct rollup hourly = {
	.width_s = HOUR_S,
	.clear = { "DELETE FROM usage_hour" RANGE, "DELETE FROM holding_hour" RANGE,
		"DELETE FROM heat_1h" RANGE },
	.next = "SELECT ifnull(min(slot), ?2) FROM (" FIRST_IN("usage_1m") OR_IN("usage_5m")
		OR_IN("usage_1h") OR_IN("holding_1m") OR_IN("holding_5m") ")",
	.make = { "INSERT OR REPLACE INTO heat_1h SELECT ?1, " HEAT_STATES(ALL_QUARTERS) ", "
			HEAT_STATES(THREE_QUARTERS) " FROM " IN_QUARTER("0", "ms / 4") ", "
			IN_QUARTER("1", "ms / 4") ", " IN_QUARTER("2", "ms / 4") ", "
			IN_QUARTER("3", "ms - ms / 4 * 3"),
		"INSERT INTO usage_hour SELECT slot - slot % 3600, gpu, state, "
			USAGE_COLUMNS(SELF) " FROM " BOTH("usage_", "1m", "5m")
			" WHERE 1 ON CONFLICT DO UPDATE SET " USAGE_ADD,
		"INSERT INTO holding_hour (slot, gpu, process, " HOLDING_ALL
			") SELECT slot - slot % 3600, gpu, process, " HOLDING_ALL " FROM "
			BOTH("holding_", "1m", "5m") " WHERE 1 ON CONFLICT DO UPDATE SET "
			HOLDING_ADD },
};
static const struct rollup daily = {
	.width_s = DAY_S,
	.clear = { "DELETE FROM usage_1d" RANGE, "DELETE FROM holding_1d" RANGE },
	.next = "SELECT ifnull(min(slot), ?2) FROM (" FIRST_IN("usage_1h") OR_IN("usage_hour")
		OR_IN("holding_1h") OR_IN("holding_hour") ")",
	.make = { "INSERT INTO usage_1d SELECT slot - slot % 86400, gpu, state, " USAGE_SUMS
			" FROM " BOTH("usage_", "1h", "hour") GROUPED,
		"INSERT INTO holding_1d SELECT slot - slot % 86400, gpu, process, " HOLDING_SUMS
			" FROM " BOTH("holding_", "1h", "hour") GROUPED },
};
/* Adds hours to the sums of their days, which have none of them yet. */
static const char *const add_hours[] = {
	"INSERT INTO usage_1d SELECT slot - slot % 86400, gpu, state, " USAGE_COLUMNS(SELF)
		" FROM " BOTH("usage_", "1h", "hour") " WHERE 1 ON CONFLICT DO UPDATE SET "
		USAGE_ADD,
	"INSERT INTO holding_1d (slot, gpu, process, " HOLDING_ALL
		") SELECT slot - slot % 86400, gpu, process, " HOLDING_ALL " FROM "
		BOTH("holding_", "1h", "hour") " WHERE 1 ON CONFLICT DO UPDATE SET "
		HOLDING_ADD,
};
/* clang-format on */

/* Makes the sums of the hours or days of the span that have slots. A file may have slots at
 * both ends of time. */
static bool roll_up(sqlite3 *db, const struct rollup *r, struct sums_span span)
{
	sqlite3_stmt *next = NULL, *make[4] = { NULL };
	bool ok = true;
	for (size_t i = 0; r->clear[i] && ok; i++)
		ok = sql_do(db, r->clear[i], NULL, SQL_INT(span.from), SQL_INT(span.to));
	sql_kept(db, &next, r->next);
	for (int64_t at = span.from; ok; at += r->width_s) {
		int64_t slot = span.to;
		ok = sql_put(next, &slot, SQL_INT(at), SQL_INT(span.to));
		at = slot - slot % r->width_s;
		if (!ok || slot >= span.to)
			break;
		for (size_t i = 0; r->make[i] && ok; i++)
			ok = sql_put(sql_kept(db, &make[i], r->make[i]), NULL, SQL_INT(at),
				SQL_INT(at + r->width_s));
	}
	sqlite3_finalize(next);
	for (size_t i = 0; i < 4; i++)
		sqlite3_finalize(make[i]);
	return ok;
}

bool sums_make(sqlite3 *db, struct sums_span hours)
{
	struct sums_span days = { hours.from - hours.from % DAY_S,
		(hours.to + DAY_S - 1) / DAY_S * DAY_S };
	int rc = SQLITE_OK;
	bool follow = hours.from >= sums_end(db, &rc);
	if (hours.from >= hours.to)
		return true;
	/* The last hour has a row, even if it has no slots: it says where the sums end. */
	if (rc != SQLITE_OK || !roll_up(db, &hourly, hours) ||
		!sql_do(db, hourly.make[0], NULL, SQL_INT(hours.to - HOUR_S),
			SQL_INT(hours.to)))
		return false;
	if (!follow)
		return roll_up(db, &daily, days);
	return sql_do(db, add_hours[0], NULL, SQL_INT(hours.from), SQL_INT(hours.to)) &&
	       sql_do(db, add_hours[1], NULL, SQL_INT(hours.from), SQL_INT(hours.to));
}

/* Hours, from the first slot to the last complete hour. */
static const char span_sql[] =
	"SELECT min(first), max(last) FROM (SELECT min(slot) AS first, max(slot) AS last FROM "
	"usage_1m UNION ALL SELECT min(slot), max(slot) FROM usage_5m UNION ALL SELECT "
	"min(slot), max(slot) + 3599 FROM usage_1h)";

bool sums_find(sqlite3 *db, struct sums_span *hours)
{
	sqlite3_stmt *q = NULL;
	*hours = (struct sums_span){ 0, 0 };
	int rc = sqlite3_prepare_v2(db, span_sql, -1, &q, NULL);
	if (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		int64_t first = sqlite3_column_int64(q, 0), last = sqlite3_column_int64(q, 1);
		if (last >= 0 && last < SUMS_LAST_SLOT) {
			first = clock_later(first, 0);
			*hours = (struct sums_span){ first - first % HOUR_S,
				(last + 1) / HOUR_S * HOUR_S };
		}
	}
	sqlite3_finalize(q);
	return rc == SQLITE_ROW;
}

int64_t sums_end(sqlite3 *db, int *rc)
{
	return sql_value(db, SUMS_END_SQL, 0, rc);
}

bool sums_begin(struct store *s)
{
	if (!s->in_batch)
		s->late = (struct sums_span){ 0, 0 };
	return sql_run(sql_kept(s->db, &s->statements[STATEMENT_SUMS_END], SUMS_END_SQL),
		&s->summed_s);
}

void sums_note(struct store *s, int64_t slot)
{
	if (slot < 0 || slot >= s->summed_s)
		return;
	int64_t from = slot - slot % HOUR_S, to = from + HOUR_S;
	bool first = s->late.from >= s->late.to;
	s->late.from = first ? from : clock_earlier(s->late.from, from);
	s->late.to = first ? to : clock_later(s->late.to, to);
}

bool sums_settle(struct store *s)
{
	struct sums_span late = s->late;
	s->late = (struct sums_span){ 0, 0 };
	return late.from >= late.to || sums_make(s->db, late);
}

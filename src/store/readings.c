/* Writes the tables `reading` and `identity`. */
#include "store/readings.h"

#include <math.h>

#include "model/scrape.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/store_private.h"

enum {
	QUERY_READING,
	QUERY_NEW_USER,
	QUERY_NAME_USER,
	QUERY_DROP_USER,
	QUERY_NEWBORN,
	QUERY_NAMED,
	QUERIES
};

/* A tick may be written this late, while a scrape already shows a newborn's time. */
#define LATE_MS 30000
/* A place is free again when its user has had no time for this long. */
#define PLACE_FREE_AFTER "35 * 86400000"

static const char *const texts[QUERIES] = {
	[QUERY_READING] = "INSERT OR REPLACE INTO reading VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, "
			  "?8)",
	/* The smallest place that is free; 0 for time without a user. */
	[QUERY_NEW_USER] =
		"INSERT INTO identity (host, user, place, first_ms)"
		" SELECT ?1, ?2, iif(?2 = '_unknown', 0, (SELECT min(n) FROM (SELECT 1 AS n"
		" UNION ALL SELECT place + 1 FROM identity WHERE host = ?1) WHERE n NOT IN"
		" (SELECT place FROM identity AS other WHERE host = ?1"
		" AND (first_ms > ?3 - " PLACE_FREE_AFTER " OR EXISTS (SELECT 1 FROM total_user"
		" WHERE host = ?1 AND user = other.user"
		" AND moved_ms > ?3 - " PLACE_FREE_AFTER "))))), ?3"
		" WHERE NOT EXISTS (SELECT 1 FROM identity WHERE host = ?1 AND user = ?2)",
	[QUERY_NAME_USER] =
		"UPDATE OR IGNORE identity SET user = ?3 WHERE host = ?1 AND user = ?2",
	[QUERY_DROP_USER] = "DELETE FROM identity WHERE host = ?1 AND user = ?2",
	[QUERY_NEWBORN] = "SELECT EXISTS (SELECT 1 FROM identity WHERE host = ?1 AND user = ?2"
			  " AND first_ms > ?3)",
	[QUERY_NAMED] = "UPDATE identity SET named_ms = (SELECT max(moved_ms) FROM total_user"
			" WHERE host = ?1 AND user = ?2) WHERE host = ?1 AND user = ?2",
};
_Static_assert(sizeof(((struct store *)0)->reading_queries) == QUERIES * sizeof(sqlite3_stmt *),
	"the store has room for the queries");

static sqlite3_stmt *query(struct store *s, int which)
{
	return sql_kept(s->db, &s->reading_queries[which], texts[which]);
}

static void bind_double(sqlite3_stmt *q, int column, double value)
{
	if (isnan(value))
		sqlite3_bind_null(q, column);
	else
		sqlite3_bind_double(q, column, value);
}

bool readings_write(struct store *s, const struct tick *t)
{
	bool ok = true;
	for (size_t i = 0; ok && !s->past && i < t->n_cards; i++) {
		const struct card_now *now = &t->cards[i].now;
		sqlite3_stmt *q = query(s, QUERY_READING);
		sqlite3_bind_int64(q, 1, s->card_ids[i]);
		sqlite3_bind_int64(q, 2, t->at_ms);
		bind_double(q, 3, now->util_pct);
		sql_bind_known(q, 4, now->mem_used_bytes, UNKNOWN_BYTES);
		bind_double(q, 5, now->power_w);
		bind_double(q, 6, now->power_limit_w);
		bind_double(q, 7, now->temperature_c);
		sql_bind_known(q, 8, now->idle_held_since_ms, -1);
		ok = sql_run(q, NULL);
	}
	return ok;
}

bool readings_note_user(struct store *s, const char *user, int64_t at_ms)
{
	sqlite3_stmt *q = query(s, QUERY_NEW_USER);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, user);
	sqlite3_bind_int64(q, 3, at_ms);
	return sql_run(q, NULL);
}

bool readings_name_user(struct store *s, const char *number, const char *name)
{
	sqlite3_stmt *q = query(s, QUERY_NAME_USER), *drop = query(s, QUERY_DROP_USER);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, number);
	sql_bind_text(q, 3, name);
	sqlite3_bind_int64(drop, 1, s->host);
	sql_bind_text(drop, 2, number);
	return sql_run(q, NULL) && sql_run(drop, NULL);
}

bool readings_is_newborn(struct store *s, const char *user, int64_t at_ms, int64_t *newborn)
{
	sqlite3_stmt *q = query(s, QUERY_NEWBORN);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, user);
	sqlite3_bind_int64(q, 3, at_ms - SCRAPE_NEWBORN_MS + LATE_MS);
	return sql_run(q, newborn);
}

bool readings_note_named(struct store *s, const char *number)
{
	sqlite3_stmt *q = query(s, QUERY_NAMED);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, number);
	return sql_run(q, NULL);
}

struct card_past store_card_past(struct store *s, const char *uuid)
{
	struct card_past past = { -1, -1 };
	sqlite3_stmt *q = NULL;
	if (!s->db || !s->run_ready)
		return past;
	sqlite3_prepare_v2(s->db,
		"SELECT last_seen_ms, coalesce(idle_held_since_ms, -1) FROM gpu"
		" LEFT JOIN reading ON reading.gpu = gpu.id WHERE host = ?1 AND uuid = ?2",
		-1, &q, NULL);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, uuid);
	if (q && sqlite3_step(q) == SQLITE_ROW)
		past = (struct card_past){ sqlite3_column_int64(q, 0),
			sqlite3_column_int64(q, 1) };
	sqlite3_finalize(q);
	return past;
}

void readings_disconnect(struct store *s)
{
	for (size_t i = 0; i < QUERIES; i++) {
		sqlite3_finalize(s->reading_queries[i]);
		s->reading_queries[i] = NULL;
	}
}

/* Removes processes that nothing refers to any more: most processes of a busy host touch a card
 * for too short a time to be counted, and their rows would make the store grow for ever. */
#include "store/sweep.h"

#include "store/sqlite.h"
#include "store/store_private.h"

/* Rows that one call examines. At a tick each 30 s it keeps up with 60 new processes a
 * second. */
enum { SWEEP_ROWS = 2000 };
/* A life that is longer is kept without a search. */
enum { SWEEP_DAYS = 400, DAY_S = 86400 };

/* Slots that the clock put into the future are only in holding_1m; see is_counted(). */
#define FUTURE "SELECT count(*) FROM (SELECT max(slot) AS slot FROM holding_1m) WHERE slot > "

/* Spells end at most this long before or after their process was seen. */
enum { SPELL_SLACK_MS = 60000 };

struct candidate {
	int64_t id, host;
	int64_t first_ms, last_ms;   /* when it was seen */
	int64_t first_day, last_day; /* unix seconds */
};

/* The two questions about a candidate. */
struct search {
	sqlite3_stmt *sums, *spells;
};

static int prepare(struct store *s, sqlite3_stmt **q, const char *sql)
{
	return sqlite3_prepare_v2(s->db, sql, -1, q, NULL);
}

int store_sweep_due(struct store *s, int64_t before_ms, bool *due)
{
	sqlite3_stmt *q = NULL;
	int64_t first_ms = INT64_MAX;
	int rc = prepare(
		s, &q, "SELECT first_seen_ms FROM process WHERE id > ? ORDER BY id LIMIT 1");
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, s->swept);
		rc = sql_once(q, &first_ms);
	}
	sqlite3_finalize(q);
	*due = rc == SQLITE_ROW && first_ms < before_ms;
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Does the process have time on a card? All its slots have left holding_1m, and what leaves it
 * is in holding_1d for ever. */
static int is_counted(const struct search *find, const struct candidate *c, bool *counted)
{
	int rc = SQLITE_DONE;
	*counted = c->last_day - c->first_day > INT64_C(1) * SWEEP_DAYS * DAY_S;
	for (int64_t day = c->first_day; !*counted && day <= c->last_day; day += DAY_S) {
		sqlite3_bind_int64(find->sums, 1, c->host);
		sqlite3_bind_int64(find->sums, 2, day);
		sqlite3_bind_int64(find->sums, 3, c->id);
		rc = sql_once(find->sums, NULL);
		*counted = rc != SQLITE_DONE;
	}
	/* A spell whose sums found no room in memory. */
	if (!*counted) {
		sqlite3_bind_int64(find->spells, 1, c->first_ms - SPELL_SLACK_MS);
		sqlite3_bind_int64(find->spells, 2, c->last_ms + SPELL_SLACK_MS);
		sqlite3_bind_int64(find->spells, 3, c->id);
		rc = sql_once(find->spells, NULL);
		*counted = rc != SQLITE_DONE;
	}
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static struct candidate candidate_of(sqlite3_stmt *q)
{
	/* A day more on both sides, for a clock that was set meanwhile. */
	int64_t first_ms = sqlite3_column_int64(q, 2), first = first_ms / 1000,
		last_ms = sqlite3_column_int64(q, 3), last = last_ms / 1000;
	return (struct candidate){ .id = sqlite3_column_int64(q, 0),
		.host = sqlite3_column_int64(q, 1),
		.first_ms = first_ms,
		.last_ms = last_ms,
		.first_day = first - first % DAY_S - DAY_S,
		.last_day = last - last % DAY_S + DAY_S };
}

/* Examines the next rows and fills `unused` with those to remove. */
static int examine(struct store *s, int64_t before_ms, int64_t *unused, size_t *n)
{
	sqlite3_stmt *q = NULL;
	struct search find = { 0 };
	int rc = prepare(s, &q,
		"SELECT id, host, first_seen_ms, max(last_seen_ms, ended_ms), ended_ms < ?2"
		" AND id NOT IN (SELECT process FROM holder)"
		" AND id NOT IN (SELECT process FROM open_spell)"
		" AND NOT EXISTS (SELECT 1 FROM open_life AS o WHERE o.pid = process.pid"
		" AND o.process = process.id), first_seen_ms >= ?2"
		" FROM process WHERE id > ?1 ORDER BY id LIMIT ?3");
	if (rc == SQLITE_OK)
		rc = prepare(s, &find.sums,
			"SELECT 1 FROM gpu CROSS JOIN holding_1d AS h ON h.gpu = gpu.id"
			" WHERE gpu.host = ?1 AND h.slot = ?2 AND h.process = ?3 LIMIT 1");
	if (rc == SQLITE_OK)
		rc = prepare(s, &find.spells,
			"SELECT 1 FROM spell WHERE end_ms >= ?1 AND end_ms <= ?2"
			" AND process = ?3 LIMIT 1");
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, s->swept);
		sqlite3_bind_int64(q, 2, before_ms);
		sqlite3_bind_int(q, 3, SWEEP_ROWS);
	}
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		bool counted = true;
		if (sqlite3_column_int(q, 5)) {
			rc = SQLITE_DONE; /* too young, and so are the next */
			break;
		}
		struct candidate c = candidate_of(q);
		rc = sqlite3_column_int(q, 4) ? is_counted(&find, &c, &counted) : SQLITE_OK;
		if (!counted)
			unused[(*n)++] = c.id;
		s->swept = c.id;
	}
	sqlite3_finalize(find.sums);
	sqlite3_finalize(find.spells);
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int store_sweep(struct store *s, int64_t now_ms, int64_t before_ms)
{
	int64_t unused[SWEEP_ROWS];
	size_t n = 0;
	sqlite3_stmt *q = NULL, *future = NULL;
	int64_t ahead = 0;
	int rc = prepare(s, &future, FUTURE "?");
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(future, 1, now_ms / 1000 + DAY_S);
		rc = sql_once(future, &ahead) == SQLITE_ROW ? SQLITE_OK : SQLITE_ERROR;
	}
	sqlite3_finalize(future);
	if (rc != SQLITE_OK || ahead)
		return rc;
	rc = examine(s, before_ms, unused, &n);
	if (rc == SQLITE_OK)
		rc = prepare(s, &q, "DELETE FROM process WHERE id = ?");
	for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
		sqlite3_bind_int64(q, 1, unused[i]);
		int done = sql_once(q, NULL);
		rc = done == SQLITE_DONE ? SQLITE_OK : done;
	}
	sqlite3_finalize(q);
	return rc;
}

/* Compaction: complete hours get their sums, and time moves from one-minute slots to
 * five-minute ones, and from those to hours. One transaction adds whole coarse slots and
 * deletes the fine slots that they were computed from, so no second is lost or counted twice.
 */
#include "store/sql.h"
#include "store/store.h"
#include "store/store_private.h"

/* Removes processes that nothing refers to. Most processes of a busy host use a card for too
 * short a time to be counted, and their rows would make the store grow for ever. */

/* Rows that one call examines: with a tick every 30 s, for 60 new processes a second. */
enum { SWEEP_ROWS = 2000 };
/* A process that lived longer is kept without a search. */
enum { SWEEP_DAYS = 400, DAY_S = 86400 };

/* Spells end at most this long before or after their process was seen. */
enum { SPELL_SLACK_MS = 60000 };

struct candidate {
	int64_t id, host;
	int64_t first_ms, last_ms;   /* when it was seen */
	int64_t first_day, last_day; /* unix seconds */
};

/* Whether there are processes that ended before `before_ms` and that this connection has not
 * examined. Like the next function, it returns false when SQLite failed. */
static bool is_sweep_due(struct store *s, int64_t before_ms, bool *due)
{
	int64_t first_ms = INT64_MAX;
	bool ok = sql_do(s->db,
		"SELECT first_seen_ms FROM process WHERE id > ? ORDER BY id LIMIT 1", &first_ms,
		SQL_INT(s->swept));
	*due = first_ms < before_ms;
	return ok;
}

/* Whether the process has time on a card. All its slots have left holding_1m, so they are also
 * in holding_1d, where they stay for ever. `sums` and `spells` are the two queries about a
 * candidate. */
static bool is_counted(
	sqlite3_stmt *sums, sqlite3_stmt *spells, const struct candidate *c, bool *counted)
{
	int64_t found = c->last_day - c->first_day > INT64_C(1) * SWEEP_DAYS * DAY_S;
	for (int64_t day = c->first_day; !found && day <= c->last_day; day += DAY_S)
		if (!sql_put(sums, &found, SQL_INT(c->host), SQL_INT(day), SQL_INT(c->id)))
			return false;
	/* A spell may have no sums, if there was no memory for them. */
	if (!found && !sql_put(spells, &found, SQL_INT(c->first_ms - SPELL_SLACK_MS),
			      SQL_INT(c->last_ms + SPELL_SLACK_MS), SQL_INT(c->id)))
		return false;
	*counted = found != 0;
	return true;
}

static struct candidate candidate_of(sqlite3_stmt *q)
{
	/* A day is added on both sides, in case the clock was set meanwhile. */
	int64_t first_ms = sqlite3_column_int64(q, 2), first = first_ms / 1000,
		last_ms = sqlite3_column_int64(q, 3), last = last_ms / 1000;
	return (struct candidate){ .id = sqlite3_column_int64(q, 0),
		.host = sqlite3_column_int64(q, 1),
		.first_ms = first_ms,
		.last_ms = last_ms,
		.first_day = first - first % DAY_S - DAY_S,
		.last_day = last - last % DAY_S + DAY_S };
}

/* Examines the next rows, and fills `unused` with those to remove. */
static bool examine(struct store *s, int64_t before_ms, int64_t *unused, size_t *n)
{
	sqlite3_stmt *q = NULL, *sums = NULL, *spells = NULL;
	sqlite3_prepare_v2(s->db,
		"SELECT id, host, first_seen_ms, max(last_seen_ms, ended_ms), ended_ms < ?2"
		" AND id NOT IN (SELECT process FROM holder)"
		" AND id NOT IN (SELECT process FROM open_spell)"
		" AND NOT EXISTS (SELECT 1 FROM open_life AS o WHERE o.pid = process.pid"
		" AND o.process = process.id), first_seen_ms >= ?2"
		" FROM process WHERE id > ?1 ORDER BY id LIMIT ?3",
		-1, &q, NULL);
	sql_kept(s->db, &sums,
		"SELECT 1 FROM gpu CROSS JOIN holding_1d AS h ON h.gpu = gpu.id"
		" WHERE gpu.host = ?1 AND h.slot = ?2 AND h.process = ?3 LIMIT 1");
	sql_kept(s->db, &spells,
		"SELECT 1 FROM spell WHERE end_ms >= ?1 AND end_ms <= ?2"
		" AND process = ?3 LIMIT 1");
	sql_bind(q, SQL_INT(s->swept), SQL_INT(before_ms), SQL_INT(SWEEP_ROWS));
	int rc = q ? SQLITE_ROW : SQLITE_ERROR;
	bool ok = true;
	while (ok && rc == SQLITE_ROW && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		bool counted = true;
		if (sqlite3_column_int(q, 5)) /* too young, and so are all that follow */
			break;
		struct candidate c = candidate_of(q);
		if (sqlite3_column_int(q, 4))
			ok = is_counted(sums, spells, &c, &counted);
		if (!counted)
			unused[(*n)++] = c.id;
		s->swept = c.id;
	}
	sqlite3_finalize(sums);
	sqlite3_finalize(spells);
	sqlite3_finalize(q);
	return ok && (rc == SQLITE_DONE || rc == SQLITE_ROW);
}

/* Examines some processes and removes those without slots, within the caller's transaction.
 * Sets whether there are more of them. */
static bool sweep_processes(struct store *s, int64_t now_ms, int64_t before_ms, bool *more)
{
	int64_t unused[SWEEP_ROWS], ahead = 0;
	size_t n = 0;
	/* Slots that the clock put into the future are only in holding_1m; see is_counted(). */
	bool ok = sql_do(s->db,
		"SELECT count(*) FROM (SELECT max(slot) AS slot FROM holding_1m)"
		" WHERE slot > ?",
		&ahead, SQL_INT(now_ms / 1000 + DAY_S));
	if (!ok || ahead)
		return ok;
	ok = examine(s, before_ms, unused, &n);
	sqlite3_stmt *q = NULL;
	sql_kept(s->db, &q, "DELETE FROM process WHERE id = ?");
	for (size_t i = 0; ok && i < n; i++)
		ok = sql_put(q, NULL, SQL_INT(unused[i]));
	sqlite3_finalize(q);
	return ok && is_sweep_due(s, before_ms, more);
}

/* The largest number of statements in a step. */
enum { STEP_SQL = 10 };
/* A process is removed when it has ended this long before the oldest minute. */
enum { SWEEP_SLACK_S = 2 * 86400 };

/* One step of compaction, from fine slots to coarse ones. */
struct step {
	int64_t fine_s, coarse_s;  /* slot widths, seconds */
	const char *oldest;	   /* the oldest fine slot */
	const char *sql[STEP_SQL]; /* statements for the range [?1, ?2), in this order */
};

#define RANGE " WHERE slot >= ?1 AND slot < ?2"
/* Rows are added one by one, in the order in which they are stored: to group them, SQLite would
 * sort them first. */
#define ADD_ROWS(kind, what, columns, fine, coarse, seconds)                                   \
	"INSERT INTO " kind coarse " (slot, gpu, " what ", " columns                           \
	") SELECT slot - slot % " seconds ", gpu, " what ", " columns " FROM " kind fine RANGE \
	" ON CONFLICT DO UPDATE SET "
#define ADD_USAGE(fine, coarse, seconds)                                                       \
	ADD_ROWS("usage_", "state", USAGE_COLUMNS(SELF), fine, coarse, seconds) USAGE_ADD
#define ADD_HOLDING(fine, coarse, seconds)                                                     \
	ADD_ROWS("holding_", "process", HOLDING_ALL, fine, coarse, seconds) HOLDING_ADD
#define ADD_RESERVED(fine, coarse, seconds)                                                    \
	ADD_ROWS("reserved_", "lease", RESERVED_COLUMNS(SELF), fine, coarse, seconds)          \
	RESERVED_ADD
#define DELETE(table) "DELETE FROM " table RANGE
/* Both tables in index order: two lookups, no scan. */
#define OLDEST(fine)                                                                           \
	"SELECT min(slot) FROM (SELECT min(slot) AS slot FROM usage_" fine                     \
	" UNION ALL SELECT min(slot) FROM holding_" fine ")"
static const struct step steps[] = {
	{ .fine_s = 60,
		.coarse_s = 300,
		.oldest = OLDEST("1m"),
		.sql = { ADD_USAGE("1m", "5m", "300"), ADD_HOLDING("1m", "5m", "300"),
			DELETE("usage_1m"), DELETE("holding_1m"),
			ADD_RESERVED("1m", "5m", "300"), DELETE("reserved_1m") } },
	{ .fine_s = 300,
		.coarse_s = 3600,
		.oldest = OLDEST("5m"),
		.sql = { ADD_USAGE("5m", "1h", "3600"), ADD_HOLDING("5m", "1h", "3600"),
			DELETE("usage_5m"), DELETE("holding_5m"), DELETE("usage_hour"),
			DELETE("holding_hour"), ADD_RESERVED("5m", "1h", "3600"),
			DELETE("reserved_5m") } },
};
enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

/* How far compaction goes: hours before `sum_s` get their sums; slots of a step that are before
 * `move_s` are moved. */
struct limits {
	int64_t sum_s, move_s[STEPS];
};

/* A moment long before any GPU. Older slots, which only a damaged file has, are moved at once,
 * because arithmetic with them could overflow. */
#define OLDEST_SLOT (-(INT64_C(1) << 40))

/* Whole coarse slots that are old enough: [from, to). */
struct range {
	int64_t from, to;
};

static int64_t floor_to(int64_t value, int64_t width)
{
	int64_t rest = value % width;
	return value - (rest < 0 ? rest + width : rest);
}

/* Finds the next range of a step, empty (from >= to) when nothing is old enough. */
static bool next_range(struct store *s, const struct step *step, int64_t until_s, int max_slots,
	struct range *range)
{
	int rc = SQLITE_OK;
	int64_t oldest = sql_value(s->db, step->oldest, INT64_MAX, &rc);
	int64_t until = floor_to(until_s, step->coarse_s);
	*range = (struct range){ 0, 0 };
	if (rc != SQLITE_OK || oldest >= until)
		return rc == SQLITE_OK;
	*range = (struct range){ INT64_MIN, floor_to(OLDEST_SLOT, step->coarse_s) };
	if (oldest < range->to)
		return true;
	int64_t slots = max_slots * step->fine_s / step->coarse_s;
	range->from = floor_to(oldest, step->coarse_s);
	range->to = range->from + (slots > 1 ? slots : 1) * step->coarse_s;
	range->to = clock_earlier(range->to, until);
	return true;
}

/* A tick accounts what was before it, so the hour is complete in the first tick after it; what
 * comes still later is added to the sums when it is written. */
enum { SUM_AFTER_S = 60, HOUR_S = 3600 };
/* clang-format off */
#define FIRST_IN(table) "SELECT min(slot) AS slot FROM " table " WHERE slot >= ?1"
static const char unsummed_sql[] =
	"SELECT ifnull(min(slot), ?2) FROM ("
	FIRST_IN("usage_1m") " UNION ALL " FIRST_IN("holding_1m") " UNION ALL "
	FIRST_IN("usage_5m") " UNION ALL " FIRST_IN("holding_5m") " UNION ALL "
	FIRST_IN("usage_1h") " UNION ALL " FIRST_IN("holding_1h") ")";
/* clang-format on */

/* Finds the next hours without sums, empty when there are none. */
static bool next_hours(
	struct store *s, const struct limits *until, int max_slots, struct sums_span *hours)
{
	int rc = SQLITE_OK;
	int64_t end = sums_end(s->db, &rc), oldest = until->sum_s;
	*hours = (struct sums_span){ 0, 0 };
	if (rc != SQLITE_OK ||
		(end < until->sum_s && !sql_do(s->db, unsummed_sql, &oldest, SQL_INT(end),
					       SQL_INT(until->sum_s))))
		return false;
	if (oldest >= until->sum_s)
		return true;
	int64_t n = max_slots / 60 > 1 ? max_slots / 60 : 1;
	hours->from = floor_to(clock_later(oldest, 0), HOUR_S);
	hours->to = clock_earlier(hours->from + n * HOUR_S, until->sum_s);
	return true;
}

/* Whether there is anything to do. */
static bool look_for_more(struct store *s, const struct limits *until, bool *more)
{
	struct range range = { 0, 0 };
	struct sums_span hours;
	if (!next_hours(s, until, 1, &hours))
		return false;
	for (size_t i = 0; range.from >= range.to && i < STEPS; i++)
		if (!next_range(s, &steps[i], until->move_s[i], 1, &range))
			return false;
	*more = range.from < range.to || hours.from < hours.to;
	return true;
}

/* In up to 12 parts: the rows that are added get the pages that the part before has emptied,
 * which are written in any case. */
static bool move_step(struct store *s, const struct step *step, int64_t until_s, int max_slots)
{
	struct range range;
	bool ok = next_range(s, step, until_s, max_slots, &range);
	int64_t slots = range.from == INT64_MIN ? 0 : (range.to - range.from) / step->coarse_s;
	int64_t part_s = (slots / 12 + 1) * step->coarse_s;
	for (int64_t from = range.from, to; ok && from < range.to; from = to) {
		to = slots ? clock_earlier(from + part_s, range.to) : range.to;
		for (size_t k = 0; ok && k < STEP_SQL && step->sql[k]; k++)
			ok = sql_do(s->db, step->sql[k], NULL, SQL_INT(from), SQL_INT(to));
	}
	return ok;
}

/* Moves the next slots of each step, and makes the sums of the next hours, between the two
 * because minutes are then fewer. The sums of an hour leave usage_hour with its last slots, and
 * its quarters are known only before, so the second step waits for them and for the first step.
 */
static bool move_slots(struct store *s, const struct limits *until, int max_slots)
{
	struct sums_span hours;
	int rc = SQLITE_OK, rc_end = SQLITE_OK;
	if (!sums_begin(s) || !sums_settle(s) ||
		!move_step(s, &steps[0], until->move_s[0], max_slots) ||
		!next_hours(s, until, max_slots, &hours) ||
		(hours.from < hours.to && !sums_make(s->db, hours)))
		return false;
	int64_t move_s = clock_earlier(until->move_s[1],
		clock_earlier(sql_value(s->db, steps[0].oldest, INT64_MAX, &rc),
			sums_end(s->db, &rc_end)));
	return rc == SQLITE_OK && rc_end == SQLITE_OK &&
	       move_step(s, &steps[1], move_s, max_slots);
}

/* A clock that leaped forward by more than a day may be wrong, and minutes that were joined to
 * hours cannot be divided again. So compaction waits until six hours have passed on the new
 * clock; if the clock is set back before, nothing was changed. A leap is a step that a recorder
 * saw, or the time between two runs, so a host that was off for days waits too. */
enum { LEAP_MS = 86400 * 1000, SETTLE_MS = 6 * 3600 * 1000 };
static const char leap_sql[] =
	"SELECT EXISTS (SELECT 1 FROM event WHERE id > (SELECT max(id) FROM event) - 10000"
	" AND kind = 'clock-step' AND value > ?3 AND at_ms > ?1 AND at_ms <= ?2)"
	" OR EXISTS (SELECT 1 FROM run AS late WHERE source <> 'import' AND started_ms > ?1"
	" AND started_ms <= ?2 AND started_ms - ?3 > (SELECT max(last_tick_ms) FROM run"
	" WHERE source <> 'import' AND host = late.host AND id < late.id))";

static bool has_leaped(struct store *s, int64_t now_ms, bool *leaped)
{
	int64_t found = 0;
	bool ok = sql_do(s->db, leap_sql, &found, SQL_INT(now_ms - SETTLE_MS), SQL_INT(now_ms),
		SQL_INT(LEAP_MS));
	*leaped = found != 0;
	return ok;
}

/* Moves slots, and keeps only the newest events: a card that is lost and found again all day
 * must not fill the disk. */
static bool compact_slots(
	struct store *s, const struct limits *until, int max_slots, bool *more)
{
	return move_slots(s, until, max_slots) &&
	       sql_exec(s->db,
		       "DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - 100000") ==
		       SQLITE_OK &&
	       look_for_more(s, until, more);
}

int compact_store(struct store *s, const struct compaction *c, bool *more, struct err *e)
{
	const int64_t now_s = c->now_ms / 1000, minute_s = now_s - c->keep.minute_s;
	const int64_t sum_s = floor_to(now_s - SUM_AFTER_S, HOUR_S),
		      five_s = clock_earlier(now_s - c->keep.five_s, minute_s);
	const struct limits until = { sum_s, { minute_s, clock_earlier(five_s, sum_s) } };
	const int64_t before_ms = (minute_s - SWEEP_SLACK_S) * 1000;
	bool sweep = false, leaped = false;
	*more = false;
	int code = store_connect(s, e);
	if (code)
		return code;
	/* Processes are swept when all their slots have left the minutes. They are not swept in
	 * the one long transaction of an import. */
	if (!look_for_more(s, &until, more) ||
		(!*more && !s->in_batch && !is_sweep_due(s, before_ms, &sweep)) ||
		((*more || sweep) && !has_leaped(s, c->now_ms, &leaped)))
		return store_abandon(s, "read", e);
	*more = *more && !leaped;
	if (!*more && (!sweep || leaped))
		return 0;
	code = store_begin(s, e);
	if (code)
		return code;
	bool ok = *more ? compact_slots(s, &until, c->max_slots, more)
			: sweep_processes(s, c->now_ms, before_ms, more);
	return ok ? store_commit(s, e) : store_abandon(s, "compact", e);
}

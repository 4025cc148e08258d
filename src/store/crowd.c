/* Counts the short processes of each user, and puts those beyond the limit into one row. */
#include "store/crowd.h"

#include "model/session.h"
#include "store/sql.h"
#include "store/store_private.h"

enum { DAY_MS = 86400 * 1000, HOUR_S = 3600 };

enum query {
	QUERY_COUNT,
	QUERY_SESSIONS,
	QUERY_FIND,
	QUERY_ADD,
	QUERY_GROW,
	QUERY_FIRST_SEEN,
	QUERY_GIVE_UP,
	QUERY_MOVE,
	QUERY_DROP_SUMS,
	QUERY_DROP_OPEN,
	QUERY_DROP_ROWS,
	QUERIES,
};

/* Rows of a day are among the newest rows, so these are searched: an index by user would be as
 * large as the names. If a day has more rows, a recorder that was started again counts too few.
 */
#define OF_DAY                                                                                 \
	" FROM process WHERE id > (SELECT max(id) FROM process) - 20000 AND host = ?1"         \
	" AND user = ?2 AND ended_ms >= ?3 AND "
#define NO_SESSION "coalesce(job, pod, container, notebook, posix_session) IS NULL"
/* The sums of a life are in minutes, from a little before it was first seen; or in its hour, if
 * the ledger was full. Minutes become five minutes after an hour at the earliest, and then the
 * row stays. */
static const char *const queries[QUERIES] = {
	[QUERY_COUNT] =
		"SELECT count(*)" OF_DAY "NOT " CROWD_SQL " AND ended_ms - first_seen_ms < ?4",
	[QUERY_SESSIONS] = "SELECT count(*)" OF_DAY CROWD_SQL " AND NOT " NO_SESSION,
	/* The number of a POSIX session is valid in one boot only. */
	[QUERY_FIND] = "SELECT max(id)" OF_DAY CROWD_SQL
		       " AND job IS ?4 AND pod IS ?5 AND container IS ?6 AND notebook IS ?7"
		       " AND posix_session IS ?8 AND (" NO_SESSION " OR (SELECT boot_id FROM"
		       " run WHERE id = process.run) IS (SELECT boot_id FROM run WHERE id ="
		       " ?9))",
	[QUERY_ADD] = "INSERT INTO process (host, run, pid, start_ticks, user, command,"
		      " job, pod, container, notebook, posix_session,"
		      " first_seen_ms, last_seen_ms, ended_ms)"
		      " VALUES (?1, ?9, 0, 0, ?2, '" CROWD_COMMAND "', ?4, ?5, ?6, ?7, ?8,"
		      " ?3, ?10, ?10) RETURNING id",
	[QUERY_GROW] = "UPDATE process SET first_seen_ms = min(first_seen_ms, ?2),"
		       " last_seen_ms = max(last_seen_ms, ?3), ended_ms = max(ended_ms, ?3),"
		       " last_active_ms = coalesce(max(last_active_ms, ?4), ?4, last_active_ms)"
		       " WHERE id = ?1",
	[QUERY_FIRST_SEEN] =
		"SELECT first_seen_ms FROM process WHERE id = ? AND NOT " CROWD_SQL,
	[QUERY_GIVE_UP] = "INSERT OR IGNORE INTO temp.given_up VALUES (?, ?)",
	[QUERY_MOVE] = "INSERT INTO holding_1m SELECT slot, gpu, crowd, " HOLDING_SUMS
		       " FROM holding_1m JOIN temp.given_up USING (process) WHERE slot >= ?1"
		       " GROUP BY 1, 2, 3 ON CONFLICT DO UPDATE SET " HOLDING_ADD,
	[QUERY_DROP_SUMS] = "DELETE FROM holding_1m WHERE slot >= ?1 AND slot < ?2"
			    " AND process IN (SELECT process FROM temp.given_up)",
	[QUERY_DROP_OPEN] = "DELETE FROM open_life"
			    " WHERE process IN (SELECT process FROM temp.given_up)",
	[QUERY_DROP_ROWS] =
		"DELETE FROM process WHERE id IN (SELECT process FROM temp.given_up)"
		" AND id NOT IN (SELECT process FROM holding_5m WHERE slot >= ?1)"
		" AND id NOT IN (SELECT process FROM spell WHERE end_ms >= ?1 * 1000)",
};

/* A user's short processes of a day. */
struct crowd {
	char user[USER_CAP];
	int64_t day;	  /* days since 1970; -1: not looked up yet */
	int64_t lives;	  /* how many have rows of their own */
	int64_t sessions; /* how many sessions have a row for their other processes */
};

/* The row that the other processes of one session share. */
struct crowd_row {
	char user[USER_CAP], key[SESSION_KEY_CAP]; /* key "": no session, or many */
	int64_t id;
};

struct crowds {
	sqlite3_stmt *queries[QUERIES]; /* prepared at first use and kept */
	struct crowd *items;
	size_t n, cap;
	struct crowd_row *rows; /* rows that were needed in the current day of their user */
	size_t n_rows, cap_rows;
	int64_t from_slot; /* the oldest slot of the sums of rows in given_up ... */
	bool given_up;	   /* ... if there are any in this tick */
};

static sqlite3_stmt *query(struct store *s, enum query which)
{
	return sql_kept(s->db, &s->crowds->queries[which], queries[which]);
}

static struct crowd *find_user(struct crowds *all, const char *user)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->items[i].user, user) == 0)
			return &all->items[i];
	if (!array_reserve(&all->items, &all->cap, all->n + 1))
		return NULL;
	struct crowd *c = &all->items[all->n++];
	*c = (struct crowd){ .day = -1 };
	str_copy(c->user, sizeof(c->user), user);
	return c;
}

/* Finds the counts of the user's processes of that day in the file; NULL: SQLite failed. */
static struct crowd *find_crowd(struct store *s, const char *user, int64_t day)
{
	struct crowds *all = s->crowds;
	struct crowd *c = find_user(all, user);
	if (!c || c->day == day)
		return c;
	c->day = day;
	for (size_t i = all->n_rows; i-- > 0;)
		if (strcmp(all->rows[i].user, user) == 0)
			all->rows[i] = all->rows[--all->n_rows];
	c->lives = c->sessions = 0;
	if (sql_put(query(s, QUERY_COUNT), &c->lives, SQL_INT(s->host), SQL_TEXT(user),
		    SQL_INT(day * DAY_MS), SQL_INT(CROWD_SHORT_MS)) &&
		sql_put(query(s, QUERY_SESSIONS), &c->sessions, SQL_INT(s->host),
			SQL_TEXT(user), SQL_INT(day * DAY_MS)))
		return c;
	c->day = -1;
	return NULL;
}

static bool is_short(const struct process_entry *p, int64_t seen_ms)
{
	return seen_ms >= 0 && p->ended_ms >= seen_ms && p->ended_ms - seen_ms < CROWD_SHORT_MS;
}

/* The labels of a session: only the one that names it is kept. */
struct crowd_session {
	int64_t day;
	enum session_kind kind;
	char key[SESSION_KEY_CAP];
};

static bool ask_row(struct store *s, enum query which, const struct crowd_session *session,
	const struct process_entry *p, int64_t *id)
{
	const char *texts[SESSION_LABELS];
	for (int i = 0; i < SESSION_LABELS; i++)
		texts[i] = session->kind == session_labels[i].kind
				   ? process_text(&p->id, session_labels[i].text)
				   : "";
	sqlite3_stmt *q = query(s, which);
	if (which == QUERY_ADD)
		sql_bind_from(q, 10, SQL_ARGS(SQL_INT(p->ended_ms)));
	return sql_put(q, id, SQL_INT(s->host), SQL_TEXT(p->id.user),
		SQL_INT(which == QUERY_ADD ? p->first_seen_ms : session->day * DAY_MS),
		SQL_OPTIONAL(texts[0]), SQL_OPTIONAL(texts[1]), SQL_OPTIONAL(texts[2]),
		SQL_OPTIONAL(texts[3]),
		SQL_KNOWN(session->kind == SESSION_POSIX ? p->id.posix_session : 0, 0),
		SQL_INT(s->run));
}

static int64_t known_row(const struct crowds *all, const char *user, const char *key)
{
	for (size_t i = 0; i < all->n_rows; i++)
		if (strcmp(all->rows[i].key, key) == 0 && strcmp(all->rows[i].user, user) == 0)
			return all->rows[i].id;
	return 0;
}

/* Finds the row for a life of the crowd. It is that of its session, so that policy knows whose
 * use it was. After CROWD_SESSIONS sessions, and for a process without a session, it is that of
 * the user. */
static bool find_row(
	struct store *s, struct crowd *c, const struct process_entry *p, int64_t *id)
{
	struct crowds *all = s->crowds;
	struct crowd_session own = { .day = c->day };
	own.kind = session_key_of(own.key, &p->id, "");
	if (own.kind == SESSION_PROCESS)
		own.key[0] = '\0';
	for (;;) {
		*id = known_row(all, c->user, own.key);
		if (*id)
			return true;
		if (!ask_row(s, QUERY_FIND, &own, p, id))
			return false;
		if (*id || !*own.key || c->sessions < CROWD_SESSIONS)
			break;
		own = (struct crowd_session){ .day = c->day, .kind = SESSION_PROCESS };
	}
	if (*id == 0) {
		if (!ask_row(s, QUERY_ADD, &own, p, id))
			return false;
		c->sessions += *own.key != '\0';
	}
	if (!array_reserve(&all->rows, &all->cap_rows, all->n_rows + 1))
		return false;
	struct crowd_row *row = &all->rows[all->n_rows++];
	row->id = *id;
	str_copy(row->user, sizeof(row->user), c->user);
	str_copy(row->key, sizeof(row->key), own.key);
	return true;
}

/* Notes that the row's sums belong to the crowd. */
static bool give_up(struct store *s, int64_t id, int64_t crowd, int64_t seen_ms)
{
	struct crowds *all = s->crowds;
	int64_t from = seen_ms / 1000 - HOUR_S;
	from -= from % HOUR_S;
	if (!all->given_up &&
		sql_exec(s->db, "CREATE TEMP TABLE IF NOT EXISTS given_up"
				" (process INTEGER PRIMARY KEY, crowd INTEGER NOT NULL);"
				"DELETE FROM temp.given_up") != SQLITE_OK)
		return false;
	all->from_slot = all->given_up && all->from_slot < from ? all->from_slot : from;
	all->given_up = true;
	return sql_put(query(s, QUERY_GIVE_UP), NULL, SQL_INT(id), SQL_INT(crowd));
}

bool crowd_take(struct store *s, const struct process_entry *p, int64_t at_ms, int64_t *id)
{
	int64_t seen_ms = -1;
	if (s->past || p->has_spell || !is_short(p, p->first_seen_ms))
		return true;
	if (!s->crowds && !(s->crowds = calloc(1, sizeof(*s->crowds))))
		return false;
	/* Reads since when the life was seen, because the recorder may have been started again
	 * meanwhile. -1: its time is in a crowd already. */
	if (*id == 0)
		seen_ms = p->first_seen_ms;
	else if (!sql_put(query(s, QUERY_FIRST_SEEN), &seen_ms, SQL_INT(*id)))
		return false;
	if (!is_short(p, seen_ms))
		return true;
	struct crowd *c = find_crowd(s, p->id.user, at_ms / DAY_MS);
	if (!c)
		return false;
	if (c->lives < CROWD_LIVES) {
		c->lives++;
		return true;
	}
	int64_t row = 0;
	if (!find_row(s, c, p, &row) ||
		!sql_put(query(s, QUERY_GROW), NULL, SQL_INT(row), SQL_INT(p->first_seen_ms),
			SQL_INT(p->ended_ms), SQL_KNOWN(p->last_active_ms, -1)) ||
		(*id && !give_up(s, *id, row, seen_ms)))
		return false;
	*id = row;
	return true;
}

/* Drops the sums that were moved. Those of hours that have sums already are rare. */
static bool drop_sums(struct store *s, int64_t from)
{
	sqlite3_stmt *q = query(s, QUERY_DROP_SUMS);
	int64_t end = clock_later(from, s->summed_s);
	if (end > from && !sql_put(q, NULL, SQL_INT(from), SQL_INT(end)))
		return false;
	if (end > from && sqlite3_changes(s->db) > 0)
		for (int64_t slot = from; slot < end; slot += HOUR_S)
			sums_note(s, slot);
	return sql_put(q, NULL, SQL_INT(end), SQL_INT(INT64_MAX));
}

bool crowd_merge(struct store *s)
{
	if (!s->crowds || !s->crowds->given_up)
		return true;
	int64_t from = s->crowds->from_slot;
	s->crowds->given_up = false;
	return sql_put(query(s, QUERY_MOVE), NULL, SQL_INT(from)) && drop_sums(s, from) &&
	       sql_run(query(s, QUERY_DROP_OPEN), NULL) &&
	       sql_put(query(s, QUERY_DROP_ROWS), NULL, SQL_INT(from));
}

void crowd_forget(struct store *s)
{
	if (!s->crowds)
		return;
	s->crowds->n = s->crowds->n_rows = 0;
	s->crowds->given_up = false;
}

void crowd_disconnect(struct store *s)
{
	crowd_forget(s);
	for (size_t i = 0; s->crowds && i < QUERIES; i++) {
		sqlite3_finalize(s->crowds->queries[i]);
		s->crowds->queries[i] = NULL;
	}
}

void crowd_free(struct store *s)
{
	if (s->crowds) {
		free(s->crowds->items);
		free(s->crowds->rows);
	}
	free(s->crowds);
	s->crowds = NULL;
}

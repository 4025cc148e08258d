/* The idle time of sessions: finds the newest host of the store, its cards and sessions, calls
 * the functions that read their slots, and decides how time without readings counts. */
#include "audit/idle_history.h"

#include "driver/source.h"
#include "store/crowd.h"
#include "store/sql.h"
#include "store/store.h"

static int read_run(struct idle_history *h, struct err *e)
{
	char source[SOURCE_LIST_CAP];
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(h->db, &row, e,
		"SELECT run.host, hostname, boot_id, last_tick_ms, interval_ms, spell_ms, "
		"ended_ms IS NULL, source, (SELECT min(started_ms) FROM run AS r WHERE "
		"r.host = run.host AND (r.source = 'import') = (run.source = 'import')), "
		"last_tick_ms > started_ms FROM run JOIN host ON host.id = run.host "
		"WHERE source <> 'import' OR %d ORDER BY source = 'import', run.id DESC LIMIT "
		"1",
		h->imports);
	if (sql_next(&row, &rc, e)) {
		h->any_run = true;
		h->host = sql_int(row, 0, 0);
		sql_text(row, 1, h->hostname, sizeof(h->hostname));
		sql_text(row, 2, h->boot_id, sizeof(h->boot_id));
		h->last_tick_ms = sql_int(row, 3, -1);
		h->interval_ms = sql_int(row, 4, 0);
		h->spell_ms = sql_int(row, 5, 0);
		h->running = sql_int(row, 6, 0);
		sql_text(row, 7, source, sizeof(source));
		h->simulated = source_is_invented(source);
		h->imported = strcmp(source, "import") == 0;
		h->first_ms = sql_int(row, 8, 0);
		h->ticked = sql_int(row, 9, 0);
	}
	/* For imported data, a window given as a length ends with the data. */
	if (rc == 0 && h->imported && h->by_length && h->until_ms > h->last_tick_ms) {
		h->since_ms -= h->until_ms - h->last_tick_ms;
		h->until_ms = h->last_tick_ms;
	}
	sqlite3_finalize(row);
	return rc;
}

static int take_card(struct idle_history *h, sqlite3_stmt *row, struct err *e)
{
	if (!array_one_more(&h->cards, h->n_cards) ||
		!idmap_put(&h->card_ids, sql_int(row, 0, 0), (uint32_t)h->n_cards))
		return err_memory(e);
	h->cards[h->n_cards++] = sql_card(row, 1);
	return 0;
}

static int read_cards(struct idle_history *h, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(h->db, &row, e,
		"SELECT id, " SQL_CARD_COLUMNS
		" FROM gpu WHERE host = %lld ORDER BY idx, mig_index",
		(long long)h->host);
	while (sql_next(&row, &rc, e))
		rc = take_card(h, row, e);
	return rc;
}

/* A brief reading looks this far back from the last tick, and one interval more. */
#define LATELY_MS INT64_C(60000)

int64_t idle_history_first_ms(const struct idle_history *h)
{
	int64_t first = h->present ? INT64_MAX : h->since_ms;
	if (h->brief)
		return h->last_tick_ms - h->interval_ms - LATELY_MS;
	for (size_t i = 0; i < h->n_processes; i++)
		first = clock_earlier(first, h->processes[i].first_ms);
	return first;
}

/* The processes that hold a card now. */
#define HOLDERS "process.id IN (SELECT process FROM holder)"
#define NO_CROWD "pid > 0 AND "
/* Columns of a process. */
enum {
	AT_ID,
	AT_PID,
	AT_TICKS,
	AT_UID,
	AT_STARTED,
	AT_POSIX,
	AT_BOOT,
	AT_USER,
	AT_FIRST,
	AT_LAST,
	AT_TEXTS
};
#define COLUMNS                                                                                \
	"process.id, pid, start_ticks, uid, process.started_ms, posix_session, boot_id, "      \
	"user, first_seen_ms, iif(" HOLDERS                                                    \
	", NULL, process.last_seen_ms), " PROCESS_TEXT_COLUMNS                                 \
	" FROM process JOIN run ON run.id = process.run "                                      \
	"WHERE process.host = %lld AND "
/* The short processes that share a row (store/crowd.h). */
#define CROWDS CROWD_SQL " AND process.last_seen_ms > %lld AND first_seen_ms < %lld"

/* An idle stretch without a holder belongs to an earlier run, on a card that has not been
 * listed since. */
#define UNLISTED                                                                               \
	"process.id IN (SELECT process FROM open_spell AS o WHERE NOT EXISTS (SELECT 1 FROM "  \
	"holder WHERE holder.gpu = o.gpu AND holder.process = o.process))"
/* Processes that were in the window for at least the length of a spell. */
#define FOR_LONG                                                                               \
	"(process.last_seen_ms > %lld OR " HOLDERS ") AND first_seen_ms < %lld AND (" HOLDERS  \
	" OR process.last_seen_ms - first_seen_ms >= %lld)"
/* All processes of a period; only those of known sessions are used. */
#define AT_THE_TIME                                                                            \
	"(process.last_seen_ms > %lld OR " HOLDERS ") AND first_seen_ms < %lld "               \
	"AND coalesce(job, container, notebook, posix_session) IS NOT NULL"

struct member_row {
	struct session_member member;
	char boot_id[64], key[SESSION_KEY_CAP];
	enum session_kind kind;
	bool holds;	    /* present only: the processes hold a card now */
	struct arena texts; /* of this row */
};

static int read_member(struct member_row *r, sqlite3_stmt *row, struct err *e)
{
	arena_finish(&r->texts);
	sql_text(row, AT_BOOT, r->boot_id, sizeof(r->boot_id));
	r->member = (struct session_member){ .pid = (uint32_t)sql_int(row, AT_PID, 0),
		.start_ticks = (uint64_t)sql_int(row, AT_TICKS, 0),
		.posix_session = sql_int(row, AT_POSIX, 0),
		.boot_id = r->boot_id,
		.user = sql_text_copy(row, AT_USER, &r->texts) };
	for (int i = 0; i < PROCESS_TEXTS; i++)
		r->member.texts[i] = sql_text_copy(row, AT_TEXTS + i, &r->texts);
	r->kind = session_key(r->key, &r->member);
	return r->texts.failed ? err_memory(e) : 0;
}

static int add_process(
	struct idle_history *h, uint32_t session, bool holds, sqlite3_stmt *row, struct err *e)
{
	int64_t id = sql_int(row, AT_ID, 0);
	if (!array_one_more(&h->processes, h->n_processes) ||
		!idmap_put(&h->process_ids, id, (uint32_t)h->n_processes))
		return err_memory(e);
	h->processes[h->n_processes++] = (struct idle_process){ .id = id,
		.pid = (uint32_t)sql_int(row, AT_PID, 0),
		.session = session,
		.start_ticks = (uint64_t)sql_int(row, AT_TICKS, 0),
		.uid = sql_int(row, AT_UID, -1),
		.started_ms = sql_int(row, AT_STARTED, -1),
		.first_ms = sql_int(row, AT_FIRST, 0),
		.last_ms = sql_int(row, AT_LAST, INT64_MAX),
		.holds = holds };
	return 0;
}

/* Adds a process to its session, which may be new. */
static int take(struct idle_history *h, struct member_row *r, sqlite3_stmt *row, struct err *e)
{
	const struct session_member *m = &r->member;
	uint32_t session = names_find(&h->keys, 0, r->key, e);
	if (session == IDMAP_NONE)
		return err_memory(e);
	if (session == h->n_sessions) {
		if (!array_one_more(&h->sessions, h->n_sessions))
			return err_memory(e);
		h->sessions[h->n_sessions++] =
			(struct idle_session){ .key = arena_text(&h->texts, r->key),
				.user = arena_text(&h->texts, m->user ? m->user : ""),
				.kind = r->kind,
				.use = session_use(m) };
	}
	struct idle_session *s = &h->sessions[session];
	for (int i = 0; i < PROCESS_TEXTS; i++)
		if (!s->texts[i] && m->texts[i] && *m->texts[i])
			s->texts[i] = arena_text(&h->texts, m->texts[i]);
	s->use = session_gentler(s->use, session_use(m));
	s->holds |= r->holds;
	return h->texts.failed ? err_memory(e) : add_process(h, session, r->holds, row, e);
}

/* Takes the processes that a prepared statement selects, if `rc` is 0, and finalizes it. With
 * `known_only`, processes of sessions that have no other process here are left out. */
static int take_rows(
	struct idle_history *h, sqlite3_stmt *rows, bool known_only, int rc, struct err *e)
{
	struct member_row r = { .holds = h->present && !known_only };
	while (sql_next(&rows, &rc, e)) {
		if (idmap_get(&h->process_ids, sql_int(rows, AT_ID, 0)) != IDMAP_NONE)
			continue;
		rc = read_member(&r, rows, e);
		if (rc == 0 && (!known_only || names_has(&h->keys, 0, r.key)))
			rc = take(h, &r, rows, e);
	}
	arena_finish(&r.texts);
	return rc;
}

/* Notes the sessions that only an earlier run saw holding a card. */
static int read_unlisted(struct idle_history *h, struct err *e)
{
	sqlite3_stmt *rows = NULL;
	struct member_row r = { 0 };
	int rc = sql_prepare(
		h->db, &rows, e, "SELECT " COLUMNS NO_CROWD UNLISTED, (long long)h->host);
	while (sql_next(&rows, &rc, e)) {
		uint32_t process = idmap_get(&h->process_ids, sql_int(rows, AT_ID, 0));
		rc = process == IDMAP_NONE ? read_member(&r, rows, e) : 0;
		if (rc == 0 && process == IDMAP_NONE) {
			process = (uint32_t)h->n_processes;
			rc = take(h, &r, rows, e);
		}
		if (rc == 0)
			h->sessions[h->processes[process].session].unlisted = true;
	}
	arena_finish(&r.texts);
	return rc;
}

static int read_sessions(struct idle_history *h, struct err *e)
{
	sqlite3_stmt *rows = NULL;
	long long host = h->host, since_ms = h->since_ms, until_ms = h->until_ms;
	int rc = h->present ? sql_prepare(
				      h->db, &rows, e, "SELECT " COLUMNS NO_CROWD HOLDERS, host)
			    : sql_prepare(h->db, &rows, e, "SELECT " COLUMNS NO_CROWD FOR_LONG,
				      host, since_ms, until_ms, (long long)h->spell_ms);
	rc = take_rows(h, rows, false, rc, e);
	if (rc || h->present)
		return rc ? rc : read_unlisted(h, e);
	rc = sql_prepare(h->db, &rows, e, "SELECT " COLUMNS NO_CROWD AT_THE_TIME, host,
		since_ms, until_ms);
	return take_rows(h, rows, true, rc, e);
}

/* For a brief reading: processes with a recent slot, which is faster than to look at all. */
enum { LATELY_CAP = 128 };
static const char *write_lately(char to[LATELY_CAP], const struct idle_history *h)
{
	const struct slot_table *t = &slot_tables[SLOT_TABLES - 1];
	to[0] = '\0';
	if (h->brief)
		snprintf(to, LATELY_CAP,
			" AND process.id IN (SELECT process FROM %s WHERE slot >= %lld)",
			t->holding, (long long)(idle_history_first_ms(h) / 1000 - t->seconds));
	return to;
}

/* For the present only: reads the other processes of the sessions, which have ended. */
static int read_ended(struct idle_history *h, struct err *e)
{
	char lately[LATELY_CAP];
	sqlite3_stmt *rows = NULL;
	if (!h->present || !h->n_processes)
		return 0;
	int rc = sql_prepare(h->db, &rows, e, "SELECT " COLUMNS NO_CROWD AT_THE_TIME "%s",
		(long long)h->host, (long long)idle_history_first_ms(h), (long long)h->until_ms,
		write_lately(lately, h));
	return take_rows(h, rows, true, rc, e);
}

/* Takes a row that short processes share: those of one session, or those of a user who has too
 * many sessions for rows of their own. */
static int take_crowd(
	struct idle_history *h, const struct member_row *r, int64_t id, struct err *e)
{
	struct idle_crowd crowd = { .session = IDMAP_NONE };
	if (r->kind == SESSION_PROCESS)
		crowd.user = arena_text(&h->texts, r->member.user ? r->member.user : "");
	else if (names_has(&h->keys, 0, r->key))
		crowd.session = names_find(&h->keys, 0, r->key, e);
	else
		return 0;
	if (h->texts.failed || !array_one_more(&h->crowds, h->n_crowds) ||
		!idmap_put(&h->crowd_ids, id, (uint32_t)h->n_crowds))
		return err_memory(e);
	h->crowds[h->n_crowds++] = crowd;
	return 0;
}

/* Reads which crowd rows contain short processes of the sessions. */
static int read_crowds(struct idle_history *h, struct err *e)
{
	char lately[LATELY_CAP];
	struct member_row r = { 0 };
	sqlite3_stmt *rows = NULL;
	if (!h->n_processes)
		return 0;
	int rc = sql_prepare(h->db, &rows, e, "SELECT " COLUMNS CROWDS "%s", (long long)h->host,
		(long long)idle_history_first_ms(h), (long long)h->until_ms,
		write_lately(lately, h));
	while (sql_next(&rows, &rc, e)) {
		rc = read_member(&r, rows, e);
		if (rc == 0)
			rc = take_crowd(h, &r, sql_int(rows, AT_ID, 0), e);
	}
	arena_finish(&r.texts);
	return rc;
}

int64_t idle_history_count(struct idle_history *h, int64_t at_ms, struct err *e)
{
	struct member_row r = { 0 };
	struct names keys = { 0 };
	sqlite3_stmt *rows = NULL;
	int rc = sql_prepare(h->db, &rows, e,
		"SELECT " COLUMNS NO_CROWD
		"first_seen_ms <= %lld AND (process.last_seen_ms >= %lld OR " HOLDERS ")",
		(long long)h->host, (long long)at_ms, (long long)at_ms);
	while (sql_next(&rows, &rc, e)) {
		rc = read_member(&r, rows, e);
		if (rc == 0 && names_find(&keys, 0, r.key, e) == IDMAP_NONE)
			rc = ERR_WORLD;
	}
	int64_t n = rc ? -1 : (int64_t)keys.n;
	arena_finish(&r.texts);
	names_finish(&keys);
	return n;
}

#define POWER_DAYS_S (14 * INT64_C(86400))
#define POWER_LEAST_MS (15 * INT64_C(60000))

double idle_history_power(const struct idle_history *h, const char *uuid, int64_t now_ms)
{
	struct err unread = { 0 };
	sqlite3_stmt *row = NULL;
	double watt = (double)NAN;
	int rc = sql_prepare(h->db, &row, &unread,
		"WITH sums AS (SELECT state, sum(energy_mj) AS mj, "
		"sum(ms - energy_unknown_ms) AS ms FROM ("
		"SELECT * FROM usage_1m UNION ALL SELECT * FROM usage_5m "
		"UNION ALL SELECT * FROM usage_1h) "
		"WHERE gpu IN (SELECT id FROM gpu WHERE uuid = ?1) AND slot >= %lld "
		"AND state IN (%d, %d) GROUP BY state) "
		"SELECT max(mj * 1.0 / ms) FROM sums WHERE ms >= %lld AND mj > 0",
		(long long)(now_ms / 1000 - POWER_DAYS_S), CARD_IDLE_HELD, CARD_TRULY_IDLE,
		(long long)POWER_LEAST_MS);
	sql_bind(row, SQL_RAW(uuid));
	if (sql_next(&row, &rc, &unread) && sqlite3_column_type(row, 0) == SQLITE_FLOAT)
		watt = sqlite3_column_double(row, 0);
	sqlite3_finalize(row);
	return watt;
}

/* A slot that begins within this time after a one-minute slot counts as following it. */
#define NEAR_MS INT64_C(30000)

static int compare_gaps(const void *a, const void *b)
{
	const struct idle_gap *x = a, *y = b;
	int by_card = array_compare(x->card, y->card);
	return by_card ? by_card : array_compare(x->from_ms, y->from_ms);
}

void idle_history_join_gaps(struct idle_history *h)
{
	size_t n = 0;
	array_sort(h->gaps, h->n_gaps, compare_gaps);
	for (size_t i = 0; i < h->n_gaps; i++) {
		struct idle_gap *last = n ? &h->gaps[n - 1] : NULL;
		if (!last || last->card != h->gaps[i].card || last->to_ms < h->gaps[i].from_ms)
			h->gaps[n++] = h->gaps[i];
		else if (h->gaps[i].to_ms > last->to_ms)
			last->to_ms = h->gaps[i].to_ms;
	}
	h->n_gaps = n;
}

/* Returns when the card was seen again, if it was lost at this moment; else the moment. */
static int64_t seen_again(const struct idle_history *h, uint32_t card, int64_t at_ms)
{
	size_t i = idle_history_gap(h, card, at_ms);
	bool lost = i < h->n_gaps && h->gaps[i].card == card &&
		    h->gaps[i].from_ms <= at_ms + NEAR_MS;
	return lost ? h->gaps[i].to_ms : at_ms;
}

static int compare_spans(const void *a, const void *b)
{
	const struct idle_span *x = a, *y = b;
	if (x->begin_ms != y->begin_ms)
		return array_compare(x->begin_ms, y->begin_ms);
	if (x->process != y->process)
		return array_compare(x->process, y->process);
	return array_compare(x->card, y->card);
}

/* Finds since when each process has held a card. */
static bool find_held_since(struct idle_history *h)
{
	int64_t *since = calloc(2 * h->n_processes + 1, sizeof(*since));
	int64_t *until = since ? since + h->n_processes : NULL;
	if (!since)
		return false;
	for (size_t i = 0; i < h->n_processes; i++)
		until[i] = INT64_MIN;
	for (size_t i = 0; i < h->n_spans; i++) {
		struct idle_span *s = &h->spans[i];
		if (s->begin_ms > until[s->process])
			since[s->process] = s->begin_ms;
		until[s->process] = clock_later(until[s->process], s->until_ms);
		s->held_since_ms = since[s->process];
	}
	free(since);
	return true;
}

static int compare_marks(const void *a, const void *b)
{
	const struct idle_mark *x = a, *y = b;
	if (x->session != y->session)
		return array_compare(x->session, y->session);
	if (x->limit != y->limit)
		return array_compare(x->limit, y->limit);
	return array_compare(x->from_ms, y->from_ms);
}

/* Joins adjacent marks, and assigns them to the sessions. */
static void join_marks(struct idle_history *h)
{
	size_t n = 0;
	array_sort(h->marks, h->n_marks, compare_marks);
	for (size_t i = 0; i < h->n_marks; i++) {
		struct idle_mark *last = n ? &h->marks[n - 1] : NULL, one = h->marks[i];
		if (!last || last->session != one.session || last->limit != one.limit ||
			one.from_ms > last->until_ms) {
			h->marks[n++] = one;
			continue;
		}
		if (one.slot_ms > last->slot_ms ||
			(one.slot_ms == last->slot_ms && one.pct > last->pct)) {
			last->slot_ms = one.slot_ms;
			last->pct = one.pct;
		}
		last->until_ms = clock_later(last->until_ms, one.until_ms);
	}
	h->n_marks = n;
	for (size_t i = 0; i < n; i++) {
		struct idle_part *part =
			&h->sessions[h->marks[i].session].marks[h->marks[i].limit];
		if (part->n++ == 0)
			part->first = i;
	}
}

/* Adds blind time: while one of its cards was not observed, it is unknown whether the session
 * was idle. */
static bool add_blinds(struct idle_history *h, const struct idle_span *s)
{
	for (size_t i = idle_history_gap(h, s->card, s->begin_ms);
		i < h->n_gaps && h->gaps[i].card == s->card && h->gaps[i].from_ms < s->until_ms;
		i++) {
		if (!array_one_more(&h->blinds, h->n_blinds))
			return false;
		h->blinds[h->n_blinds++] = (struct idle_blind){ .session = s->session,
			.unobserved = true,
			.from_ms = clock_later(h->gaps[i].from_ms, s->begin_ms),
			.to_ms = clock_earlier(h->gaps[i].to_ms, s->until_ms) };
	}
	return true;
}

static int compare_blinds(const void *a, const void *b)
{
	const struct idle_blind *x = a, *y = b;
	int by_session = array_compare(x->session, y->session);
	return by_session ? by_session : array_compare(x->from_ms, y->from_ms);
}

static void join_blinds(struct idle_history *h)
{
	size_t n = 0;
	array_sort(h->blinds, h->n_blinds, compare_blinds);
	for (size_t i = 0; i < h->n_blinds; i++) {
		const struct idle_blind *one = &h->blinds[i];
		struct idle_blind *last = n ? &h->blinds[n - 1] : NULL;
		if (!last || last->session != one->session || one->from_ms > last->to_ms) {
			h->blinds[n++] = *one;
			continue;
		}
		last->to_ms = clock_later(last->to_ms, one->to_ms);
		last->unobserved |= one->unobserved;
	}
	h->n_blinds = n;
	for (size_t i = 0; i < n; i++) {
		struct idle_blind *one = &h->blinds[i];
		struct idle_part *part = &h->sessions[one->session].blinds;
		if (part->n++ == 0)
			part->first = i;
		else
			one->before_ms = one[-1].before_ms + one[-1].to_ms - one[-1].from_ms;
	}
}

int idle_history_settle(struct idle_history *h, struct err *e)
{
	idle_history_join_gaps(h);
	for (size_t i = 0; i < h->n_sessions; i++) {
		h->sessions[i].blinds = (struct idle_part){ 0 };
		for (size_t k = 0; k < IDLE_BELOW_MOST; k++)
			h->sessions[i].marks[k] = (struct idle_part){ 0 };
	}
	for (size_t i = 0; i < h->n_marks; i++)
		h->marks[i].until_ms = seen_again(h, h->marks[i].card, h->marks[i].until_ms);
	for (size_t i = 0; i < h->n_spans; i++) {
		struct idle_span *s = &h->spans[i];
		s->until_ms = seen_again(h, s->card, s->end_ms);
		if (!add_blinds(h, s))
			return err_memory(e);
	}
	array_sort(h->spans, h->n_spans, compare_spans);
	join_marks(h);
	join_blinds(h);
	return find_held_since(h) ? 0 : err_memory(e);
}
int idle_history_read(struct idle_history *h, struct err *e)
{
	static int (*const steps[])(struct idle_history * h, struct err * e) = { read_run,
		read_cards, read_sessions, idle_leases_read, read_ended, read_crowds,
		idle_slots_read_gaps, idle_slots_read, idle_leases_read_use,
		idle_slots_read_held, idle_history_settle };
	int rc = store_open_read_within(&h->db, h->path, h->wait_ms, e);
	if (rc)
		return rc;
	if (h->n_limits == 0)
		idle_history_limit(h, IDLE_BELOW_USUAL);
	sqlite3_exec(h->db, "BEGIN", NULL, NULL, NULL);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0; i++)
		if (i == 0 || h->any_run)
			rc = steps[i](h, e);
	sqlite3_exec(h->db, "COMMIT", NULL, NULL, NULL);
	return rc;
}

void idle_history_finish(struct idle_history *h)
{
	sqlite3_close(h->db);
	free(h->cards);
	free(h->sessions);
	free(h->processes);
	free(h->spans);
	free(h->marks);
	free(h->gaps);
	free(h->busy);
	free(h->lows);
	free(h->blinds);
	free(h->crowds);
	idmap_finish(&h->card_ids);
	idmap_finish(&h->process_ids);
	idmap_finish(&h->crowd_ids);
	idmap_finish(&h->lease_ids);
	names_finish(&h->keys);
	arena_finish(&h->texts);
	*h = (struct idle_history){ .path = h->path, .wait_ms = h->wait_ms };
}

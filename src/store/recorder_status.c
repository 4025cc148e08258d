/* Finds out how a recorder is, from its status file and from the store. */
#include "store/recorder_status.h"

#include "store/sql.h"
#include "store/store.h"

/* A tick that is late by one interval and this much is a fault. */
#define LATE_MS 10000
/* A status is needed soon, even when another program has locked the store. */
enum { BUSY_MS = 500 };
#define YEAR_MS (366 * INT64_C(86400000))

int64_t recorder_status_bound(int64_t value, int64_t max)
{
	return value < 0 ? 0 : value > max ? max : value;
}

/* A column as a moment that can be shown. */
static int64_t moment(sqlite3_stmt *q, int column)
{
	return recorder_status_bound(sqlite3_column_int64(q, column), STATUS_LAST_MS);
}

/* Reads the newest run, and the status of the cards of its host. */
static int read_run(struct store_status *s, sqlite3 *db)
{
	sqlite3_stmt *q = NULL;
	int64_t host = 0;
	int rc = sql_prepare(db, &q, NULL,
		"SELECT source, version, started_ms, last_tick_ms, interval_ms,"
		" coalesce(ended_ms, -1), coalesce(how_ended, ''), host, coalesce((SELECT"
		" hostname FROM host WHERE host.id = run.host), '') FROM run"
		" WHERE source <> 'import' ORDER BY id DESC LIMIT 1");
	if (sql_next(&q, &rc, NULL)) {
		s->any_run = true;
		sql_text(q, 0, s->source, sizeof(s->source));
		sql_text(q, 1, s->version, sizeof(s->version));
		s->started_ms = moment(q, 2);
		s->last_tick_ms = moment(q, 3);
		s->interval_ms = recorder_status_bound(sqlite3_column_int64(q, 4), YEAR_MS);
		s->ended_ms = sqlite3_column_int64(q, 5) < 0 ? -1 : moment(q, 5);
		sql_text(q, 6, s->how_ended, sizeof(s->how_ended));
		host = sqlite3_column_int64(q, 7);
		sql_text(q, 8, s->hostname, sizeof(s->hostname));
	}
	sqlite3_finalize(q);
	if (rc || !s->any_run)
		return rc;
	rc = sql_prepare(
		db, &q, NULL, "SELECT status FROM gpu WHERE host = %lld", (long long)host);
	while (sql_next(&q, &rc, NULL))
		for (size_t i = 0; i < CARD_STATUS_COUNT; i++)
			s->cards[i] += strcmp(sql_raw(q, 0), card_status_names[i]) == 0;
	return rc;
}

static int64_t size_of(const char *path, const char *suffix)
{
	char full[4096];
	struct stat st;
	snprintf(full, sizeof(full), "%s%s", path, suffix);
	return stat(full, &st) == 0 ? (int64_t)st.st_size : 0;
}

int recorder_status_store(struct store_status *s, const char *path, struct err *e)
{
	*s = (struct store_status){ .ended_ms = -1 };
	sqlite3 *db = NULL;
	int rc = store_open_read_within(&db, path, BUSY_MS, e);
	if (rc)
		return rc;
	if (read_run(s, db) != 0)
		rc = err_set(e, ERR_WORLD, "cannot read %s: %s", path, sql_why(db));
	sqlite3_close(db);
	s->file_bytes = size_of(path, "");
	s->wal_bytes = size_of(path, "-wal");
	return rc;
}

static void add_own_fault(struct recorder_status *s, int64_t since_ms, const char *text)
{
	struct published_fault *f = &s->own[s->n_own++];
	f->since_ms = since_ms;
	snprintf(f->text, sizeof(f->text), "%s", text);
}

/* Finds faults that a recorder cannot report itself: it hangs, is stopped, or cannot write its
 * status file. */
static void find_own_faults(struct recorder_status *s)
{
	char text[120];
	const struct published *r = &s->recorder;
	int64_t age_ms = s->now_ms - s->tick_ms;
	if (!r->pid)
		return;
	if (!r->told)
		add_own_fault(
			s, s->now_ms, "the recorder cannot write its status file; see its log");
	if (r->n_faults || s->tick_ms < 0 || !s->store.any_run ||
		age_ms <= 2 * s->store.interval_ms + LATE_MS)
		return;
	struct brief due = duration_text(s->store.interval_ms);
	snprintf(text, sizeof(text), "no tick was stored; one is due every %s", due.text);
	add_own_fault(s, s->tick_ms, text);
}

int recorder_status_read(
	struct recorder_status *s, const char *db, int64_t now_ms, struct err *e)
{
	struct published *r = &s->recorder;
	*s = (struct recorder_status){
		.db = db, .now_ms = now_ms, .started_ms = -1, .tick_ms = -1
	};
	int rc = statusfile_read(r, s->db, &s->unreadable);
	if (rc == 0)
		rc = recorder_status_store(&s->store, s->db, &s->unreadable);
	if (rc && !r->pid) {
		*e = s->unreadable;
		return rc;
	}
	s->started_ms = s->store.any_run ? s->store.started_ms : -1;
	s->tick_ms = s->store.any_run ? s->store.last_tick_ms : -1;
	if (r->pid && r->told) {
		s->started_ms = recorder_status_bound(r->started_ms, STATUS_LAST_MS);
		s->tick_ms = r->tick_ms < 0 ? s->tick_ms
					    : recorder_status_bound(r->tick_ms, STATUS_LAST_MS);
	}
	for (size_t i = 0; i < r->n_faults; i++)
		r->faults[i].since_ms =
			recorder_status_bound(r->faults[i].since_ms, STATUS_LAST_MS);
	find_own_faults(s);
	return 0;
}

const struct published_fault *recorder_status_fault(const struct recorder_status *s, size_t i)
{
	size_t published = s->recorder.pid ? s->recorder.n_faults : 0;
	if (i < s->n_own)
		return &s->own[i];
	return i - s->n_own < published ? &s->recorder.faults[i - s->n_own] : NULL;
}

const char *recorder_status_end(const struct recorder_status *s)
{
	if (s->recorder.pid || !s->store.any_run)
		return "";
	/* What the next recorder will store for a run that has no end. */
	return s->store.ended_ms < 0 ? "killed" : s->store.how_ended;
}

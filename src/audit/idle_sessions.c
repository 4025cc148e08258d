/* Reads processes and joins them to sessions. */
#include <stdlib.h>

#include "base/array.h"
#include "audit/idle_private.h"
#include "store/sql.h"
#include "store/crowd.h"

/* The processes that hold a card now. */
#define HOLDERS "process.id IN (SELECT process FROM holder)"
#define REAL "pid > 0 AND "
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

/* An idle stretch without a holder belongs to an earlier run, on a card that was not listed
 * since. */
#define UNLISTED                                                                               \
	"process.id IN (SELECT process FROM open_spell AS o WHERE NOT EXISTS (SELECT 1 FROM "  \
	"holder WHERE holder.gpu = o.gpu AND holder.process = o.process))"
/* Processes that were in the window for at least the length of a spell. */
#define FOR_LONG                                                                               \
	"(process.last_seen_ms > %lld OR " HOLDERS ") AND first_seen_ms < %lld AND (" HOLDERS  \
	" OR process.last_seen_ms - first_seen_ms >= %lld)"
/* All processes in a time; only those of known sessions are taken. */
#define AT_THE_TIME                                                                            \
	"(process.last_seen_ms > %lld OR " HOLDERS ") AND first_seen_ms < %lld "               \
	"AND coalesce(job, container, notebook, posix_session) IS NOT NULL"

struct reading {
	struct session_member member;
	char boot_id[64], key[SESSION_KEY_CAP];
	enum session_kind kind;
	struct arena texts; /* of this row */
};

static int read_member(struct reading *r, sqlite3_stmt *row, struct err *e)
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

/* Copies the texts of a process to its session. */
static void describe(
	struct idle_history *h, struct idle_session *s, const struct session_member *m)
{
	for (int i = 0; i < PROCESS_TEXTS; i++)
		if (!s->texts[i] && m->texts[i] && *m->texts[i])
			s->texts[i] = arena_text(&h->texts, m->texts[i]);
	s->use = session_gentler(s->use, session_use(m));
}

static int add_session(struct idle_history *h, const struct reading *r, struct err *e)
{
	if (!array_one_more(&h->sessions, h->n_sessions))
		return err_memory(e);
	h->sessions[h->n_sessions++] =
		(struct idle_session){ .key = arena_text(&h->texts, r->key),
			.user = arena_text(&h->texts, r->member.user ? r->member.user : ""),
			.kind = r->kind,
			.use = session_use(&r->member) };
	return h->texts.failed ? err_memory(e) : 0;
}

static int add_process(
	struct idle_history *h, uint32_t session, sqlite3_stmt *row, struct err *e)
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
		.holds = h->present };
	return 0;
}

static int take(struct idle_history *h, struct reading *r, sqlite3_stmt *row, struct err *e)
{
	uint32_t session = names_find(&h->keys, 0, r->key, e);
	int rc = session == IDMAP_NONE ? err_memory(e) : 0;
	if (rc == 0 && session == h->n_sessions)
		rc = add_session(h, r, e);
	if (rc)
		return rc;
	describe(h, &h->sessions[session], &r->member);
	h->sessions[session].holds = h->present;
	return add_process(h, session, row, e);
}

/* With `known_only`, processes of sessions that have no other process here are left out. */
static int take_rows(struct idle_history *h, sqlite3_stmt *rows, bool known_only, struct err *e)
{
	struct reading r = { 0 };
	int rc = 0;
	while (rc == 0 && (rc = sql_step(rows, e)) == 1) {
		rc = 0;
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
	struct reading r = { 0 };
	size_t held = h->n_processes;
	int rc = sql_prepare(
		h->db, &rows, e, "SELECT " COLUMNS REAL UNLISTED, (long long)h->host);
	while (rc == 0 && (rc = sql_step(rows, e)) == 1) {
		uint32_t process = idmap_get(&h->process_ids, sql_int(rows, AT_ID, 0));
		rc = process == IDMAP_NONE ? read_member(&r, rows, e) : 0;
		if (rc == 0 && process == IDMAP_NONE) {
			process = (uint32_t)h->n_processes;
			rc = take(h, &r, rows, e);
		}
		if (rc == 0)
			h->sessions[h->processes[process].session].unlisted = true;
	}
	sqlite3_finalize(rows);
	arena_finish(&r.texts);
	for (size_t i = 0; i < h->n_sessions; i++)
		h->sessions[i].holds = false;
	for (size_t i = 0; i < h->n_processes; i++) {
		h->processes[i].holds = i < held;
		h->sessions[h->processes[i].session].holds |= i < held;
	}
	return rc;
}

int idle_read_sessions(struct idle_history *h, struct err *e)
{
	sqlite3_stmt *rows = NULL;
	long long host = h->host, since_ms = h->since_ms, until_ms = h->until_ms;
	int rc = h->present ? sql_prepare(h->db, &rows, e, "SELECT " COLUMNS REAL HOLDERS, host)
			    : sql_prepare(h->db, &rows, e, "SELECT " COLUMNS REAL FOR_LONG,
				      host, since_ms, until_ms, (long long)h->spell_ms);
	if (rc == 0)
		rc = take_rows(h, rows, false, e);
	sqlite3_finalize(rows);
	if (rc || h->present)
		return rc ? rc : read_unlisted(h, e);
	rc = sql_prepare(
		h->db, &rows, e, "SELECT " COLUMNS REAL AT_THE_TIME, host, since_ms, until_ms);
	if (rc == 0)
		rc = take_rows(h, rows, true, e);
	sqlite3_finalize(rows);
	return rc;
}

int idle_read_ended(struct idle_history *h, struct err *e)
{
	sqlite3_stmt *rows = NULL;
	if (!h->present || !h->n_processes)
		return 0;
	size_t held = h->n_processes;
	int rc = sql_prepare(h->db, &rows, e, "SELECT " COLUMNS REAL AT_THE_TIME,
		(long long)h->host, (long long)idle_first_ms(h), (long long)h->until_ms);
	if (rc == 0)
		rc = take_rows(h, rows, true, e);
	sqlite3_finalize(rows);
	for (size_t i = held; i < h->n_processes; i++)
		h->processes[i].holds = false;
	return rc;
}

/* Takes a row that short processes share: of one session, or of a user with too many
 * sessions for rows of their own. */
static int take_crowd(
	struct idle_history *h, const struct reading *r, int64_t id, struct err *e)
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

int idle_read_crowds(struct idle_history *h, struct err *e)
{
	struct reading r = { 0 };
	sqlite3_stmt *rows = NULL;
	if (!h->n_processes)
		return 0;
	int rc = sql_prepare(h->db, &rows, e, "SELECT " COLUMNS CROWDS, (long long)h->host,
		(long long)idle_first_ms(h), (long long)h->until_ms);
	while (rc == 0 && (rc = sql_step(rows, e)) == 1) {
		rc = read_member(&r, rows, e);
		if (rc == 0)
			rc = take_crowd(h, &r, sql_int(rows, AT_ID, 0), e);
	}
	sqlite3_finalize(rows);
	arena_finish(&r.texts);
	return rc;
}

int64_t idle_history_count(struct idle_history *h, int64_t at_ms, struct err *e)
{
	struct reading r = { 0 };
	struct names keys = { 0 };
	sqlite3_stmt *rows = NULL;
	int rc = sql_prepare(h->db, &rows, e,
		"SELECT " COLUMNS REAL
		"first_seen_ms <= %lld AND (process.last_seen_ms >= %lld "
		"OR " HOLDERS ")",
		(long long)h->host, (long long)at_ms, (long long)at_ms);
	while (rc == 0 && (rc = sql_step(rows, e)) == 1) {
		rc = read_member(&r, rows, e);
		if (rc == 0 && names_find(&keys, 0, r.key, e) == IDMAP_NONE)
			rc = ERR_WORLD;
	}
	sqlite3_finalize(rows);
	int64_t n = rc ? -1 : (int64_t)keys.n;
	arena_finish(&r.texts);
	names_finish(&keys);
	return n;
}

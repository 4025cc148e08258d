/* Reads the store at intervals, and answers questions about the past from it. */
#include "present/past.h"

#include "driver/source.h"
#include "store/lock.h"
#include "store/sql.h"
#include "store/store.h"

/* The store is read again this often. */
#define PAST_US (10 * 1000000LL)
/* How late a running recorder may be, besides its ticks. */
#define PAST_SLACK_MS 15000
/* How long to wait for a locked store: at the first reading, and while a screen is shown. */
enum { FIRST_WAIT_MS = 5000, WAIT_MS = 200 };

/* Simulated and measured data are never mixed, except when the user names a simulated store.
 * Sets the note. */
static bool is_foreign(struct past *p, const struct last_run *now)
{
	bool simulated = source_is_invented(now->source);
	if (!now->any_run || simulated == p->invented || (simulated && p->named))
		return false;
	snprintf(p->note, sizeof(p->note),
		simulated ? "the store %.120s has simulated data and the cards are real: it is "
			    "not used. Name it with --db to use it"
			  : "the store %.120s has measured data and the cards are simulated: "
			    "it is not used",
		p->db);
	return true;
}

/* Reads the store. It is opened again each time: the file may have been replaced, and a store
 * without a writer is opened in a way that shows no later change. If this fails, what was read
 * before stays. */
static void read_store(struct past *p, int wait_ms)
{
	struct err e = { 0 };
	struct last_run now = { 0 };
	p->note[0] = '\0';
	if (access(p->db, F_OK) != 0 && errno == ENOENT) {
		snprintf(p->note, sizeof(p->note),
			"no store at %s: nothing is known about the past", p->db);
		return;
	}
	if (last_run_read(&now, p->db, wait_ms, !p->cards_only, &e) != 0) {
		str_copy(p->note, sizeof(p->note), e.text);
		last_run_close(&now);
		return;
	}
	last_run_close(&p->now);
	p->foreign = is_foreign(p, &now);
	if (p->foreign)
		last_run_close(&now);
	p->now = now;
	p->floors_due = !p->foreign;
	if (!now.any_run && !p->note[0])
		str_copy(
			p->note, sizeof(p->note), "nothing has been recorded in the store yet");
}

/* Whether the recorder is running; if not, sets the note. */
static bool is_fresh(struct past *p, int64_t now_ms)
{
	const struct last_run *now = &p->now;
	int64_t age_ms = now_ms - now->last_tick_ms;
	if (!now->any_run)
		return false;
	if (now->running && !now->killed && age_ms <= 2 * now->interval_ms + PAST_SLACK_MS)
		return true;
	if (!p->note[0])
		snprintf(p->note, sizeof(p->note),
			!now->running
				? "the recorder stopped %s ago: nothing has been recorded since"
			: now->killed ? "the recorder was killed, its last tick was %s ago: "
					"nothing has been recorded since"
				      : "the recorder has written nothing for %s",
			duration_text(age_ms > 0 ? age_ms : 0).text);
	return false;
}

void past_read(struct past *p, const struct moment *now)
{
	bool was_fresh = p->fresh;
	if (p->was_read && now->boot_us - p->read_us < PAST_US)
		return;
	p->read_us = now->boot_us;
	read_store(p, p->was_read ? WAIT_MS : FIRST_WAIT_MS);
	p->was_read = true;
	p->fresh = is_fresh(p, now->wall_us / 1000);
	p->came = p->fresh && !was_fresh;
}

void past_trust(struct past *p)
{
	p->viewer = geteuid();
	p->trusted = lock_protects(p->db, &p->owner) &&
		     (p->owner == 0 || p->owner == p->viewer || !p->named);
}

/* Whether a description is as good as the one that the caller would get now. A recorder that is
 * not root sees of the processes of others what everybody sees. A name in brackets is brief, a
 * user known by number may have a name now, and a strict recorder keeps no command. */
static bool is_complete(const struct past *p, const struct process_id *id)
{
	bool sees_all = p->owner == 0 || p->owner == p->viewer;
	bool sees_same = p->viewer != 0 && id->uid != p->viewer;
	return (sees_all || sees_same) && id->uid >= 0 && *id->command &&
	       id->command[0] != '[' && strncmp(id->user, "uid:", 4) != 0 &&
	       strcmp(id->user, USER_UNKNOWN) != 0;
}

void past_recall(struct past *p, const char *boot_id,
	void (*take)(void *context, const struct process_id *id), void *context)
{
	enum { PID, TICKS, IDENTITY };
	sqlite3_stmt *stmt;
	struct err unread = { 0 };
	if (p->cards_only || !p->now.running || !*boot_id)
		return;
	int rc = sql_prepare(p->now.db, &stmt, &unread,
		"SELECT pid, start_ticks, " LAST_RUN_IDENTITY " FROM process WHERE id IN "
		"(SELECT process FROM holder) AND start_ticks <> 0 "
		"AND (SELECT boot_id FROM run WHERE run.id = process.run) = ?1");
	sqlite3_bind_text(stmt, 1, boot_id, -1, SQLITE_STATIC);
	while (sql_next(&stmt, &rc, &unread)) {
		struct process_id id = { .pid = (uint32_t)sql_int(stmt, PID, 0),
			.start_ticks = (uint64_t)sql_int(stmt, TICKS, 0),
			.started_ms = -1 };
		last_run_identity(stmt, IDENTITY, &id);
		if (is_complete(p, &id))
			take(context, &id);
	}
}

int64_t past_floor(struct past *p, const char *model)
{
	struct err unread = { 0 };
	if (p->floors_due && !p->floors_known)
		p->floors_known = audit_read_floors(&p->floors, p->now.db, &unread) == 0;
	p->floors_due = false;
	return context_floor(&p->floors, model);
}

struct sqlite3 *past_open(const struct past *p)
{
	struct sqlite3 *db = NULL;
	struct err unread = { 0 };
	if (!p->db || p->foreign || access(p->db, R_OK) != 0 ||
		store_open_read_within(&db, p->db, WAIT_MS, &unread) != 0)
		return NULL;
	return db;
}

void past_close(struct sqlite3 *db)
{
	sqlite3_close(db);
}

/* Fills the minutes from a query of (slot, sum of percent x ms, ms) by card and, unless `id` is
 * NULL, by process. Returns how many rows there were. */
static int read_minutes(struct sqlite3 *db, const char *sql, const char *uuid,
	const struct process_id *id, const struct past_minutes *minutes)
{
	sqlite3_stmt *stmt;
	struct err unread = { 0 };
	int rows = 0, rc = sql_prepare(db, &stmt, &unread, "%s", sql);
	for (size_t i = 0; i < minutes->n; i++)
		minutes->pct[i] = NAN;
	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, minutes->from * 60);
	sqlite3_bind_text(stmt, 2, uuid, -1, SQLITE_STATIC);
	if (id) {
		sqlite3_bind_int64(stmt, 3, id->pid);
		sqlite3_bind_int64(stmt, 4, (int64_t)id->start_ticks);
	}
	for (; sql_next(&stmt, &rc, &unread); rows++) {
		int64_t at = sql_int(stmt, 0, 0) / 60 - minutes->from, ms = sql_int(stmt, 2, 0);
		if (at >= 0 && (size_t)at < minutes->n && ms > 0)
			minutes->pct[at] = (double)sql_int(stmt, 1, 0) / (double)ms;
	}
	return rc ? rc : rows;
}

int past_card_minutes(struct sqlite3 *db, const char *uuid, const struct past_minutes *minutes)
{
	int rc = read_minutes(db,
		"SELECT slot, SUM(util_pct_ms), SUM(ms) FROM usage_1m WHERE slot >= ?1 "
		"AND state < 3 AND gpu = (SELECT id FROM gpu WHERE uuid = ?2 "
		"ORDER BY " SQL_CARD_SEEN " DESC LIMIT 1) GROUP BY slot",
		uuid, NULL, minutes);
	return rc < 0 ? rc : 0;
}

int past_process_minutes(struct sqlite3 *db, const char *uuid, const struct process_id *id,
	const struct past_minutes *minutes)
{
	int rc = read_minutes(db,
		"SELECT slot, COALESCE(sm_pct_ms, 100 * active_ms), active_ms + idle_held_ms + "
		"truly_idle_ms + squatting_ms FROM holding_1m WHERE slot >= ?1 "
		"AND gpu = (SELECT id FROM gpu WHERE uuid = ?2 "
		"ORDER BY " SQL_CARD_SEEN " DESC LIMIT 1) "
		"AND process = (SELECT id FROM process WHERE pid = ?3 AND start_ticks = ?4 "
		"ORDER BY id DESC LIMIT 1)",
		uuid, id, minutes);
	return rc < 0 ? rc : rc > 0;
}

/* One tick becomes one transaction: entries that are new or changed, sums into the slots and
 * totals, events, and the current holders. */
#include "store/store_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "model/scrape.h"
#include "store/crowd.h"
#include "store/sql.h"
#include "store/store.h"
#include "store/sums.h"

/* The cards' readings at the last tick, and who has had time on a card: what exporters and
 * pages need besides the sums. */

enum {
	QUERY_READING,
	QUERY_NEW_USER,
	QUERY_NAME_USER,
	QUERY_DROP_USER,
	QUERY_NEWBORN,
	QUERY_NAMED,
	READINGS_QUERIES
};

/* A tick may be written this late, while a scrape already shows a newborn's time. */
#define LATE_MS 30000
/* A place is free again when its user has had no time for this long. */
#define PLACE_FREE_AFTER "35 * 86400000"

static const char *const readings_texts[READINGS_QUERIES] = {
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
_Static_assert(sizeof(((struct store *)0)->reading_queries) ==
		       READINGS_QUERIES * sizeof(sqlite3_stmt *),
	"the store has room for the queries");

static sqlite3_stmt *readings_query(struct store *s, int which)
{
	return sql_kept(s->db, &s->reading_queries[which], readings_texts[which]);
}

static void bind_double(sqlite3_stmt *q, int column, double value)
{
	if (isnan(value))
		sqlite3_bind_null(q, column);
	else
		sqlite3_bind_double(q, column, value);
}

/* Replaces the readings; the ids of the cards are set. False: it failed. */
static bool readings_write(struct store *s, const struct tick *t)
{
	bool ok = true;
	for (size_t i = 0; ok && !s->past && i < t->n_cards; i++) {
		const struct card_now *now = &t->cards[i].now;
		sqlite3_stmt *q = readings_query(s, QUERY_READING);
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

/* Notes that this user is known from this tick on. */
static bool readings_note_user(struct store *s, const char *user, int64_t at_ms)
{
	sqlite3_stmt *q = readings_query(s, QUERY_NEW_USER);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, user);
	sqlite3_bind_int64(q, 3, at_ms);
	return sql_run(q, NULL);
}

/* The user that was known by the number `number` has this name. */
static bool readings_name_user(struct store *s, const char *number, const char *name)
{
	sqlite3_stmt *q = readings_query(s, QUERY_NAME_USER),
		     *drop = readings_query(s, QUERY_DROP_USER);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, number);
	sql_bind_text(q, 3, name);
	sqlite3_bind_int64(drop, 1, s->host);
	sql_bind_text(drop, 2, number);
	return sql_run(q, NULL) && sql_run(drop, NULL);
}

/* Sets *newborn if an exporter has shown this user with no time yet. */
static bool readings_is_newborn(
	struct store *s, const char *user, int64_t at_ms, int64_t *newborn)
{
	sqlite3_stmt *q = readings_query(s, QUERY_NEWBORN);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, user);
	sqlite3_bind_int64(q, 3, at_ms - SCRAPE_NEWBORN_MS + LATE_MS);
	return sql_run(q, newborn);
}

/* The processes of the user that was known by the number `number` have a name now. */
static bool readings_note_named(struct store *s, const char *number)
{
	sqlite3_stmt *q = readings_query(s, QUERY_NAMED);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, number);
	return sql_run(q, NULL);
}

struct card_past store_card_past(struct store *s, const char *uuid)
{
	struct card_past past = { INT64_MAX, -1 };
	sqlite3_stmt *q = NULL;
	if (!s->db || !s->run_ready)
		return past;
	sqlite3_prepare_v2(s->db,
		"SELECT last_seen_ms, coalesce(idle_held_since_ms, -1) FROM gpu"
		" LEFT JOIN reading ON reading.gpu = gpu.id WHERE uuid = ?1"
		" ORDER BY last_seen_ms DESC LIMIT 1",
		-1, &q, NULL);
	sql_bind_text(q, 1, uuid);
	int rc = q ? sqlite3_step(q) : SQLITE_ERROR;
	if (rc == SQLITE_DONE)
		past.seen_ms = -1;
	if (rc == SQLITE_ROW)
		past = (struct card_past){ sqlite3_column_int64(q, 0),
			sqlite3_column_int64(q, 1) };
	sqlite3_finalize(q);
	return past;
}

void readings_disconnect(struct store *s)
{
	for (size_t i = 0; i < READINGS_QUERIES; i++) {
		sqlite3_finalize(s->reading_queries[i]);
		s->reading_queries[i] = NULL;
	}
}

enum spells_query { QUERY_CLEAR, QUERY_OPEN, QUERY_END, QUERY_FORGET, SPELLS_QUERIES };
_Static_assert(
	SPELLS_QUERIES == sizeof(((struct store *)0)->spell_queries) / sizeof(sqlite3_stmt *),
	"the store has a place for each");

static const char *const spells_texts[SPELLS_QUERIES] = {
	[QUERY_CLEAR] = "DELETE FROM open_spell WHERE gpu = ?1",
	[QUERY_OPEN] = "INSERT OR REPLACE INTO open_spell (end_ms, gpu, process, begin_ms,"
		       " idle_held_ms, squatting_ms, mem_peak_kib, energy_mj)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[QUERY_END] = "INSERT OR REPLACE INTO spell VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
		      " ?9)",
	[QUERY_FORGET] = "DELETE FROM spell WHERE end_ms = ?1 AND gpu = ?2 AND process = ?3",
};

static sqlite3_stmt *spells_query(struct store *s, enum spells_query which)
{
	return sql_kept(s->db, &s->spell_queries[which], spells_texts[which]);
}

static bool write_one(struct store *s, enum spells_query which, const struct spell *spell)
{
	sqlite3_stmt *q = spells_query(s, which);
	sqlite3_bind_int64(q, 1, spell->end_ms);
	sqlite3_bind_int64(q, 2, s->card_ids[spell->card]);
	sqlite3_bind_int64(q, 3, s->process_ids[spell->process]);
	sqlite3_bind_int64(q, 4, spell->begin_ms);
	sqlite3_bind_int64(q, 5, spell->idle_held_ms);
	sqlite3_bind_int64(q, 6, spell->squatting_ms);
	sql_bind_known(q, 7, spell->mem_peak_kib, -1);
	sql_bind_known(q, 8, spell->energy_mj, -1);
	if (which == QUERY_END)
		sqlite3_bind_int(q, 9, (int)spell->how);
	return sql_run(q, NULL);
}

/* The spells in the store: what a tick writes, and what becomes of stretches that go on when a
 * run ends. Only for src/store. */

/* The spell that was open when an earlier run ended is stored as one that ended then. */
static bool forget_stored(struct store *s, const struct spell *spell)
{
	sqlite3_stmt *q = spells_query(s, QUERY_FORGET);
	sqlite3_bind_int64(q, 1, spell->stored_end_ms);
	sqlite3_bind_int64(q, 2, s->card_ids[spell->card]);
	sqlite3_bind_int64(q, 3, s->process_ids[spell->process]);
	return sql_run(q, NULL);
}

/* Writes the spells of a tick, after its cards and processes. False: SQLite failed, as with the
 * next. */
static bool spells_write(struct store *s, const struct tick *t)
{
	bool ok = true;
	for (size_t i = 0; ok && i < t->n_cards; i++) {
		sqlite3_stmt *q = spells_query(s, QUERY_CLEAR);
		sqlite3_bind_int64(q, 1, s->card_ids[i]);
		ok = !t->cards[i].listed || sql_run(q, NULL);
	}
	for (size_t i = 0; ok && i < t->n_spells; i++) {
		const struct spell *spell = &t->spells[i];
		if (spell->stored_end_ms >= 0)
			ok = forget_stored(s, spell);
		if (ok)
			ok = write_one(
				s, spell->how == SPELL_OPEN ? QUERY_OPEN : QUERY_END, spell);
	}
	return ok;
}

/* The rules are those of the run that has ended, which is the newest of the host. */
#define OF_HOST " gpu IN (SELECT id FROM gpu WHERE host = ?1)"
static const char close_sql[] =
	"INSERT OR REPLACE INTO spell SELECT end_ms, gpu, process, begin_ms, idle_held_ms,"
	" squatting_ms, mem_peak_kib, energy_mj, ?2 FROM open_spell WHERE" OF_HOST
	" AND idle_held_ms + squatting_ms >="
	" (SELECT spell_ms FROM run WHERE host = ?1 AND source <> 'import'"
	" ORDER BY id DESC LIMIT 1)";
static const char other_boot_sql[] =
	"DELETE FROM open_spell WHERE" OF_HOST
	" AND process NOT IN (SELECT process.id FROM process"
	" JOIN run ON run.id = process.run WHERE process.host = ?1 AND boot_id = ?2"
	" AND process.id IN (SELECT process FROM open_spell))";

static sqlite3_stmt *prepare(struct store *s, const char *sql)
{
	sqlite3_stmt *q = NULL;
	sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
	return q;
}

bool write_close_spells(struct store *s)
{
	sqlite3_stmt *q = prepare(s, close_sql), *other = prepare(s, other_boot_sql);
	sqlite3_bind_int64(q, 1, s->host);
	sqlite3_bind_int(q, 2, SPELL_STOPPED);
	sqlite3_bind_int64(other, 1, s->host);
	sql_bind_text(other, 2, s->info.boot_id);
	bool ok = sql_run(q, NULL) && sql_run(other, NULL);
	sqlite3_finalize(q);
	sqlite3_finalize(other);
	return ok;
}

/* Takes a row of store_past_spells(). */
static struct past_spell past_of(sqlite3_stmt *row)
{
	struct past_spell past = { .pid = (uint32_t)sqlite3_column_int64(row, 1),
		.start_ticks = (uint64_t)sqlite3_column_int64(row, 2),
		.spell = { .end_ms = sqlite3_column_int64(row, 3),
			.begin_ms = sqlite3_column_int64(row, 4),
			.idle_held_ms = sqlite3_column_int64(row, 5),
			.squatting_ms = sqlite3_column_int64(row, 6),
			.mem_peak_kib = sqlite3_column_int64(row, 7),
			.energy_mj = sqlite3_column_int64(row, 8),
			.how = SPELL_OPEN,
			.stored_end_ms = -1 } };
	const char *uuid = (const char *)sqlite3_column_text(row, 0);
	str_copy(past.uuid, sizeof(past.uuid), uuid ? uuid : "");
	if (sqlite3_column_int(row, 9))
		past.spell.stored_end_ms = past.spell.end_ms;
	return past;
}

/* No number of a spell is as large: a file that was changed by others may say so. */
#define PLAUSIBLE (INT64_C(1) << 53)

int store_past_spells(struct store *s, struct past_spell **past, size_t *n, struct err *e)
{
	*past = NULL;
	*n = 0;
	if (!s->db || !s->run_ready)
		return 0;
	sqlite3_stmt *q = prepare(s,
		"SELECT uuid, pid, start_ticks, end_ms, begin_ms, idle_held_ms, squatting_ms,"
		" coalesce(mem_peak_kib, -1), coalesce(energy_mj, -1), EXISTS (SELECT 1 FROM"
		" spell WHERE spell.end_ms = o.end_ms AND spell.gpu = o.gpu"
		" AND spell.process = o.process) FROM open_spell AS o"
		" JOIN gpu ON gpu.id = o.gpu JOIN process ON process.id = o.process"
		" WHERE gpu.host = ?1 AND begin_ms BETWEEN 0 AND end_ms AND max(end_ms,"
		" idle_held_ms, squatting_ms, coalesce(mem_peak_kib, 0),"
		" coalesce(energy_mj, 0)) < ?2 AND min(idle_held_ms, squatting_ms) >= 0");
	sqlite3_bind_int64(q, 1, s->host);
	sqlite3_bind_int64(q, 2, PLAUSIBLE);
	int rc = q ? SQLITE_ROW : SQLITE_ERROR;
	while (rc == SQLITE_ROW && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		if (!array_one_more(past, *n)) {
			sqlite3_finalize(q);
			return err_memory(e);
		}
		(*past)[(*n)++] = past_of(q);
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : sql_fail(e, s->db, "read", s->path);
}

void spells_disconnect(struct store *s)
{
	for (size_t i = 0; i < SPELLS_QUERIES; i++) {
		sqlite3_finalize(s->spell_queries[i]);
		s->spell_queries[i] = NULL;
	}
}

#define INSERT_CARD                                                                            \
	"INSERT INTO gpu (host, uuid, name, parent_uuid, pci, idx, mig_index,"                 \
	" gpu_instance, compute_instance, mem_total_bytes, status, first_seen_ms,"             \
	" last_seen_ms, source)"                                                               \
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"                \
	" ON CONFLICT (host, uuid) DO UPDATE SET"                                              \
	" first_seen_ms = min(first_seen_ms, excluded.first_seen_ms),"
/* After the clock was set back, the earlier time is stored: with a last tick in the future, a
 * run would look live for ever. Only an import (?3) never moves a time back. */
#define LAST_SEEN "last_seen_ms = iif(?3, max(last_seen_ms, ?2), ?2)"

static const char *const texts[STATEMENT_COUNT] = {
	[STATEMENT_CARD] = INSERT_CARD
	" name = excluded.name, parent_uuid = excluded.parent_uuid, pci = excluded.pci,"
	" idx = excluded.idx, mig_index = excluded.mig_index,"
	" gpu_instance = excluded.gpu_instance,"
	" compute_instance = excluded.compute_instance,"
	" mem_total_bytes = coalesce(excluded.mem_total_bytes, mem_total_bytes),"
	" source = excluded.source, status = excluded.status, last_seen_ms = "
	"excluded.last_seen_ms RETURNING id",
	[STATEMENT_PAST_CARD] = INSERT_CARD
	" last_seen_ms = max(last_seen_ms, excluded.last_seen_ms) RETURNING id",
	[STATEMENT_CARD_SEEN] = "UPDATE gpu SET " LAST_SEEN " WHERE id = ?1",
	[STATEMENT_FIND_PROCESS] =
		"SELECT process.id FROM open_life JOIN process ON process.id = "
		"open_life.process"
		" JOIN run ON run.id = process.run WHERE open_life.pid = ?1 AND start_ticks = "
		"?2 AND process.host = ?3 AND boot_id = ?4",
	[STATEMENT_ADD_PROCESS] =
		"INSERT INTO process (host, run, pid, start_ticks, started_ms, uid, user,"
		" first_seen_ms, last_seen_ms, last_active_ms, ended_ms, posix_session,"
		" " PROCESS_TEXT_COLUMNS
		") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
		" ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)",
	[STATEMENT_SET_PROCESS] =
		"UPDATE process SET user = ?2, last_seen_ms = max(last_seen_ms, ?3),"
		" last_active_ms = coalesce(max(last_active_ms, ?4), ?4, last_active_ms),"
		" ended_ms = ?5, (" PROCESS_TEXT_COLUMNS ") = (?6, ?7, ?8, ?9, ?10, ?11, ?12,"
		" ?13, ?14, ?15, ?16, ?17, ?18, ?19) WHERE id = ?1 AND NOT " CROWD_SQL,
	[STATEMENT_HAS_NUMBER] =
		"SELECT EXISTS (SELECT 1 FROM total_user WHERE host = ?1 AND user = ?2 AND "
		"moved_ms > coalesce((SELECT named_ms FROM identity WHERE host = ?1 AND "
		"user = ?2), 0))",
	[STATEMENT_JOIN_TOTALS] =
		"INSERT INTO total_user SELECT host, ?3, state, presence_ms, share_ms, moved_ms"
		" FROM total_user WHERE host = ?1 AND user = ?2"
		" ON CONFLICT DO UPDATE SET " TOTAL_USER_ADD,
	[STATEMENT_DROP_TOTALS] = "DELETE FROM total_user WHERE host = ?1 AND user = ?2",
	[STATEMENT_NAME_PROCESSES] =
		"UPDATE process SET user = ?3 WHERE host = ?1 AND user = ?2",
	[STATEMENT_USAGE] = "INSERT INTO usage_1m VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
			    " ON CONFLICT DO UPDATE SET " USAGE_ADD,
	[STATEMENT_HOLDING] =
		"INSERT INTO holding_1m VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
		" ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)"
		" ON CONFLICT DO UPDATE SET " HOLDING_ADD,
	[STATEMENT_SM_ACTIVE] = "INSERT INTO sm_active VALUES (?1, ?2, ?3, ?4)"
				" ON CONFLICT DO UPDATE SET " SM_ACTIVE_ADD,
	[STATEMENT_OVERFULL] = "SELECT gpu, sum(ms) FROM usage_1m WHERE slot = ?1"
			       " GROUP BY gpu HAVING sum(ms) > ?2 LIMIT 1",
	[STATEMENT_CUT_USAGE] =
		"UPDATE usage_1m SET " USAGE_CUT " WHERE slot = ?1 AND gpu = ?2",
	[STATEMENT_CUT_HOLDING] =
		"UPDATE holding_1m SET " HOLDING_CUT " WHERE slot = ?1 AND gpu = ?2",
	[STATEMENT_TOTAL_GPU] = "INSERT INTO total_gpu VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
				" ON CONFLICT DO UPDATE SET " TOTAL_GPU_ADD,
	[STATEMENT_TOTAL_USER] = "INSERT INTO total_user VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
				 " ON CONFLICT DO UPDATE SET " TOTAL_USER_ADD,
	[STATEMENT_EVENT] = "INSERT INTO event (host, at_ms, gpu, kind, value, text)"
			    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[STATEMENT_CLEAR_HOLDERS] =
		"DELETE FROM holder WHERE gpu IN (SELECT id FROM gpu WHERE host = ?1)",
	[STATEMENT_HOLDER] = "INSERT OR REPLACE INTO holder VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[STATEMENT_HOLDER_GONE] = "DELETE FROM holder WHERE gpu = ?1 AND process = ?2",
	[STATEMENT_RUN_TICK] = "UPDATE run SET last_tick_ms = ?2 WHERE id = ?1",
	[STATEMENT_HOST_TICK] = "UPDATE host SET " LAST_SEEN " WHERE id = ?1",
};

static sqlite3_stmt *statement(struct store *s, enum statement which)
{
	return sql_kept(s->db, &s->statements[which], texts[which]);
}

static bool make_room(struct store *s, const struct tick *t)
{
	return array_reserve(&s->card_ids, &s->card_cap, t->n_cards) &&
	       array_reserve(&s->process_ids, &s->process_cap, t->n_processes) &&
	       array_reserve(&s->holders, &s->holder_cap, t->n_holders) &&
	       array_reserve(&s->next, &s->next_cap, t->n_holders);
}

static bool write_card(struct store *s, const struct card_entry *c, int64_t *id)
{
	sqlite3_stmt *q = statement(s, s->past ? STATEMENT_PAST_CARD : STATEMENT_CARD);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, c->id.uuid);
	sql_bind_text(q, 3, c->id.name);
	sql_bind_text(q, 4, c->id.parent_uuid);
	sql_bind_text(q, 5, c->id.pci);
	sqlite3_bind_int(q, 6, c->id.index);
	sql_bind_known(q, 7, c->id.mig_index, -1);
	sql_bind_known(q, 8, c->id.gpu_instance, -1);
	sql_bind_known(q, 9, c->id.compute_instance, -1);
	sql_bind_known(q, 10, c->id.mem_total_bytes, UNKNOWN_BYTES);
	sqlite3_bind_text(q, 11, card_status_names[c->status], -1, SQLITE_STATIC);
	sqlite3_bind_int64(q, 12, c->first_seen_ms);
	sqlite3_bind_int64(q, 13, c->last_seen_ms);
	sql_bind_text(q, 14, c->source);
	return sql_run(q, id);
}

static bool write_cards(struct store *s, const struct tick *t)
{
	bool ok = true;
	for (size_t i = 0; ok && i < t->n_cards; i++) {
		const struct card_entry *c = &t->cards[i];
		s->card_ids[i] = c->store_id;
		if (c->store_id == 0 || c->dirty || s->ids_stale) {
			ok = write_card(s, c, &s->card_ids[i]);
			continue;
		}
		sqlite3_stmt *q = statement(s, STATEMENT_CARD_SEEN);
		sqlite3_bind_int64(q, 1, c->store_id);
		sqlite3_bind_int64(q, 2, c->last_seen_ms);
		sqlite3_bind_int(q, 3, s->past);
		ok = sql_run(q, NULL);
	}
	return ok;
}

/* Finds a life that an earlier run stored; *id stays 0 when there is none. Without a start
 * time two lives of a pid cannot be distinguished: such a process always gets a new row. */
static bool find_process(struct store *s, const struct process_entry *p, int64_t *id)
{
	*id = 0;
	if (p->id.start_ticks == 0)
		return true;
	sqlite3_stmt *q = statement(s, STATEMENT_FIND_PROCESS);
	sqlite3_bind_int64(q, 1, p->id.pid);
	sqlite3_bind_int64(q, 2, (int64_t)p->id.start_ticks);
	sqlite3_bind_int64(q, 3, s->host);
	sql_bind_text(q, 4, s->info.boot_id);
	return sql_run(q, id);
}

/* Binds the texts from parameter `first` on. Every process has a command, if only "". */
static void bind_texts(sqlite3_stmt *q, int first, const struct process_id *id)
{
	_Static_assert(PROCESS_TEXTS == 14, "a new text needs a column and a parameter");
	for (int i = 0; i < PROCESS_TEXTS; i++)
		if (i == PROCESS_COMMAND)
			sql_bind_text(q, first + i, process_text(id, i));
		else
			sql_bind_text_or_null(q, first + i, process_text(id, i));
}

static bool add_process(struct store *s, const struct process_entry *p, int64_t *id)
{
	sqlite3_stmt *q = statement(s, STATEMENT_ADD_PROCESS);
	sqlite3_bind_int64(q, 1, s->host);
	sqlite3_bind_int64(q, 2, s->run);
	sqlite3_bind_int64(q, 3, p->id.pid);
	sqlite3_bind_int64(q, 4, (int64_t)p->id.start_ticks);
	sql_bind_known(q, 5, p->id.started_ms, -1);
	sql_bind_known(q, 6, p->id.uid, -1);
	sql_bind_text(q, 7, p->id.user);
	sqlite3_bind_int64(q, 8, p->first_seen_ms);
	sqlite3_bind_int64(q, 9, p->last_seen_ms);
	sql_bind_known(q, 10, p->last_active_ms, -1);
	sql_bind_known(q, 11, p->ended_ms, -1);
	sql_bind_known(q, 12, p->id.posix_session, 0);
	bind_texts(q, 13, &p->id);
	bool ok = sql_run(q, NULL);
	*id = sqlite3_last_insert_rowid(s->db);
	return ok;
}

static bool set_process(struct store *s, const struct process_entry *p, int64_t id)
{
	sqlite3_stmt *q = statement(s, STATEMENT_SET_PROCESS);
	sqlite3_bind_int64(q, 1, id);
	sql_bind_text(q, 2, p->id.user);
	sqlite3_bind_int64(q, 3, p->last_seen_ms);
	sql_bind_known(q, 4, p->last_active_ms, -1);
	sql_bind_known(q, 5, p->ended_ms, -1);
	bind_texts(q, 6, &p->id);
	return sql_run(q, NULL);
}

static bool run_named(struct store *s, enum statement which, const char *number,
	const char *name, int64_t *first)
{
	sqlite3_stmt *q = statement(s, which);
	sqlite3_bind_int64(q, 1, s->host);
	sql_bind_text(q, 2, number);
	if (name)
		sql_bind_text(q, 3, name);
	return sql_run(q, first);
}

/* Time of a user whose name was not known is stored under "uid:N". Once the name is known, the
 * processes get it. Time under a name keeps it: the number may be another person's now. Running
 * totals are exported: an engine that has seen the number's counter would count its time once
 * more if the name's counter took it over, so they stay, unless the counter has shown nothing
 * but 0. */
static bool join_name(struct store *s, const struct process_id *id, int64_t at_ms)
{
	char number[32];
	int64_t stored = 0, newborn = 0;
	snprintf(number, sizeof(number), "uid:%lld", (long long)id->owner_uid);
	if (id->owner_uid < 0 || strcmp(id->user, number) == 0)
		return true;
	if (!run_named(s, STATEMENT_HAS_NUMBER, number, NULL, &stored))
		return false;
	if (!stored)
		return true;
	if (!run_named(s, STATEMENT_NAME_PROCESSES, number, id->user, NULL) ||
		!readings_is_newborn(s, number, at_ms, &newborn))
		return false;
	if (!newborn)
		return readings_note_named(s, number);
	return run_named(s, STATEMENT_JOIN_TOTALS, number, id->user, NULL) &&
	       run_named(s, STATEMENT_DROP_TOTALS, number, NULL, NULL) &&
	       readings_name_user(s, number, id->user);
}

static bool write_processes(struct store *s, const struct tick *t)
{
	bool ok = true;
	for (size_t i = 0; ok && i < t->n_processes; i++) {
		const struct process_entry *p = &t->processes[i];
		int64_t *id = &s->process_ids[i];
		*id = s->ids_stale ? 0 : p->store_id;
		if (*id && !p->dirty)
			continue;
		if (*id == 0)
			ok = find_process(s, p, id);
		if (ok && *id)
			ok = set_process(s, p, *id);
		if (ok)
			ok = crowd_take(s, p, t->at_ms, id);
		if (ok && *id == 0)
			ok = add_process(s, p, id);
		if (ok)
			ok = join_name(s, &p->id, t->at_ms);
		if (ok)
			ok = readings_note_user(s, p->id.user, t->at_ms);
	}
	return ok && crowd_merge(s);
}

/* SM activity is kept by the hour from the start; finer slots are not needed. */
static bool write_sm_active(struct store *s, const struct usage_sum *u)
{
	if (u->sm_active_ms == 0)
		return true;
	sqlite3_stmt *q = statement(s, STATEMENT_SM_ACTIVE);
	sqlite3_bind_int64(q, 1, u->slot - u->slot % 3600);
	sqlite3_bind_int64(q, 2, s->card_ids[u->card]);
	sqlite3_bind_int64(q, 3, u->sm_active_ms);
	sqlite3_bind_int64(q, 4, u->sm_active_pct_ms);
	return sql_run(q, NULL);
}

static bool write_usage(struct store *s, const struct usage_sum *u)
{
	int64_t card = s->card_ids[u->card], energy_unknown_ms = u->ms - u->energy_ms;
	sqlite3_stmt *q = statement(s, STATEMENT_USAGE);
	sqlite3_bind_int64(q, 1, u->slot);
	sqlite3_bind_int64(q, 2, card);
	sqlite3_bind_int(q, 3, (int)u->state);
	sqlite3_bind_int64(q, 4, u->ms);
	sqlite3_bind_int64(q, 5, u->util_pct_ms);
	sqlite3_bind_int64(q, 6, u->energy_mj);
	sqlite3_bind_int64(q, 7, energy_unknown_ms);
	sqlite3_bind_int64(q, 8, u->unsure_ms);
	sqlite3_bind_int64(q, 9, u->unsure_ms2);
	sqlite3_stmt *total = statement(s, STATEMENT_TOTAL_GPU);
	sqlite3_bind_int64(total, 1, card);
	sqlite3_bind_int(total, 2, (int)u->state);
	sqlite3_bind_int64(total, 3, u->ms);
	sqlite3_bind_int64(total, 4, u->energy_mj);
	sqlite3_bind_int64(total, 5, energy_unknown_ms);
	sqlite3_bind_int64(total, 6, u->unsure_ms);
	sqlite3_bind_int64(total, 7, u->unsure_ms2);
	return sql_run(q, NULL) && sql_run(total, NULL) && write_sm_active(s, u);
}

/* The user's running totals: presence by the user's state; shares of active time count as
 * active, those of idle-held time as idle-held. */
static bool write_user_totals(
	struct store *s, const struct tick *t, const struct holding_sum *h)
{
	const int64_t share_ms[HOLDER_STATES] = {
		[HOLDER_ACTIVE] = h->active_share_ms,
		[HOLDER_IDLE_HELD] = h->idle_share_ms,
	};
	bool ok = true;
	for (int state = 0; ok && state < HOLDER_STATES; state++) {
		if (h->presence_ms[state] == 0 && share_ms[state] == 0)
			continue;
		sqlite3_stmt *total = statement(s, STATEMENT_TOTAL_USER);
		sqlite3_bind_int64(total, 1, s->host);
		sql_bind_text(total, 2, t->processes[h->process].id.user);
		sqlite3_bind_int(total, 3, state);
		sqlite3_bind_int64(total, 4, h->presence_ms[state]);
		sqlite3_bind_int64(total, 5, share_ms[state]);
		sqlite3_bind_int64(total, 6, t->at_ms);
		ok = sql_run(total, NULL);
	}
	return ok;
}

/* Where a state's two columns are. Version 2 added the last state, after all other columns. */
static const struct places {
	int ms, twice;
} places[HOLDER_STATES] = {
	[HOLDER_ACTIVE] = { 4, 8 },
	[HOLDER_IDLE_HELD] = { 5, 9 },
	[HOLDER_TRULY_IDLE] = { 6, 10 },
	[HOLDER_SQUATTING] = { 7, 11 },
	[HOLDER_USE_UNKNOWN] = { 16, 17 },
};

static bool write_holding(struct store *s, const struct tick *t, const struct holding_sum *h)
{
	sqlite3_stmt *q = statement(s, STATEMENT_HOLDING);
	sqlite3_bind_int64(q, 1, h->slot);
	sqlite3_bind_int64(q, 2, s->card_ids[h->card]);
	sqlite3_bind_int64(q, 3, s->process_ids[h->process]);
	for (int state = 0; state < HOLDER_STATES; state++) {
		const struct places *to = &places[state];
		sqlite3_bind_int64(q, to->ms, h->ms[state]);
		sqlite3_bind_int64(q, to->twice, h->ms[state] - h->presence_ms[state]);
	}
	sqlite3_bind_int64(q, 12, h->active_share_ms);
	sqlite3_bind_int64(q, 13, h->idle_share_ms);
	sql_bind_known(q, 14, h->sm_pct_ms, -1);
	sql_bind_known(q, 15, h->mem_peak_kib, -1);
	sqlite3_bind_int64(q, 18, h->engine_ms);
	if (h->sm_max_pct >= 0)
		sqlite3_bind_int64(q, 19, h->own_unknown_ms * 256 + h->sm_max_pct);
	else
		sqlite3_bind_null(q, 19);
	return sql_run(q, NULL) && write_user_totals(s, t, h);
}

static bool write_event(struct store *s, const struct event *v)
{
	sqlite3_stmt *q = statement(s, STATEMENT_EVENT);
	sqlite3_bind_int64(q, 1, s->host);
	sqlite3_bind_int64(q, 2, v->at_ms);
	if (v->card >= 0)
		sqlite3_bind_int64(q, 3, s->card_ids[v->card]);
	else
		sqlite3_bind_null(q, 3);
	sqlite3_bind_text(q, 4, event_kind_names[v->kind], -1, SQLITE_STATIC);
	sqlite3_bind_int64(q, 5, v->value);
	sql_bind_text(q, 6, v->text);
	return sql_run(q, NULL);
}

/* No slot has more time of a card than it is long. It would after the clock was set back, when
 * the same minutes pass again. */
static bool cut_slot(struct store *s, int64_t slot, int64_t slot_ms)
{
	for (;;) {
		sqlite3_stmt *q = statement(s, STATEMENT_OVERFULL);
		sqlite3_bind_int64(q, 1, slot);
		sqlite3_bind_int64(q, 2, slot_ms);
		int rc = q ? sqlite3_step(q) : SQLITE_ERROR;
		int64_t card = sqlite3_column_int64(q, 0), ms = sqlite3_column_int64(q, 1);
		sqlite3_reset(q);
		if (rc != SQLITE_ROW)
			return rc == SQLITE_DONE;
		static const enum statement cuts[] = { STATEMENT_CUT_USAGE,
			STATEMENT_CUT_HOLDING };
		for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
			q = statement(s, cuts[i]);
			sqlite3_bind_int64(q, 1, slot);
			sqlite3_bind_int64(q, 2, card);
			sqlite3_bind_int64(q, 3, slot_ms);
			sqlite3_bind_int64(q, 4, ms);
			if (!sql_run(q, NULL))
				return false;
		}
		if (!s->told_cut)
			log_warning("a card had %.1f s in a slot of %.0f s: the clock was set "
				    "back, or time was counted twice; cut to its length",
				(double)ms / 1000, (double)slot_ms / 1000);
		s->told_cut = true;
	}
}

static bool write_sums(struct store *s, const struct tick *t)
{
	bool ok = true;
	for (size_t i = 0; ok && i < t->n_usage; i++)
		ok = write_usage(s, &t->usage[i]);
	for (size_t i = 0; ok && i < t->n_holding; i++)
		ok = write_holding(s, t, &t->holding[i]);
	for (size_t i = 0; ok && t->slot_ms && i < t->n_usage; i++)
		if (i == 0 || t->usage[i].slot != t->usage[i - 1].slot)
			ok = cut_slot(s, t->usage[i].slot, t->slot_ms);
	for (size_t i = 0; ok && i < t->n_events; i++)
		ok = write_event(s, &t->events[i]);
	return ok;
}

static bool write_holder(struct store *s, const struct stored_holder *h)
{
	sqlite3_stmt *q = statement(s, STATEMENT_HOLDER);
	sqlite3_bind_int64(q, 1, h->gpu);
	sqlite3_bind_int64(q, 2, h->process);
	sqlite3_bind_int64(q, 3, h->kind);
	sql_bind_known(q, 4, h->mem_bytes, UNKNOWN_BYTES);
	sqlite3_bind_int64(q, 5, h->since_ms);
	sql_bind_known(q, 6, h->last_active_ms, -1);
	return sql_run(q, NULL);
}

/* Finds the row of a holder among others, in which it mostly has the same place; or NULL. */
static const struct stored_holder *find_holder(
	const struct stored_holder *rows, size_t n, const struct stored_holder *h, size_t place)
{
	for (size_t k = 0; k < n; k++) {
		const struct stored_holder *row = &rows[(place + k) % n];
		if (row->gpu == h->gpu && row->process == h->process)
			return row;
	}
	return NULL;
}

/* Writes the rows that have changed since the last tick. */
static bool update_holders(struct store *s)
{
	bool ok = true;
	for (size_t i = 0; ok && i < s->n_holders; i++) {
		const struct stored_holder *was = &s->holders[i];
		if (find_holder(s->next, s->n_next, was, i))
			continue;
		sqlite3_stmt *q = statement(s, STATEMENT_HOLDER_GONE);
		sqlite3_bind_int64(q, 1, was->gpu);
		sqlite3_bind_int64(q, 2, was->process);
		ok = sql_run(q, NULL);
	}
	for (size_t i = 0; ok && i < s->n_next; i++) {
		const struct stored_holder *now = &s->next[i];
		const struct stored_holder *was = find_holder(s->holders, s->n_holders, now, i);
		if (!was || memcmp(was, now, sizeof(*now)) != 0)
			ok = write_holder(s, now);
	}
	return ok;
}

/* The first tick replaces the table, which may be another run's. */
static bool write_holders(struct store *s, const struct tick *t)
{
	s->n_next = t->n_holders;
	for (size_t i = 0; i < t->n_holders; i++) {
		const struct holder_now *h = &t->holders[i];
		s->next[i] = (struct stored_holder){ s->card_ids[h->card],
			s->process_ids[h->process], h->kind, h->mem_bytes, h->since_ms,
			h->last_active_ms };
	}
	if (s->holders_known)
		return update_holders(s);
	sqlite3_stmt *q = statement(s, STATEMENT_CLEAR_HOLDERS);
	sqlite3_bind_int64(q, 1, s->host);
	bool ok = sql_run(q, NULL);
	for (size_t i = 0; ok && i < s->n_next; i++)
		ok = write_holder(s, &s->next[i]);
	return ok;
}

static bool write_time(struct store *s, int64_t at_ms)
{
	sqlite3_stmt *q = statement(s, STATEMENT_RUN_TICK);
	sqlite3_bind_int64(q, 1, s->run);
	sqlite3_bind_int64(q, 2, at_ms);
	sqlite3_stmt *host = statement(s, STATEMENT_HOST_TICK);
	sqlite3_bind_int64(host, 1, s->host);
	sqlite3_bind_int64(host, 2, at_ms);
	sqlite3_bind_int(host, 3, s->past);
	return sql_run(q, NULL) && sql_run(host, NULL);
}

/* Marks the recorder's entries as stored. Called only when the tick was written. */
static void confirm(struct store *s, struct tick *t)
{
	for (size_t i = 0; i < t->n_cards; i++) {
		t->cards[i].store_id = s->card_ids[i];
		t->cards[i].dirty = false;
	}
	for (size_t i = 0; i < t->n_processes; i++) {
		t->processes[i].store_id = s->process_ids[i];
		t->processes[i].dirty = false;
	}
	struct stored_holder *holders = s->holders;
	size_t cap = s->holder_cap;
	s->holders = s->next;
	s->holder_cap = s->next_cap;
	s->n_holders = s->n_next;
	s->next = holders;
	s->next_cap = cap;
	s->holders_known = true;
	s->ids_stale = false;
}

int write_tick(struct store *s, struct tick *t, struct err *e)
{
	if (!make_room(s, t))
		return err_memory(e);
	int code = store_ensure_run(s, e);
	if (!code)
		code = store_begin(s, e);
	if (code)
		return code;
	int64_t host = s->host;
	if (!store_find_host(s, t) || !write_cards(s, t) || !write_processes(s, t) ||
		!write_sums(s, t) || !write_holders(s, t) || !spells_write(s, t) ||
		!readings_write(s, t) || !write_time(s, t->at_ms)) {
		s->holders_known = false;
		s->host = host;
		crowd_forget(s);
		return store_abandon(s, "write", e);
	}
	code = store_commit(s, e);
	if (code) {
		s->host = host;
		crowd_forget(s);
		return code;
	}
	s->host_found = true;
	confirm(s, t);
	return 0;
}

/* Writes spells, and reads those that an earlier run left open. */
#include "store/spells.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/str.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/store_private.h"

enum query { QUERY_CLEAR, QUERY_OPEN, QUERY_END, QUERY_FORGET, QUERIES };
_Static_assert(QUERIES == sizeof(((struct store *)0)->spell_queries) / sizeof(sqlite3_stmt *),
	"the store has a place for each");

static const char *const texts[QUERIES] = {
	[QUERY_CLEAR] = "DELETE FROM open_spell WHERE gpu = ?1",
	[QUERY_OPEN] = "INSERT OR REPLACE INTO open_spell (end_ms, gpu, process, begin_ms,"
		       " idle_held_ms, squatting_ms, mem_peak_kib, energy_mj)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[QUERY_END] = "INSERT OR REPLACE INTO spell VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
		      " ?9)",
	[QUERY_FORGET] = "DELETE FROM spell WHERE end_ms = ?1 AND gpu = ?2 AND process = ?3",
};

static sqlite3_stmt *query(struct store *s, enum query which)
{
	return sql_kept(s->db, &s->spell_queries[which], texts[which]);
}

static bool write_one(struct store *s, enum query which, const struct spell *spell)
{
	sqlite3_stmt *q = query(s, which);
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

/* The spell that was open when an earlier run ended is stored as one that ended then. */
static bool forget_stored(struct store *s, const struct spell *spell)
{
	sqlite3_stmt *q = query(s, QUERY_FORGET);
	sqlite3_bind_int64(q, 1, spell->stored_end_ms);
	sqlite3_bind_int64(q, 2, s->card_ids[spell->card]);
	sqlite3_bind_int64(q, 3, s->process_ids[spell->process]);
	return sql_run(q, NULL);
}

bool spells_write(struct store *s, const struct tick *t)
{
	bool ok = true;
	for (size_t i = 0; ok && i < t->n_cards; i++) {
		sqlite3_stmt *q = query(s, QUERY_CLEAR);
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

bool spells_close(struct store *s)
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
	text_copy(past.uuid, sizeof(past.uuid), uuid ? uuid : "");
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
	for (size_t i = 0; i < QUERIES; i++) {
		sqlite3_finalize(s->spell_queries[i]);
		s->spell_queries[i] = NULL;
	}
}

/* Reads events from stores, and the times without a recorder, which come from the runs. */
#include "audit/event_rows.h"

#include <stdio.h>

#include "base/str.h"
#include "base/timetext.h"
#include "store/sql.h"

#define RUNS                                                                                   \
	"(SELECT host, started_ms, lag(last_tick_ms) OVER hosts AS before_ms, "                \
	"lag(how_ended) OVER hosts AS how FROM run WHERE source <> 'import' "                  \
	"WINDOW hosts AS (PARTITION BY host ORDER BY started_ms))"
#define EVENTS                                                                                 \
	"SELECT at_ms, host, gpu, kind, value, text FROM event "                               \
	"WHERE at_ms >= ?1 AND at_ms < ?2 "                                                    \
	"UNION ALL SELECT started_ms, host, NULL, 'recorder-off', started_ms - before_ms, "    \
	"coalesce(how, '') FROM " RUNS                                                         \
	" WHERE before_ms < started_ms AND started_ms >= ?1 AND started_ms < ?2"

/* Text of a time without a recorder, of which the store has only how the one before ended. */
static void explain_off(struct event_row *row)
{
	char how[24], length[40];
	text_copy(how, sizeof(how), row->text);
	duration_text(length, sizeof(length), row->value);
	snprintf(row->text, sizeof(row->text), "no recorder for %s%s%s", length,
		*how ? "; the one before was " : "", how);
}

/* Reads a row; false: its host or card is not in the audit. */
static bool read_row(const struct gather_file *file, sqlite3_stmt *stmt, struct event_row *row)
{
	row->at_ms = sql_int(stmt, 0, 0);
	row->host = idmap_get(&file->hosts, sqlite3_column_int64(stmt, 1));
	row->card = IDMAP_NONE;
	bool of_card = sqlite3_column_type(stmt, 2) != SQLITE_NULL;
	if (of_card)
		row->card = file_card(file, sqlite3_column_int64(stmt, 2));
	sql_text(stmt, 3, row->kind, sizeof(row->kind));
	row->value = sql_int(stmt, 4, 0);
	sql_text(stmt, 5, row->text, sizeof(row->text));
	if (event_kind_of(row->kind) == EVENT_RECORDER_OFF)
		explain_off(row);
	return row->host != IDMAP_NONE && (!of_card || row->card != IDMAP_NONE);
}

int events_of(struct event_taker *t, const struct gather_file *file, struct err *e)
{
	sqlite3_stmt *stmt;
	struct event_row row;
	int rc = sql_prepare(file->db, &stmt, e, "%s", EVENTS);
	if (rc == 0) {
		sqlite3_bind_int64(stmt, 1, t->since_ms);
		sqlite3_bind_int64(stmt, 2, t->until_ms);
	}
	while (rc == 0) {
		rc = sql_step(stmt, e);
		if (rc <= 0)
			break;
		rc = read_row(file, stmt, &row) ? t->take(t, &row, e) : 0;
	}
	sqlite3_finalize(stmt);
	return rc;
}

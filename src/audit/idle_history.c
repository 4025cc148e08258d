/* Opens the store, finds its newest host and that host's cards, and runs the steps. */
#include "audit/idle_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "audit/idle_private.h"
#include "store/sql.h"
#include "driver/source.h"
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
	if (rc == 0)
		rc = sql_step(row, e);
	if (rc == 1) {
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
		rc = 0;
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
	struct card_id *card = &h->cards[h->n_cards++];
	*card = (struct card_id){ .index = (int)sql_int(row, 4, 0),
		.mig_index = (int)sql_int(row, 5, -1),
		.gpu_instance = -1,
		.compute_instance = -1,
		.mem_total_bytes = sql_int(row, 6, -1) };
	sql_text(row, 1, card->uuid, sizeof(card->uuid));
	sql_text(row, 2, card->name, sizeof(card->name));
	sql_text(row, 3, card->pci, sizeof(card->pci));
	sql_text(row, 7, card->parent_uuid, sizeof(card->parent_uuid));
	return 0;
}

static int read_cards(struct idle_history *h, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(h->db, &row, e,
		"SELECT id, uuid, name, pci, idx, mig_index, mem_total_bytes, parent_uuid "
		"FROM gpu WHERE host = %lld ORDER BY idx, mig_index",
		(long long)h->host);
	while (rc == 0 && (rc = sql_step(row, e)) == 1)
		rc = take_card(h, row, e);
	sqlite3_finalize(row);
	return rc;
}

void idle_history_limit(struct idle_history *h, int64_t pct)
{
	for (size_t i = 0; i < h->n_limits; i++)
		if (h->limits[i] == pct)
			return;
	if (h->n_limits < IDLE_BELOW_MOST)
		h->limits[h->n_limits++] = pct;
}

size_t idle_history_limit_of(const struct idle_history *h, int64_t pct)
{
	for (size_t i = 0; i < h->n_limits; i++)
		if (h->limits[i] == pct)
			return i;
	return 0;
}

int64_t idle_history_most(
	const struct idle_history *h, uint32_t session, int64_t from_ms, int64_t to_ms)
{
	int64_t most = 0;
	for (size_t i = 0; i < h->n_lows; i++) {
		const struct idle_low *low = &h->lows[i];
		if (low->session == session && low->from_ms >= from_ms &&
			low->from_ms < to_ms && low->pct > most)
			most = low->pct;
	}
	return most;
}

int idle_history_read(struct idle_history *h, struct err *e)
{
	int (*const steps[])(struct idle_history *, struct err *) = { read_run, read_cards,
		idle_read_sessions, idle_read_ended, idle_read_crowds, idle_read_gaps,
		idle_read_rows, idle_read_held, idle_history_settle };
	int (*const brief[])(struct idle_history *, struct err *) = { read_run, read_cards,
		idle_read_sessions, idle_read_held, idle_history_settle };
	enum { BRIEF = sizeof(brief) / sizeof(brief[0]) };
	enum { STEPS = sizeof(steps) / sizeof(steps[0]) };
	int rc = store_open_read_within(&h->db, h->path, h->wait_ms, e);
	if (rc)
		return rc;
	if (h->n_limits == 0)
		idle_history_limit(h, IDLE_BELOW_USUAL);
	sqlite3_exec(h->db, "BEGIN", NULL, NULL, NULL);
	for (size_t i = 0; i < (h->brief ? BRIEF : STEPS) && rc == 0; i++)
		if (i == 0 || h->any_run)
			rc = h->brief ? brief[i](h, e) : steps[i](h, e);
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
	free(h->lows);
	free(h->blinds);
	free(h->crowds);
	idmap_finish(&h->card_ids);
	idmap_finish(&h->process_ids);
	idmap_finish(&h->crowd_ids);
	names_finish(&h->keys);
	arena_finish(&h->texts);
	*h = (struct idle_history){ .path = h->path, .wait_ms = h->wait_ms };
}

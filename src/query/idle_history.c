/* Opens the store, finds its newest host and that host's cards, and runs the steps. */
#include "query/idle_history.h"

#include <stdlib.h>

#include "base/array.h"
#include "query/idle_private.h"
#include "query/sql.h"
#include "source/kind.h"
#include "store/store.h"

static int read_run(struct idle_history *h, struct err *e)
{
	char source[SOURCE_LIST_CAP];
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(h->db, &row, e,
		"SELECT run.host, hostname, boot_id, last_tick_ms, interval_ms, spell_ms, "
		"ended_ms IS NULL, source, (SELECT min(started_ms) FROM run AS r WHERE "
		"r.host = run.host AND r.source <> 'import'), last_tick_ms > started_ms FROM "
		"run JOIN host ON host.id = "
		"run.host "
		"WHERE source <> 'import' ORDER BY run.id DESC LIMIT 1");
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
		h->first_ms = sql_int(row, 8, 0);
		h->ticked = sql_int(row, 9, 0);
		rc = 0;
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

int idle_history_read(struct idle_history *h, struct err *e)
{
	int (*const steps[])(struct idle_history *, struct err *) = { read_run, read_cards,
		idle_read_sessions, idle_read_spans, idle_read_ended, idle_read_marks,
		idle_read_gaps, idle_history_settle };
	enum { BRIEF_STEPS = 4, STEPS = sizeof(steps) / sizeof(steps[0]) };
	int rc = store_open_read_within(&h->db, h->path, h->wait_ms, e);
	if (rc)
		return rc;
	sqlite3_exec(h->db, "BEGIN", NULL, NULL, NULL);
	for (size_t i = 0; i < (h->brief ? BRIEF_STEPS : STEPS) && rc == 0; i++)
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
	idmap_finish(&h->card_ids);
	idmap_finish(&h->process_ids);
	names_finish(&h->keys);
	arena_finish(&h->texts);
	*h = (struct idle_history){ .path = h->path, .wait_ms = h->wait_ms };
}

/* Reads the newest run, its holders, and the slots backwards. */
#include "query/now.h"

#include <stdlib.h>
#include <string.h>

#include "query/sql.h"
#include "store/store.h"

int now_open(struct now *n, const char *path, struct err *e)
{
	*n = (struct now){ .last_tick_ms = -1 };
	return store_open_read(&n->db, path, e);
}

void now_close(struct now *n)
{
	sqlite3_close(n->db);
	free(n->holders);
	*n = (struct now){ .last_tick_ms = -1 };
}

static int read_run(struct now *n, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT last_tick_ms, interval_ms FROM run WHERE source <> 'import' "
		"ORDER BY id DESC LIMIT 1");
	if (rc == 0)
		rc = sql_step(stmt, e);
	n->any_run = rc == 1;
	if (rc == 1) {
		n->last_tick_ms = sql_int(stmt, 0, -1);
		n->interval_ms = sql_int(stmt, 1, 0);
	}
	sqlite3_finalize(stmt);
	return rc < 0 ? rc : 0;
}

static int add_holder(struct now *n, sqlite3_stmt *row, struct err *e)
{
	/* Powers of two grow. */
	if ((n->n_holders & (n->n_holders - 1)) == 0) {
		size_t cap = n->n_holders ? 2 * n->n_holders : 16;
		void *grown = reallocarray(n->holders, cap, sizeof(*n->holders));
		if (!grown)
			return err_set(e, ERR_WORLD, "out of memory");
		n->holders = grown;
	}
	struct now_holder *h = &n->holders[n->n_holders++];
	*h = (struct now_holder){ .pid = (uint32_t)sql_int(row, 1, 0),
		.start_ticks = (uint64_t)sql_int(row, 2, 0),
		.since_ms = sql_int(row, 4, -1),
		.last_active_ms = sql_int(row, 5, -1) };
	sql_text(row, 0, h->uuid, sizeof(h->uuid));
	sql_text(row, 3, h->boot_id, sizeof(h->boot_id));
	return 0;
}

int now_read(struct now *n, struct err *e)
{
	sqlite3_stmt *stmt;
	n->n_holders = 0;
	int rc = read_run(n, e);
	if (rc)
		return rc;
	rc = sql_prepare(n->db, &stmt, e,
		"SELECT gpu.uuid, process.pid, process.start_ticks, run.boot_id, "
		"holder.since_ms, coalesce(holder.last_active_ms, "
		/* Before a recorder that was started anew: on whatever card that was. */
		"iif(process.last_active_ms < holder.since_ms, process.last_active_ms, NULL)) "
		"FROM holder "
		"JOIN process ON process.id = holder.process JOIN run ON run.id = process.run "
		"JOIN gpu ON gpu.id = holder.gpu");
	while (rc == 0) {
		rc = sql_step(stmt, e);
		if (rc <= 0)
			break;
		rc = add_holder(n, stmt, e);
	}
	sqlite3_finalize(stmt);
	return rc;
}

const struct now_holder *now_find(
	const struct now *n, const char *uuid, const struct process_id *id, const char *boot_id)
{
	for (size_t i = 0; id->start_ticks && i < n->n_holders; i++) {
		const struct now_holder *h = &n->holders[i];
		if (h->pid == id->pid && h->start_ticks == id->start_ticks &&
			strcmp(h->boot_id, boot_id) == 0 && strcmp(h->uuid, uuid) == 0)
			return h;
	}
	return NULL;
}

/* A walk back through the slots of one card. */
struct walk {
	int64_t card;
	enum card_state state;
	int64_t since_s; /* begin of the stretch as far as it was followed; INT64_MAX: none */
	int64_t slot;	 /* the slot that is being read; -1: none yet */
	int64_t slot_ms; /* time in the state in it */
	bool broken;	 /* it was in another state in the slot */
	bool ended;
};

/* The slot that was read is whole: the stretch goes on through it, or ends in it. */
static void finish_slot(struct walk *w)
{
	if (w->slot < 0 || w->ended)
		return;
	if (w->broken)
		w->ended = true;
	else if (w->slot_ms > 0)
		w->since_s = w->slot;
}

/* One row, newest slot first. */
static void take_row(struct walk *w, const struct slot_table *t, sqlite3_stmt *row)
{
	int64_t slot = sql_int(row, 0, 0), ms = sql_int(row, 2, 0);
	if (slot != w->slot) {
		finish_slot(w);
		/* Slots that are missing were not observed. */
		if (w->slot >= 0 && slot + t->seconds < w->since_s)
			w->ended = true;
		w->slot = slot;
		w->slot_ms = 0;
		w->broken = false;
	}
	if (ms > 0 && sql_int(row, 1, -1) == (int64_t)w->state)
		w->slot_ms += ms;
	else if (ms > 0)
		w->broken = true;
}

static int walk_table(struct now *n, struct walk *w, const struct slot_table *t, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT slot, state, ms FROM %s WHERE gpu = ?1 ORDER BY slot DESC", t->usage);
	if (rc)
		return rc;
	sqlite3_bind_int64(stmt, 1, w->card);
	while (!w->ended && (rc = sql_step(stmt, e)) == 1)
		take_row(w, t, stmt);
	sqlite3_finalize(stmt);
	return rc < 0 ? rc : 0;
}

int64_t now_state_since(struct now *n, const char *uuid, enum card_state state, struct err *e)
{
	struct walk w = { .state = state, .since_s = INT64_MAX, .slot = -1 };
	sqlite3_stmt *stmt;
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT id FROM gpu WHERE uuid = ?1 ORDER BY last_seen_ms DESC LIMIT 1");
	if (rc)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	rc = sql_step(stmt, e);
	w.card = rc == 1 ? sql_int(stmt, 0, -1) : -1;
	sqlite3_finalize(stmt);
	for (int i = SLOT_TABLES; rc == 1 && i-- > 0 && !w.ended;)
		if (walk_table(n, &w, &slot_tables[i], e))
			return -1;
	if (!w.ended)
		finish_slot(&w);
	return w.since_s == INT64_MAX ? -1 : w.since_s * 1000;
}

/* Reads the newest run, its holders, and the slots backwards. */
#include "query/now.h"

#include <stdlib.h>
#include <string.h>

#include "query/sql.h"
#include "store/store.h"

/* Rows that a walk reads at most, ten milliseconds: for 16 cards that never did anything else
 * 20 hours, for 8 some days. */
#define ROWS_MAX 20000

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

/* The walk of a card, which is -1 where nobody asks. */
static struct walk *find_walk(struct walk *walks, size_t n, int64_t card)
{
	for (size_t i = 0; i < n; i++)
		if (walks[i].card == card)
			return &walks[i];
	return NULL;
}

static bool all_ended(const struct walk *walks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!walks[i].ended)
			return false;
	return true;
}

static int walk_table(struct now *n, struct walk *walks, size_t n_walks,
	const struct slot_table *t, int64_t *rows_left, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT slot, state, ms, gpu FROM %s ORDER BY slot DESC, gpu DESC", t->usage);
	while (rc == 0 && --*rows_left > 0) {
		rc = sql_step(stmt, e);
		if (rc <= 0)
			break;
		rc = 0;
		struct walk *w = find_walk(walks, n_walks, sqlite3_column_int64(stmt, 3));
		if (!w || w->ended)
			continue;
		take_row(w, t, stmt);
		if (w->ended && all_ended(walks, n_walks))
			break;
	}
	sqlite3_finalize(stmt);
	return rc < 0 ? rc : 0;
}

/* The card's number in the store, or -1. */
static int64_t card_number(struct now *n, const char *uuid, struct err *e)
{
	sqlite3_stmt *stmt;
	if (sql_prepare(n->db, &stmt, e,
		    "SELECT id FROM gpu WHERE uuid = ?1 ORDER BY last_seen_ms DESC LIMIT 1"))
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	int64_t number = sql_step(stmt, e) == 1 ? sql_int(stmt, 0, -1) : -1;
	sqlite3_finalize(stmt);
	return number;
}

int now_states_since(struct now *n, struct now_ask *asks, size_t n_asks, struct err *e)
{
	int64_t rows_left = ROWS_MAX;
	struct walk *walks = calloc(n_asks + 1, sizeof(*walks));
	if (!walks)
		return err_set(e, ERR_WORLD, "out of memory");
	for (size_t i = 0; i < n_asks; i++) {
		walks[i] = (struct walk){ .card = card_number(n, asks[i].uuid, e),
			.state = asks[i].state,
			.since_s = INT64_MAX,
			.slot = -1 };
		walks[i].ended = walks[i].card < 0;
	}
	int rc = 0;
	for (int i = SLOT_TABLES; i-- > 0 && rc == 0 && !all_ended(walks, n_asks);)
		rc = walk_table(n, walks, n_asks, &slot_tables[i], &rows_left, e);
	for (size_t i = 0; i < n_asks; i++) {
		/* The slot where the rows ran out may not be whole. */
		if (!walks[i].ended && rows_left > 0)
			finish_slot(&walks[i]);
		bool known = rc == 0 && walks[i].since_s != INT64_MAX;
		asks[i].since_ms = known ? walks[i].since_s * 1000 : -1;
	}
	free(walks);
	return rc;
}

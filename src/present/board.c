/* Reads the newest run of a store, its cards and their holders. */
#include "present/board.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "present/cards_now.h"
#include "audit/floors.h"
#include "present/now.h"
#include "store/sql.h"
#include "driver/kind.h"

/* A card that was not accounted for this long before the last tick is not there any more. */
#define CARD_GONE_MS 3600000
/* The newest slots of a card start within this time before its last tick: those of a minute,
 * those of five, which a recorder has that keeps no minutes. */
enum { LAST_SLOTS_S = 150, LAST_FIVE_S = 630 };
/* This many ticks may be missing before the recorder counts as silent. */
enum { TICKS_MISSED = 3 };

void board_finish(struct board *b)
{
	free(b->hosts);
	free(b->cards);
	free(b->holders);
	arena_finish(&b->texts);
	*b = (struct board){ 0 };
}

/* A board while one store is added. */
struct adding {
	struct board *b;
	struct now now;
	struct context_floors floors;
	size_t host, first_card;
	int64_t *rows; /* ids of the cards from first_card on */
};

static bool is_stale(const struct board_host *h, int64_t now_ms)
{
	int64_t allowed_ms = TICKS_MISSED * (h->interval_ms > 0 ? h->interval_ms : 0) + 5000;
	return !h->running || h->killed || now_ms - h->last_tick_ms > allowed_ms;
}

static int add_host(struct adding *a, int64_t now_ms, struct err *e)
{
	struct board *b = a->b;
	const struct now *n = &a->now;
	sqlite3_stmt *stmt;
	if (!array_one_more(&b->hosts, b->n_hosts))
		return err_memory(e);
	a->host = b->n_hosts++;
	struct board_host *h = &b->hosts[a->host];
	*h = (struct board_host){ .any_run = n->any_run,
		.running = n->running,
		.killed = n->killed,
		.last_tick_ms = n->last_tick_ms,
		.interval_ms = n->interval_ms,
		.rules = n->rules };
	h->stale = is_stale(h, now_ms);
	text_copy(h->source, sizeof(h->source), n->source);
	h->simulated = source_is_invented(h->source);
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT hostname, driver FROM host ORDER BY id = (SELECT host FROM run "
		"WHERE source <> 'import' ORDER BY id DESC LIMIT 1) DESC LIMIT 1");
	if (rc == 0 && (rc = sql_step(stmt, e)) == 1) {
		sql_text(stmt, 0, h->hostname, sizeof(h->hostname));
		sql_text(stmt, 1, h->driver, sizeof(h->driver));
		rc = 0;
	}
	sqlite3_finalize(stmt);
	return rc;
}

static int add_card(struct adding *a, const struct card_reported *from, struct err *e)
{
	struct board *b = a->b;
	size_t nth = b->n_cards - a->first_card;
	if (!array_one_more(&b->cards, b->n_cards) || !array_one_more(&a->rows, nth))
		return err_memory(e);
	a->rows[nth] = from->gpu;
	struct board_card *c = &b->cards[b->n_cards++];
	*c = (struct board_card){ .host = a->host,
		.id = from->id,
		.last_seen_ms = from->last_seen_ms,
		.state = CARD_UNOBSERVED,
		.state_since_ms = -1 };
	card_now_clear(&c->now);
	if (from->current)
		c->now = from->now;
	text_copy(c->status, sizeof(c->status), card_status_names[from->status]);
	text_copy(c->source, sizeof(c->source), from->source);
	return 0;
}

static int add_cards(struct adding *a, struct err *e)
{
	struct cards_now all = { 0 };
	a->first_card = a->b->n_cards;
	int rc = cards_now_read(&all, a->now.db, e);
	for (size_t i = 0; i < all.n && rc == 0; i++)
		if (all.cards[i].last_seen_ms >= a->now.last_tick_ms - CARD_GONE_MS)
			rc = add_card(a, &all.cards[i], e);
	cards_now_free(&all);
	return rc;
}

/* The card with this id in the store; NULL: it is not on the board. */
static struct board_card *find_card(struct adding *a, int64_t row)
{
	for (size_t i = a->first_card; i < a->b->n_cards; i++)
		if (a->rows[i - a->first_card] == row)
			return &a->b->cards[i];
	return NULL;
}

/* Sets the state of each card: the one of most of its newest slot. */
static int read_states(struct adding *a, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(a->now.db, &stmt, e,
		"SELECT gpu, state, max(slot * 1000000 + ms) AS newest FROM (SELECT slot, gpu, "
		"state, ms FROM usage_1m UNION ALL SELECT slot, gpu, state, ms FROM usage_5m) "
		"WHERE slot >= %lld AND ms > 0 GROUP BY gpu, state ORDER BY newest",
		(long long)(a->now.last_tick_ms / 1000 - LAST_FIVE_S));
	while (rc == 0 && (rc = sql_step(stmt, e)) == 1) {
		struct board_card *c = find_card(a, sqlite3_column_int64(stmt, 0));
		int64_t state = sql_int(stmt, 1, CARD_UNOBSERVED);
		if (c && state >= 0 && state < CARD_STATES)
			c->state = (enum card_state)state;
		rc = 0;
	}
	sqlite3_finalize(stmt);
	return rc;
}

static int read_since(struct adding *a, struct err *e)
{
	size_t n = a->b->n_cards - a->first_card;
	struct board_card *cards = a->b->cards + a->first_card;
	struct now_ask *asks = calloc(n + 1, sizeof(*asks));
	if (!asks)
		return err_memory(e);
	for (size_t i = 0; i < n; i++)
		asks[i] = (struct now_ask){
			.uuid = cards[i].id.uuid, .states = 1U << cards[i].state, .since_ms = -1
		};
	int rc = now_states_since(&a->now, asks, n, e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		cards[i].state_since_ms = asks[i].since_ms;
		cards[i].state_longer = asks[i].longer;
	}
	free(asks);
	return rc;
}

/* What a holder holds, and what kind it is; a recorder that ended has left its peak only. */
#define HOLDER_SQL                                                                             \
	"SELECT p.user, coalesce(h.mem_bytes, (SELECT mem_peak_kib * 1024 FROM holding_1m "    \
	"WHERE slot >= ?3 AND gpu = ?1 AND process = p.id ORDER BY slot DESC LIMIT 1)), "      \
	"coalesce(h.kind, 1), p.uid, p.started_ms, " PROCESS_TEXT_COLUMNS                      \
	" FROM process AS p LEFT JOIN holder AS h ON h.gpu = ?1 AND h.process = p.id WHERE "   \
	"p.id = ?2"
enum { HOLDER_USER, HOLDER_MEM, HOLDER_KIND, HOLDER_UID, HOLDER_STARTED, HOLDER_TEXTS };

static void take_holder(struct adding *a, const struct now_holder *from, sqlite3_stmt *row,
	struct board_holder *h)
{
	const struct board_card *c = &a->b->cards[h->card];
	h->user = sql_text_copy(row, HOLDER_USER, &a->b->texts);
	h->mem_bytes = sql_int(row, HOLDER_MEM, -1);
	h->uid = sql_int(row, HOLDER_UID, -1);
	h->started_ms = sql_int(row, HOLDER_STARTED, -1);
	for (int i = 0; i < PROCESS_TEXTS; i++)
		h->texts[i] = sql_text_copy(row, HOLDER_TEXTS + i, &a->b->texts);
	h->context = context_judge((unsigned)sql_int(row, HOLDER_KIND, 0), h->mem_bytes,
		context_floor(&a->floors, c->id.name));
	h->since_ms = from->since_ms;
	h->last_active_ms = from->last_active_ms;
	h->active = from->last_active_ms >= a->now.last_tick_ms - a->now.interval_ms &&
		    from->last_active_ms >= 0;
	if (!h->active && c->state != CARD_USE_UNKNOWN) {
		h->idle_since_ms = from->idle_since_ms;
		h->idle_longer = from->idle_longer;
	}
}

static int add_holder(
	struct adding *a, const struct now_holder *from, sqlite3_stmt *stmt, struct err *e)
{
	struct board *b = a->b;
	struct board_card *c = find_card(a, from->card_row);
	if (!c)
		return 0;
	sqlite3_reset(stmt);
	sqlite3_bind_int64(stmt, 1, from->card_row);
	sqlite3_bind_int64(stmt, 2, from->process_row);
	sqlite3_bind_int64(stmt, 3, a->now.last_tick_ms / 1000 - LAST_SLOTS_S);
	int rc = sql_step(stmt, e);
	if (rc <= 0)
		return rc;
	if (!array_one_more(&b->holders, b->n_holders))
		return err_memory(e);
	struct board_holder *h = &b->holders[b->n_holders++];
	*h = (struct board_holder){
		.card = (size_t)(c - b->cards), .pid = from->pid, .idle_since_ms = -1
	};
	take_holder(a, from, stmt, h);
	return b->texts.failed ? err_memory(e) : 0;
}

/* Longest idle first; those whose use is not known, then those that are active. */
static int64_t idle_order(const struct board_holder *h)
{
	return h->active ? INT64_MAX : h->idle_since_ms < 0 ? INT64_MAX - 1 : h->idle_since_ms;
}

static int compare(const void *left, const void *right)
{
	const struct board_holder *a = left, *b = right;
	if (a->card != b->card)
		return a->card < b->card ? -1 : 1;
	int64_t since_a = idle_order(a), since_b = idle_order(b);
	if (since_a != since_b)
		return since_a < since_b ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static int add_holders(struct adding *a, struct err *e)
{
	struct board *b = a->b;
	sqlite3_stmt *stmt;
	size_t first = b->n_holders;
	int rc = sql_prepare(a->now.db, &stmt, e, HOLDER_SQL);
	for (size_t i = 0; i < a->now.n_holders && rc == 0; i++)
		rc = add_holder(a, &a->now.holders[i], stmt, e);
	sqlite3_finalize(stmt);
	if (b->n_holders > first)
		qsort(b->holders + first, b->n_holders - first, sizeof(*b->holders), compare);
	for (size_t i = b->n_holders; i-- > first;) {
		struct board_card *c = &b->cards[b->holders[i].card];
		c->first_holder = i;
		c->n_holders++;
	}
	return rc;
}

int board_add(struct board *b, const char *path, int64_t now_ms, int wait_ms, struct err *e)
{
	struct adding a = { .b = b };
	struct err ignored = { 0 };
	int rc = now_read(&a.now, path, wait_ms, e);
	if (rc == 0) /* without floors, no holder is known to be a bare context */
		floors_read(&a.floors, a.now.db, &ignored);
	if (rc == 0)
		rc = add_host(&a, now_ms, e);
	if (rc == 0 && a.now.any_run)
		rc = add_cards(&a, e);
	if (rc == 0)
		rc = read_states(&a, e);
	if (rc == 0)
		rc = read_since(&a, e);
	if (rc == 0)
		rc = add_holders(&a, e);
	free(a.rows);
	context_finish(&a.floors);
	now_close(&a.now);
	return rc;
}

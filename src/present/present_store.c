/* Reads the newest run of a store, its cards and their holders. */
#include "present/present_store.h"

#include "audit/audit.h"
#include "classify/classify.h"
#include "present/holders.h"
#include "present/last_run.h"
#include "store/sql.h"
#include "driver/source.h"

/* The cards, from the tables `gpu` and `reading`. */

enum {
	COLUMN_GPU,
	COLUMN_CARD,
	COLUMN_SOURCE = COLUMN_CARD + SQL_CARD_COLUMNS_N,
	COLUMN_STATUS,
	COLUMN_FIRST,
	COLUMN_LAST,
	COLUMN_CURRENT,
	COLUMN_AT,
	COLUMN_UTIL,
	COLUMN_USED,
	COLUMN_POWER,
	COLUMN_LIMIT,
	COLUMN_TEMPERATURE,
	COLUMN_IDLE_SINCE
};
static const char cards_sql[] =
	"WITH newest AS (SELECT host, last_tick_ms FROM run WHERE source <> 'import'"
	" ORDER BY id DESC LIMIT 1)"
	" SELECT id, " SQL_CARD_COLUMNS ", source, status, first_seen_ms,"
	" coalesce(seen_ms, last_seen_ms),"
	" at_ms = last_tick_ms, at_ms, util_pct, mem_used_bytes, power_w, power_limit_w,"
	" temperature_c, idle_held_since_ms FROM newest JOIN gpu ON gpu.host = newest.host"
	" LEFT JOIN reading ON reading.gpu = gpu.id ORDER BY idx, mig_index, id";

static double number(sqlite3_stmt *row, int column)
{
	bool known = sqlite3_column_type(row, column) != SQLITE_NULL;
	return known ? sqlite3_column_double(row, column) : NAN;
}

static void take_card(struct store_card *c, sqlite3_stmt *row)
{
	*c = (struct store_card){
		.id = sql_card(row, COLUMN_CARD),
		.gpu = sql_int(row, COLUMN_GPU, 0),
		.status = card_status_of((const char *)sqlite3_column_text(row, COLUMN_STATUS)),
		.first_seen_ms = sql_int(row, COLUMN_FIRST, 0),
		.last_seen_ms = sql_int(row, COLUMN_LAST, 0),
		.current = sql_int(row, COLUMN_CURRENT, 0) != 0,
		.at_ms = sql_int(row, COLUMN_AT, -1),
		.now = { .util_pct = number(row, COLUMN_UTIL),
			.power_w = number(row, COLUMN_POWER),
			.power_limit_w = number(row, COLUMN_LIMIT),
			.temperature_c = number(row, COLUMN_TEMPERATURE),
			.mem_used_bytes = sql_int(row, COLUMN_USED, UNKNOWN_BYTES),
			.idle_held_since_ms = sql_int(row, COLUMN_IDLE_SINCE, -1) },
	};
	sql_text(row, COLUMN_SOURCE, c->source, sizeof(c->source));
}

int present_store_cards(struct store_cards *c, struct sqlite3 *db, struct err *e)
{
	*c = (struct store_cards){ .last_tick_ms = -1 };
	sqlite3_stmt *row = NULL;
	int rc = sql_number(db, &c->last_tick_ms, e,
		"SELECT last_tick_ms FROM run WHERE source <> 'import' ORDER BY id DESC LIMIT "
		"1");
	if (!rc)
		rc = sql_prepare(db, &row, e, "%s", cards_sql);
	while (sql_next(&row, &rc, e)) {
		if (array_one_more(&c->cards, c->n))
			take_card(&c->cards[c->n++], row);
		else
			rc = err_memory(e);
	}
	return rc;
}

void present_store_cards_free(struct store_cards *c)
{
	free(c->cards);
	*c = (struct store_cards){ .last_tick_ms = -1 };
}

/* A card that was not accounted for this long before the last tick is no longer there. */
#define CARD_GONE_MS 3600000
/* The newest slots of a card start within this time before its last tick: one-minute slots,
 * or five-minute slots if the recorder keeps no minutes. */
enum { LAST_SLOTS_S = 150, LAST_FIVE_S = 630 };
/* This many ticks may be missing before the recorder counts as silent. */
enum { TICKS_MISSED = 3 };

void present_store_finish(struct present *p)
{
	free(p->hosts);
	free(p->cards);
	free(p->processes);
	*p = (struct present){ 0 };
}

/* The present to which one store is being added. */
struct adding {
	struct present *p;
	struct last_run now;
	struct context_floors floors;
	size_t host, first_card;
	struct store_cards stored; /* the cards from first_card on */
};

static int add_host(struct adding *a, int64_t now_ms, struct err *e)
{
	struct present *p = a->p;
	const struct last_run *n = &a->now;
	sqlite3_stmt *stmt;
	if (!array_one_more(&p->hosts, p->n_hosts))
		return err_memory(e);
	a->host = p->n_hosts++;
	struct present_host *h = &p->hosts[a->host];
	*h = (struct present_host){ .any_run = n->any_run,
		.running = n->running,
		.killed = n->killed,
		.last_tick_ms = n->last_tick_ms,
		.interval_ms = n->interval_ms,
		.rules = n->rules };
	int64_t allowed_ms = TICKS_MISSED * (h->interval_ms > 0 ? h->interval_ms : 0) + 5000;
	h->stale = !h->running || h->killed || now_ms - h->last_tick_ms > allowed_ms;
	h->recorded_until_ms = h->stale ? h->last_tick_ms : -1;
	str_copy(h->source, sizeof(h->source), n->source);
	h->simulated = source_is_invented(h->source);
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT hostname, driver FROM host ORDER BY id = (SELECT host FROM run "
		"WHERE source <> 'import' ORDER BY id DESC LIMIT 1) DESC LIMIT 1");
	if (sql_next(&stmt, &rc, e)) {
		sql_text(stmt, 0, h->hostname, sizeof(h->hostname));
		sql_text(stmt, 1, h->driver, sizeof(h->driver));
	}
	sqlite3_finalize(stmt);
	return rc;
}

static int add_card(struct adding *a, const struct store_card *from, struct err *e)
{
	struct present *p = a->p;
	if (!array_one_more(&p->cards, p->n_cards))
		return err_memory(e);
	struct present_card *c = &p->cards[p->n_cards++];
	*c = (struct present_card){ .host = a->host,
		.id = from->id,
		.status = from->status,
		.last_seen_ms = from->last_seen_ms,
		.state = CARD_UNOBSERVED,
		.leased_since_ms = -1,
		.state_since_ms = -1,
		.free_since_ms = -1,
		.processes_known = a->now.running };
	str_copy(c->source, sizeof(c->source), from->source);
	metric_clear(c->values, c->texts);
	if (from->id.mem_total_bytes >= 0)
		c->values[METRIC_MEMORY_TOTAL] = (double)from->id.mem_total_bytes;
	if (!from->current)
		return 0;
	/* The readings of the last tick. */
	c->values[METRIC_UTILIZATION_GPU] = from->now.util_pct;
	c->values[METRIC_POWER_DRAW] = from->now.power_w;
	c->values[METRIC_POWER_ENFORCED] = from->now.power_limit_w;
	c->values[METRIC_TEMPERATURE_GPU] = from->now.temperature_c;
	if (from->now.mem_used_bytes >= 0)
		c->values[METRIC_MEMORY_USED] = (double)from->now.mem_used_bytes;
	return 0;
}

static int add_cards(struct adding *a, struct err *e)
{
	struct store_cards *stored = &a->stored;
	int rc = present_store_cards(stored, a->now.db, e);
	size_t n = 0;
	for (size_t i = 0; i < stored->n; i++)
		if (stored->cards[i].last_seen_ms >= a->now.last_tick_ms - CARD_GONE_MS)
			stored->cards[n++] = stored->cards[i];
	stored->n = n;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add_card(a, &stored->cards[i], e);
	return rc;
}

/* The card with this id in the store; NULL: it is not in the present. */
static struct present_card *find_card(struct adding *a, int64_t row)
{
	for (size_t i = a->first_card; i < a->p->n_cards; i++)
		if (a->stored.cards[i - a->first_card].gpu == row)
			return &a->p->cards[i];
	return NULL;
}

/* Reads the state of each card that takes most of its newest slot. */
static int read_states(struct adding *a, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(a->now.db, &stmt, e,
		"SELECT gpu, state, max(slot * 1000000 + ms) AS newest FROM (SELECT slot, gpu, "
		"state, ms FROM usage_1m UNION ALL SELECT slot, gpu, state, ms FROM usage_5m) "
		"WHERE slot >= %lld AND ms > 0 GROUP BY gpu, state ORDER BY newest",
		(long long)(a->now.last_tick_ms / 1000 - LAST_FIVE_S));
	while (sql_next(&stmt, &rc, e)) {
		struct present_card *c = find_card(a, sqlite3_column_int64(stmt, 0));
		int64_t state = sql_int(stmt, 1, CARD_UNOBSERVED);
		if (c && state >= 0 && state < CARD_STATES)
			c->state = (enum card_state)state;
	}
	return rc;
}

/* Reads the leases that go on. Their cards are those with sums of the last day. */
static int read_leases(struct adding *a, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(a->now.db, &stmt, e,
		"SELECT gpu, kind, name, owner, since_ms, task, (SELECT slot FROM reserved_1m "
		"AS r WHERE slot >= %lld AND r.gpu = s.gpu AND r.lease = s.lease AND "
		"unknown_ms > 0) FROM lease JOIN (SELECT DISTINCT gpu, "
		"lease FROM leased_1d WHERE slot >= %lld) AS s ON s.lease = lease.id WHERE "
		"ended_ms IS NULL ORDER BY since_ms, lease.id",
		(long long)((a->now.last_tick_ms / 1000 - 1) / 60 * 60),
		(long long)((a->now.last_tick_ms / 1000 - LAST_SLOTS_S) / 86400 * 86400));
	while (sql_next(&stmt, &rc, e)) {
		struct present_card *c = find_card(a, sqlite3_column_int64(stmt, 0));
		struct lease lease = { .kind = (enum lease_kind)sql_int(stmt, 1, 0),
			.since_ms = sql_int(stmt, 4, 0),
			.unknown_since_ms = sql_int(stmt, 6, -1) };
		sql_text(stmt, 2, lease.id, sizeof(lease.id));
		sql_text(stmt, 3, lease.owner, sizeof(lease.owner));
		sql_text(stmt, 5, lease.task, sizeof(lease.task));
		if (c && lease.kind < LEASE_KINDS)
			present_add_lease(c, &lease);
	}
	return rc;
}

static int read_since(struct adding *a, struct err *e)
{
	size_t n = a->p->n_cards - a->first_card;
	struct present_card *cards = a->p->cards + a->first_card;
	struct last_run_ask *asks = calloc(n + 1, sizeof(*asks));
	if (!asks)
		return err_memory(e);
	for (size_t i = 0; i < n; i++)
		asks[i] = (struct last_run_ask){
			.uuid = cards[i].id.uuid, .states = 1U << cards[i].state, .since_ms = -1
		};
	int rc = last_run_states_since(&a->now, asks, n, e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		cards[i].state_since_ms = asks[i].since_ms;
		cards[i].state_longer = asks[i].longer;
		if (cards[i].state == CARD_TRULY_IDLE)
			cards[i].free_since_ms = asks[i].since_ms;
	}
	free(asks);
	return rc;
}

/* The memory and kind of a holder; a recorder that ended has left only the peak memory. */
#define HOLDER_SQL                                                                             \
	"SELECT coalesce(h.mem_bytes, (SELECT mem_peak_kib * 1024 FROM holding_1m "            \
	"WHERE slot >= ?3 AND gpu = ?1 AND process = p.id ORDER BY slot DESC LIMIT 1)), "      \
	"coalesce(h.kind, 1), p.started_ms, " LAST_RUN_IDENTITY                                \
	" FROM process AS p LEFT JOIN holder AS h ON h.gpu = ?1 AND h.process = p.id WHERE "   \
	"p.id = ?2"
enum { HOLDER_MEM, HOLDER_KIND, HOLDER_STARTED, HOLDER_IDENTITY };

static void take_holder(struct adding *a, const struct last_run_holder *from, sqlite3_stmt *row,
	struct present_process *h)
{
	const struct present_card *c = &a->p->cards[h->card];
	h->id.started_ms = sql_int(row, HOLDER_STARTED, -1);
	last_run_identity(row, HOLDER_IDENTITY, &h->id);
	h->kind = (unsigned)sql_int(row, HOLDER_KIND, 0);
	h->mem_bytes = sql_int(row, HOLDER_MEM, -1);
	h->context =
		context_judge(h->kind, h->mem_bytes, context_floor(&a->floors, c->id.name));
	h->held_since_ms = from->since_ms;
	h->last_active_ms = from->last_active_ms;
	h->active = from->last_active_ms >= a->now.last_tick_ms - a->now.interval_ms &&
		    from->last_active_ms >= 0;
	h->idle_since_ms = h->active ? -1 : from->idle_since_ms;
	h->idle_longer = !h->active && from->idle_longer;
}

static int add_holder(
	struct adding *a, const struct last_run_holder *from, sqlite3_stmt *stmt, struct err *e)
{
	struct present *p = a->p;
	struct present_card *c = find_card(a, from->card_row);
	if (!c)
		return 0;
	sqlite3_reset(stmt);
	sqlite3_bind_int64(stmt, 1, from->card_row);
	sqlite3_bind_int64(stmt, 2, from->process_row);
	sqlite3_bind_int64(stmt, 3, a->now.last_tick_ms / 1000 - LAST_SLOTS_S);
	int rc = sql_step(stmt, e);
	if (rc <= 0)
		return rc;
	if (!array_one_more(&p->processes, p->n_processes))
		return err_memory(e);
	struct present_process *h = &p->processes[p->n_processes++];
	*h = (struct present_process){ .card = (size_t)(c - p->cards),
		.id = { .pid = from->pid, .start_ticks = from->start_ticks },
		.holder = true,
		.sm_pct = NAN,
		.cpu_pct = NAN,
		.rss_bytes = -1,
		.idle_since_ms = -1,
		.was_idle_since_ms = -1 };
	for (size_t i = 0; i < ENGINE_COUNT; i++)
		h->engine_pct[i] = NAN;
	take_holder(a, from, stmt, h);
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct present_process *a = left, *b = right;
	if (a->card != b->card)
		return a->card < b->card ? -1 : 1;
	int64_t since_a = holders_idle_order(a), since_b = holders_idle_order(b);
	if (since_a != since_b)
		return since_a < since_b ? -1 : 1;
	return a->id.pid < b->id.pid ? -1 : a->id.pid > b->id.pid;
}

static int add_holders(struct adding *a, struct err *e)
{
	struct present *p = a->p;
	sqlite3_stmt *stmt;
	size_t first = p->n_processes;
	int rc = sql_prepare(a->now.db, &stmt, e, HOLDER_SQL);
	for (size_t i = 0; i < a->now.n_holders && rc == 0; i++)
		rc = add_holder(a, &a->now.holders[i], stmt, e);
	sqlite3_finalize(stmt);
	if (p->n_processes > first)
		qsort(p->processes + first, p->n_processes - first, sizeof(*p->processes),
			compare);
	for (size_t i = p->n_processes; i-- > first;) {
		struct present_card *c = &p->cards[p->processes[i].card];
		c->first_process = i;
		c->n_processes++;
	}
	return rc;
}

/* Sets the state of a card at the last tick, so that it agrees with the use that is shown,
 * which is the mean since the tick before, and with the holders: a card is active if it is on
 * the mean or if a holder was. Whoever holds a card whose use is not known is not known to be
 * idle. */
static void judge_card(struct adding *a, struct present_card *c)
{
	double use_pct = c->values[METRIC_UTILIZATION_GPU];
	struct present_process *first = a->p->processes + c->first_process;
	struct held held = { 0 };
	bool active = false;
	for (size_t i = 0; i < c->n_processes; i++) {
		classify_held_add(&held, first[i].mem_bytes);
		active |= first[i].active;
	}
	if (!isnan(use_pct))
		c->state = classify_card(active ? 100 : use_pct, held, &a->now.rules);
	else if (a->stored.cards[(size_t)(c - a->p->cards) - a->first_card].current &&
		 c->state != CARD_USE_UNKNOWN)
		c->state = CARD_UNOBSERVED;
	bool known = c->state != CARD_UNOBSERVED && c->state != CARD_USE_UNKNOWN;
	for (size_t i = 0; i < c->n_processes && !known; i++) {
		first[i].active = false;
		first[i].idle_since_ms = -1;
	}
}

int present_store_add(
	struct present *p, const char *path, int64_t now_ms, int wait_ms, struct err *e)
{
	struct adding a = { .p = p, .first_card = p->n_cards };
	struct err ignored = { 0 };
	p->now_ms = now_ms;
	int rc = last_run_read(&a.now, path, wait_ms, true, e);
	if (rc)
		goto done;
	/* Without floors, no holder is known to be a bare context. */
	audit_read_floors(&a.floors, a.now.db, &ignored);
	if ((rc = add_host(&a, now_ms, e)) || !a.now.any_run)
		goto done;
	if ((rc = add_cards(&a, e)) || (rc = read_states(&a, e)) || (rc = add_holders(&a, e)))
		goto done;
	for (size_t i = a.first_card; i < p->n_cards; i++)
		judge_card(&a, &p->cards[i]);
	rc = read_leases(&a, e);
	if (rc == 0)
		rc = read_since(&a, e);
done:
	present_store_cards_free(&a.stored);
	context_finish(&a.floors);
	last_run_close(&a.now);
	return rc;
}

/* Keeps rows of sums, found by the hash of their keys. */
#include "classify/ledger.h"

enum { FIRST_ROWS = 256, HOUR_SECONDS = 3600 };

/* What the table needs to know about a kind of row. Every kind starts with its int64_t slot. */
struct row_kind {
	size_t size;
	uint64_t (*hash)(const void *row);
	bool (*same_key)(const void *a, const void *b);
	void (*add)(void *to, const void *from);
};

union row {
	int64_t slot;
	struct usage_sum usage;
	struct holding_sum holding;
	struct lease_sum leased;
};

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * 0x9E3779B97F4A7C15u;
	return h ^ h >> 29;
}

/* Adds two sums, of which one or both may be unknown (-1). If one is unknown, the result is the
 * other. */
static int64_t add_known(int64_t a, int64_t b)
{
	if (a < 0 || b < 0)
		return a < b ? b : a;
	return a + b;
}

static uint64_t usage_hash(const void *row)
{
	const struct usage_sum *r = row;
	return mix(mix(mix(1, (uint64_t)r->slot), r->card), (uint64_t)r->state);
}

static bool usage_same(const void *a, const void *b)
{
	const struct usage_sum *x = a, *y = b;
	return x->slot == y->slot && x->card == y->card && x->state == y->state;
}

static void usage_add(void *to, const void *from)
{
	struct usage_sum *t = to;
	const struct usage_sum *f = from;
	t->ms += f->ms;
	t->util_pct_ms += f->util_pct_ms;
	t->energy_mj += f->energy_mj;
	t->energy_ms += f->energy_ms;
	t->unsure_ms += f->unsure_ms;
	t->unsure_ms2 += f->unsure_ms2;
	t->sm_active_pct_ms += f->sm_active_pct_ms;
	t->sm_active_ms += f->sm_active_ms;
}

static uint64_t holding_hash(const void *row)
{
	const struct holding_sum *r = row;
	return mix(mix(mix(1, (uint64_t)r->slot), r->card), r->process);
}

static bool holding_same(const void *a, const void *b)
{
	const struct holding_sum *x = a, *y = b;
	return x->slot == y->slot && x->card == y->card && x->process == y->process;
}

static void holding_add(void *to, const void *from)
{
	struct holding_sum *t = to;
	const struct holding_sum *f = from;
	for (int state = 0; state < HOLDER_STATES; state++) {
		t->ms[state] += f->ms[state];
		t->presence_ms[state] += f->presence_ms[state];
	}
	t->active_share_ms += f->active_share_ms;
	t->idle_share_ms += f->idle_share_ms;
	t->engine_ms += f->engine_ms;
	t->own_unknown_ms += f->own_unknown_ms;
	if (f->sm_max_pct > t->sm_max_pct)
		t->sm_max_pct = f->sm_max_pct;
	t->sm_pct_ms = add_known(t->sm_pct_ms, f->sm_pct_ms);
	if (f->mem_peak_kib > t->mem_peak_kib)
		t->mem_peak_kib = f->mem_peak_kib;
}

static uint64_t leased_hash(const void *row)
{
	const struct lease_sum *r = row;
	return mix(mix(mix(1, (uint64_t)r->slot), r->card), r->lease);
}

static bool leased_same(const void *a, const void *b)
{
	const struct lease_sum *x = a, *y = b;
	return x->slot == y->slot && x->card == y->card && x->lease == y->lease;
}

static void leased_add(void *to, const void *from)
{
	struct lease_sum *t = to;
	const struct lease_sum *f = from;
	t->reserved_ms += f->reserved_ms;
	t->unknown_ms += f->unknown_ms;
	t->active_ms += f->active_ms;
	t->idle_held_ms += f->idle_held_ms;
	t->use_unknown_ms += f->use_unknown_ms;
	t->untouched_ms += f->untouched_ms;
}

static const struct row_kind usage_kind = { sizeof(struct usage_sum), usage_hash, usage_same,
	usage_add };
static const struct row_kind holding_kind = { sizeof(struct holding_sum), holding_hash,
	holding_same, holding_add };
static const struct row_kind leased_kind = { sizeof(struct lease_sum), leased_hash, leased_same,
	leased_add };

static void *row_at(const struct row_table *t, size_t i)
{
	return t->rows + i * t->kind->size;
}

/* Returns the row with this key, or NULL. */
static void *find_row(const struct row_table *t, const void *key)
{
	int64_t hash = (int64_t)t->kind->hash(key);
	uint32_t i;
	for (size_t step = 0; (i = idmap_next(&t->index, hash, &step)) != IDMAP_NONE;)
		if (t->kind->same_key(row_at(t, i), key))
			return row_at(t, i);
	return NULL;
}

/* Adds a row, for which there is room. */
static void *add_row(struct row_table *t, const void *row)
{
	idmap_add(&t->index, (int64_t)t->kind->hash(row), (uint32_t)t->n);
	return memcpy(row_at(t, t->n++), row, t->kind->size);
}

static bool grow(struct row_table *t, size_t cap)
{
	if (!array_resize_sized(&t->rows, cap, t->kind->size) || !idmap_reserve(&t->index, cap))
		return false;
	t->cap = cap;
	return true;
}

/* Makes room for one more row: grows, folds at the limit, or fails. After a fold that frees
 * little, there is no other until the rows are stored, because each fold reads all rows. */
static bool make_room(struct row_table *t)
{
	if (t->n < t->cap)
		return true;
	if (t->cap < LEDGER_MAX_ROWS && grow(t, t->cap ? t->cap * 2 : FIRST_ROWS))
		return true;
	if (!t->hourly) {
		/* All rows move to the hour of their slot. A row only moves down, over rows
		 * that were already read, so it works in place. */
		union row row;
		size_t n = t->n;
		t->n = 0;
		idmap_clear(&t->index);
		for (size_t i = 0; i < n; i++) {
			memcpy(&row, row_at(t, i), t->kind->size);
			row.slot -= row.slot % HOUR_SECONDS;
			void *hour = find_row(t, &row);
			if (hour)
				t->kind->add(hour, &row);
			else
				add_row(t, &row);
		}
		t->hourly = t->n > t->cap / 2;
	}
	return t->n < t->cap;
}

/* Returns the row with the key of `fresh`; adds `fresh` when there is none. The row may have
 * been folded into its hour, also by make_room(). */
static void *find_or_add(struct row_table *t, const void *fresh)
{
	union row row;
	memcpy(&row, fresh, t->kind->size);
	if (t->hourly)
		row.slot -= row.slot % HOUR_SECONDS;
	void *found = find_row(t, &row);
	if (found)
		return found;
	bool room = make_room(t);
	if (t->hourly)
		row.slot -= row.slot % HOUR_SECONDS;
	found = find_row(t, &row);
	if (found || !room)
		return found;
	return add_row(t, &row);
}

int ledger_init(struct ledger *l, struct err *e)
{
	*l = (struct ledger){
		.usage.kind = &usage_kind,
		.holding.kind = &holding_kind,
		.leased.kind = &leased_kind,
		.slot_seconds = SLOT_SECONDS,
	};
	if (!grow(&l->usage, FIRST_ROWS) || !grow(&l->holding, FIRST_ROWS)) {
		ledger_finish(l);
		return err_memory(e);
	}
	return 0;
}

void ledger_finish(struct ledger *l)
{
	free(l->usage.rows);
	idmap_finish(&l->usage.index);
	free(l->holding.rows);
	idmap_finish(&l->holding.index);
	free(l->leased.rows);
	idmap_finish(&l->leased.index);
	*l = (struct ledger){ 0 };
}

void ledger_clear(struct ledger *l)
{
	l->usage.n = l->holding.n = l->leased.n = 0;
	l->usage.hourly = l->holding.hourly = l->leased.hourly = false;
	l->dropped_ms = 0;
	idmap_clear(&l->usage.index);
	idmap_clear(&l->holding.index);
	idmap_clear(&l->leased.index);
}

bool ledger_empty(const struct ledger *l)
{
	return l->usage.n == 0 && l->holding.n == 0;
}

int64_t ledger_slot(const struct ledger *l, int64_t at_ms)
{
	int64_t width_ms = l->slot_seconds * 1000;
	int64_t slot = at_ms / width_ms - (at_ms % width_ms < 0);
	return slot * l->slot_seconds;
}

struct usage_sum *ledger_usage(
	struct ledger *l, int64_t slot, uint32_t card, enum card_state state)
{
	uint32_t *recent = &l->usage.recent[(card * CARD_STATES + state) % LEDGER_RECENT];
	struct usage_sum *row = *recent < l->usage.n ? row_at(&l->usage, *recent) : NULL;
	if (row && row->slot == slot && row->card == card && row->state == state)
		return row;
	struct usage_sum fresh = { .slot = slot, .card = card, .state = state };
	row = find_or_add(&l->usage, &fresh);
	*recent = row ? (uint32_t)(row - (struct usage_sum *)row_at(&l->usage, 0)) : *recent;
	return row;
}

struct holding_sum *ledger_holding(
	struct ledger *l, int64_t slot, uint32_t card, uint32_t process)
{
	uint32_t *recent = &l->holding.recent[process % LEDGER_RECENT];
	struct holding_sum *row = *recent < l->holding.n ? row_at(&l->holding, *recent) : NULL;
	if (row && row->slot == slot && row->card == card && row->process == process)
		return row;
	struct holding_sum fresh = {
		.slot = slot,
		.card = card,
		.process = process,
		.sm_pct_ms = -1,
		.mem_peak_kib = -1,
		.sm_max_pct = -1,
	};
	row = find_or_add(&l->holding, &fresh);
	*recent =
		row ? (uint32_t)(row - (struct holding_sum *)row_at(&l->holding, 0)) : *recent;
	return row;
}

struct lease_sum *ledger_leased(struct ledger *l, int64_t slot, uint32_t card, uint32_t lease)
{
	struct lease_sum fresh = { .slot = slot, .card = card, .lease = lease };
	return find_or_add(&l->leased, &fresh);
}

const struct usage_sum *ledger_usage_rows(const struct ledger *l, size_t *n)
{
	*n = l->usage.n;
	return (const struct usage_sum *)(const void *)l->usage.rows;
}

const struct holding_sum *ledger_holding_rows(const struct ledger *l, size_t *n)
{
	*n = l->holding.n;
	return (const struct holding_sum *)(const void *)l->holding.rows;
}

const struct lease_sum *ledger_leased_rows(const struct ledger *l, size_t *n)
{
	*n = l->leased.n;
	return (const struct lease_sum *)(const void *)l->leased.rows;
}

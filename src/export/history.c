/* Reads the slots of one series after the other, sorted by SQLite, which spills to a file. */
#include "export/history.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/scrape.h"
#include "store/sql.h"
#include "store/store.h"

struct history {
	sqlite3 *db;
	const struct identity_names *names;
	struct scrape totals; /* cards and identities sorted as the rows are */
	struct history_slot *slots;
	int64_t *adds;
	size_t n_slots;
	struct export_window window;
	/* What history_begin() began. */
	enum history_what what;
	int which;
	size_t next; /* index of the next card or identity */
	sqlite3_stmt *row;
	bool has_row;
};

#define HOST_SQL "(SELECT host FROM run WHERE source <> 'import' ORDER BY id DESC LIMIT 1)"
/* All slots from ?1 on: those after the window tell what the counters were at its end. */
#define SLOTS(kind)                                                                            \
	"(SELECT 3600 AS seconds, * FROM " kind "_1h WHERE slot >= ?1 "                        \
	"UNION ALL SELECT 300, * FROM " kind "_5m WHERE slot >= ?1 "                           \
	"UNION ALL SELECT 60, * FROM " kind "_1m WHERE slot >= ?1)"
#define OWN_CARDS "gpu IN (SELECT id FROM gpu WHERE host = " HOST_SQL ")"

static int prepare(struct history *h, const char *sql, struct err *e)
{
	sqlite3_finalize(h->row);
	h->row = NULL;
	int rc = sql_prepare(h->db, &h->row, e, "%s", sql);
	if (rc)
		return rc;
	sqlite3_bind_int64(h->row, 1, h->window.since_ms / 1000);
	return 0;
}

static int read_slots(struct history *h, struct err *e)
{
	int64_t last_s = h->totals.last_tick_ms / 1000;
	int rc = prepare(h,
		"SELECT slot, max(seconds), count(DISTINCT gpu) FROM " SLOTS(
			"usage") " WHERE ms > 0 AND " OWN_CARDS " GROUP BY slot ORDER BY slot",
		e);
	while (rc == 0 && (rc = sql_step(h->row, e)) == 1) {
		struct history_slot slot = { .from_s = sql_int(h->row, 0, 0),
			.cards = sql_int(h->row, 2, 0) };
		slot.to_s = slot.from_s + sql_int(h->row, 1, 60);
		if (slot.from_s < last_s && slot.to_s > last_s)
			slot.to_s = last_s;
		/* A slot that an earlier one overlaps begins where that ends. */
		const struct history_slot *before =
			h->n_slots ? &h->slots[h->n_slots - 1] : NULL;
		if (before && slot.from_s < before->to_s)
			slot.from_s = before->to_s;
		rc = 0;
		if (slot.to_s <= slot.from_s)
			continue;
		if (!array_one_more(&h->slots, h->n_slots))
			return err_memory(e);
		h->slots[h->n_slots++] = slot;
	}
	h->adds = calloc(h->n_slots + 1, sizeof(*h->adds));
	return rc == 0 && !h->adds ? err_memory(e) : rc;
}

static int by_row(const void *left, const void *right)
{
	const struct scrape_card *a = left, *b = right;
	return a->gpu < b->gpu ? -1 : a->gpu > b->gpu;
}

static int by_name(const void *left, const void *right)
{
	const struct scrape_identity *a = left, *b = right;
	return strcmp(a->name, b->name);
}

/* What each user is called, for SQL. */
static int name_users(struct history *h, struct err *e)
{
	sqlite3_stmt *users = NULL, *add = NULL;
	int64_t ignored = 0;
	int rc = sql_number(h->db, &ignored, e,
		"CREATE TEMP TABLE who (user TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID");
	if (rc == 0)
		rc = sql_prepare(h->db, &users, e,
			"SELECT user, place FROM identity WHERE host = " HOST_SQL);
	if (rc == 0)
		rc = sql_prepare(h->db, &add, e, "INSERT INTO who VALUES (?1, ?2)");
	while (rc == 0 && (rc = sql_step(users, e)) == 1) {
		char user[IDENTITY_NAME_CAP], name[IDENTITY_NAME_CAP];
		sql_text(users, 0, user, sizeof(user));
		identity_name(h->names, user, sql_int(users, 1, 0), name);
		sqlite3_bind_value(add, 1, sqlite3_column_value(users, 0));
		sqlite3_bind_text(add, 2, name, -1, SQLITE_TRANSIENT);
		rc = sql_step(add, e);
		sqlite3_reset(add);
	}
	sqlite3_finalize(users);
	sqlite3_finalize(add);
	return rc;
}

int history_open(struct history **history, const char *path, struct export_window window,
	const struct identity_names *names, struct err *e)
{
	struct history *h = *history = calloc(1, sizeof(*h));
	if (!h)
		return err_memory(e);
	h->names = names;
	h->window = window;
	int64_t ignored = 0;
	int rc = store_open_read(&h->db, path, e);
	if (rc == 0)
		rc = sql_number(h->db, &ignored, e, "BEGIN");
	if (rc == 0)
		rc = scrape_totals(&h->totals, h->db, path, names, e);
	if (rc == 0)
		rc = name_users(h, e);
	if (rc == 0)
		rc = read_slots(h, e);
	if (h->totals.n_cards)
		qsort(h->totals.cards, h->totals.n_cards, sizeof(*h->totals.cards), by_row);
	if (h->totals.n_identities)
		qsort(h->totals.identities, h->totals.n_identities,
			sizeof(*h->totals.identities), by_name);
	return rc;
}

void history_close(struct history *h)
{
	if (!h)
		return;
	sqlite3_finalize(h->row);
	sqlite3_close(h->db);
	scrape_finish(&h->totals);
	free(h->slots);
	free(h->adds);
	free(h);
}

const struct history_slot *history_slots(const struct history *h, size_t *n)
{
	*n = 0;
	while (*n < h->n_slots && h->slots[*n].to_s <= h->window.until_ms / 1000)
		++*n;
	return h->slots;
}

const struct scrape *history_totals(const struct history *h)
{
	return &h->totals;
}

/* Rows (series, slot, sum), sorted; ?2 is the state. */
static const char *const card_sql[] = {
	[HISTORY_TIME] = "SELECT gpu, slot, ms FROM " SLOTS(
		"usage") " WHERE state = ?2 AND " OWN_CARDS " ORDER BY 1, 2",
	[HISTORY_ENERGY] = "SELECT gpu, slot, energy_mj FROM " SLOTS(
		"usage") " WHERE state = ?2 AND " OWN_CARDS " ORDER BY 1, 2",
};
/* The same of users; what no user has a share of is _unknown's. */
#define OF_USERS(sum)                                                                          \
	"SELECT who.name AS series, slot, " sum                                                \
	" AS part FROM " SLOTS("holding") " AS x JOIN "                                        \
					  "process ON process.id = x.process JOIN who ON "     \
					  "who.user = process.user WHERE " OWN_CARDS
#define SHARES(sum, state)                                                                     \
	"SELECT series, slot, sum(part) FROM (" OF_USERS(                                      \
		sum) " AND who.name <> '_unknown' "                                            \
		     "UNION ALL SELECT '_unknown', slot, ms FROM " SLOTS(                      \
			     "usage") " WHERE state = " state " AND " OWN_CARDS                \
				      " UNION ALL SELECT '_unknown', slot, -(" sum             \
				      ") FROM " SLOTS(                                         \
					      "holding") " AS x JOIN process ON process.id = " \
							 "x.process WHERE user <> "            \
							 "'_unknown' AND " OWN_CARDS           \
							 ") GROUP BY 1, 2 ORDER BY 1, 2"
static const char *const identity_sql[IDENTITY_SUMS] = {
	[IDENTITY_ACTIVE] = SHARES("active_share_ms", "0"),
	[IDENTITY_IDLE_HELD] = SHARES("idle_share_ms", "1"),
	[IDENTITY_SQUATTING] = "SELECT series, slot, sum(part) FROM (" OF_USERS(
		"squatting_ms - squatting_double_ms") ") GROUP BY 1, 2 ORDER BY 1, 2",
};

static int step(struct history *h, struct err *e)
{
	int rc = sql_step(h->row, e);
	h->has_row = rc == 1;
	return rc < 0 ? rc : 0;
}

int history_begin(struct history *h, enum history_what what, int which, struct err *e)
{
	h->what = what;
	h->which = which;
	h->next = 0;
	int rc = prepare(h, what == HISTORY_IDENTITY ? identity_sql[which] : card_sql[what], e);
	if (rc == 0 && what != HISTORY_IDENTITY)
		sqlite3_bind_int(h->row, 2, which);
	return rc ? rc : step(h, e);
}

/* How the row's series compares with the next one. */
static int compare(const struct history *h)
{
	if (h->what == HISTORY_IDENTITY) {
		const char *name = (const char *)sqlite3_column_text(h->row, 0);
		return strcmp(name ? name : "", h->totals.identities[h->next].name);
	}
	int64_t gpu = sql_int(h->row, 0, -1), own = h->totals.cards[h->next].gpu;
	return gpu < own ? -1 : gpu > own;
}

static int64_t total_of(const struct history *h)
{
	if (h->what == HISTORY_IDENTITY)
		return h->totals.identities[h->next].ms[h->which];
	const struct scrape_card *c = &h->totals.cards[h->next];
	return h->what == HISTORY_ENERGY ? c->energy_mj[h->which] : c->ms[h->which];
}

/* The slot that has this second; slots are sorted, and so are the rows. */
static size_t find_slot(const struct history *h, size_t from, int64_t slot)
{
	while (from + 1 < h->n_slots && h->slots[from].to_s <= slot)
		from++;
	return from;
}

int history_next(struct history *h, struct history_series *series, struct err *e)
{
	int rc = 0;
	size_t at = 0;
	int64_t sum = 0;
	memset(h->adds, 0, h->n_slots * sizeof(*h->adds));
	while (rc == 0 && h->has_row && compare(h) <= 0) {
		int64_t add = sql_int(h->row, 2, 0);
		at = find_slot(h, at, sql_int(h->row, 1, 0));
		/* Energy may be known later than the time, and be corrected: a counter never
		 * falls. */
		if (compare(h) == 0 && add > 0 && h->n_slots) {
			h->adds[at] += add;
			sum += add;
		}
		rc = step(h, e);
	}
	int64_t total = total_of(h);
	/* Processes got their user's name later than their time was counted: it was shown
	 * under the user's number, and is in that total. */
	for (size_t i = 0; i < h->n_slots && sum > total; i++) {
		int64_t less = h->adds[i] < sum - total ? h->adds[i] : sum - total;
		h->adds[i] -= less;
		sum -= less;
	}
	*series = (struct history_series){ total > sum ? total - sum : 0, h->adds };
	h->next++;
	return rc;
}

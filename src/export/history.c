/* Reads a store's past as counters, slot by slot; prints OpenMetrics 1.0 with timestamps. */
#include "export/history.h"

#include "export/exposition.h"
#include "store/sql.h"
#include "store/store.h"

/* A slot: a stretch of time with one sum. */
struct history_slot {
	int64_t from_s, to_s; /* unix seconds; the newest ends at the last tick */
	int64_t cards;	      /* how many cards have time in it */
};

enum history_what { HISTORY_TIME, HISTORY_ENERGY, HISTORY_IDENTITY };

struct history {
	sqlite3 *db;
	const struct identity_names *names;
	struct scrape totals; /* cards and identities sorted as the rows are */
	struct history_slot *slots;
	int64_t *adds; /* of the series: what each slot adds, in milliseconds or millijoules */
	size_t n_slots;
	struct window window;
	/* What history_begin() selected. */
	enum history_what what;
	int which;
	size_t next; /* index of the next card or identity */
	sqlite3_stmt *row;
	bool has_row;
};

/* All slots from ?1 on: those after the window are needed for the counters at its end. */
#define SLOTS(kind)                                                                            \
	"(SELECT 3600 AS seconds, * FROM " kind "_1h WHERE slot >= ?1 "                        \
	"UNION ALL SELECT 300, * FROM " kind "_5m WHERE slot >= ?1 "                           \
	"UNION ALL SELECT 60, * FROM " kind "_1m WHERE slot >= ?1)"
#define OWN_CARDS "gpu IN (SELECT id FROM gpu WHERE host = " SCRAPE_HOST ")"

static int prepare(struct history *h, const char *sql, struct err *e)
{
	sqlite3_finalize(h->row);
	h->row = NULL;
	int rc = sql_prepare(h->db, &h->row, e, "%s", sql);
	sql_bind(h->row, SQL_INT(h->window.since_ms / 1000));
	return rc;
}

static int read_slots(struct history *h, struct err *e)
{
	int64_t last_s = h->totals.last_tick_ms / 1000;
	int rc = prepare(h,
		"SELECT slot, max(seconds), count(DISTINCT gpu) FROM " SLOTS(
			"usage") " WHERE ms > 0 AND " OWN_CARDS " GROUP BY slot ORDER BY slot",
		e);
	while (sql_next(&h->row, &rc, e)) {
		struct history_slot slot = { .from_s = sql_int(h->row, 0, 0),
			.cards = sql_int(h->row, 2, 0) };
		slot.to_s = slot.from_s + sql_int(h->row, 1, 60);
		if (slot.from_s < last_s && slot.to_s > last_s)
			slot.to_s = last_s;
		/* If the previous slot overlaps this one, this one begins where it ends. */
		const struct history_slot *before =
			h->n_slots ? &h->slots[h->n_slots - 1] : NULL;
		if (before && slot.from_s < before->to_s)
			slot.from_s = before->to_s;
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
	return array_compare(a->gpu, b->gpu);
}

static int by_name(const void *left, const void *right)
{
	const struct scrape_identity *a = left, *b = right;
	return strcmp(a->name, b->name);
}

/* Makes a table of user names for the SQL queries. */
static int name_users(struct history *h, struct err *e)
{
	sqlite3_stmt *users = NULL, *add = NULL;
	int64_t ignored = 0;
	int rc = sql_number(h->db, &ignored, e,
		"CREATE TEMP TABLE who (user TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID");
	if (rc == 0)
		rc = sql_prepare(h->db, &users, e,
			"SELECT user, place, %s FROM identity AS i WHERE host = " SCRAPE_HOST,
			scrape_namespace_sql(h->names));
	if (rc == 0)
		rc = sql_prepare(h->db, &add, e, "INSERT INTO who VALUES (?1, ?2)");
	while (sql_next(&users, &rc, e)) {
		char user[IDENTITY_NAME_CAP], name[IDENTITY_NAME_CAP];
		sql_text(users, 0, user, sizeof(user));
		scrape_identity_name(
			h->names, user, sql_int(users, 1, 0), sql_int(users, 2, 0) != 0, name);
		sqlite3_bind_value(add, 1, sqlite3_column_value(users, 0));
		sql_bind_from(add, 2, SQL_ARGS(SQL_RAW(name)));
		rc = sql_step(add, e);
		sqlite3_reset(add);
	}
	sqlite3_finalize(add);
	return rc;
}

int history_open(struct history **history, const char *path, struct window window,
	const struct identity_names *names, struct err *e)
{
	struct history *h = *history = calloc(1, sizeof(*h));
	if (!h)
		return err_memory(e);
	h->names = names;
	h->window = window;
	int64_t ignored = 0;
	bool failed = store_open_read(&h->db, path, e) ||
		      sql_number(h->db, &ignored, e, "BEGIN") ||
		      scrape_totals(&h->totals, h->db, path, names, e) || name_users(h, e) ||
		      read_slots(h, e);
	array_sort(h->totals.cards, h->totals.n_cards, by_row);
	array_sort(h->totals.identities, h->totals.n_identities, by_name);
	return failed ? e->code : 0;
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
/* The same for users; the time that no user has a share of belongs to _unknown. */
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
	[IDENTITY_RESERVED] = "SELECT who.name, slot, sum(reserved_ms) FROM " SLOTS(
		"reserved") " AS x JOIN "
			    "lease ON lease.id = x.lease JOIN who ON who.user = lease.owner "
			    "WHERE " OWN_CARDS " GROUP BY 1, 2 ORDER BY 1, 2",
};

static int step(struct history *h, struct err *e)
{
	int rc = sql_step(h->row, e);
	h->has_row = rc == 1;
	return rc < 0 ? rc : 0;
}

/* Begins the series of one state (enum card_state) of each card, or of one sum (enum
 * identity_sum) of each identity, in the order of cards or identities. */
static int history_begin(struct history *h, enum history_what what, int which, struct err *e)
{
	h->what = what;
	h->which = which;
	h->next = 0;
	int rc = prepare(h, what == HISTORY_IDENTITY ? identity_sql[which] : card_sql[what], e);
	if (rc == 0 && what != HISTORY_IDENTITY)
		sql_bind_from(h->row, 2, SQL_ARGS(SQL_INT(which)));
	return rc ? rc : step(h, e);
}

/* Compares the series of the current row with the next series. */
static int compare(const struct history *h)
{
	if (h->what == HISTORY_IDENTITY)
		return strcmp(sql_raw(h->row, 0), h->totals.identities[h->next].name);
	return array_compare(sql_int(h->row, 0, -1), h->totals.cards[h->next].gpu);
}

static int64_t total_of(const struct history *h)
{
	if (h->what == HISTORY_IDENTITY)
		return h->totals.identities[h->next].ms[h->which];
	const struct scrape_card *c = &h->totals.cards[h->next];
	return h->what == HISTORY_ENERGY ? c->energy_mj[h->which] : c->ms[h->which];
}

/* Reads h->adds of the next series, and its value at the beginning of the first slot. */
static int history_next(struct history *h, int64_t *begin, struct err *e)
{
	int rc = 0;
	size_t at = 0;
	int64_t sum = 0;
	memset(h->adds, 0, h->n_slots * sizeof(*h->adds));
	while (rc == 0 && h->has_row && compare(h) <= 0) {
		int64_t add = sql_int(h->row, 2, 0), at_s = sql_int(h->row, 1, 0);
		/* The slot that contains this second; slots and rows are both sorted. */
		while (at + 1 < h->n_slots && h->slots[at].to_s <= at_s)
			at++;
		/* Energy may become known later than the time, and may be corrected, but a
		 * counter never decreases. */
		if (compare(h) == 0 && add > 0 && h->n_slots) {
			h->adds[at] += add;
			sum += add;
		}
		rc = step(h, e);
	}
	int64_t total = total_of(h);
	/* Some processes got their user's name after their time was counted: that time was
	 * shown under the user's number, and is in that total. */
	for (size_t i = 0; i < h->n_slots && sum > total; i++) {
		int64_t less = h->adds[i] < sum - total ? h->adds[i] : sum - total;
		h->adds[i] -= less;
		sum -= less;
	}
	*begin = total > sum ? total - sum : 0;
	h->next++;
	return rc;
}

enum { FLUSH_BYTES = 64 * 1024 };

/* The state of printing. */
struct filling {
	struct str *out;
	struct history *h;
	const struct backfill *b;
	size_t n_slots; /* of those in the window */
	const struct family *family;
	int64_t before;	   /* a counter's value at the beginning of the slot */
	struct str labels; /* of the series */
	struct str head;   /* the beginning of its lines */
	struct err *e;
};

/* What a series shows. */
enum shown { SHOWN_COUNTER, SHOWN_CARDS, SHOWN_MOMENT, SHOWN_ONE };

static void add_sample(struct filling *f, enum shown shown, size_t slot, int64_t at_s)
{
	const struct history_slot *s = &f->h->slots[slot];
	double part = (double)(at_s - s->from_s) / (double)(s->to_s - s->from_s);
	int64_t value = shown == SHOWN_CARDS ? s->cards : shown == SHOWN_MOMENT ? at_s : 1;
	if (shown == SHOWN_COUNTER)
		value = (f->before + (int64_t)(part * (double)f->h->adds[slot])) / 1000;
	str_addf(f->out, "%s %lld %lld\n", str_text(&f->head), (long long)value,
		(long long)at_s);
}

/* Prints a series, with its own labels and those of all series. A slot has samples at its
 * begin, if the slot before does not end there, at each step, and at the end of the last slot.
 */
static int print_series(struct filling *f, enum shown shown)
{
	int64_t step_s = f->b->step_s;
	str_clear(&f->head);
	exposition_name(&f->head, f->family);
	if (f->labels.len && *f->b->labels)
		str_add(&f->labels, ",");
	str_add(&f->labels, f->b->labels);
	if (f->labels.len)
		str_addf(&f->head, "{%s}", str_text(&f->labels));
	str_clear(&f->labels);
	for (size_t i = 0; i < f->n_slots; i++) {
		const struct history_slot *s = &f->h->slots[i];
		int64_t at_s = s->from_s - s->from_s % step_s + step_s;
		if (i == 0 || f->h->slots[i - 1].to_s != s->from_s)
			add_sample(f, shown, i, s->from_s);
		for (; at_s <= s->to_s; at_s += step_s)
			add_sample(f, shown, i, at_s);
		if (i + 1 == f->n_slots && at_s - step_s != s->to_s)
			add_sample(f, shown, i, s->to_s);
		f->before += f->h->adds[i];
		if (f->out->failed || f->head.failed || f->labels.failed)
			return err_memory(f->e);
		if (f->out->len >= FLUSH_BYTES && f->b->flush(f->out, f->b->context, f->e))
			return f->e->code;
	}
	return 0;
}

static void head(struct filling *f, const char *family)
{
	f->family = exposition_family(family);
	exposition_head(f->out, f->family, true);
}

/* One state (enum card_state) of each card, or one sum (enum identity_sum) of each identity. */
static int print_each(struct filling *f, enum history_what what, int which)
{
	const struct scrape *s = &f->h->totals;
	bool users = what == HISTORY_IDENTITY;
	size_t n = users ? s->n_identities : s->n_cards;
	const char *state = users ? exposition_identity_state((enum identity_sum)which)
				  : state_looks[which].label;
	if (what == HISTORY_TIME && which == CARD_UNOBSERVED)
		state = NULL; /* a family of its own */
	int rc = history_begin(f->h, what, which, f->e);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = history_next(f->h, &f->before, f->e);
		if (rc || (what == HISTORY_ENERGY && !s->cards[i].has_energy))
			continue;
		if (users)
			exposition_label(&f->labels, "identity", s->identities[i].name);
		else
			exposition_label_card(&f->labels, &s->cards[i].id);
		if (state)
			exposition_label(&f->labels, "state", state);
		rc = print_series(f, SHOWN_COUNTER);
	}
	return rc;
}

static int print_states(struct filling *f)
{
	int rc = 0;
	head(f, "gua_gpu_state_seconds");
	int n = CARD_STATES - !f->h->totals.has_leases; /* reserved is the last */
	for (int i = 0; rc == 0 && i < n; i++)
		if (i != CARD_UNOBSERVED)
			rc = print_each(f, HISTORY_TIME, i);
	if (rc)
		return rc;
	head(f, "gua_gpu_unobserved_seconds");
	rc = print_each(f, HISTORY_TIME, CARD_UNOBSERVED);
	head(f, "gua_gpu_energy_joules");
	for (int i = 0; rc == 0 && i < n; i++)
		rc = print_each(f, HISTORY_ENERGY, i);
	return rc;
}

static int print_identities(struct filling *f)
{
	if (!f->h->totals.has_identities)
		return 0;
	head(f, "gua_identity_gpu_seconds");
	if (print_each(f, HISTORY_IDENTITY, IDENTITY_ACTIVE) ||
		print_each(f, HISTORY_IDENTITY, IDENTITY_IDLE_HELD) ||
		(f->h->totals.has_leases && print_each(f, HISTORY_IDENTITY, IDENTITY_RESERVED)))
		return f->e->code;
	head(f, "gua_identity_squatting_seconds");
	return print_each(f, HISTORY_IDENTITY, IDENTITY_SQUATTING);
}

/* The number of cards, until when they are accounted, and their labels. */
static int print_facts(struct filling *f)
{
	const struct scrape *s = &f->h->totals;
	head(f, "gua_gpus");
	int rc = print_series(f, SHOWN_CARDS);
	if (rc)
		return rc;
	head(f, "gua_sample_timestamp_seconds");
	rc = print_series(f, SHOWN_MOMENT);
	head(f, "gua_gpu");
	for (size_t i = 0; rc == 0 && i < s->n_cards; i++) {
		exposition_label_info(&f->labels, &s->cards[i], s->driver);
		rc = print_series(f, SHOWN_ONE);
	}
	return rc;
}

int history_print(struct str *out, struct history *h, const struct backfill *b, struct err *e)
{
	struct filling f = { .out = out, .h = h, .b = b, .e = e };
	while (f.n_slots < h->n_slots && h->slots[f.n_slots].to_s <= h->window.until_ms / 1000)
		f.n_slots++;
	bool failed =
		f.n_slots && (print_states(&f) || print_identities(&f) || print_facts(&f));
	str_add(out, "# EOF\n");
	str_finish(&f.labels);
	str_finish(&f.head);
	return failed ? e->code : b->flush(out, b->context, e);
}

/* Reads the use of the cards, and the hours of the week: whole days from the daily sums, the
 * hours before and after them from the slots. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/tick.h"
#include "audit/gather.h"
#include "store/sql.h"

/* What the rows of one table are added to. */
struct usage_fold {
	struct fold fold;
	const struct gather *g;
	struct gather_file *file;
	struct audit *part; /* of the file */
	int64_t seconds;    /* width of its slots */
	struct heat_clock clock;
	bool use_unknown; /* some time has unknown use: the sums over all cards do not include
			     it */
	bool failed;	  /* out of memory */
};

/* The card of a row, or NULL if it is not in the audit. */
static struct audit_card *card_of(struct usage_fold *u, sqlite3_value *gpu, int state)
{
	uint32_t place = idmap_get(&u->file->places, sqlite3_value_int64(gpu));
	if (place == IDMAP_NONE || state < 0 || state >= CARD_STATES)
		return NULL;
	struct audit_card *card = &u->part->cards[place];
	return card->left_out ? NULL : card;
}

/* Columns of a slot and of a day, in the order of the values below. */
#define SUMS                                                                                   \
	"slot, gpu, state, ms, util_pct_ms, energy_mj, energy_unknown_ms, unsure_ms, "         \
	"unsure_ms2"

/* Notes time with unknown use for this file; holders divide it. */
static void note_unknown(struct usage_fold *u, const struct audit_card *card, int64_t ms)
{
	const struct audit *a = u->part;
	int64_t **unknown_ms = &u->file->unknown_ms;
	if (!*unknown_ms)
		*unknown_ms = calloc(a->n_cards, sizeof(**unknown_ms));
	if (*unknown_ms)
		(*unknown_ms)[card - a->cards] += ms;
	else
		u->failed = err_memory(u->fold.e) != 0;
}

/* Adds a row to its card; NULL if the card is unknown. Utilisation is known in the first three
 * states. */
static struct audit_card *add_row(struct usage_fold *u, sqlite3_value **values)
{
	int state = sqlite3_value_int(values[2]);
	struct audit_card *card = card_of(u, values[1], state);
	if (!card)
		return NULL;
	int64_t ms = sql_value_sum(values[3]);
	card->has_rows = true;
	card->ms[state] += ms;
	if (state < CARD_UNOBSERVED)
		card->util_pct_ms += sql_value_sum(values[4]);
	card->energy_mj[state] += sql_value_signed(values[5]);
	card->energy_known_ms[state] += ms - sql_value_signed(values[6]);
	if (state < CARD_UNOBSERVED) { /* held time with unknown use cannot be idle-held */
		card->unsure_ms += sql_value_signed(values[7]);
		card->unsure_ms2 += sql_value_signed(values[8]);
	}
	if (state == CARD_USE_UNKNOWN)
		note_unknown(u, card, ms);
	return card;
}

/* Whether the hours of the week must be read for some cards only. Those of users come from
 * holdings. */
static bool has_own_hours(const struct gather *g)
{
	return restriction_of_cards(&g->q->only) && !restriction_of_users(&g->q->only);
}

static bool take_slot(struct fold *f, sqlite3_value **values)
{
	struct usage_fold *u = f->context;
	int state = sqlite3_value_int(values[2]);
	if (!add_row(u, values))
		return !u->failed;
	const struct heat_slot slot = { sqlite3_value_int64(values[0]), u->seconds };
	if (state != CARD_UNOBSERVED)
		hours_add(u->part, &u->clock, slot, state, sql_value_sum(values[3]));
	u->part->resolution_ms = clock_later(u->part->resolution_ms, u->seconds * 1000);
	return !u->failed;
}

static bool take_day(struct fold *f, sqlite3_value **values)
{
	struct usage_fold *u = f->context;
	if (add_row(u, values) && sqlite3_value_int(values[2]) == CARD_USE_UNKNOWN)
		u->use_unknown = true;
	return !u->failed;
}

/* Values: slot, gpu, ms; for time with unknown use. */
static bool take_unknown(struct fold *f, sqlite3_value **values)
{
	struct usage_fold *u = f->context;
	const struct heat_slot slot = { sqlite3_value_int64(values[0]), u->seconds };
	if (card_of(u, values[1], CARD_USE_UNKNOWN))
		hours_add(u->part, &u->clock, slot, CARD_USE_UNKNOWN, sql_value_sum(values[2]));
	return true;
}

/* Values: gpu, ms, pct_ms. */
static bool take_sm_active(struct fold *f, sqlite3_value **values)
{
	struct audit_card *card = card_of(f->context, values[0], CARD_ACTIVE);
	if (card) {
		card->sm_active_ms += sql_value_sum(values[1]);
		card->sm_active_pct_ms += sql_value_sum(values[2]);
	}
	return true;
}

/* Values: slot, and the time of all cards in the three states. */
static bool take_heat(struct fold *f, sqlite3_value **values)
{
	struct usage_fold *u = f->context;
	const struct heat_slot slot = { sqlite3_value_int64(values[0]), u->seconds };
	for (int state = 0; state < CARD_UNOBSERVED; state++)
		hours_add(u->part, &u->clock, slot, state, sql_value_sum(values[1 + state]));
	u->part->resolution_ms = clock_later(u->part->resolution_ms, u->seconds * 1000);
	return true;
}

/* The rows of one table, and the function that takes each. */
struct table_rows {
	const char *table, *columns;
	bool (*take)(struct fold *f, sqlite3_value **values);
	int state; /* only those in this state; 0: all */
};

/* Reads the rows of the table that are in the span. */
static int read_rows(
	struct usage_fold *u, struct table_rows rows, struct slot_span span, struct err *e)
{
	if (span.from >= span.to)
		return 0;
	u->fold = (struct fold){ .row = rows.take, .context = u };
	char state[32] = "";
	if (rows.state)
		snprintf(state, sizeof(state), " AND state = %d", rows.state);
	return sql_fold(u->file->db, &u->fold, e,
		"SELECT fold(%s) FROM %s WHERE slot >= %lld AND slot < %lld%s", rows.columns,
		rows.table, (long long)span.from, (long long)span.to, state);
}

static int read_slots(
	struct usage_fold *u, const struct slot_table *t, struct slot_span span, struct err *e)
{
	return read_rows(u, (struct table_rows){ t->usage, SUMS, take_slot, 0 }, span, e);
}

/* Reads the part of a table that the daily sums (already read into `days`) do not include. For
 * the part that they include, reads only the hours of the week. */
static int read_table(const struct usage_fold *days, const struct slot_table *t, struct err *e)
{
	struct usage_fold u = { .g = days->g,
		.file = days->file,
		.part = days->part,
		.seconds = t->seconds,
		.clock = { .utc = days->g->q->utc,
			.days_only = restriction_of_users(&days->g->q->only) } };
	const struct table_rows heat = { t->heat,
		"slot, active_ms, idle_held_ms, truly_idle_ms", take_heat, 0 };
	const struct table_rows unknown = { t->usage, "slot, gpu, ms", take_unknown,
		CARD_USE_UNKNOWN };
	struct window_parts parts = window_parts(days->g, has_own_hours(days->g));
	if (!t->heat)
		return read_slots(&u, t, parts.all, e);
	int rc = read_slots(&u, t, parts.before, e);
	if (rc == 0)
		rc = read_rows(&u, heat, parts.days, e);
	if (rc == 0 && days->use_unknown)
		rc = read_rows(&u, unknown, parts.days, e);
	if (rc == 0)
		rc = read_slots(&u, t, parts.after, e);
	return rc;
}

static int read_tables(struct usage_fold *days, struct err *e)
{
	static const struct table_rows sums = { "usage_1d", SUMS, take_day, 0 };
	static const struct table_rows sm_active = { "sm_active", "gpu, ms, pct_ms",
		take_sm_active, 0 };
	struct window_parts parts = window_parts(days->g, has_own_hours(days->g));
	/* These are stored by hour, so hours that the window cuts are included. */
	struct slot_span hours = { parts.all.from - parts.all.from % 3600, parts.all.to };
	int rc = read_rows(days, sums, parts.days, e);
	if (rc == 0)
		rc = read_rows(days, sm_active, hours, e);
	for (int t = 0; t < SLOT_TABLES && rc == 0; t++)
		rc = read_table(days, &slot_tables[t], e);
	return rc;
}

/* Reads the sums of the file's own cards, its heatmap and its days. */
static int read_file(struct gather *g, struct gather_file *file, struct err *e)
{
	int rc = gather_start_part(g, file, e);
	if (rc)
		return rc;
	struct usage_fold days = { .g = g, .file = file, .part = &file->part->a };
	struct audit *part = days.part;
	part->cards = calloc(file->n_cards + 1, sizeof(*part->cards));
	if (!part->cards)
		return err_memory(e);
	part->n_cards = file->n_cards;
	for (size_t i = 0; i < file->n_cards; i++)
		part->cards[i].left_out = g->a->cards[file->cards[i]].left_out;
	return read_tables(&days, e);
}

static void add_card(struct audit_card *to, const struct audit_card *more)
{
	to->has_rows |= more->has_rows;
	for (int state = 0; state < CARD_STATES; state++) {
		to->ms[state] += more->ms[state];
		to->energy_mj[state] += more->energy_mj[state];
		to->energy_known_ms[state] += more->energy_known_ms[state];
	}
	to->util_pct_ms += more->util_pct_ms;
	to->unsure_ms += more->unsure_ms;
	to->unsure_ms2 += more->unsure_ms2;
	to->sm_active_ms += more->sm_active_ms;
	to->sm_active_pct_ms += more->sm_active_pct_ms;
}

static int add_file(struct gather *g, struct gather_file *file, struct err *e)
{
	const struct audit *part = &file->part->a;
	(void)e;
	for (size_t i = 0; i < file->n_cards; i++)
		add_card(&g->a->cards[file->cards[i]], &part->cards[i]);
	g->a->resolution_ms = clock_later(g->a->resolution_ms, part->resolution_ms);
	gather_add_hours(g, file);
	return 0;
}

int usage_read(struct gather *g, struct err *e)
{
	static const struct gather_pass pass = { .read = read_file, .add = add_file };
	return gather_each(g, &pass, e);
}

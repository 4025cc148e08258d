/* Reads the use of the cards, and the hours of the week: days and hours from their sums, the
 * minutes before and after them from the slots. */
#include "audit/gather.h"
#include "store/sums.h"

/* What the rows of one table are added to. */
struct usage_fold {
	struct fold fold;
	const struct gather *g;
	struct gather_file *file;
	struct audit *part; /* of the file */
	int64_t seconds;    /* width of its slots */
	struct heat_clock clock;
	bool summed; /* sums over all cards have the hours of these rows */
	bool failed; /* out of memory */
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

/* Columns of a slot, an hour and a day, in the order of the values below. */
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

/* Adds a row to its card; NULL if the card is unknown. */
static struct audit_card *add_row(struct usage_fold *u, sqlite3_value **values)
{
	int state = sqlite3_value_int(values[2]);
	struct audit_card *card = card_of(u, values[1], state);
	if (!card)
		return NULL;
	int64_t ms = sql_value_sum(values[3]);
	card->has_rows = true;
	card->ms[state] += ms;
	if (state_has_util(state))
		card->util_pct_ms += sql_value_sum(values[4]);
	card->energy_mj[state] += sql_value_signed(values[5]);
	card->energy_known_ms[state] += ms - sql_value_signed(values[6]);
	if (state_has_util(state)) { /* held time with unknown use cannot be idle-held */
		card->unsure_ms += sql_value_signed(values[7]);
		card->unsure_ms2 += sql_value_signed(values[8]);
	}
	if (state == CARD_USE_UNKNOWN)
		note_unknown(u, card, ms);
	return card;
}

/* Whether hours of the week are read for some cards only. Those of users are in holdings. */
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
	if (state != CARD_UNOBSERVED && !u->summed)
		hours_add(u->part, &u->clock, slot, state, sql_value_sum(values[3]));
	return !u->failed;
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

/* The columns of heat_1h: the states in this order, then the first three quarters of each. */
#define HEAT_NAME(name, state) name "_ms"
#define HEAT_QUARTERS(name, state) name "_q1_ms, " name "_q2_ms, " name "_q3_ms"
static const enum card_state heat_states[] = { CARD_ACTIVE, CARD_IDLE_HELD, CARD_TRULY_IDLE,
	CARD_USE_UNKNOWN, CARD_RESERVED };
enum { HEAT_COLUMNS = sizeof(heat_states) / sizeof(heat_states[0]), QUARTER_S = 900 };

static bool take_heat(struct fold *f, sqlite3_value **values)
{
	struct usage_fold *u = f->context;
	const struct heat_slot slot = { sqlite3_value_int64(values[0]), u->seconds };
	for (int i = 0; i < HEAT_COLUMNS; i++)
		hours_add(u->part, &u->clock, slot, (int)heat_states[i],
			sql_value_sum(values[1 + i]));
	return true;
}

/* The same by quarters of hours. */
static bool take_quarters(struct fold *f, sqlite3_value **values)
{
	struct usage_fold *u = f->context;
	int64_t start = sqlite3_value_int64(values[0]);
	for (int i = 0; i < HEAT_COLUMNS; i++) {
		int64_t left = sql_value_sum(values[1 + i]);
		for (int quarter = 0; quarter < 4; quarter++) {
			sqlite3_value **own = values + 1 + HEAT_COLUMNS + 3 * i + quarter;
			int64_t ms = quarter < 3 ? sql_value_sum(*own) : clock_later(left, 0);
			const struct heat_slot slot = { start + quarter * QUARTER_S,
				QUARTER_S };
			hours_add(u->part, &u->clock, slot, (int)heat_states[i], ms);
			left -= ms;
		}
	}
	return true;
}

/* The rows of one table, and the function that takes each. */
struct table_rows {
	const char *table, *columns;
	bool (*take)(struct fold *f, sqlite3_value **values);
};

/* Reads the rows of the table that are in the span. */
static int read_rows(
	struct usage_fold *u, struct table_rows rows, struct slot_span span, struct err *e)
{
	if (span.from >= span.to)
		return 0;
	u->fold = (struct fold){ .row = rows.take, .context = u };
	return sql_fold(u->file->db, &u->fold, e,
		"SELECT fold(%s) FROM %s WHERE slot >= %lld AND slot < %lld", rows.columns,
		rows.table, (long long)span.from, (long long)span.to);
}

static int read_tables(struct usage_fold *u, struct err *e)
{
	static const struct table_rows sm_active = { "sm_active", "gpu, ms, pct_ms",
		take_sm_active };
	static const struct table_rows heat = { "heat_1h", "slot, " HEAT_STATES(HEAT_NAME),
		take_heat };
	static const struct table_rows quarters = { "heat_1h",
		"slot, " HEAT_STATES(HEAT_NAME) ", " HEAT_STATES(HEAT_QUARTERS),
		take_quarters };
	const struct gather *g = u->g;
	bool own_hours = has_own_hours(g);
	struct window_reads reads =
		window_reads(g, u->file, own_hours ? hours_level(g) : WINDOW_BY_DAY);
	/* These are stored by hour, so hours that the window cuts are included. */
	struct slot_span hours = { g->from_slot - g->from_slot % 3600, g->to_slot };
	int rc = read_rows(u, sm_active, hours, e);
	for (size_t i = 0; i < reads.n && rc == 0; i++) {
		const struct window_read *read = &reads.items[i];
		u->seconds = read->table->seconds;
		u->summed = read->summed && !own_hours;
		rc = read_rows(u, (struct table_rows){ read->table->usage, SUMS, take_slot },
			read->span, e);
	}
	u->seconds = 3600;
	return rc || own_hours ? rc
			       : read_rows(u, g->odd_zone ? quarters : heat, reads.hours, e);
}

/* Reads the sums of the file's own cards, its heatmap and its days. */
static int read_file(struct gather *g, struct gather_file *file, struct err *e)
{
	if (gather_start_part(g, file, e))
		return e->code;
	struct usage_fold u = { .g = g,
		.file = file,
		.part = &file->part->a,
		.clock = { .utc = g->q->utc, .days_only = restriction_of_users(&g->q->only) } };
	struct audit *part = u.part;
	part->cards = calloc(file->n_cards + 1, sizeof(*part->cards));
	if (!part->cards)
		return err_memory(e);
	part->n_cards = file->n_cards;
	for (size_t i = 0; i < file->n_cards; i++)
		part->cards[i].left_out = g->a->cards[file->cards[i]].left_out;
	return read_tables(&u, e);
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
	gather_add_hours(g, file);
	return 0;
}

int usage_read(struct gather *g, struct err *e)
{
	static const struct gather_pass pass = { .read = read_file, .add = add_file };
	return gather_each(g, &pass, e);
}

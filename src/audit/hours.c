/* The time of cards by hour of the week, by day and by column of the time line. */

#include "audit/gather.h"

enum { HOUR_S = 3600, DAY_S = 86400, MOST_DAYS = 200 * 366 };

/* Days since 1970-01-01 of the date of a moment. */
static int64_t day_number(int64_t ms, bool utc)
{
	struct tm tm = moment_fields(ms, utc);
	struct tm date = { .tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = tm.tm_mday };
	return (int64_t)timegm(&date) / DAY_S;
}

/* Whether hours of the local time zone begin at another minute than those of UTC, at some time
 * in the window. Clocks change less often than it is looked up. */
static bool is_odd_zone(const struct gather *g)
{
	const int64_t step = 7 * DAY_S;
	bool odd = false;
	for (int64_t t = g->from_slot; t < g->to_slot + step && !g->q->utc && !odd; t += step)
		odd = moment_fields(clock_earlier(t, g->to_slot) * 1000, false).tm_gmtoff %
			      HOUR_S !=
		      0;
	return odd;
}

int hours_make_days(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	struct audit_days *d = &a->days;
	if (a->until_ms <= a->since_ms)
		return 0;
	g->odd_zone = is_odd_zone(g);
	d->first = day_number(a->since_ms, g->q->utc);
	int64_t n = day_number(a->until_ms - 1, g->q->utc) - d->first + 1;
	if (n < 1 || n > MOST_DAYS) /* only a damaged store has this */
		return 0;
	d->items = calloc((size_t)n, sizeof(*d->items));
	if (!d->items)
		return err_memory(e);
	d->n = (size_t)n;
	struct tm day = moment_fields(a->since_ms, g->q->utc);
	int64_t from_ms = moment_day_start(day, g->q->utc);
	for (size_t i = 0; i < d->n; i++) {
		day.tm_mday++;
		int64_t to_ms = moment_day_start(day, g->q->utc);
		d->items[i].from_ms =
			clock_earlier(clock_later(from_ms, a->since_ms), a->until_ms);
		d->items[i].to_ms = clock_earlier(clock_later(to_ms, a->since_ms), a->until_ms);
		from_ms = to_ms;
	}
	return 0;
}

void hours_add_window(struct audit_days *d, int64_t from_ms, int64_t to_ms)
{
	for (size_t i = 0; i < d->n; i++) {
		struct audit_day *day = &d->items[i];
		int64_t start_ms = clock_later(day->from_ms, from_ms);
		int64_t end_ms = clock_earlier(day->to_ms, to_ms);
		day->window_ms += clock_later(end_ms - start_ms, 0);
	}
}

void hours_settle(struct audit_days *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct audit_day *day = &d->items[i];
		int64_t rest_ms = day->window_ms - state_observed_ms(day->ms);
		day->ms[CARD_UNOBSERVED] = clock_later(rest_ms, 0);
	}
}

void hours_clear(struct audit_days *d)
{
	for (size_t i = 0; i < d->n; i++)
		for (int state = 0; state < CARD_STATES; state++)
			d->items[i].ms[state] *= state == CARD_UNOBSERVED;
}

enum { QUARTER_S = 900 };

/* Offset from UTC in seconds at `t`. Looked up once for each hour, which is exact enough for an
 * hour of the week. */
static int64_t zone_offset(struct heat_clock *h, int64_t t)
{
	if (h->utc)
		return 0;
	int64_t hour = t - t % HOUR_S;
	if (h->hour != hour || hour == 0) {
		h->hour = hour;
		h->offset_s = (int64_t)moment_fields(hour * 1000, false).tm_gmtoff;
	}
	return h->offset_s;
}

/* Adds to the hour of the week, which does not include time with unknown use, and to the
 * day of a local time (seconds since 1970 in local time). */
static void add_at(
	struct audit *a, const struct heat_clock *h, int64_t local_s, int state, int64_t ms)
{
	const struct audit_days *d = &a->days;
	int64_t number = local_s / DAY_S - (local_s % DAY_S < 0), day = number - d->first;
	/* A slot that is partly in the window is taken whole: it may begin before day 0. */
	day = day < 0 ? 0 : day >= (int64_t)d->n ? (int64_t)d->n - 1 : day;
	if (d->n)
		d->items[day].ms[state] += ms;
	if (!state_has_util(state) || h->days_only)
		return;
	int64_t dow = (number % 7 + 7 + 4) % 7; /* 1970 began on a Thursday */
	a->heat[dow][(local_s - number * DAY_S) / HOUR_S].ms[state] += ms;
}

void hours_add(
	struct audit *a, struct heat_clock *h, struct heat_slot slot, int state, int64_t ms)
{
	int64_t offset = zone_offset(h, slot.start);
	if (slot.seconds < HOUR_S || offset % HOUR_S == 0) {
		add_at(a, h, slot.start + offset, state, ms);
		return;
	}
	/* An hour of UTC may overlap two local hours (as in India): add it in quarters. */
	int64_t left = ms;
	for (int64_t at = 0; at < HOUR_S; at += QUARTER_S) {
		int64_t part = at + QUARTER_S == HOUR_S ? left : ms / 4;
		add_at(a, h, slot.start + at + offset, state, part);
		left -= part;
	}
}

enum { MOST_COLUMNS = 200, MOST_MARKS = 2000 };

/* The widths of columns up to a day, in seconds; wider ones are whole days. */
static const int64_t widths[] = { 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
	DAY_S };
enum { N_WIDTHS = sizeof(widths) / sizeof(widths[0]) };

static int64_t columns_in(const struct gather *g, int64_t width)
{
	return (g->to_slot - 1) / width - g->from_slot / width + 1;
}

/* The smallest width that gives few enough columns, each made of whole slots. */
static int64_t choose_width(const struct gather *g, int64_t slot_seconds)
{
	size_t i = 0;
	while (i < N_WIDTHS &&
		(widths[i] % slot_seconds || columns_in(g, widths[i]) > MOST_COLUMNS))
		i++;
	if (i < N_WIDTHS)
		return widths[i];
	int64_t days = 2;
	while (columns_in(g, days * DAY_S) > MOST_COLUMNS)
		days++;
	return days * DAY_S;
}

void hours_add_column(
	struct audit_columns *c, uint32_t card, int64_t slot, int state, int64_t ms)
{
	if (!c->n)
		return;
	int64_t at = (slot * 1000 - c->first_ms) / c->width_ms;
	at = at < 0 ? 0 : at >= (int64_t)c->n ? (int64_t)c->n - 1 : at;
	c->items[card * c->n + (size_t)at].ms[state] += ms;
}

/* How coarse the rows may be from which the columns are made. */
static enum window_level columns_level(const struct audit_columns *c)
{
	return c->width_ms % (DAY_S * 1000) == 0    ? WINDOW_BY_DAY
	       : c->width_ms % (HOUR_S * 1000) == 0 ? WINDOW_BY_HOUR
						    : WINDOW_BY_SLOT;
}

enum window_level hours_level(const struct gather *g)
{
	const struct audit_columns *c = &g->a->columns;
	if (g->odd_zone || (c->n && columns_level(c) == WINDOW_BY_SLOT))
		return WINDOW_BY_SLOT;
	return WINDOW_BY_HOUR;
}

/* What the rows of a table are added to. */
struct column_fold {
	struct fold fold;
	struct audit_columns *columns;
	struct gather_file *file;
};

/* Values: slot, gpu, state, ms. */
static bool take_column_row(struct fold *f, sqlite3_value **values)
{
	struct column_fold *c = f->context;
	uint32_t card = gather_card(c->file, sqlite3_value_int64(values[1]));
	int state = sqlite3_value_int(values[2]);
	if (card != IDMAP_NONE && state >= 0 && state < CARD_STATES && state != CARD_UNOBSERVED)
		hours_add_column(c->columns, card, sqlite3_value_int64(values[0]), state,
			sql_value_sum(values[3]));
	return true;
}

static int read_columns(struct gather *g, struct gather_file *file, struct err *e)
{
	struct column_fold c = { .columns = &g->a->columns, .file = file };
	struct window_reads reads = window_reads(g, file, columns_level(c.columns));
	int rc = 0;
	for (size_t i = 0; i < reads.n && rc == 0; i++) {
		const struct window_read *read = &reads.items[i];
		c.fold = (struct fold){ .row = take_column_row, .context = &c };
		rc = sql_fold(file->db, &c.fold, e,
			"SELECT fold(slot, gpu, state, ms) FROM %s WHERE slot >= %lld AND slot "
			"< %lld",
			read->table->usage, (long long)read->span.from,
			(long long)read->span.to);
	}
	return rc;
}

/* Sets the window and the unobserved time of each column of a card. */
static void settle_columns(struct audit_columns *c, const struct audit_card *card, size_t index)
{
	for (size_t i = 0; i < c->n; i++) {
		struct audit_column *column = &c->items[index * c->n + i];
		int64_t from_ms = c->first_ms + (int64_t)i * c->width_ms;
		int64_t to_ms = from_ms + c->width_ms, seen_ms = 0;
		from_ms = clock_later(from_ms, card->from_ms);
		to_ms = clock_earlier(to_ms, card->to_ms);
		for (int state = 0; state < CARD_STATES; state++)
			seen_ms += column->ms[state];
		/* A slot that is partly in the window is taken whole. */
		column->window_ms = clock_later(clock_later(to_ms - from_ms, 0), seen_ms);
		column->ms[CARD_UNOBSERVED] = column->window_ms - seen_ms;
	}
}

void hours_plan_columns(struct gather *g, int64_t slot_seconds)
{
	struct audit *a = g->a;
	struct audit_columns *c = &a->columns;
	if (!g->q->want_columns || a->until_ms <= a->since_ms || g->to_slot <= g->from_slot)
		return;
	int64_t width = choose_width(g, slot_seconds);
	c->n = (size_t)columns_in(g, width);
	c->width_ms = width * 1000;
	c->first_ms = g->from_slot / width * width * 1000;
}

int hours_make_columns(struct audit *a, struct err *e)
{
	struct audit_columns *c = &a->columns;
	c->too_many = c->n && a->n_cards > HOURS_MOST_CARDS;
	c->n = c->too_many || !a->n_cards ? 0 : c->n;
	if (c->n)
		c->items = calloc(a->n_cards * c->n, sizeof(*c->items));
	return c->n && !c->items ? err_memory(e) : 0;
}

int hours_read_columns(struct gather *g, struct err *e)
{
	static const struct gather_pass pass = { .add = read_columns };
	struct audit *a = g->a;
	/* The widest slot of the window. */
	hours_plan_columns(g, a->resolution_ms ? a->resolution_ms / 1000
					       : slot_tables[SLOT_TABLES - 1].seconds);
	int rc = hours_make_columns(a, e);
	if (rc || !a->columns.n)
		return rc;
	rc = gather_each(g, &pass, e);
	for (size_t i = 0; i < a->n_cards; i++)
		settle_columns(&a->columns, &a->cards[i], i);
	return rc;
}

void hours_clear_columns(struct audit_columns *c, size_t n_cards)
{
	for (size_t i = 0; i < n_cards * c->n; i++)
		for (int state = 0; state < CARD_STATES; state++)
			c->items[i].ms[state] *= state == CARD_UNOBSERVED;
}

int hours_mark(struct audit *a, struct idmap *known, const struct event_row *row,
	enum event_kind kind, struct err *e)
{
	struct audit_columns *c = &a->columns;
	int64_t at = c->n ? (row->at_ms - c->first_ms) / c->width_ms : -1;
	if (at < 0 || at >= (int64_t)c->n)
		return 0;
	struct audit_mark mark = { .host = row->host,
		.card = row->card == IDMAP_NONE ? AUDIT_NO_CARD : row->card,
		.column = (size_t)at,
		.kind = kind,
		.last_ms = INT64_MIN };
	/* Makes a number from the place and the kind of the mark. */
	size_t line = mark.card == AUDIT_NO_CARD ? a->n_cards + mark.host : mark.card;
	int64_t key = (int64_t)((line * c->n + mark.column) * EVENT_KINDS + mark.kind);
	uint32_t index = idmap_get(known, key);
	if (index == IDMAP_NONE) {
		if (c->n_marks == MOST_MARKS) /* the report still counts them */
			return 0;
		index = (uint32_t)c->n_marks;
		if (!array_one_more(&c->marks, c->n_marks) || !idmap_put(known, key, index))
			return err_memory(e);
		c->marks[c->n_marks++] = mark;
	}
	struct audit_mark *m = &c->marks[index];
	m->times++;
	if (row->at_ms >= m->last_ms) {
		m->last_ms = row->at_ms;
		m->last_value = row->value;
	}
	return 0;
}

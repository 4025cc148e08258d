/* The parts of a report about when: the trend, and the time line with a lane for each card
 * and for each host that has events. */
#include "report/report_parts.h"

static struct tm date_of(const struct audit_days *days, size_t i)
{
	return moment_fields((days->first + (int64_t)i) * 86400000, true);
}

/* The number of the period that the i-th day belongs to: days of the same period have the same
 * number. Days are counted from 1970-01-01, which was a Thursday. */
static int64_t period_of(const struct audit_days *days, size_t i, enum period_unit unit)
{
	struct tm day = date_of(days, i);
	int64_t number = days->first + (int64_t)i;
	return unit == PERIOD_WEEK    ? (number + 3) / 7
	       : unit == PERIOD_MONTH ? 12 * (int64_t)day.tm_year + day.tm_mon
	       : unit == PERIOD_YEAR  ? day.tm_year
				      : number;
}

static void name_period(struct report_period *p, enum period_unit unit, struct tm day)
{
	if (unit == PERIOD_DAY) {
		snprintf(p->name, sizeof(p->name), "%s %02d-%02d",
			moment_weekdays[day.tm_wday % 7], day.tm_mon + 1, day.tm_mday);
		return;
	}
	if (unit == PERIOD_WEEK) { /* if the window begins within a week, that week's Monday is
				      before it */
		day.tm_mday -= (day.tm_wday + 6) % 7;
		timegm(&day);
	}
	int len = unit == PERIOD_YEAR ? 4 : unit == PERIOD_MONTH ? 7 : 10;
	char date[40];
	snprintf(date, sizeof(date), "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1,
		day.tm_mday);
	snprintf(p->name, sizeof(p->name), "%.*s", len, date);
}

#define OF(member) offsetof(struct report_period, member)
static const struct column period_columns[] = {
	{ "name", CHARS(name) },
	{ "since", KNOWN(MOMENT, from_ms) },
	{ "until", KNOWN(MOMENT, to_ms) },
	{ "active_fraction", NUMBER(SHARE, share[CARD_ACTIVE]) },
	{ "idle_held_fraction", NUMBER(SHARE, share[CARD_IDLE_HELD]) },
	{ "unobserved_fraction", NUMBER(SHARE, share[CARD_UNOBSERVED]) },
	{ "active_gpu_seconds", KNOWN(GPU_MS, ms[CARD_ACTIVE]) },
	{ "idle_held_gpu_seconds", KNOWN(GPU_MS, ms[CARD_IDLE_HELD]) },
	{ "truly_idle_gpu_seconds", KNOWN(GPU_MS, ms[CARD_TRULY_IDLE]) },
	{ "unobserved_gpu_seconds", KNOWN(GPU_MS, ms[CARD_UNOBSERVED]) },
	{ "use_unknown_gpu_seconds", KNOWN(GPU_MS, ms[CARD_USE_UNKNOWN]) },
	{ "reserved_gpu_seconds", KNOWN(GPU_MS, ms[CARD_RESERVED]) },
};
#undef OF

void report_time_add_trend(struct report *r, const struct audit *a)
{
	struct report_trend *t = &r->trend;
	const struct audit_days *days = &a->days;
	t->table = (struct table)TABLE_OF(period_columns);
	t->unit = PERIOD_DAY;
	if (!days->n)
		return;
	while (t->unit < PERIOD_YEAR &&
		period_of(days, days->n - 1, t->unit) - period_of(days, 0, t->unit) >=
			TREND_MAX)
		t->unit++;
	int64_t first = period_of(days, 0, t->unit);
	size_t n = (size_t)(period_of(days, days->n - 1, t->unit) - first + 1);
	t->periods = calloc(n, sizeof(*t->periods));
	if (!t->periods) {
		r->failed = true;
		return;
	}
	t->n = n;
	for (size_t i = 0; i < days->n; i++) {
		const struct audit_day *day = &days->items[i];
		struct report_period *p = &t->periods[period_of(days, i, t->unit) - first];
		if (!p->to_ms) {
			p->from_ms = day->from_ms;
			name_period(p, t->unit, date_of(days, i));
		}
		p->to_ms = day->to_ms;
		p->window_ms += day->window_ms;
		for (int state = 0; state < CARD_STATES; state++)
			p->ms[state] += day->ms[state];
	}
	for (struct report_period *p = t->periods; p < t->periods + n; p++) {
		int64_t seen_ms = state_observed_ms(p->ms);
		for (int state = 0; state < CARD_STATES; state++)
			p->share[state] = report_share(p->ms[state], seen_ms);
		/* For users, the states are theirs, and unobserved time is the cards'. */
		p->share[CARD_UNOBSERVED] = report_share(p->ms[CARD_UNOBSERVED],
			a->of_users ? p->window_ms : seen_ms + p->ms[CARD_UNOBSERVED]);
		struct report_period row = *p;
		if (!a->has_leases)
			row.ms[CARD_RESERVED] = -1;
		table_add(&t->table, &row);
	}
}

/* The step from one tick to the next; exactly one member is not 0. */
struct tick_step {
	int minutes, days, months;
};
static const struct tick_step steps[] = { { .minutes = 1 }, { .minutes = 5 }, { .minutes = 10 },
	{ .minutes = 15 }, { .minutes = 30 }, { .minutes = 60 }, { .minutes = 120 },
	{ .minutes = 180 }, { .minutes = 360 }, { .minutes = 720 }, { .days = 1 },
	{ .days = 2 }, { .days = 7 }, { .days = 14 }, { .months = 1 }, { .months = 2 },
	{ .months = 3 }, { .months = 6 }, { .months = 12 }, { .months = 60 },
	{ .months = 120 } };
enum { N_STEPS = sizeof(steps) / sizeof(steps[0]), FEW = 8 };

/* The i-th tick, counted from the start of the first day, week or month of the window. */
static int64_t tick_at(const struct report *r, const struct tick_step *s, int i)
{
	struct tm day = moment_fields(r->a->since_ms, r->utc);
	if (s->months) {
		day.tm_mday = 1;
		day.tm_mon -= s->months > 12 ? 12 * (day.tm_year % (s->months / 12)) : 0;
		day.tm_mon += i * s->months - day.tm_mon % (s->months > 12 ? 12 : s->months);
	} else if (s->days >= 7) {
		day.tm_mday += i * s->days - (day.tm_wday + 6) % 7; /* Mondays */
	} else {
		day.tm_mday += i * s->days;
	}
	return moment_day_start(day, r->utc) + (int64_t)i * s->minutes * 60000;
}

/* Lists the ticks of a step, at most `most`; returns how many there are. */
static size_t list_ticks(
	const struct report *r, const struct tick_step *s, int64_t *ticks, size_t most)
{
	size_t n = 0;
	int64_t minutes = (r->a->since_ms - tick_at(r, s, 0)) / 60000;
	int first = s->minutes ? (int)(minutes / s->minutes) : 0;
	for (int i = first; n < most; i++) {
		int64_t at_ms = tick_at(r, s, i);
		if (at_ms >= r->a->until_ms)
			break;
		if (at_ms >= r->a->since_ms)
			ticks[n++] = at_ms;
	}
	return n;
}

static void add_ticks(struct report *r)
{
	struct report_timeline *t = &r->timeline;
	int64_t ticks[FEW + 1];
	size_t i = 0, n = 0;
	while (i < N_STEPS && (n = list_ticks(r, &steps[i], ticks, FEW + 1)) > FEW)
		i++;
	if (i == N_STEPS)
		return;
	for (size_t k = 0; k < n; k++) {
		t->ticks[k].at = (double)(ticks[k] - r->a->since_ms) / (double)r->length_ms;
		t->ticks[k].between = n > 4 && k % 2;
		struct tm tm = moment_fields(ticks[k], r->utc);
		if (steps[i].months)
			snprintf(t->ticks[k].label, sizeof(t->ticks[k].label), "%04d-%02d",
				(tm.tm_year + 1900) % 10000, (tm.tm_mon + 1) % 100);
		else if (steps[i].days || (tm.tm_hour == 0 && tm.tm_min == 0))
			snprintf(t->ticks[k].label, sizeof(t->ticks[k].label), "%02d-%02d",
				(tm.tm_mon + 1) % 100, tm.tm_mday % 100);
		else
			snprintf(t->ticks[k].label, sizeof(t->ticks[k].label), "%02d:%02d",
				tm.tm_hour % 100, tm.tm_min % 100);
	}
	t->n_ticks = n;
}

#define HALF_YEAR_MS (183 * INT64_C(86400000))

/* "Mon 11-02 06:00", or with the year if the window is long: "2026-11-02 06:00" */
static void short_moment(char dst[24], const struct report *r, int64_t ms)
{
	struct tm tm = moment_fields(ms, r->utc);
	char day[8];
	snprintf(day, sizeof(day), "%s ", moment_weekdays[tm.tm_wday % 7]);
	if (r->length_ms > HALF_YEAR_MS)
		snprintf(day, sizeof(day), "%04d-", (tm.tm_year + 1900) % 10000);
	snprintf(dst, 24, "%s%02d-%02d %02d:%02d", day, (tm.tm_mon + 1) % 100, tm.tm_mday % 100,
		tm.tm_hour % 100, tm.tm_min % 100);
}

static double position(const struct report *r, int64_t ms)
{
	double at = (double)(ms - r->a->since_ms) / (double)r->length_ms;
	return at < 0 ? 0 : at > 1 ? 1 : at;
}

static int64_t sum_of(const int64_t ms[CARD_STATES])
{
	int64_t sum_ms = 0;
	for (int state = 0; state < CARD_STATES; state++)
		sum_ms += ms[state];
	return sum_ms;
}

/* Sets the shares of a card's columns. Several users together may have held a card for
 * longer than the column. */
static void set_shares(
	struct report_timeline *t, struct report_lane *lane, const struct audit_column *columns)
{
	int64_t ms[CARD_STATES] = { 0 }, whole_ms = 0;
	double parts[CARD_STATES + 1], shown[SHARES_MAX];
	for (size_t i = 0; i < t->n; i++) {
		const struct audit_column *c = &columns[i];
		int64_t all_ms = sum_of(c->ms);
		all_ms = all_ms > c->window_ms ? all_ms : c->window_ms;
		whole_ms += all_ms;
		for (int state = 0; state < CARD_STATES; state++) {
			lane->share[i][state] =
				all_ms > 0 ? (double)c->ms[state] / (double)all_ms : 0;
			ms[state] += c->ms[state];
		}
	}
	for (int state = 0; state < CARD_STATES; state++) {
		parts[state] = (double)ms[state];
		t->states[state] |= ms[state] > 0;
	}
	parts[CARD_STATES] =
		(double)(whole_ms - sum_of(ms)); /* time in which these users did not hold it */
	shares_round(parts, CARD_STATES + 1, shown);
	memcpy(lane->mean, shown, sizeof(lane->mean));
}

/* The data of a row of the table. */
struct column_row {
	struct report_place place;
	struct report_column column;
	struct audit_column time;
};

#define OF(member) offsetof(struct column_row, member)
static const struct column timeline_columns[] = {
	PLACE_COLUMNS,
	{ "since", KNOWN(MOMENT, column.from_ms) },
	{ "until", KNOWN(MOMENT, column.to_ms) },
	{ "active_gpu_seconds", KNOWN(GPU_MS, time.ms[CARD_ACTIVE]) },
	{ "idle_held_gpu_seconds", KNOWN(GPU_MS, time.ms[CARD_IDLE_HELD]) },
	{ "truly_idle_gpu_seconds", KNOWN(GPU_MS, time.ms[CARD_TRULY_IDLE]) },
	{ "unobserved_gpu_seconds", KNOWN(GPU_MS, time.ms[CARD_UNOBSERVED]) },
	{ "use_unknown_gpu_seconds", KNOWN(GPU_MS, time.ms[CARD_USE_UNKNOWN]) },
	{ "reserved_gpu_seconds", KNOWN(GPU_MS, time.ms[CARD_RESERVED]) },
};
#undef OF

static bool was_observed(const struct audit *a, size_t card)
{
	const struct audit_columns *c = &a->columns;
	for (size_t i = 0; i < c->n; i++) {
		const int64_t *ms = c->items[card * c->n + i].ms;
		if (sum_of(ms) > ms[CARD_UNOBSERVED])
			return true;
	}
	return false;
}

/* Adds a lane with its name, which has the host if there are several. */
static struct report_lane *add_lane(
	struct report_timeline *t, const struct audit *a, size_t host, const char *label)
{
	struct report_lane *lane = &t->lanes[t->n_lanes++];
	bool several = a->n_hosts > 1;
	snprintf(lane->label, sizeof(lane->label), "%s", label);
	snprintf(lane->name, sizeof(lane->name), "%s%s%.128s", label, several ? " of " : "",
		several ? a->hosts[host].hostname : "");
	return lane;
}

/* Adds the lane of a card, with its rows of the table; false: out of memory. */
static bool add_card(struct report *r, const struct audit *a, size_t card)
{
	struct report_timeline *t = &r->timeline;
	const struct audit_card *c = &a->cards[card];
	const struct audit_column *columns = &a->columns.items[card * t->n];
	struct brief label = str_brief("GPU %s", card_label(&c->id).text);
	size_t len = 0;
	struct report_lane *lane = add_lane(t, a, c->host, label.text);
	lane->uuid = c->id.uuid;
	lane->share = calloc(t->n, sizeof(*lane->share));
	if (!lane->share)
		return false;
	set_shares(t, lane, columns);
	for (int state = 0; state < CARD_STATES; state++) {
		double share = lane->mean[state];
		if (isfinite(share) && share > 0 && len < sizeof(lane->text))
			len += (size_t)snprintf(lane->text + len, sizeof(lane->text) - len,
				"%s%s %.1f%%", len ? ", " : "", t->words[state], 100 * share);
	}
	for (size_t i = 0; i < t->n; i++) {
		struct column_row row = { .place = report_place(a, card),
			.column = t->columns[i],
			.time = columns[i] };
		if (!a->hosts[c->host].has_leases)
			row.time.ms[CARD_RESERVED] = -1;
		table_add(&t->table, &row);
	}
	return true;
}

/* Adds the marks of a lane: those of a card or, with AUDIT_NO_CARD, of the host. */
static void add_marks(struct report *r, const struct audit *a, size_t host, size_t card)
{
	struct report_timeline *t = &r->timeline;
	struct report_lane *lane = &t->lanes[t->n_lanes - 1];
	for (size_t i = 0; i < a->columns.n_marks; i++) {
		const struct audit_mark *from = &a->columns.marks[i];
		if (from->host != host || from->card != card)
			continue;
		struct report_mark *m = &t->marks[t->n_marks++];
		char when[24], times[40] = "";
		*m = (struct report_mark){ .lane = t->n_lanes - 1,
			.column = from->column,
			.at = position(r, from->last_ms),
			.kind = from->kind };
		event_label(m->label, sizeof(m->label), event_kind_names[from->kind],
			from->last_value);
		short_moment(when, r, from->last_ms);
		if (from->times > 1)
			snprintf(times, sizeof(times), " %zu times, the last", from->times);
		snprintf(m->text, sizeof(m->text), "%s%s%s %s", m->label, *times ? "," : "",
			times, when);
		size_t len = strlen(lane->text);
		if (len + strlen(m->text) + 3 < sizeof(lane->text))
			snprintf(lane->text + len, sizeof(lane->text) - len, "%s%s",
				len ? "; " : "", m->text);
	}
}

static int compare_marks(const void *x, const void *y)
{
	const struct report_mark *p = x, *q = y;
	if (p->lane != q->lane)
		return p->lane < q->lane ? -1 : 1;
	if (p->at < q->at || p->at > q->at)
		return p->at < q->at ? -1 : 1;
	return strcmp(p->label, q->label);
}

static void add_lanes(struct report *r, const struct audit *a)
{
	struct report_timeline *t = &r->timeline;
	const struct audit_columns *c = &a->columns;
	size_t card = 0;
	for (size_t host = 0; host < a->n_hosts; host++) {
		size_t first = t->n_lanes, i = 0;
		/* The host has a lane if it has events that are not of a card. */
		while (i < c->n_marks &&
			(c->marks[i].host != host || c->marks[i].card != AUDIT_NO_CARD))
			i++;
		if (i < c->n_marks) {
			add_lane(t, a, host, "all GPUs");
			add_marks(r, a, host, AUDIT_NO_CARD);
		}
		for (; card < a->n_cards && a->cards[card].host == host; card++) {
			if (a->of_users && !was_observed(a, card))
				continue;
			if (!add_card(r, a, card)) {
				r->failed = true;
				return;
			}
			add_marks(r, a, host, card);
		}
		if (a->n_hosts > 1 && t->n_lanes > first)
			t->lanes[first].heading = a->hosts[host].hostname;
	}
	array_sort(t->marks, t->n_marks, compare_marks);
}

void report_time_add_line(struct report *r, const struct audit *a)
{
	struct report_timeline *t = &r->timeline;
	const struct audit_columns *c = &a->columns;
	t->table = (struct table)TABLE_OF(timeline_columns);
	t->too_many = c->too_many;
	if (!c->n)
		return;
	t->columns = calloc(c->n, sizeof(*t->columns));
	t->lanes = calloc(a->n_hosts + a->n_cards, sizeof(*t->lanes));
	t->marks = calloc(c->n_marks + 1, sizeof(*t->marks));
	if (!t->columns || !t->lanes || !t->marks) {
		r->failed = true;
		return;
	}
	t->n = c->n;
	for (int state = 0; state < CARD_STATES; state++)
		t->words[state] =
			a->of_users ? state_looks[state].users : state_looks[state].word;
	/* "5 min", "2 h", "1 day" */
	int64_t minutes = c->width_ms / 60000;
	if (minutes % 1440 == 0)
		snprintf(t->width, sizeof(t->width), "%lld day%s", (long long)minutes / 1440,
			minutes == 1440 ? "" : "s");
	else if (minutes % 60 == 0)
		snprintf(t->width, sizeof(t->width), "%lld h", (long long)minutes / 60);
	else
		snprintf(t->width, sizeof(t->width), "%lld min", (long long)minutes);
	for (size_t i = 0; i < t->n; i++) {
		struct report_column *column = &t->columns[i];
		int64_t from_ms = c->first_ms + (int64_t)i * c->width_ms;
		int64_t to_ms = from_ms + c->width_ms;
		column->from_ms = from_ms > a->since_ms ? from_ms : a->since_ms;
		column->to_ms = to_ms < a->until_ms ? to_ms : a->until_ms;
		column->from = position(r, column->from_ms);
		short_moment(column->name, r, column->from_ms);
	}
	add_lanes(r, a);
	add_ticks(r);
}

void report_time_finish(struct report *r)
{
	struct report_timeline *t = &r->timeline;
	free(r->trend.periods);
	table_finish(&r->trend.table);
	for (size_t i = 0; i < t->n_lanes; i++)
		free(t->lanes[i].share);
	free(t->lanes);
	free(t->columns);
	free(t->marks);
	table_finish(&t->table);
}

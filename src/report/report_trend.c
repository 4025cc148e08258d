/* The trend of a report: the days of the window, joined into weeks, months or years if there
 * are many. */
#include "report/report_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/timetext.h"

/* Numbers the periods of a unit, so that days of one period have the same number. `number` is
 * that of the day since 1970-01-01, which was a Thursday. */
static int64_t number_of(enum period_unit unit, int64_t number, const struct tm *day)
{
	switch (unit) {
	case PERIOD_WEEK:
		return (number + 3) / 7;
	case PERIOD_MONTH:
		return 12 * (int64_t)day->tm_year + day->tm_mon;
	case PERIOD_YEAR:
		return day->tm_year;
	default:
		return number;
	}
}

/* The date of the i-th day of the audit. */
static struct tm date_of(const struct audit_days *days, size_t i)
{
	return moment_fields((days->first + (int64_t)i) * 86400000, true);
}

static int64_t period_of(const struct audit_days *days, size_t i, enum period_unit unit)
{
	struct tm day = date_of(days, i);
	return number_of(unit, days->first + (int64_t)i, &day);
}

static enum period_unit choose_unit(const struct audit_days *days)
{
	enum period_unit unit = PERIOD_DAY;
	while (unit < PERIOD_YEAR &&
		period_of(days, days->n - 1, unit) - period_of(days, 0, unit) >= TREND_MAX)
		unit++;
	return unit;
}

static void name_period(struct report_period *p, enum period_unit unit, struct tm day)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	if (unit == PERIOD_DAY) {
		snprintf(p->name, sizeof(p->name), "%s %02d-%02d", days[day.tm_wday % 7],
			day.tm_mon + 1, day.tm_mday);
		return;
	}
	if (unit == PERIOD_WEEK) { /* of a week that the window cuts, the Monday is before it */
		day.tm_mday -= (day.tm_wday + 6) % 7;
		timegm(&day);
	}
	int len = unit == PERIOD_YEAR ? 4 : unit == PERIOD_MONTH ? 7 : 10;
	char date[40];
	snprintf(date, sizeof(date), "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1,
		day.tm_mday);
	snprintf(p->name, sizeof(p->name), "%.*s", len, date);
}

static void add_day(struct report_period *p, const struct audit_day *day)
{
	p->to_ms = day->to_ms;
	p->window_ms += day->window_ms;
	for (int state = 0; state < CARD_STATES; state++)
		p->ms[state] += day->ms[state];
}

/* Of users, the states are theirs, and unobserved time is the cards'. */
static void set_shares(struct report_period *p, bool of_users)
{
	int64_t seen_ms = observed_ms(p->ms);
	int64_t whole_ms = of_users ? p->window_ms : seen_ms + p->ms[CARD_UNOBSERVED];
	for (int state = 0; state < CARD_STATES; state++)
		p->share[state] = part_of(p->ms[state], seen_ms);
	p->share[CARD_UNOBSERVED] = part_of(p->ms[CARD_UNOBSERVED], whole_ms);
}

static struct cell period_ms(const void *row, size_t state)
{
	return cell_number((double)((const struct report_period *)row)->ms[state]);
}

static struct cell period_share(const void *row, size_t state)
{
	return cell_number(((const struct report_period *)row)->share[state]);
}

#define OF(member) offsetof(struct report_period, member)
static const struct column period_columns[] = {
	{ .key = "name", TEXT(get_chars, OF(name)) },
	{ .key = "since", VALUE(MOMENT, get_known, OF(from_ms)) },
	{ .key = "until", VALUE(MOMENT, get_known, OF(to_ms)) },
	{ .key = "active_fraction", VALUE(SHARE, period_share, CARD_ACTIVE) },
	{ .key = "idle_held_fraction", VALUE(SHARE, period_share, CARD_IDLE_HELD) },
	{ .key = "unobserved_fraction", VALUE(SHARE, period_share, CARD_UNOBSERVED) },
	{ .key = "active_gpu_seconds", VALUE(GPU_MS, period_ms, CARD_ACTIVE) },
	{ .key = "idle_held_gpu_seconds", VALUE(GPU_MS, period_ms, CARD_IDLE_HELD) },
	{ .key = "truly_idle_gpu_seconds", VALUE(GPU_MS, period_ms, CARD_TRULY_IDLE) },
	{ .key = "unobserved_gpu_seconds", VALUE(GPU_MS, period_ms, CARD_UNOBSERVED) },
	{ .key = "use_unknown_gpu_seconds", VALUE(GPU_MS, period_ms, CARD_USE_UNKNOWN) },
};
#undef OF

void report_add_trend(struct report *r, const struct audit *a)
{
	struct report_trend *t = &r->trend;
	const struct audit_days *days = &a->days;
	t->table = (struct table)TABLE_OF(period_columns);
	t->unit = PERIOD_DAY;
	if (!days->n)
		return;
	t->unit = choose_unit(days);
	int64_t first = period_of(days, 0, t->unit);
	size_t n = (size_t)(period_of(days, days->n - 1, t->unit) - first + 1);
	t->periods = calloc(n, sizeof(*t->periods));
	if (!t->periods) {
		r->failed = true;
		return;
	}
	t->n = n;
	for (size_t i = 0; i < days->n; i++) {
		struct report_period *p = &t->periods[period_of(days, i, t->unit) - first];
		if (!p->to_ms) {
			p->from_ms = days->items[i].from_ms;
			name_period(p, t->unit, date_of(days, i));
		}
		add_day(p, &days->items[i]);
	}
	for (size_t i = 0; i < n; i++) {
		set_shares(&t->periods[i], a->of_users);
		table_add(&t->table, &t->periods[i]);
	}
}

void report_finish_trend(struct report *r)
{
	free(r->trend.periods);
	table_finish(&r->trend.table);
}

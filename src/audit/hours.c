/* The time of all cards by hour of the week and by day, in local time. */
#include "audit/hours.h"

#include <stdlib.h>
#include <time.h>

#include "base/period.h"
#include "base/timetext.h"
#include "audit/gather.h"

enum { DAY_S = 86400, MOST_DAYS = 200 * 366 };

/* Days since 1970-01-01 of the date of a moment. */
static int64_t day_number(int64_t ms, bool utc)
{
	struct tm tm = moment_fields(ms, utc);
	struct tm date = { .tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = tm.tm_mday };
	return (int64_t)timegm(&date) / DAY_S;
}

static int64_t within(int64_t ms, const struct audit *a)
{
	return ms < a->since_ms ? a->since_ms : ms > a->until_ms ? a->until_ms : ms;
}

int hours_make_days(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	struct audit_days *d = &a->days;
	if (a->until_ms <= a->since_ms)
		return 0;
	d->first = day_number(a->since_ms, g->q->utc);
	int64_t n = day_number(a->until_ms - 1, g->q->utc) - d->first + 1;
	if (n < 1 || n > MOST_DAYS) /* of a damaged store */
		return 0;
	d->items = calloc((size_t)n, sizeof(*d->items));
	if (!d->items)
		return err_memory(e);
	d->n = (size_t)n;
	struct tm day = moment_fields(a->since_ms, g->q->utc);
	int64_t from_ms = day_start(day, g->q->utc);
	for (size_t i = 0; i < d->n; i++) {
		day.tm_mday++;
		int64_t to_ms = day_start(day, g->q->utc);
		d->items[i].from_ms = within(from_ms, a);
		d->items[i].to_ms = within(to_ms, a);
		from_ms = to_ms;
	}
	return 0;
}

/* Adds to the day of a local time (seconds since 1970 on the wall). */
static void add_to_day(struct audit_days *d, int64_t local_s, int state, int64_t ms)
{
	int64_t day = local_s / DAY_S - (local_s % DAY_S < 0) - d->first;
	/* A slot that the window cuts is taken whole: it may begin before the first day. */
	if (d->n == 0)
		return;
	day = day < 0 ? 0 : day >= (int64_t)d->n ? (int64_t)d->n - 1 : day;
	d->items[day].ms[state] += ms;
}

void hours_add_window(struct audit_days *d, int64_t from_ms, int64_t to_ms)
{
	for (size_t i = 0; i < d->n; i++) {
		struct audit_day *day = &d->items[i];
		int64_t start_ms = day->from_ms > from_ms ? day->from_ms : from_ms;
		int64_t end_ms = day->to_ms < to_ms ? day->to_ms : to_ms;
		if (start_ms < end_ms)
			day->window_ms += end_ms - start_ms;
	}
}

void hours_settle(struct audit_days *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct audit_day *day = &d->items[i];
		int64_t rest_ms = day->window_ms;
		for (int state = 0; state < CARD_STATES; state++)
			rest_ms -= state == CARD_UNOBSERVED ? 0 : day->ms[state];
		day->ms[CARD_UNOBSERVED] = rest_ms > 0 ? rest_ms : 0;
	}
}

void hours_clear(struct audit_days *d)
{
	for (size_t i = 0; i < d->n; i++)
		for (int state = 0; state < CARD_STATES; state++)
			d->items[i].ms[state] *= state == CARD_UNOBSERVED;
}

enum { QUARTER_S = 900, HOUR_S = 3600 };

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

/* Adds to the hour of the week, which has no place for time of unknown use, and to the day. */
static void add_at(
	struct audit *a, const struct heat_clock *h, int64_t local_s, int state, int64_t ms)
{
	add_to_day(&a->days, local_s, state, ms);
	if (state >= CARD_UNOBSERVED || h->days_only)
		return;
	int64_t days = local_s / 86400, second = local_s % 86400;
	if (second < 0) {
		second += 86400;
		days--;
	}
	int64_t dow = (days % 7 + 7 + 4) % 7; /* 1970 began on a Thursday */
	a->heat[dow][second / HOUR_S].ms[state] += ms;
}

void hours_add(
	struct audit *a, struct heat_clock *h, struct heat_slot slot, int state, int64_t ms)
{
	int64_t offset = zone_offset(h, slot.start);
	if (slot.seconds < HOUR_S || offset % HOUR_S == 0) {
		add_at(a, h, slot.start + offset, state, ms);
		return;
	}
	/* An hour of UTC may overlap two local hours (in India, for example): add it in
	 * quarters. */
	int64_t left = ms;
	for (int64_t at = 0; at < HOUR_S; at += QUARTER_S) {
		int64_t part = at + QUARTER_S == HOUR_S ? left : ms / 4;
		add_at(a, h, slot.start + at + offset, state, part);
		left -= part;
	}
}

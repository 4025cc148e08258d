/* The days of an audit's window: the time of all cards in each. */
#include <stdlib.h>
#include <time.h>

#include "base/period.h"
#include "base/timetext.h"
#include "audit/gather.h"
#include "audit/heat.h"

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

int gather_days(struct gather *g, struct err *e)
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

void days_add(struct audit_days *d, int64_t local_s, int state, int64_t ms)
{
	int64_t day = local_s / DAY_S - (local_s % DAY_S < 0) - d->first;
	/* A slot that the window cuts is taken whole: it may begin before the first day. */
	if (d->n == 0)
		return;
	day = day < 0 ? 0 : day >= (int64_t)d->n ? (int64_t)d->n - 1 : day;
	d->items[day].ms[state] += ms;
}

void days_add_window(struct audit_days *d, int64_t from_ms, int64_t to_ms)
{
	for (size_t i = 0; i < d->n; i++) {
		struct audit_day *day = &d->items[i];
		int64_t start_ms = day->from_ms > from_ms ? day->from_ms : from_ms;
		int64_t end_ms = day->to_ms < to_ms ? day->to_ms : to_ms;
		if (start_ms < end_ms)
			day->window_ms += end_ms - start_ms;
	}
}

void days_settle(struct audit_days *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct audit_day *day = &d->items[i];
		int64_t rest_ms = day->window_ms;
		for (int state = 0; state < CARD_STATES; state++)
			rest_ms -= state == CARD_UNOBSERVED ? 0 : day->ms[state];
		day->ms[CARD_UNOBSERVED] = rest_ms > 0 ? rest_ms : 0;
	}
}

void days_clear(struct audit_days *d)
{
	for (size_t i = 0; i < d->n; i++)
		for (int state = 0; state < CARD_STATES; state++)
			d->items[i].ms[state] *= state == CARD_UNOBSERVED;
}

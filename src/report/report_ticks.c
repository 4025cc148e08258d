/* The moments that are named below a time line. */
#include "report/report_parts.h"

#include <stdio.h>

#include "base/timetext.h"

/* From one tick to the next; one of them is not 0. */
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

/* The i-th tick from the start of the window's first day, week or month on. */
static int64_t tick_at(const struct report *r, const struct tick_step *s, int i)
{
	struct tm day = moment_fields(r->since_ms, r->utc);
	if (s->months) {
		day.tm_mday = 1;
		day.tm_mon -= s->months > 12 ? 12 * (day.tm_year % (s->months / 12)) : 0;
		day.tm_mon += i * s->months - day.tm_mon % (s->months > 12 ? 12 : s->months);
	} else if (s->days >= 7) {
		day.tm_mday += i * s->days - (day.tm_wday + 6) % 7; /* Mondays */
	} else {
		day.tm_mday += i * s->days;
	}
	return day_start(day, r->utc) + (int64_t)i * s->minutes * 60000;
}

/* The ticks of a step, at most `most`: how many there are. */
static size_t list_ticks(
	const struct report *r, const struct tick_step *s, int64_t *ticks, size_t most)
{
	size_t n = 0;
	int64_t minutes = (r->since_ms - tick_at(r, s, 0)) / 60000;
	int first = s->minutes ? (int)(minutes / s->minutes) : 0;
	for (int i = first; n < most; i++) {
		int64_t at_ms = tick_at(r, s, i);
		if (at_ms >= r->until_ms)
			break;
		if (at_ms >= r->since_ms)
			ticks[n++] = at_ms;
	}
	return n;
}

static void name_tick(struct report_tick *tick, int64_t ms, const struct tick_step *s, bool utc)
{
	struct tm tm = moment_fields(ms, utc);
	if (s->months)
		snprintf(tick->label, sizeof(tick->label), "%04d-%02d",
			(tm.tm_year + 1900) % 10000, (tm.tm_mon + 1) % 100);
	else if (s->days || (tm.tm_hour == 0 && tm.tm_min == 0))
		snprintf(tick->label, sizeof(tick->label), "%02d-%02d", (tm.tm_mon + 1) % 100,
			tm.tm_mday % 100);
	else
		snprintf(tick->label, sizeof(tick->label), "%02d:%02d", tm.tm_hour % 100,
			tm.tm_min % 100);
}

void report_add_ticks(struct report *r)
{
	struct report_timeline *t = &r->timeline;
	int64_t ticks[FEW + 1];
	size_t i = 0, n = 0;
	while (i < N_STEPS && (n = list_ticks(r, &steps[i], ticks, FEW + 1)) > FEW)
		i++;
	if (i == N_STEPS)
		return;
	for (size_t k = 0; k < n; k++) {
		t->ticks[k].at = (double)(ticks[k] - r->since_ms) / (double)r->length_ms;
		t->ticks[k].between = n > 4 && k % 2;
		name_tick(&t->ticks[k], ticks[k], &steps[i], r->utc);
	}
	t->n_ticks = n;
}

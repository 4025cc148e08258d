/* Adds slots to the heatmap and the days: hours of the week in local time. */
#include "audit/heat.h"

#include "base/timetext.h"

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
	days_add(&a->days, local_s, state, ms);
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

void heat_add(
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

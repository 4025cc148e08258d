/* Takes the parts of a drain apart, and finds the edges of use within them. */
#include "classify/turns.h"

#define FULL_PCT 100
/* The driver rounds means to whole percents. */
#define ROUNDING_PCT 0.5
/* Use below this part of the use before has ended. */
#define ENDED_PART 0.9

static int64_t begin_us(const struct turn_parts *parts, size_t i)
{
	return i > 0 ? parts->to_us[i - 1] : parts->from_us;
}

void turns_divide(const struct turn_parts *parts, const double since_pct[PROCESS_PARTS],
	double part_pct[PROCESS_PARTS])
{
	int64_t end_us = parts->to_us[parts->n - 1];
	for (size_t i = 0; i < parts->n; i++) {
		bool more = i + 1 < parts->n && since_pct[i + 1] > 0;
		double left_us = (double)(end_us - begin_us(parts, i));
		double later_us = more ? (double)(end_us - parts->to_us[i]) : 0;
		double use = since_pct[i] * left_us - (more ? since_pct[i + 1] * later_us : 0);
		/* A difference of two means is uncertain by the rounding of both; a mean
		 * without later use is not a difference. */
		bool rounded = more && use <= ROUNDING_PCT * (left_us + later_us);
		double pct = rounded || !(use > 0)
				     ? 0
				     : use / (left_us - (double)(end_us - parts->to_us[i]));
		part_pct[i] = pct < FULL_PCT ? pct : FULL_PCT;
	}
}

/* The same as cover_of() for the last part: what follows is not known yet. Use that is lower
 * than before has ended. One that begins has an unknown level: about the geometric mean of the
 * lowest and the highest possible. */
static struct cover last_cover(const double around[COVER_BESIDE + 1], double active_pct)
{
	double before = around[COVER_BESIDE - 1], pct = around[COVER_BESIDE];
	if (before >= active_pct && pct < ENDED_PART * before)
		return (struct cover){ .part = pct / before, .used_pct = before };
	if (before < active_pct && pct >= active_pct) {
		double part = sqrt(pct / FULL_PCT);
		return (struct cover){ .from = 1 - part, .part = part, .used_pct = pct / part };
	}
	return (struct cover){ .part = 1, .used_pct = pct };
}

struct turn turns_in_part(const struct turn_parts *parts, const double *pct,
	const double before[COVER_BESIDE], size_t at, double active_pct)
{
	double around[2 * COVER_BESIDE + 1];
	if (!(pct[at] > 0))
		return TURN_NONE;
	for (size_t i = 0; i < 2 * COVER_BESIDE + 1; i++) {
		size_t k = at + i;
		around[i] = k < COVER_BESIDE		  ? before[k]
			    : k - COVER_BESIDE < parts->n ? pct[k - COVER_BESIDE]
							  : (double)NAN;
	}
	struct cover cover = at + 1 < parts->n ? cover_of(around, active_pct)
					       : last_cover(around, active_pct);
	/* Less than what counts as use still counts together with that of others. */
	if (!(cover.part > 0) || cover.part >= 1)
		return (struct turn){ -INFINITY, INFINITY, pct[at] };
	double from_ms = (double)begin_us(parts, at) / 1000;
	double length_ms = (double)(parts->to_us[at] - begin_us(parts, at)) / 1000;
	double to_ms = from_ms + (cover.from + cover.part) * length_ms;
	return (struct turn){
		.from_ms = cover.from > 0 ? from_ms + cover.from * length_ms : -INFINITY,
		.to_ms = cover.from + cover.part < 1 ? to_ms : INFINITY,
		.pct = cover.used_pct,
	};
}

struct turn turns_in_all(const struct turn_parts *parts, const double *pct,
	const double before[COVER_BESIDE], double active_pct)
{
	struct turn all = TURN_NONE;
	for (size_t i = 0; i < parts->n; i++) {
		struct turn turn = turns_in_part(parts, pct, before, i, active_pct);
		double from_ms = (double)begin_us(parts, i) / 1000;
		double to_ms = (double)parts->to_us[i] / 1000;
		if (!(turn.pct >= active_pct))
			continue;
		if (all.from_ms > 0 && isinf(all.from_ms)) /* -INFINITY is a begin */
			all.from_ms = isfinite(turn.from_ms) ? turn.from_ms
				      : i > 0		     ? from_ms
							     : -INFINITY;
		all.to_ms = isfinite(turn.to_ms) ? turn.to_ms
			    : i + 1 < parts->n	 ? to_ms
						 : INFINITY;
		all.pct = turn.pct;
	}
	return all;
}

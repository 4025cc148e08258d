/* Finds the part of a sample's period in which a card was used. */
#include "classify/cover.h"

#define FULL_PCT 100

/* Comparisons with NAN are false: an unknown sample is neither use nor the absence of it. */
static bool is_use(double pct, double active_pct)
{
	return pct >= active_pct;
}

static bool is_quiet(double pct, double active_pct)
{
	return pct < active_pct;
}

/* A sample at the edge of a stretch of use. `row` is, from the outside to the inside of the
 * stretch: the sample outside, the one asked about, and the first two samples inside. */
static struct cover at_edge(const double row[4], double active_pct, bool stretch_is_later)
{
	double outside = row[0], pct = row[1];
	/* If the stretch ends after the next sample, its level is not known. */
	double level = is_quiet(row[3], active_pct) ? FULL_PCT : row[2];
	double part = (pct - outside) / (level - outside);
	if (!(part > 0))
		return (struct cover){ .unused_pct = pct };
	if (part >= 1)
		return (struct cover){ .part = 1, .used_pct = pct, .unused_pct = outside };
	return (struct cover){ .from = stretch_is_later ? 1 - part : 0,
		.part = part,
		.used_pct = level,
		.unused_pct = outside,
		.guessed = is_quiet(row[3], active_pct) };
}

struct cover cover_of(const double around[2 * COVER_BESIDE + 1], double active_pct)
{
	double before = around[1], pct = around[2], after = around[3];
	bool use_before = is_use(before, active_pct), use_after = is_use(after, active_pct);
	bool quiet_before = is_quiet(before, active_pct),
	     quiet_after = is_quiet(after, active_pct);
	if (is_use(pct, active_pct) && quiet_before && quiet_after) {
		/* The whole stretch is within one period, at an unknown place: assumed on the
		 * side where the next sample shows a little use, else in the middle. */
		double outside = before < after ? before : after;
		double part = (pct - outside) / (FULL_PCT - outside);
		double from = before < after ? 1 - part : before > after ? 0 : (1 - part) / 2;
		return (struct cover){
			.from = from,
			.part = part,
			.used_pct = FULL_PCT,
			.unused_pct = outside,
			.guessed = true,
		};
	}
	if (quiet_before && use_after)
		return at_edge((double[]){ before, pct, after, around[4] }, active_pct, true);
	if (use_before && quiet_after)
		return at_edge((double[]){ after, pct, before, around[0] }, active_pct, false);
	/* A short pause: the end of one stretch and the begin of the next. */
	if (is_quiet(pct, active_pct) && use_before && use_after)
		return at_edge(
			(double[]){ 0, pct, fmax(before, after), NAN }, active_pct, false);
	if (is_use(pct, active_pct))
		return (struct cover){ .part = 1, .used_pct = pct, .unused_pct = NAN };
	return (struct cover){ .unused_pct = pct };
}

double cover_excess(double level_pct, double active_pct)
{
	return level_pct > 2 * active_pct ? 1 - 2 * active_pct / level_pct : 0;
}

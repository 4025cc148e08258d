/* Finds when a process used a card that several share. The driver reports the use of a process
 * as one mean since a moment; asked again for later moments of a drain, it shows how much the
 * process used in each part of the drain. Within a part, cover.h says where use begins or
 * ends. */
#pragma once

#include "classify/cover.h"
#include "model/reading.h"

/* The turn of one process: it used the card between two moments (Unix milliseconds), at one
 * level. One that never did has both at INFINITY; one that was using the card when the time
 * that is looked at began, or was when it ended, has -INFINITY or INFINITY. */
struct turn {
	double from_ms, to_ms;
	double pct;
};

#define TURN_NONE ((struct turn){ INFINITY, INFINITY, 0 })

/* The parts of a drain. */
struct turn_parts {
	int64_t from_us, to_us[PROCESS_PARTS]; /* where the first begins; where each ends */
	size_t n;
	const double (*pct)[PROCESS_PARTS]; /* the use of each holder in each part */
};

/* Finds the use in each part; since_pct[i] is the mean from the begin of part i to the end of
 * the drain. */
void turns_divide(const struct turn_parts *parts, const double since_pct[PROCESS_PARTS],
	double part_pct[PROCESS_PARTS]);

/* Finds the turn within part `at`. `pct` is the use in each part, `before` that of the two
 * parts before the first; use is at least `active_pct`. */
struct turn turns_in_part(const struct turn_parts *parts, const double *pct,
	const double before[COVER_BESIDE], size_t at, double active_pct);

/* Finds the time from the first use within the parts to the last. */
struct turn turns_in_all(const struct turn_parts *parts, const double *pct,
	const double before[COVER_BESIDE], double active_pct);

/* A sample is the mean of a card's utilisation over the period that ends at its stamp. Where
 * use begins or ends within a period, the sample is less than the level of the use: this module
 * finds how much of the period was use, and where. The same holds for all that a driver reports
 * as a mean: utilisation, the use of a process, GPM counters. */
#pragma once

#include "base/base.h"

/* Samples that are looked at on each side of one. */
enum { COVER_BESIDE = 2 };

/* Which part of a period was use. Parts are 0..1 of the period. */
struct cover {
	double from, part; /* where the use begins, and how long it is */
	double used_pct;   /* utilisation within that part ... */
	double unused_pct; /* ... and in the rest; NAN: unknown */
	bool guessed;	   /* the level of the use is not known */
};

/* Finds the part for the sample in the middle of `around`, whose neighbours are samples of the
 * periods before and after; NAN: there is none. Use is a sample of at least `active_pct`.
 *
 * A stretch of use is a row of such samples. Its first and its last one, and a smaller sample
 * outside beside it, cover (v - o) / (l - o) of their period, at the inner end: v is the
 * sample, l the level that the use has inside the stretch, o what is outside (usually 0). A
 * stretch of one or two samples has no inside: l is 100. A sample beside which nothing is known
 * is use or not as a whole. */
struct cover cover_of(const double around[2 * COVER_BESIDE + 1], double active_pct);

/* For a card of which single samples are read now and then: a sample is use if use at
 * `level_pct` covers enough of its period, so that a stretch of use seems longer than it is.
 * Returns by how much, as a part of a period. */
double cover_excess(double level_pct, double active_pct);

/* Divides a whole into parts that add up to it, by largest remainder. */
#pragma once

#include "base/base.h"

enum { SHARES_MAX = 8 };

/* Divides `units` among n parts (at most SHARES_MAX) in proportion to them. `visible`: each
 * part that is not 0 gets at least one unit if possible. If all parts are 0, all shares are 0.
 */
void shares_divide(const double *parts, size_t n, size_t units, bool visible, size_t *shares);

/* The shares of n parts, each a multiple of 0.001: printed in percent with one decimal they add
 * up to 100.0. If all parts are 0, all shares are NAN. */
void shares_round(const double *parts, size_t n, double *shares);

/* Rounds each of n parts up or down so that they add up to `whole`, which is about their sum:
 * those with the largest fractions are rounded up. Any difference beyond that goes to the
 * largest part. False: out of memory. */
bool shares_fit(const double *parts, size_t n, int64_t whole, int64_t *fitted);

/* Lengths of time, as written on the command line and as shown in output. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* "200ms 30s 5m 1h 7d 4w", fractions allowed ("1.5h"); a unit is required, except for 0. Exact
 * to a millisecond, rounded. Refuses negative, empty, infinite and more than 1000 years. */
int duration_parse(const char *text, int64_t *ms, struct err *e);
/* Parses digits with at most one point, and nothing else: strtod() would take hex, inf, nan and
 * a locale's comma. Returns the rest of the text, or NULL. */
const char *duration_number(const char *text, double *number);

/* "1:00:00", "6 d 04:30:00": for windows. */
struct brief duration_clock(int64_t ms);
/* "45 s", "12 min", "3 h 20 min", "5 d 2 h": for ages. */
struct brief duration_text(int64_t ms);
/* "200ms", "8s", "1d": exact, in the largest unit that divides it, as duration_parse() accepts
 * it. */
struct brief duration_option(int64_t ms);

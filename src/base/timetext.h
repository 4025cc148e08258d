/* Parses the durations and dates of the command line, and prints times. */
#ifndef GUA_BASE_TIMETEXT_H
#define GUA_BASE_TIMETEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"

/* "200ms 30s 5m 1h 7d 4w", fractions allowed ("1.5h"); a unit is required, except for 0. Exact
 * to a millisecond, rounded. Refuses negative, empty, infinite and more than 1000 years. */
int duration_parse(const char *text, int64_t *ms, struct err *e);

/* Parses a moment for --since and --until into unix milliseconds: a duration (this long before
 * now), "now", "today", "yesterday", "monday" .. "sunday" (the midnight at the start of the
 * last such day, today included), "2026-11-01", "2026-11-01T08:30", "2026-11-01 08:30:15",
 * "2026-11-01T08:30:15Z", "@UNIXSECONDS". Local time, unless it ends in Z or `utc` is set. */
int moment_parse(const char *text, int64_t now_ms, bool utc, int64_t *ms, struct err *e);

/* Year, month, day and so on of a moment, in UTC or local time. */
struct tm moment_fields(int64_t ms, bool utc);
/* "2026-11-01T08:30:15Z" (or with ".123" where the milliseconds are not 0). */
void moment_iso(char *dst, size_t cap, int64_t ms);
/* "Sun 2026-11-01 08:30" in local time, or followed by " UTC" when `utc`. */
void moment_text(char *dst, size_t cap, int64_t ms, bool utc);
/* "1:00:00", "6 d 04:30:00": for windows. */
void duration_clock(char *dst, size_t cap, int64_t ms);
/* "45 s", "12 min", "3 h 20 min", "5 d 2 h": for ages. */
void duration_text(char *dst, size_t cap, int64_t ms);
/* "200ms", "8s", "1d": exact, in the largest unit that divides it, as duration_parse() accepts
 * it. */
void duration_option(char *dst, size_t cap, int64_t ms);

#endif

/* Moments: days and times, as written on the command line and as shown in output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/duration.h"
#include "base/err.h"

/* Parses a moment into unix milliseconds: a duration (this long before now), "now",
 * "@UNIXSECONDS"; a day ("2026-11-01", "today", "yesterday", "monday" .. "sunday": the last
 * such day, today included), which is its first moment; a time ("08:30", "08:30:15"), which is
 * the last time that the clock showed it; or both ("2026-11-01T08:30", "monday 08:30"). Local
 * time, unless it ends in Z or `utc` is set. */
int moment_parse(const char *text, int64_t now_ms, bool utc, int64_t *ms, struct err *e);
/* The accepted forms with a day or a time, for the end of an error message. */
#define MOMENT_FORMS                                                                           \
	"a date (2026-11-01), a time (08:30), both ('2026-11-01 08:30') or a weekday (monday)"

/* Returns the first moment of a day; year, month and day are used (day 0 or 32 is in the month
 * before or after). It is not always 00:00 in local time: some zones skip that hour when summer
 * time begins. */
int64_t moment_day_start(struct tm day, bool utc);
/* Year, month, day and so on of a moment, in UTC or local time. */
struct tm moment_fields(int64_t ms, bool utc);
/* As strftime() writes it. */
struct brief moment_format(const char *format, int64_t ms, bool utc)
	__attribute__((format(strftime, 1, 0)));
/* "2026-11-01T08:30:15Z" (or with ".123" where the milliseconds are not 0). */
struct brief moment_iso(int64_t ms);
/* "sunday", "monday" .. "saturday", as users write them. */
extern const char *const moment_days[7];
/* "Sun", "Mon" .. "Sat": strftime's %a depends on the locale, and reports are compared byte by
 * byte. */
extern const char *const moment_weekdays[7];
/* "Sun 2026-11-01 08:30" in local time, or followed by " UTC" when `utc`. */
struct brief moment_text(int64_t ms, bool utc);

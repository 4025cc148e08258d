/* Periods of the calendar that people name ("last week", "2026-10"), and the windows of time
 * that --since, --until and --last ask for. */
#pragma once

#include "base/base.h"

enum period_unit { PERIOD_NONE, PERIOD_DAY, PERIOD_WEEK, PERIOD_MONTH, PERIOD_YEAR };
/* "day", "week" and so on. */
extern const char *const period_unit_names[];

/* A whole day, week (from Monday), month or year: from <= t < to. In local time a day may have
 * 23 or 25 hours. */
struct period {
	enum period_unit unit;
	int64_t from_ms, to_ms;
};

/* The names, for completion. */
#define PERIOD_NAMES "today|yesterday|thisweek|lastweek|thismonth|lastmonth|thisyear|lastyear"

/* Returns the period of that unit `shift` periods after the one that contains the moment. */
struct period period_at(enum period_unit unit, int64_t ms, int shift, bool utc);
/* Reads one of PERIOD_NAMES (also "last-week" and "last week"), "2026-10" or "2026"; false: it
 * is none. */
bool period_parse(struct period *p, const char *text, int64_t now_ms, bool utc);

/* A window of time, as options describe it; NULL: not given. */
struct window_words {
	const char *since, *until; /* moments or periods */
	const char *last;	   /* a length */
};

struct window {
	int64_t since_ms, until_ms; /* since <= t < until */
	struct period period; /* the period that --since names, if there is no --until; else
				 unit NONE */
};

/* Reads the window; what is not given keeps its value in `*w`. If --since names a period and
 * there is no --until, the window is that period, up to now. If --until names a period, the
 * window ends with it. --last counts back from the end. The error names the option. */
int period_parse_window(struct window *w, const struct window_words *words, int64_t now_ms,
	bool utc, struct err *e);
/* Returns the window before this one. If this one is a period: the period before, as far as
 * this one has passed. Otherwise: the same length of time just before it. */
struct window period_window_before(const struct window *w, bool utc);
/* Replaces `*w` by the window that --compare names: "" is the one before; a period is all of
 * it, up to now; a moment is the start of a window of the same length. The error names the
 * option. */
int period_window_other(
	struct window *w, const char *text, int64_t now_ms, bool utc, struct err *e);

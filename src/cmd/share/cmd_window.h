/* The options that choose a window of time: the same in all commands that have one. */
#ifndef GUA_CMD_SHARE_CMD_WINDOW_H
#define GUA_CMD_SHARE_CMD_WINDOW_H

#include "base/options.h"
#include "base/period.h"

/* Rows for the struct window_words that is `member` of the options. The texts say what holds
 * without them. */
#define WINDOW_OPTIONS(type, member, default_since, default_until)                             \
	{ OPTION_TEXT, 0, "since", "TIME",                                                     \
		"start of the window, or a whole period: 7d, lastweek, 2026-10, 2026-11-01, "  \
		"monday, 08:30 (default " default_since ")",                                   \
		.choices = PERIOD_NAMES, .offset = offsetof(type, member.since) },             \
		{ OPTION_TEXT, 0, "until", "TIME",                                             \
			"end of the window (default " default_until                            \
			", or the end of the period)",                                         \
			.choices = PERIOD_NAMES, .offset = offsetof(type, member.until) },     \
	{                                                                                      \
		OPTION_TEXT, 0, "last", "LENGTH", "a window of this length: 24h, 7d, 4w",      \
			.offset = offsetof(type, member.last)                                  \
	}
#define WINDOW_DETAILS                                                                         \
	"Times: 30s 5m 1h 7d 4w ago; today, yesterday, thisweek, lastweek, thismonth,\n"       \
	"lastmonth, thisyear, lastyear, 2026-10, 2026 (whole periods); 2026-11-01,\n"          \
	"monday, 08:30, '2026-11-01 08:30', 'yesterday 18:00' (moments)."

#define NOW_OPTION(type, member)                                                               \
	{                                                                                      \
		OPTION_TEXT, 0, "now", "TIME", "a fixed clock, for tests",                     \
			.offset = offsetof(type, member), .hidden = true                       \
	}
/* The time now, or what --now says, in UTC. */
int cmd_now(const char *option, int64_t *now_ms, struct err *e);

#endif

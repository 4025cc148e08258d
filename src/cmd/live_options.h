/* What all commands that show the cards now are opened with: the source, the store, the clock.
 */
#ifndef GUA_CMD_LIVE_OPTIONS_H
#define GUA_CMD_LIVE_OPTIONS_H

#include <limits.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/options.h"
#include "render/text.h"
#include "view/live.h"

/* What the option rows write; zero-initialise. */
struct live_values {
	const char *db, *source, *scenario, *nvml, *clock, *root;
};

/* The rows, for a table whose values have a struct live_values `member`. */
#define LIVE_ROWS(type, member)                                                                \
	{ OPTION_TEXT, 0, "db", "PATH", "store to ask for the past (default: the recorder's)", \
		.offset = offsetof(type, member.db) },                                         \
		{ OPTION_CHOICE, 0, "source", "NAME", "nvml (default), or sim: invented data", \
			.choices = "nvml|sim", .offset = offsetof(type, member.source) },      \
		{ OPTION_TEXT, 0, "scenario", "FILE", "what the simulated source plays",       \
			.offset = offsetof(type, member.scenario) },                           \
		{ OPTION_TEXT, 0, "nvml", "PATH",                                              \
			"the driver's library (default libnvidia-ml.so.1)",                    \
			.offset = offsetof(type, member.nvml) },                               \
		{ OPTION_TEXT, 0, "clock", "HOW", "real, virtual, or a clock file",            \
			.offset = offsetof(type, member.clock), .hidden = true },              \
	{                                                                                      \
		OPTION_TEXT, 0, "root", "DIR", "look for proc and sys below DIR",              \
			.offset = offsetof(type, member.root), .hidden = true                  \
	}

/* A live view with what it borrows; must not move while it is open. */
struct live_session {
	struct clock clock;
	char db[PATH_MAX];
	struct live *live;
};

/* Opens the clock, the source and, when there is one, the store: --db, else one's own, else the
 * system's where that can be read. `wanted`: as in struct live_options. On failure nothing is
 * left open. */
int live_session_open(struct live_session *s, const struct live_values *v,
	const unsigned char *wanted, struct err *e);
void live_session_close(struct live_session *s);

/* How text is shown on standard output: its width (80 when it is no terminal), characters and
 * colour. */
struct text_style live_text_style(void);

#endif

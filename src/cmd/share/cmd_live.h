/* What the live commands share: the source of the readings, the store for the past, the clock,
 * and the wait for the next look. */
#pragma once

#include "cmd/share/choose_db.h"
#include "cmd/cmd.h"
#include "present/live.h"
#include "driver/source.h"

/* Rows of the options that say where readings come from, for the struct source_options that is
 * `member` of the values: --source with its help and the function that has its words, and more.
 */
#define SOURCE_ROWS(type, member, what, names)                                                 \
	{ OPTION_TEXT, 0, "source", "NAME,...", what, .offset = offsetof(type, member.name),   \
		.words = (names), .initial = SOURCE_AUTO },                                    \
		{ OPTION_TEXT, 0, "scenario", "FILE", SCENARIO_HELP,                           \
			.offset = offsetof(type, member.scenario) },                           \
		{ OPTION_TEXT, 0, "nvml", "PATH",                                              \
			"the driver's library (default: GUA_NVML, else libnvidia-ml.so.1)",    \
			.offset = offsetof(type, member.nvml_path) },                          \
	{                                                                                      \
		OPTION_TEXT, 0, "root", "DIR", "look for proc, sys, dev and etc below DIR",    \
			.offset = offsetof(type, member.root), .hidden = true, .initial = ""   \
	}
#define CLOCK_ROW(type, member)                                                                \
	{                                                                                      \
		OPTION_TEXT, 0, "clock", "HOW", "real, virtual, or a clock file",              \
			.offset = offsetof(type, member), .hidden = true, .initial = "real"    \
	}
#define DRIVER_TIMEOUT_ROW(type, member)                                                       \
	{                                                                                      \
		OPTION_DURATION, 0, "driver-timeout", "D",                                     \
			"how long to wait for an answer of the driver",                        \
			.offset = offsetof(type, member), .min = 100, .max = 3600e3,           \
			.initial = "10s"                                                       \
	}

/* The values of the options. */
struct live_values {
	/* What options and the command say of it; cmd_live_open() fills in the rest. */
	struct live_options o;
	const char *clock;
	bool no_store;
	bool only_named; /* no option: a store is read only if --db names it */
};

/* The option rows, for a table of values with a struct live_values `member`. */
#define LIVE_ROWS(type, member)                                                                \
	{ OPTION_TEXT, 0, "db", "PATH",                                                        \
		"store to read the past from (default: see FILES in man gua)",                 \
		.offset = offsetof(type, member.o.db) },                                       \
		{ OPTION_FLAG, 0, "no-store", .help = "do not read a store",                   \
			.offset = offsetof(type, member.no_store) },                           \
		SOURCE_ROWS(type, member.o.source, SOURCE_HELP, source_words),                 \
		DRIVER_TIMEOUT_ROW(type, member.o.deadline_ms), CLOCK_ROW(type, member.clock)

struct live_session {
	struct clock clock;
	struct chosen_db chosen; /* the store, if --db was not given */
	struct live *live;
	int stop_fd;	 /* readable when the user wants to end; or -1 */
	int64_t next_us; /* boot time of the next look */
	bool lost;	 /* the driver was gone at the last look, or did not answer */
	bool told;	 /* a lost or late driver was reported */
	bool told_late;	 /* it was reported that the driver always answers too late */
	bool named;	 /* the user named the store, with --db or GUA_DB */
};

/* Opens the view; `wanted` are live_options.metrics. The store is --db, else
 * choose_db_to_read()'s; none for a simulated source without --db or GUA_DB. Do not move the
 * session in memory. */
int cmd_live_open(struct live_session *s, const struct live_values *v,
	const unsigned char *wanted, struct err *e);
/* Says on standard error that a source is a capture, if it is one. */
void cmd_live_note_captured(const char *source);
void cmd_live_close(struct live_session *s);
/* Reads everything again: live_refresh(). */
int cmd_live_look(struct live_session *s, struct err *e);
/* The same, but fails also if the driver has never listed a card. */
int cmd_live_refresh(struct live_session *s, struct err *e);
/* The same check alone: fails if the driver has never listed a card. */
int cmd_live_check(const struct live_session *s, struct err *e);

/* Reports once, on standard error, why the store that the user named cannot be used. */
void cmd_live_note(struct live_session *s, const struct command *self);

/* From now on Ctrl-C and SIGTERM end cmd_live_wait() instead of the program. */
void cmd_live_catch(struct live_session *s);
/* Waits for the next look, `every_ms` after the previous one. If a look took longer, the missed
 * looks are skipped. False: the user wants to end. */
bool cmd_live_wait(struct live_session *s, int64_t every_ms);
/* Waits for the next look after one with the result *rc; returns whether to continue. A lost
 * driver does not end the loop: its loss and its return are reported once each. If the driver
 * is always late, the age of the readings is reported. If the user wants to end, *rc is 0. */
bool cmd_live_again(struct live_session *s, const struct command *self, int *rc,
	const struct err *e, int64_t every_ms);

/* Lines that a command prints look by look, to a file or to standard output. */
struct live_lines {
	const char *path; /* the file; NULL: standard output */
	int64_t every_ms; /* time between two looks; 0: only one look */
	int64_t count;	  /* how many looks; 0: until the user ends the program */
	bool note;	  /* say why the store that the user named cannot be used */
	/* Appends the lines of a look. The cards have been read, and there is one. */
	int (*look)(struct live_session *s, void *context, struct str *out, struct err *e);
	void *context;
};
/* Opens the view, and prints the lines of each look at once. */
int cmd_live_print(const struct command *self, const struct live_values *v,
	const unsigned char *wanted, const struct live_lines *lines, struct err *e);

/* Reads the values of nvidia-smi's --loop and --loop-ms, each NULL if it was not given, into
 * the interval; 0: print once. */
int cmd_live_loop(const char *loop, const char *loop_ms, int64_t *every_ms, struct err *e);
/* Reads "1" or "0.5" as seconds, or a duration. At least 100 ms. */
int cmd_live_seconds(const char *text, int64_t *ms, struct err *e);

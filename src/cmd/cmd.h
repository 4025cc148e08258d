/* A command is one constant struct in its own file; main.c lists them. */
#pragma once

#include "base/options.h"
#include "base/period.h"

struct call;

struct command {
	const char *name;
	const char *called;  /* the name that the user typed, for messages; NULL: "gua NAME" */
	const char *summary; /* one line, for `gua help` */
	const char *usage;   /* what follows "gua NAME" in the usage line */
	const char *details; /* paragraphs for --help after the options; may be NULL */
	const struct option_row *options; /* ends with a row without a name */
	size_t values_size;		  /* of the struct that the options are written to */
	const void *initial;  /* its values before the options are read; NULL: zeroes */
	const char *operands; /* for completion: "FILE", or words "a|b|c"; "": it has others;
			       * NULL: it has none */
	bool stop_at_operand; /* options end at the first operand, which starts another command
			       */
	bool handed_over;     /* gua runs the program gua-NAME instead, if that is installed */
	/* The values begin with a struct configure_options, and cmd_run() reads gua.conf: an
	 * error in it is one of the command. */
	bool reads_configuration;
	/* Prints an error and returns the exit status, for commands for which cmd_fail() is not
	 * right; may be NULL. */
	int (*fail)(const struct command *self, const struct err *e);
	/* Runs the command with what cmd_run() has read. Returns the exit status, or the
	 * negative code of an error, which cmd_run() prints. */
	int (*run)(const struct call *call, struct err *e);
	/* Instead of that: what is done before the words are read. It returns the exit status,
	 * which is usually that of cmd_call(). */
	int (*start)(const struct command *self, int argc, char **argv);
	const void *parts; /* what a program beside gua adds to a command; else NULL */
};

/* A command and what its words say. */
struct call {
	const struct command *self;
	char **argv;	 /* all words, the command's name first */
	char **operands; /* the words that are no options; ends with NULL */
	void *values;	 /* of the options */
	struct configuration *conf;
};

/* Runs a command; argv[0] is its name. Returns the exit status. */
int cmd_run(const struct command *self, int argc, char **argv);
/* The same without `start`: reads the words, runs the command and prints its error. */
int cmd_call(const struct command *self, int argc, char **argv);

/* "gua NAME", or what the user typed instead. */
struct brief cmd_name(const struct command *self);
/* The exit status, as in a shell, if a command could not be started: 127 or 126. */
int cmd_not_started(char *const *argv, int reason, struct err *e);
/* Prints "gua NAME: TEXT" to stderr, for ERR_USAGE with the usage line; returns the status. */
int cmd_fail(const struct command *self, const struct err *e);

/* Writes all of the text at once, and clears it. */
int cmd_write(FILE *to, struct str *text, struct err *e);
/* Prints all of `out` to stdout and finishes it; returns the exit status (1: it failed). */
int cmd_print(const struct command *self, struct str *out);
/* The same into a file, which is replaced whole or not at all, unless `path` is NULL. */
int cmd_print_to(const char *path, const struct command *self, struct str *out, struct err *e);

/* The value of an environment variable; NULL: it is not set, or empty. */
const char *cmd_variable(const char *name);
/* The driver's library that the user named: the option's value, else GUA_NVML; NULL: none. */
const char *cmd_nvml_path(const char *option);
/* Default of --driver-timeout. */
#define DRIVER_TIMEOUT_MS 10000

/* Every command, in the groups and the order of `gua help`; each is `cmd_NAME`, in cmd_NAME.c
 * (start is in cmd_daemon.c, uninstall in cmd_install.c). */
#define COMMANDS_RECORD(X)                                                                     \
	X(start) X(status) X(stop) X(daemon) X(doctor) X(lease) X(import) X(merge)
#define COMMANDS_REPORT(X) X(report) X(fleet) X(events) X(export) X(metrics) X(serve) X(demo)
#define COMMANDS_LIVE(X) X(top) X(stat) X(who) X(pick) X(query) X(dmon) X(smi)
#define COMMANDS_TRACK(X) X(track) X(subtrack)
#define COMMANDS_POLICY(X) X(enforce) X(keep)
#define COMMANDS_MORE(X) X(config) X(install) X(uninstall) X(completion)

#define COMMANDS(X)                                                                            \
	COMMANDS_RECORD(X)                                                                     \
	COMMANDS_REPORT(X)                                                                     \
	COMMANDS_LIVE(X) COMMANDS_TRACK(X) COMMANDS_POLICY(X) COMMANDS_MORE(X)

#define DECLARE_COMMAND(name) extern const struct command cmd_##name;
COMMANDS(DECLARE_COMMAND)

/* gua under other names: `gpu-usage-audit daemon`, which stays in the foreground as the tool of
 * that name does; nvidia-smi (`called` is that or "gua-nvidia-smi"); gpu-tracker. The functions
 * return the exit status. */
extern const struct command cmd_audit_daemon;
int cmd_smi_main(const char *called, int argc, char **argv);
int gpu_tracker_main(int argc, char **argv);

/* The options that choose a window of time: the same in all commands that have one. */

/* Rows for the struct window_words that is `member` of the options. The texts say what applies
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

/* The current time, or the time that --now gives, in UTC. */
int cmd_now(const char *option, int64_t *now_ms, struct err *e);

/* gua: a GPU usage audit. This file is the map, the list of commands and nothing else.
 *
 * Folders under src/ are the stages of a pipeline, left to right; a file includes only its own
 * folder and those before it (tools/lint-layers checks):
 *
 *   base/      knows nothing of GPUs: err (errors with a sentence), str (strings, escaping),
 *              log, fault, clock (real or virtual time), timetext (durations, dates), size,
 *              file, options, words and csv (splitting)
 *   model/     the nouns handed from stage to stage: state (and the rules), reading and
 *              process_reading (what a source says), process (a life and its owner), tick
 *              (what the store is given), table (what reports and exports print), metric
 *              (fields of live views), tracking (columns of a tracking file)
 *   source/    where GPU numbers come from: source.h (what every source can do),
 *              source_options, facility (how a source does each job, for doctor);
 *              nvml* (the real driver, by its ABI): lib, abi, scan, cards, job (which call
 *              does what), then one file for each kind of reading: util and ring (samples),
 *              use (of processes), process, memory, energy, account (ended processes), gpm
 *              (MIG instances), events, metric;
 *              sim* (a simulated source) over scenario* (the engine that the tests' fake
 *              driver shares: parse, cards, processes, verbs and faults read the language,
 *              play, account and pids play it, ask answers)
 *   sample/    asking the driver and naming the processes: round (one drain, glance and look),
 *              worker (the thread that may hang), spacing (what calls cost), lives, owner
 *   classify/  pure functions: classify (sample -> state), account (state -> sums, with their
 *              uncertainty), energy (joules by state), ledger (sums that are not stored yet)
 *   store/     SQLite: schema.sql, views.sql, upgrade and old.sql (older versions), writing,
 *              compaction, the recorder's lock, import (py*: the Python tool's files),
 *              trackfile
 *   query/     a question becomes numbers: audit*, now, context, status, export, subtrack*
 *   render/    numbers become text, JSON, CSV
 *   record/    the recorder: recorder (its loop), schedule (when to do what), watch and
 *              watch_round (what a round says about each card), holders (process lists become
 *              stretches of time), host, notify (the service manager)
 *   track/     a command and its process tree: what it used
 *   view/      the cards now: live (what the driver says, joined with the store's past),
 *              filter, format, pick (which are free), and a file or two per view: stat, query,
 *              dmon; top* is the interactive one; top_screen and top_pen alone know curses
 *   cmd/       one file per command; top_main is gua-top, a program of its own
 *   lib/       libgua, the library: base to track behind include/gua.h
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/gpu_tracker.h"
#include "cmd/hand_over.h"
#include "version.h"

#define COMMAND_POINTER(name) &cmd_##name,
static const struct command *const commands[] = { COMMANDS(COMMAND_POINTER) NULL };

/* A build may be without the programs that need more libraries, or they are packages of their
 * own. */
static bool is_missing(const struct command *command)
{
	return command->handed_over && !hand_over_finds(command->name);
}

static void print_commands(FILE *to)
{
	fputs("usage: gua COMMAND [OPTIONS]\n\nGPU usage audit: what every card did and who "
	      "held it.\n\n",
		to);
	for (size_t i = 0; commands[i]; i++)
		fprintf(to, "  %-10s %s%s\n", commands[i]->name, commands[i]->summary,
			is_missing(commands[i]) ? " (not installed)" : "");
	fputs("  version    print the version\n\n"
	      "gua COMMAND --help explains one; man gua has the definitions.\n",
		to);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static int no_command(const char *name)
{
	char safe[128];
	text_escape(safe, sizeof(safe), name, strlen(name));
	if (*name)
		fprintf(stderr, "gua: there is no command '%s'\n", safe);
	print_commands(stderr);
	return 2;
}

static int help_for(const char *name)
{
	const struct command *command = find_command(name);
	char first[] = "help", second[] = "--help";
	char *argv[] = { first, second, NULL };
	return command ? command->run(command, 2, argv) : no_command(name);
}

static bool is_one_of(const char *name, const char *a, const char *b, const char *c)
{
	return strcmp(name, a) == 0 || strcmp(name, b) == 0 || strcmp(name, c) == 0;
}

/* The exit status after printing to stdout. */
static int written(void)
{
	if (fflush(stdout) == 0)
		return 0;
	fprintf(stderr, "gua: cannot write the output: %s\n", strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	const char *program = argc > 0 ? argv[0] : "gua";
	const char *slash = strrchr(program, '/');
	file_hold_standard();
	if (strcmp(slash ? slash + 1 : program, "gpu-tracker") == 0)
		return gpu_tracker_main(argc, argv);
	const char *name = argc > 1 ? argv[1] : "";
	if (is_one_of(name, "help", "--help", "-h")) {
		if (argc > 2)
			return help_for(argv[2]);
		print_commands(stdout);
		return written();
	}
	if (is_one_of(name, "version", "--version", "-V")) {
		puts("gua " GUA_VERSION);
		return written();
	}
	const struct command *command = find_command(name);
	if (!command)
		hand_over(name, argv + 1);
	return command ? command->run(command, argc - 1, argv + 1) : no_command(name);
}

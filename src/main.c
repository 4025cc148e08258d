/* gua: a GPU usage audit. This file is the map, the list of commands and nothing else.
 *
 * Folders under src/ are the stages of a pipeline, top to bottom; a file includes only its own
 * folder and those above it, which tools/lint-layers checks. README in each folder names its
 * files: tools/map writes it from the first sentence of each file.
 *
 *   base/           knows nothing of GPUs: errors, strings, arrays, files, clocks, options
 *   model/          the nouns handed from stage to stage: reading, tick, audit, report, table
 *   proc/           the one reader of /proc and cgroups: processes, lives, owners, the host
 *   config/         gua.conf: files become values
 *   lease/          what schedulers have given to whom: files become leases
 *   driver/         where GPU numbers come from: the interface, the kinds, several as one
 *   driver/nvml/    the real driver, by its ABI
 *   driver/capture/ answers of the real driver in a file: written, read, played
 *   driver/sim/     a simulated driver; the fake library of tests plays the same scenarios
 *   driver/host/    the process that asks a driver that may block; rounds
 *   classify/       pure functions: sample to state, energy, spells, sums
 *   track/          a command and its process tree
 *   store/          SQLite: schema, writing, compaction, merging
 *   store/policy/   policy.db: how far sessions have gone, notices, keeps, arms
 *   import/         other tools' files
 *   audit/          fills an audit from stores; the idle time of sessions, from the same rows
 *   present/        the cards now: from the store alone, or from the driver joined with it
 *   report/         an audit becomes sections: facts, sentences, tables, money, comparison
 *   policy/         rules over sessions; how people are told, and how a session is ended
 *   render/         a report or table becomes text, HTML, JSON, CSV, SVG
 *   export/         metrics for Prometheus, their past, and rows of a store
 *   subtrack/       blocks of code joined with the samples of a tracking file: what each used
 *   record/         the recorder: rounds become accounts, accounts become ticks
 *   fleet/          hosts that an engine scrapes, or that ssh reaches
 *   pick/           which cards are free, and handing them out
 *   view/           one-shot and scrolling views: stat, query, dmon, who, smi
 *   top/            the interactive view
 *   serve/          the web server
 *   cmd/            one file per command: options in, exit status out
 *   cmd/share/      what commands share
 *   cmd/programs/   the programs beside gua: top, serve, fleet, enforce, end, post, lease
 *   lib/            libgua, the library: base to track behind include/gua.h
 */
#include "base/nearest.h"
#include "cmd/cmd.h"
#include "cmd/share/hand_over.h"
#include "version.h"

/* The commands, in the groups in which `gua` lists them. */
#define COMMAND_POINTER(name) &cmd_##name,
static const struct group {
	const char *title;
	const struct command *commands[16]; /* ends with NULL */
} groups[] = {
	{ "Record", { COMMANDS_RECORD(COMMAND_POINTER) } },
	{ "Report", { COMMANDS_REPORT(COMMAND_POINTER) } },
	{ "Live", { COMMANDS_LIVE(COMMAND_POINTER) } },
	{ "Track", { COMMANDS_TRACK(COMMAND_POINTER) } },
	{ "Policy", { COMMANDS_POLICY(COMMAND_POINTER) } },
	{ "More", { COMMANDS_MORE(COMMAND_POINTER) } },
};
enum { N_GROUPS = sizeof(groups) / sizeof(groups[0]) };

/* A build may be without the programs that need more libraries, or they are other packages. */
static bool is_missing(const struct command *command)
{
	char path[PATH_MAX];
	return command->handed_over && !hand_over_path(command->name, path);
}

static void print_commands(FILE *to)
{
	fputs("usage: gua COMMAND [OPTIONS]\n\nGPU usage audit: what every card did and who "
	      "held it.\n",
		to);
	for (size_t g = 0; g < N_GROUPS; g++) {
		fprintf(to, "\n%s\n", groups[g].title);
		for (const struct command *const *c = groups[g].commands; *c; c++)
			fprintf(to, "  %-10s %s%s\n", (*c)->name, (*c)->summary,
				is_missing(*c) ? " (not installed)" : "");
	}
	fputs("  version    print the version\n\n"
	      "gua COMMAND --help explains one; man gua has the definitions.\n",
		to);
}

static const struct command *find_command(const char *name)
{
	for (size_t g = 0; g < N_GROUPS; g++)
		for (const struct command *const *c = groups[g].commands; *c; c++)
			if (strcmp((*c)->name, name) == 0)
				return *c;
	return NULL;
}

/* Of two names that are equally like what the user wrote: one that begins with it ("statu" is
 * status), then one with which it begins ("stats" is stat). */
static int preference(const char *own, const char *written)
{
	return strncmp(own, written, strlen(written)) == 0 ? 2
	       : strncmp(written, own, strlen(own)) == 0   ? 1
							   : 0;
}

/* The command whose name is most like what the user wrote; NULL: none is. */
static const struct command *nearest_command(const char *name)
{
	const struct command *best = NULL;
	int best_rank = 0;
	size_t least = nearest_to(name, strlen(name)).distance;
	for (size_t g = 0; g < N_GROUPS; g++)
		for (const struct command *const *c = groups[g].commands; *c; c++) {
			const char *own = (*c)->name;
			size_t d = nearest_distance(own, strlen(own), name, strlen(name));
			int rank = preference(own, name);
			if ((d < least || (d == least && rank > best_rank)) &&
				d < strlen(own)) {
				least = d;
				best_rank = rank;
				best = *c;
			}
		}
	return best;
}

static int no_command(const char *name)
{
	char safe[128];
	str_escape(safe, sizeof(safe), name, strlen(name));
	if (!*name) {
		print_commands(stderr);
		return 2;
	}
	const struct command *near = nearest_command(name);
	fprintf(stderr, "gua: there is no command '%s'; %s%s%s\n", safe,
		near ? "did you mean 'gua " : "'gua help' lists the commands",
		near ? near->name : "", near ? "'?" : "");
	return 2;
}

/* The command of this name for a user who has called the program `called`. */
static const struct command *find_called(const char *called, const char *name)
{
	if (strcmp(called, "gpu-usage-audit") == 0 && strcmp(name, "daemon") == 0)
		return &cmd_audit_daemon;
	return find_command(name);
}

static int help_for(const char *called, const char *name)
{
	const struct command *command = find_called(called, name);
	char first[] = "help", second[] = "--help";
	char *argv[] = { first, second, NULL };
	return command ? cmd_run(command, 2, argv) : no_command(name);
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
	const char *called = slash ? slash + 1 : program;
	if (strcmp(called, "gpu-tracker") == 0)
		return gpu_tracker_main(argc, argv);
	if (strcmp(called, "nvidia-smi") == 0 || strcmp(called, "gua-nvidia-smi") == 0)
		return cmd_smi_main(called, argc, argv);
	const char *name = argc > 1 ? argv[1] : "";
	if (is_one_of(name, "help", "--help", "-h")) {
		if (argc > 2)
			return help_for(called, argv[2]);
		print_commands(stdout);
		return written();
	}
	if (is_one_of(name, "version", "--version", "-V")) {
		puts("gua " GUA_VERSION);
		return written();
	}
	const struct command *command = find_called(called, name);
	if (!command)
		hand_over(name, argv + 1, NULL);
	return command ? cmd_run(command, argc - 1, argv + 1) : no_command(name);
}

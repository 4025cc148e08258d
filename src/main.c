/* gua: a GPU usage audit. This file is the map, the list of commands and nothing else.
 *
 * Folders under src/ are the stages of a pipeline, top to bottom; a file includes only its own
 * folder and those above it. tools/lint-layers checks that, and that this map names every file;
 * a name with a star stands for all files that begin so.
 *
 *   base/      knows nothing of GPUs: err (errors with a sentence), str (strings, escaping),
 *              array (arrays that grow), arena (memory freed whole), log, fault (a fault that
 *              lasts), clock (real or virtual time), timetext (durations, dates), period (named
 *              periods, windows), size, file, helper (a process for what may block), child
 *              (another program, with a deadline), scratch (a temporary directory), hmac
 *              (signatures), options,
 *              words and csv (splitting), nearest (names like what a user wrote), shares (parts
 *              that add up to a whole), ini (sections, keys and values), pattern
 *              (names with * and ?)
 *   proc/      the one reader of /proc and cgroups: parse (bytes to values), proc (the files of
 *              a process), system (those of the host), identity (who a process is), command
 *              (what a command line shows), secret (what it must not show), cgroup, jupyter
 *              (kernels), origin (where a process comes from), ancestry (its parents),
 *              environment (the few variables that are looked for), user (names of uids),
 *              locks (who has locked a file), text (parts of texts, and how long they are)
 *   model/     the nouns handed from stage to stage: state (and the rules), reading and
 *              process_reading (what a source says), card_name (what users call a card),
 *              card_now (a card's readings at a tick), scrape (what an exporter shows),
 *              process (a life and its owner), session (the unit of policy), policy (its
 *              words), spell (idle for long), tick (what the store is
 *              given), audit* (what the cards did and who held them), identity (what time is
 *              attributed to), table
 *              (rows, and columns that get them from a struct), report* (facts, sentences and
 *              tables: what formats print), sentence, restriction (to some users and cards),
 *              metric (fields of live views), tracking (columns of a tracking file), release
 *              (how a process is ended), xid (what the driver's numbers mean), finding (what an
 *              examination found)
 *   config/    gua.conf: schema (what tables of keys look like), settings* and apply (files
 *              become values), config, notices, engine, web, calendar and config_policy (gua's
 *              own keys), parse and parse_policy (values of special kinds)
 *   source/    where GPU numbers come from: source (the interface), kind (their names), set
 *              (several as one), source_options, source_host (for kinds
 *              that may block), facility (how a source does its jobs),
 *              diagnosis (how a source examines itself)
 *              nvml/: nvml* (the real driver, by its ABI)
 *              sim/: sim* (a simulated driver) over scenario* (the engine, which the tests'
 *              fake driver library shares)
 *   sample/    asks a source: round (drain, glance and look in one go), worker (a thread with
 *              a deadline), apart* (a source in a process of its own: apart and apart_site
 *              start it and give it up, apart_source hands it each call and apart_round a
 *              whole round, apart_serve and apart_patrol make them there, apart_wire is what
 *              crosses, apart_left what was left behind), pace (when to glance),
 *              spacing (how often a cost allows), lives (processes by pid and start time),
 *              owner (whose a process is), reader* (a process that reads what may block),
 *              wary (what blocked), use (how much a process used a card),
 *              clock_watch (clock steps and suspends), ring (how long samples hold)
 *   classify/  pure functions: classify (sample -> state), edge (a moment between two),
 *              account (states -> sums), energy (joules by state), ledger (the sums),
 *              spell (states -> idle for long), context (what a bare context is)
 *   track/     a command and its process tree: tracker*, tree, member, memory, files (how
 *              files that may block are read), gpu*, visible (the cards that CUDA shows),
 *              host, sums, result
 *   store/     SQLite: store*, open, upgrade (older schemas), write (a tick), compact, sweep
 *              (unused processes), crowd (many short ones), spells, readings (the present),
 *              sums, sqlite, heap (its memory), foreign
 *              (files of others, with limits), lock (one recorder), statusfile (what it says
 *              about itself), blocker (who keeps it from writing), denied (why it cannot be
 *              read), recorded, identify (what a file is), extract (a part of one),
 *              merge* (one of many), trackfile, policy_* (the file policy.db)
 *   import/    other tools' files: import, py* (the Python gpu-usage-audit)
 *   query/     a question becomes an audit, a report, a table. The audit: audit (filling one),
 *              gather* (from stores), files (many of them, in passes), crew (several threads),
 *              restriction and wanted (to some users and cards), cards,
 *              usage, holders, users, breakdown (by any kind of identity), hosts, heat, days,
 *              columns (of a time line),
 *              cost (prices, energy), idmap, names, window, event_rows and events (what
 *              happened), spells and spell_sql, orphans. Its report: report (the facts),
 *              report_sentences, report_notes (about holders), report_policy (what gua
 *              enforce did), report_restricted, report_cards,
 *              report_holders, report_processes, report_spells, report_orphans and
 *              report_events (the columns of its tables), report_rows (sorted), report_trend,
 *              report_timeline and report_ticks, report_fleet (its foot),
 *              report_compare, report_verdict, report_person, present (what a user holds
 *              now), report_bill* (what it costs) and bill (cents that add up), order,
 *              report_config (prices and groups), report_ask (from words to a report),
 *              report_parts. Others: event_list, event_words, now, cards_now (readings),
 *              board (the present from a store alone), recent, floors, idle_power, status,
 *              recorder_status, export,
 *              scrape* and identity_names (what an exporter shows), history (what it would
 *              have shown),
 *              store_list (files, directories, patterns), stores_check (whether they
 *              can be one), origin (whose a file is),
 *              subtrack*, sql, idle_* (the idle time of
 *              sessions), policy_log (what gua enforce did)
 *   live/      the cards now, joined with the store's past: live* (ask, join, judge), past
 *              (what the store answers), filter, pick* (which are free)
 *   policy/    rules over sessions: rules (which session matches), facts (its idle clock),
 *              judge (one session at a moment), pass (all of them, with limits), simulate
 *              (over the past), present (over the store's now), enforcer (one pass, stored),
 *              tell (makes notices of it), keep_spool and keep_limits (requests of users),
 *              trust (who may change the rules), builtin (whom no rule may end), end_wire and
 *              end_serve (the program gua-end, which signals), notice* (what people are told,
 *              as texts and JSON), channel* (how it reaches them), post (what gua-post is
 *              asked), backoff (when), courier (sends it), endings* (sessions that are being
 *              ended), end_link (the way to gua-end), end_manager (scancel, podman stop),
 *              fresh (the last look at the driver), signs (of life: CPU time, terminals)
 *   render/    a report or table becomes text, HTML, JSON, CSV: report*, outline, text,
 *              html, style (of pages), timeline, json, rows, events, policy_log, status,
 *              track*, subtrack*,
 *              exposition* (metrics for Prometheus), backfill (their past)
 *   record/    the recorder: recorder* (its loop), schedule (when it does what), watch* (rounds
 *              to accounts), holders (process lists to stretches of time), health, machine
 *              (the host), notify
 *   fleet/     hosts that an engine scrapes: fleet (queries), client* (HTTP), verdict (how a
 *              query ended), answer and stream (JSON as it arrives), roster* (each host's
 *              state), survey* (a window: counters to an audit), meter (counters at the
 *              edges of a window); remotes* (hosts without an engine, by ssh)
 *   view/      one-shot and scrolling views: stat*, query*, dmon, smi* (nvidia-smi's), who*,
 *              format
 *   top/       the interactive view: top*; top_screen and top_pen alone know curses
 *   serve/     the web server: request (what a client asks, parsed), route and routes (the
 *              table of what is answered), params (parameters as options), answer, api* (the
 *              JSON API), page (the frame of HTML pages), page_* (their content), assets
 *              (stylesheet, script), health, metrics, world (what requests share), listen
 *              (sockets), gate (who may ask), secrets, access (the log), pool (threads, and
 *              answers of a moment ago), ask (what they do), deadlines (of connections),
 *              response and server (libmicrohttpd)
 *   cmd/       one file per command: daemon*, audit_daemon, start, status, stop, report*, fleet
 *              (hands over), fleet_main, fleet_engine and fleet_ssh (the program gua-fleet),
 *              events, export*, metrics (for Prometheus),
 *              import, merge, demo, doctor*, stat, query*, dmon, smi, who, pick*,
 *              top (hands over),
 *              top_main (the program gua-top), enforce*, keep,
 *              serve (hands over), serve_main (the program
 *              gua-serve), end_main (the program gua-end), post_main (the program
 *              gua-post), track*, subtrack, gpu_tracker, completion*, install* and uninstall,
 *              config; and what they share: cmd, choose_db (which store), configure (gua.conf),
 *              window (--since and so on), mine (a person's own time), live, line_output,
 *              progress, terminal, detach, leftover, rehearse (--dry-run), hand_over
 *   lib/       libgua, the library: base to track behind include/gua.h: gua, hand, lib,
 *              sampler*, silent, tracker*
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/nearest.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/daemon.h"
#include "cmd/gpu_tracker.h"
#include "cmd/hand_over.h"
#include "cmd/smi.h"
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

/* A build may be without the programs that need more libraries, or they are packages of their
 * own. */
static bool is_missing(const struct command *command)
{
	return command->handed_over && !hand_over_finds(command->name);
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
	size_t least = nearest_far(strlen(name)) + 1;
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
	text_escape(safe, sizeof(safe), name, strlen(name));
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
	const char *called = slash ? slash + 1 : program;
	if (strcmp(called, "gpu-tracker") == 0)
		return gpu_tracker_main(argc, argv);
	if (strcmp(called, "nvidia-smi") == 0 || strcmp(called, "gua-nvidia-smi") == 0)
		return smi_main(called, argc, argv);
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
		hand_over(name, argv + 1);
	return command ? command->run(command, argc - 1, argv + 1) : no_command(name);
}

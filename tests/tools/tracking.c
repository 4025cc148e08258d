/* For tests of the tracker: runs a command (or watches a pid for some time) over tracker.h and
 * writes the result as one JSON document.
 *
 * usage: tracking [OPTIONS] OUT CMD ARGS...
 *        tracking [OPTIONS] --pid N --seconds S OUT
 *        tracking [OPTIONS] --pid N --clock FILE --looks N OUT
 *
 * With --samples FILE two numbers are there after each sample: how many there were, and the
 * tree's memory in bytes. A workload looks there whether it was seen, and nobody guesses how
 * long that takes. With --clock FILE the driver lives in that time, of which a second passes
 * before each look; a look is over when the driver has answered. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"
#include "track/gpu.h"
#include "track/tracker_private.h"

/* A driver that has not answered for so long hangs. */
enum { HANGS_MS = 1000 };

struct settings {
	const char *source, *nvml, *scenario, *samples, *clock;
	int64_t interval_ms, pid, looks;
	double seconds;
};

/* The driver's own time, and who is told of samples. */
struct tools {
	struct clock clock, driver_clock;
	int samples_fd, signals;
};

#define AT(member) offsetof(struct settings, member)
static const struct option_row options[] = {
	{ .kind = OPTION_TEXT, .name = "source", .arg = "NAME", .offset = AT(source) },
	{ .kind = OPTION_TEXT, .name = "nvml", .arg = "PATH", .offset = AT(nvml) },
	{ .kind = OPTION_TEXT, .name = "scenario", .arg = "FILE", .offset = AT(scenario) },
	{ .kind = OPTION_DURATION, .name = "interval", .arg = "D", .offset = AT(interval_ms) },
	{ .kind = OPTION_COUNT, .name = "pid", .arg = "N", .offset = AT(pid) },
	{ .kind = OPTION_REAL, .name = "seconds", .arg = "S", .offset = AT(seconds) },
	{ .kind = OPTION_TEXT, .name = "samples", .arg = "FILE", .offset = AT(samples) },
	{ .kind = OPTION_TEXT, .name = "clock", .arg = "FILE", .offset = AT(clock) },
	{ .kind = OPTION_COUNT, .name = "looks", .arg = "N", .offset = AT(looks) },
	{ .name = NULL },
};

static const char *const groups[TRACK_GROUPS] = { "main", "descendants", "combined" };

static json_t *real(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static json_t *cpu_json(const struct track_cpu *c)
{
	return json_pack(
		"{s:o, s:o}", "max", real(c->max_sum_pct), "mean", real(c->mean_sum_pct));
}

static json_t *group_json(const struct track_result *r, int g)
{
	const struct track_ram *ram = &r->ram[g];
	return json_pack("{s:I, s:I, s:I, s:I, s:o, s:I, s:f, s:f, s:I}", "total",
		(json_int_t)ram->total_bytes, "private", (json_int_t)ram->private_bytes,
		"shared", (json_int_t)ram->shared_bytes, "swap", (json_int_t)ram->swap_bytes,
		"cpu", cpu_json(&r->cpu[g]), "threads", (json_int_t)r->max_threads[g], "user_s",
		r->user_s[g], "system_s", r->system_s[g], "gpu_ram", (json_int_t)r->gpu_ram[g]);
}

static json_t *card_json(const struct track_card *c)
{
	json_t *card = json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "uuid", c->id.uuid,
		"used", (json_int_t)c->max_used_bytes, "tree", (json_int_t)c->max_tree_bytes,
		"max_util", real(c->max_util_pct), "mean_util", real(c->mean_util_pct),
		"max_tree", real(c->max_tree_pct), "mean_tree", real(c->mean_tree_pct));
	json_object_update_new(card,
		json_pack("{s:o, s:o, s:o, s:o, s:I, s:s, s:b}", "energy_j", real(c->energy_j),
			"tree_energy_j", real(c->tree_energy_j), "active_s", real(c->active_s),
			"idle_held_s", real(c->idle_held_s), "processes",
			(json_int_t)c->peak_tree_processes, "status",
			card_status_names[c->status], "observed", c->observed));
	return card;
}

static json_t *process_json(const struct track_process *p)
{
	return json_pack("{s:I, s:s, s:I, s:o, s:o, s:f, s:f, s:I, s:I, s:I, s:I, s:b}", "pid",
		(json_int_t)p->id.pid, "command", p->id.command, "ppid", (json_int_t)p->ppid,
		"started_s", real(p->started_s), "ended_s", real(p->ended_s), "user_s",
		p->user_s, "system_s", p->system_s, "total", (json_int_t)p->max_total_bytes,
		"private", (json_int_t)p->max_private_bytes, "rss",
		(json_int_t)p->max_rss_bytes, "gpu", (json_int_t)p->max_gpu_bytes, "unreadable",
		p->unreadable);
}

static json_t *counts_json(const struct track_result *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "read",
		(json_int_t)r->read_bytes, "written", (json_int_t)r->written_bytes, "minor",
		(json_int_t)r->minor_faults, "major", (json_int_t)r->major_faults, "voluntary",
		(json_int_t)r->voluntary_switches, "involuntary",
		(json_int_t)r->involuntary_switches, "seen", (json_int_t)r->processes_seen,
		"peak", (json_int_t)r->processes_peak, "others", (json_int_t)r->n_others);
}

static json_t *gpu_json(const struct track_result *r)
{
	json_t *cards = json_array();
	for (size_t i = 0; i < r->n_cards; i++)
		json_array_append_new(cards, card_json(&r->cards[i]));
	return json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:o}",
		"known", r->gpu_known, "note", r->gpu_note, "count", (json_int_t)r->gpu_count,
		"expected", (json_int_t)r->expected_gpus, "capacity",
		(json_int_t)r->gpu_capacity_bytes, "system",
		(json_int_t)r->gpu_system_max_bytes, "util", cpu_json(&r->gpu_util), "active_s",
		real(r->gpu_active_s), "idle_held_s", real(r->gpu_idle_held_s), "context",
		(json_int_t)r->gpu_context_bytes, "energy_j", real(r->energy_j),
		"tree_energy_j", real(r->tree_energy_j), "cards", cards);
}

static json_t *result_json(const struct track_result *r)
{
	json_t *all = json_pack("{s:f, s:i, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
		"elapsed_s", r->elapsed_s, "exit_status", r->exit_status, "exited", r->exited,
		"samples", (json_int_t)r->samples, "capacity",
		(json_int_t)r->ram_capacity_bytes, "system",
		(json_int_t)r->ram_system_max_bytes, "cores", (json_int_t)r->core_count,
		"cpu_system", cpu_json(&r->cpu_system), "counts", counts_json(r), "gpu",
		gpu_json(r));
	for (int g = 0; g < TRACK_GROUPS; g++)
		json_object_set_new(all, groups[g], group_json(r, g));
	json_t *processes = json_array(), *warnings = json_array();
	for (size_t i = 0; i < r->n_processes; i++)
		json_array_append_new(processes, process_json(&r->processes[i]));
	for (size_t i = 0; i < r->n_warnings; i++)
		json_array_append_new(warnings, json_string(r->warnings[i]));
	json_object_set_new(all, "processes", processes);
	json_object_set_new(all, "warnings", warnings);
	return all;
}

/* Waits for everything that has ended; true when the first process is among it. */
static bool reap(struct tracker *t, pid_t first)
{
	bool over = false;
	for (;;) {
		siginfo_t info = { 0 };
		struct rusage usage;
		int status;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid)
			return over;
		tracker_exiting(t, info.si_pid);
		if (wait4(info.si_pid, &status, 0, &usage) > 0)
			tracker_reaped(t, info.si_pid, status, &usage);
		over |= info.si_pid == first;
	}
}

static void tell(const struct tracker *t, const struct tools *tools)
{
	int64_t numbers[] = { t->result.samples, t->memory.now[TRACK_COMBINED].total_bytes };
	if (tools->samples_fd >= 0 &&
		pwrite(tools->samples_fd, numbers, sizeof(numbers), 0) < 0)
		fprintf(stderr, "tracking: cannot tell of samples: %s\n", strerror(errno));
}

static bool sample(struct tracker *t, const struct tools *tools)
{
	bool alive = tracker_sample(t, NULL);
	tell(t, tools);
	return alive;
}

static void follow(struct tracker *t, struct tools *tools, pid_t child, int64_t until_us)
{
	for (;;) {
		struct pollfd fd = { .fd = tools->signals, .events = POLLIN };
		int64_t next_us = tracker_next_us(t);
		if (until_us && until_us < next_us)
			next_us = until_us;
		int ready = clock_wait(&tools->clock, next_us, &fd, 1);
		struct signalfd_siginfo info;
		if (ready > 0 && read(fd.fd, &info, sizeof(info)) > 0 && reap(t, child))
			return;
		if (ready != 0)
			continue;
		if (until_us && clock_now(&tools->clock).boot_us >= until_us)
			return;
		if (!sample(t, tools) && !child)
			return;
	}
}

/* Looks at the driver's times, however long that takes. */
static void look(struct tracker *t, struct tools *tools, int64_t looks)
{
	int64_t left_ms = HANGS_MS;
	for (int64_t i = 0; i < looks; i++) {
		clock_advance(&tools->driver_clock, i ? 1000000 : 0);
		for (sample(t, tools); t->gpu->waiting && left_ms > 0; sample(t, tools)) {
			usleep(5000);
			left_ms -= 5;
		}
		left_ms = t->gpu->waiting ? 0 : HANGS_MS;
	}
}

static pid_t start(char **argv, const sigset_t *before)
{
	pid_t pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, before, NULL);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

static int fail(const char *what)
{
	fprintf(stderr, "tracking: %s\n", what);
	return 2;
}

static void open_tools(struct tools *tools, const struct settings *set, sigset_t *before)
{
	sigset_t chld;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, before);
	tools->signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	clock_init_real(&tools->clock);
	tools->samples_fd = -1;
	if (set->samples)
		tools->samples_fd =
			open(set->samples, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

/* Follows until the end; how long that took at most, measured from outside. */
static double run(struct tracker *t, struct tools *tools, const struct settings *set,
	pid_t child, int64_t began_us)
{
	int64_t until_us = 0;
	tell(t, tools);
	if (set->pid && set->seconds > 0)
		until_us = clock_now(&tools->clock).boot_us + (int64_t)(set->seconds * 1e6);
	if (set->looks)
		look(t, tools, set->looks);
	else
		follow(t, tools, child, until_us);
	int64_t over_us = clock_now(&tools->clock).boot_us;
	tracker_stop(t);
	/* What goes on without end, or for a moment longer than the command, is over now. */
	if (set->pid || t->tree.alive)
		over_us = clock_now(&tools->clock).boot_us;
	return (double)(over_us - began_us) / 1e6;
}

int main(int argc, char **argv)
{
	struct settings set = { .source = NULL, .interval_ms = 1000 };
	struct err e = { 0 };
	struct tracker *t;
	struct tools tools;
	struct command_line line = { .argc = argc, .argv = argv, .stop_at_operand = true };
	sigset_t before;
	if (options_parse(&line, options, &set, &e) != 0 || line.first_operand >= argc ||
		clock_open(&tools.driver_clock, set.clock, 0, &e) != 0)
		return fail(e.code ? e.text : "no file for the result");
	log_setup(LOG_LEVEL_ERROR, LOG_STYLE_PLAIN);
	open_tools(&tools, &set, &before);
	struct tracker_options o = { .pid = (pid_t)set.pid,
		.interval_ms = set.interval_ms,
		.source = { .name = set.source,
			.nvml_path = set.nvml,
			.scenario = set.scenario,
			.clock = set.clock ? &tools.driver_clock : NULL,
			.root = "" },
		.rules = RULES_DEFAULT };
	int64_t began_us = clock_now(&tools.clock).boot_us;
	if (!set.pid) {
		o.started_us = began_us;
		o.subreaper = true;
		o.pid = start(argv + line.first_operand + 1, &before);
	}
	if (tracker_open(&t, &o, &e) != 0)
		return fail(e.text);
	double at_most_s = run(t, &tools, &set, set.pid ? 0 : o.pid, began_us);
	json_t *json = result_json(tracker_result(t));
	json_object_set_new(json, "at_most_s", json_real(at_most_s));
	int rc = !json || json_dump_file(json, argv[line.first_operand], JSON_INDENT(1)) != 0;
	json_decref(json);
	tracker_close(t);
	return rc;
}

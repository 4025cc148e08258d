/* For tests: ends one session as gua enforce does, and prints each step as a line.
 *
 * usage: ending --end PATH [OPTIONS] PID...
 *   record WHAT           a step that was recorded; with --full it cannot be
 *   HOW FREED TEXT        the outcome */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "cmd/share/cmd_live.h"
#include "policy/endings.h"
#include "proc/proc.h"

struct ending_settings {
	const char *end, *job, *container, *podman, *uuid;
	int64_t confirm_ms, sample_ms, grace_ms, hold_ms;
	double floor_w;
	bool kill, full, noticed;
};

#define AT(member) offsetof(struct ending_settings, member)
static const struct option_row options[] = {
	{ .kind = OPTION_TEXT, .name = "end", .arg = "PATH", .offset = AT(end) },
	{ .kind = OPTION_TEXT, .name = "job", .arg = "LABEL", .offset = AT(job) },
	{ .kind = OPTION_TEXT, .name = "container", .arg = "LABEL", .offset = AT(container) },
	{ .kind = OPTION_TEXT, .name = "podman", .arg = "COMMAND", .offset = AT(podman) },
	{ .kind = OPTION_TEXT, .name = "uuid", .arg = "UUID", .offset = AT(uuid) },
	{ .kind = OPTION_REAL, .name = "floor", .arg = "WATT", .offset = AT(floor_w) },
	{ .kind = OPTION_DURATION, .name = "confirm", .arg = "D", .offset = AT(confirm_ms) },
	{ .kind = OPTION_DURATION, .name = "sample", .arg = "D", .offset = AT(sample_ms) },
	{ .kind = OPTION_DURATION, .name = "grace", .arg = "D", .offset = AT(grace_ms) },
	{ .kind = OPTION_DURATION, .name = "hold", .arg = "D", .offset = AT(hold_ms) },
	{ .kind = OPTION_FLAG, .name = "kill", .offset = AT(kill) },
	{ .kind = OPTION_FLAG, .name = "full", .offset = AT(full) },
	{ .kind = OPTION_FLAG, .name = "noticed", .offset = AT(noticed) },
	{ .name = NULL },
};

static int record(void *context, const struct ending_step *step, struct err *e)
{
	const struct ending_settings *s = context;
	if (s->full)
		return err_set(e, ERR_WORLD, "the disk is full");
	printf("record %s\n", step->what);
	fflush(stdout);
	return 0;
}

static struct live_session session;

static int open_live(void *context, struct live **l, struct err *e)
{
	static const struct live_values values = { .no_store = true, .timeout_ms = 2000 };
	(void)context;
	int rc = cmd_live_open(&session, &values, NULL, e);
	*l = session.live;
	return rc;
}

static void close_live(void *context, struct live *l)
{
	(void)context;
	(void)l;
	cmd_live_close(&session);
}

static struct end_process *read_processes(int n, char **pids)
{
	struct end_process *all = calloc((size_t)n + 1, sizeof(*all));
	int proc = -1;
	struct err e = { 0 };
	proc_open(&proc, "", &e);
	for (int i = 0; i < n; i++) {
		struct end_process *p = &all[i];
		struct proc_status status = { .uid = -1 };
		p->pid = (uint32_t)atoi(pids[i]);
		p->start_ticks = proc_start_ticks(proc, p->pid);
		proc_read_status(proc, p->pid, &status);
		p->uid = status.uid;
	}
	close(proc);
	return all;
}

static void wait_for(struct endings *es, struct ending_outcome *outcome)
{
	struct pollfd fds[ENDINGS_MOST + 2];
	do {
		size_t n = endings_fds(es, fds);
		poll(fds, n, (int)endings_wait_ms(es));
		endings_step(es);
	} while (!endings_next(es, outcome));
}

int main(int argc, char **argv)
{
	struct ending_settings s = {
		.confirm_ms = 500, .sample_ms = 100, .grace_ms = 5000, .floor_w = NAN
	};
	struct err e = { 0 };
	struct command_line line = { .argc = argc, .argv = argv };
	struct ending_plan plan = { .ticket = 7, .notice_ms = -1 };
	struct ending_outcome outcome;
	struct endings *es = NULL;
	if (options_parse(&line, options, &s, &e) != 0) {
		fprintf(stderr, "%s\n", e.text);
		return 2;
	}
	struct config_end config = { .confirm_ms = s.confirm_ms,
		.sample_ms = s.sample_ms,
		.cpu_pct = 5,
		.power_pct = 10,
		.slurm = "scancel",
		.podman = s.podman,
		.manager_timeout_ms = 60000 };
	struct clock clock;
	clock_init_real(&clock);
	const struct endings_options o = { &config, s.end, NULL, &clock, &s, record, open_live,
		close_live, NULL };
	plan.n_processes = (size_t)(argc - line.first_operand);
	struct end_process *processes =
		read_processes(argc - line.first_operand, argv + line.first_operand);
	plan.processes = processes;
	snprintf(plan.job, sizeof(plan.job), "%s", s.job ? s.job : "");
	snprintf(plan.container, sizeof(plan.container), "%s", s.container ? s.container : "");
	snprintf(plan.cards[0].uuid, UUID_CAP, "%s", s.uuid ? s.uuid : "");
	plan.cards[0].idle_power_w = s.floor_w;
	plan.n_cards = 1;
	plan.grace_ms = s.grace_ms;
	plan.kill = s.kill;
	plan.idle_below = 5;
	plan.notice_ms = s.noticed ? clock_wall_ms(&clock) : -1;
	int rc = endings_new(&es, &o, &e);
	for (size_t i = 0; rc == 0 && i < plan.n_processes; i++)
		if (endings_hold(es, &plan.processes[i], &e) != 0)
			printf("not held: %s\n", e.text);
	puts("held");
	fflush(stdout);
	poll(NULL, 0, (int)s.hold_ms);
	if (rc == 0)
		rc = endings_begin(es, &plan, &e);
	if (rc) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	wait_for(es, &outcome);
	printf("%s %lld %s\n", ending_how_names[outcome.how], (long long)outcome.freed_bytes,
		outcome.text);
	for (size_t i = 0; i < plan.n_processes; i++)
		endings_release(es, &plan.processes[i]);
	endings_free(es);
	free(processes);
	return 0;
}

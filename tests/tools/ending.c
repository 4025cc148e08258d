/* For tests: ends one session as gua enforce does, and prints what it recorded.
 *
 * usage: ending --end PATH --policy-db PATH --db PATH [OPTIONS] PID...
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
#include "policy/ending.h"
#include "proc/proc.h"
#include "store/policy/policy_file.h"

struct ending_settings {
	const char *end, *policy_db, *db, *job, *container, *podman, *uuid;
	int64_t confirm_ms, sample_ms, grace_ms, hold_ms;
	double floor_w;
	bool kill, full, noticed;
};

#define AT(member) offsetof(struct ending_settings, member)
static const struct option_row options[] = {
	{ .kind = OPTION_TEXT, .name = "end", .arg = "PATH", .offset = AT(end) },
	{ .kind = OPTION_TEXT, .name = "policy-db", .arg = "PATH", .offset = AT(policy_db) },
	{ .kind = OPTION_TEXT, .name = "db", .arg = "PATH", .offset = AT(db) },
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

static int print_step(void *context, const struct policy_action *a)
{
	(void)context;
	if (a->step == STEP_SIGNAL)
		printf("record %s\n", a->result);
	return 0;
}

/* policy.db as an administrator has armed it; with --full nothing can be written to it. */
static int open_file(
	struct policy_file **f, const struct ending_settings *s, int64_t now_ms, struct err *e)
{
	int rc = policy_file_open(f, s->policy_db, true, e);
	if (rc == 0)
		rc = policy_file_arm(*f, now_ms, now_ms + 3600000, "root", e);
	if (rc || !s->full)
		return rc;
	policy_file_close(*f);
	*f = NULL;
	return policy_file_open(f, s->policy_db, false, e);
}

static struct proc_life *read_processes(struct arena *texts, int n, char **pids)
{
	struct proc_life *all = arena_take(texts, ((size_t)n + 1) * sizeof(*all));
	int proc = -1;
	struct err e = { 0 };
	proc_open(&proc, "", &e);
	for (int i = 0; i < n; i++) {
		struct proc_life *p = &all[i];
		struct proc_status status = { .uid = -1 };
		p->pid = (uint32_t)atoi(pids[i]);
		p->start_ticks = proc_start_ticks(proc, p->pid);
		proc_read_status(proc, p->pid, &status);
		p->uid = status.uid;
	}
	close(proc);
	return all;
}

static void wait_for(struct endings *es, const struct ending *a)
{
	struct pollfd fds[ENDINGS_FDS];
	while (a->stage != ENDING_OVER) {
		size_t n = endings_fds(es, fds);
		poll(fds, n, (int)endings_wait_ms(es));
		endings_step(es);
	}
}

static void describe(struct ending *a, const struct ending_settings *s, int64_t now_ms)
{
	a->group.job = s->job ? s->job : "";
	a->group.container = s->container ? s->container : "";
	a->group.pod = "";
	a->row.session = a->row.user = a->row.rule = "";
	snprintf(a->cards[0].uuid, UUID_CAP, "%s", s->uuid ? s->uuid : "");
	a->cards[0].idle_power_w = s->floor_w;
	a->n_cards = 1;
	a->kill = s->kill;
	a->idle_below = 5;
	a->notice_ms = s->noticed ? now_ms : -1;
}

static int end(struct endings *es, const struct ending_settings *s, char **pids, int n)
{
	static const char *const hows[ENDING_HOWS] = { "spared", "ended", "still-held",
		"failed", "computes" };
	struct ending *a = &es->items[0];
	struct policy_span all = { clock_wall_ms(es->enforcer->clock), INT64_MAX };
	struct err e = { 0 };
	a->n_processes = (size_t)n;
	a->processes = read_processes(&a->texts, n, pids);
	for (size_t i = 0; i < a->n_processes; i++)
		if (ending_hold(es, &a->processes[i], &e) != 0)
			printf("not held: %s\n", e.text);
	puts("held");
	fflush(stdout);
	poll(NULL, 0, (int)s->hold_ms);
	describe(a, s, clock_wall_ms(es->enforcer->clock));
	if (!ending_begin(a))
		return 1;
	wait_for(es, a);
	policy_file_actions(es->enforcer->file, all, print_step, NULL, &e);
	printf("%s %lld %s\n", hows[a->how], (long long)a->freed_bytes, a->text);
	return 0;
}

int main(int argc, char **argv)
{
	struct ending_settings s = {
		.confirm_ms = 500, .sample_ms = 100, .grace_ms = 5000, .floor_w = NAN
	};
	struct err e = { 0 };
	struct command_line line = { .argc = argc, .argv = argv };
	struct endings *es = NULL;
	if (options_parse(&line, options, &s, &e) != 0) {
		fprintf(stderr, "%s\n", e.text);
		return 2;
	}
	const struct config config = { .driver_timeout_ms = 2000,
		.end = { .confirm_ms = s.confirm_ms,
			.sample_ms = s.sample_ms,
			.grace_ms = s.grace_ms,
			.cpu_pct = 5,
			.power_pct = 10,
			.slurm = "scancel",
			.podman = s.podman,
			.manager_timeout_ms = 60000 } };
	struct clock clock;
	clock_init_real(&clock);
	struct enforcer enforcer = { .policy = { &config, NULL, true, true, false },
		.db = s.db,
		.proc = -1,
		.clock = &clock };
	const struct endings_options o = { &enforcer, s.end, NULL, getenv("GUA_NVML"), &clock };
	int rc = open_file(&enforcer.file, &s, clock_wall_ms(&clock), &e);
	if (rc == 0)
		rc = proc_open(&enforcer.proc, "", &e);
	if (rc == 0)
		rc = endings_new(&es, &o, &e);
	if (rc) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	rc = end(es, &s, argv + line.first_operand, argc - line.first_operand);
	endings_free(es);
	policy_file_close(enforcer.file);
	return rc;
}

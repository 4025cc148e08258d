/* The parts of ending a session that need no session: the last look at the cards, the idle
 * floor, commands of managers, signs of life, and the way to gua-end. */
#include "test.h"

#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "policy/end_link.h"
#include "policy/end_manager.h"
#include "policy/signs.h"
#include "proc/proc.h"
#include "audit/idle_history.h"

#define GIB (INT64_C(1) << 30)

static struct present_card cards[2];
static struct present_process holders[3];
static const struct present now = {
	.cards = cards, .n_cards = 2, .processes = holders, .n_processes = 3
};
static const struct proc_life session[] = { { 42, 7, 1001 }, { 43, 8, 1001 } };

/* Card 0: the two processes of the session; card 1: one of them beside another. */
static struct signs_look look_at(void)
{
	memset(cards, 0, sizeof(cards));
	memset(holders, 0, sizeof(holders));
	for (int i = 0; i < 2; i++) {
		cards[i].id.index = i;
		cards[i].id.mig_index = -1;
		sprintf(cards[i].id.uuid, "GPU-%d", i);
		cards[i].values[METRIC_POWER_DRAW] = 60 + i;
	}
	static const struct {
		uint32_t pid;
		uint64_t start;
		size_t card;
	} who[] = { { 42, 7, 0 }, { 43, 8, 0 }, { 99, 9, 1 } };
	for (int i = 0; i < 3; i++) {
		holders[i].id.pid = who[i].pid;
		holders[i].id.start_ticks = who[i].start;
		holders[i].card = who[i].card;
		holders[i].mem_bytes = GIB;
		holders[i].holder = true;
	}
	return (struct signs_look){ &now, false, 5 };
}

static struct signs_result judge(const struct signs_look *look)
{
	struct signs_result r;
	signs_judge(&r, look, session, 2);
	return r;
}

static void test_idle(void **state)
{
	(void)state;
	struct signs_look look = look_at();
	struct signs_result r = judge(&look);
	assert_int_equal(r.verdict, SIGNS_IDLE);
	assert_int_equal(r.held_bytes, 2 * GIB);
	assert_string_equal(r.why, "");
	holders[2].sm_pct = 100; /* another's use is not the session's */
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
	holders[1].mem_bytes = -1;
	assert_int_equal(judge(&look).held_bytes, -1);
}

static void test_active(void **state)
{
	(void)state;
	struct signs_look look = look_at();
	holders[1].sm_pct = 4.9; /* below the limit of the rule */
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
	look.idle_below = 1;
	assert_int_equal(judge(&look).verdict, SIGNS_ACTIVE);
	look.idle_below = 5;
	holders[1].sm_pct = 5;
	struct signs_result r = judge(&look);
	assert_int_equal(r.verdict, SIGNS_ACTIVE);
	assert_string_equal(
		r.why, "it used card 0: 5 % of the multiprocessors (the limit is 5 %)");
	look = look_at();
	holders[0].engine_pct[ENGINE_DECODER] = 3;
	assert_int_equal(judge(&look).verdict, SIGNS_ACTIVE);
}

static void test_unknown(void **state)
{
	(void)state;
	struct signs_look look = look_at();
	cards[0].status = CARD_STATUS_LOST;
	assert_int_equal(judge(&look).verdict, SIGNS_UNKNOWN);
	look = look_at();
	holders[0].sm_pct = holders[1].sm_pct = (double)NAN;
	/* Alone on a card that does nothing at all. */
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
	cards[0].values[METRIC_UTILIZATION_GPU] = 4;
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
	cards[0].values[METRIC_UTILIZATION_GPU] = 5;
	assert_int_equal(judge(&look).verdict, SIGNS_UNKNOWN);
	cards[0].values[METRIC_UTILIZATION_GPU] = (double)NAN;
	assert_int_equal(judge(&look).verdict, SIGNS_UNKNOWN);
	cards[0].values[METRIC_UTILIZATION_GPU] = 0;
	cards[0].values[METRIC_UTILIZATION_DECODER] = 4;
	assert_int_equal(judge(&look).verdict, SIGNS_UNKNOWN);
	cards[0].values[METRIC_UTILIZATION_DECODER] = (double)NAN;
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
	holders[2].card = 0;
	assert_int_equal(judge(&look).verdict, SIGNS_UNKNOWN);
	look.first = true;
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
}

/* A process that joins the session after the decision spares it, idle or not. */
static void test_newcomers(void **state)
{
	(void)state;
	struct signs_look look = look_at();
	for (int i = 0; i < 3; i++) {
		holders[i].id.posix_session = i == 2 ? 99 : 42;
		strcpy(holders[i].id.user, "alice");
	}
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
	holders[2].id.posix_session = 42;
	struct signs_result r = judge(&look);
	assert_int_equal(r.verdict, SIGNS_ACTIVE);
	assert_string_equal(r.why, "process 99 of the session has appeared on a card");
	/* What only draws is no holder: its use counts, its presence does not. */
	holders[2].holder = false;
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
	holders[2].engine_pct[ENGINE_ENCODER] = 1;
	assert_int_equal(judge(&look).verdict, SIGNS_ACTIVE);
	/* A command in the container has a POSIX session of its own. */
	holders[2].engine_pct[ENGINE_ENCODER] = 0;
	holders[2].holder = true;
	for (int i = 0; i < 3; i++) {
		holders[i].id.posix_session = 100 + i;
		strcpy(holders[i].id.container, "podman:3f2a91c4d5e6");
	}
	assert_int_equal(judge(&look).verdict, SIGNS_ACTIVE);
	strcpy(holders[2].id.user, "bob");
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
}

/* A manager ends all of a container or job, also what is somebody else's session there. */
static void test_companions(void **state)
{
	(void)state;
	struct signs_look look = look_at();
	struct activity_group s = { session, 2, "", "docker:3f2a91c4d5e6", "" };
	assert_null(signs_companion(&look, &s));
	for (int i = 0; i < 2; i++)
		strcpy(holders[i].id.container, s.container);
	assert_null(signs_companion(&look, &s));
	strcpy(holders[2].id.container, s.container);
	assert_ptr_equal(signs_companion(&look, &s), &holders[2]);
	s.container = "docker:000000000000";
	assert_null(signs_companion(&look, &s));
	s.job = "slurm:7";
	strcpy(holders[2].id.job, s.job);
	assert_ptr_equal(signs_companion(&look, &s), &holders[2]);
	s.job = "";
	s.pod = "ml/web-0";
	assert_null(signs_companion(&look, &s));
	strcpy(holders[2].id.pod, s.pod);
	assert_ptr_equal(signs_companion(&look, &s), &holders[2]);
}

/* A pid alone is not a process. */
static void test_another_process(void **state)
{
	(void)state;
	struct signs_look look = look_at();
	holders[0].id.start_ticks = holders[1].id.start_ticks = 1000;
	struct signs_result r = judge(&look);
	assert_int_equal(r.verdict, SIGNS_RELEASED);
	assert_string_equal(r.why, "it no longer holds a card");
}

/* What the processes of a session use of a card together counts; on two cards it does not. */
static void test_use_is_added_up(void **state)
{
	(void)state;
	struct signs_look look = look_at();
	holders[0].sm_pct = holders[1].sm_pct = 3;
	struct signs_result r = judge(&look);
	assert_int_equal(r.verdict, SIGNS_ACTIVE);
	assert_string_equal(
		r.why, "it used card 0: 6 % of the multiprocessors (the limit is 5 %)");
	holders[1].sm_pct = 1.9;
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
	holders[1].sm_pct = 3;
	holders[1].card = 1;
	assert_int_equal(judge(&look).verdict, SIGNS_IDLE);
}

static void test_power(void **state)
{
	(void)state;
	double limit_w = 0;
	struct signs_look look = look_at();
	cards[0].values[METRIC_POWER_ENFORCED] = 400;
	assert_true(signs_power_w(&look, "GPU-0", session, 2, &limit_w) == 60);
	assert_true(limit_w == 400);
	assert_true(isnan(signs_power_w(&look, "GPU-1", session, 2, &limit_w)));
	assert_true(isnan(limit_w));
	assert_true(isnan(signs_power_w(&look, "GPU-9", session, 2, &limit_w)));
	holders[2].card = 0;
	assert_true(isnan(signs_power_w(&look, "GPU-0", session, 2, &limit_w)));
	holders[2].holder = false;
	assert_true(signs_power_w(&look, "GPU-0", session, 2, &limit_w) == 60);
	cards[0].id.mig_index = 0;
	assert_true(isnan(signs_power_w(&look, "GPU-0", session, 2, &limit_w)));
}

static double floor_of(sqlite3 *db, const char *uuid)
{
	const struct idle_history h = { .db = db };
	return idle_history_power(&h, uuid, INT64_C(1800000000000));
}

static void test_idle_floor(void **state)
{
	(void)state;
	sqlite3 *db = NULL;
	sqlite3_open(":memory:", &db);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "1m", "5m", "1h" };
		char sql[256];
		snprintf(sql, sizeof(sql),
			"CREATE TABLE usage_%s (slot, gpu, state, ms, util_pct_ms, energy_mj, "
			"energy_unknown_ms, unsure_ms)",
			names[i]);
		sqlite3_exec(db, sql, NULL, NULL, NULL);
	}
	sqlite3_exec(db,
		"CREATE TABLE gpu (id, uuid); INSERT INTO gpu VALUES (1, 'A'), (2, 'B');"
		/* Held: 60 W for an hour; free: 20 W; active and long ago: not counted. */
		"INSERT INTO usage_1h VALUES (1799990000, 1, 1, 3600000, 0, 216000000, 0, 0),"
		"(1799990000, 1, 2, 3600000, 0, 72000000, 0, 0),"
		"(1799990000, 1, 0, 3600000, 0, 1080000000, 0, 0),"
		"(1700000000, 1, 1, 3600000, 0, 1080000000, 0, 0);"
		"INSERT INTO usage_1m VALUES (1799999940, 1, 1, 60000, 0, 3600000, 0, 0),"
		"(1799999940, 2, 1, 60000, 0, 3600000, 0, 0)",
		NULL, NULL, NULL);
	assert_true(fabs(floor_of(db, "A") - 60) < 1e-9);
	assert_true(isnan(floor_of(db, "B"))); /* a minute is too little */
	assert_true(isnan(floor_of(db, "C")));
	sqlite3_close(db);
}

static const struct config_end managers = {
	.slurm = "scancel", .docker = "docker stop", .podman = "sudo -n 'my podman' stop"
};

static void manager_is(const char *job, const char *container, const char *expected)
{
	struct manager_command c;
	struct err e = { 0 };
	char joined[256] = "";
	const struct managed what = { job, container, "", "" };
	int rc = end_manager_find(&c, &managers, &what, &e);
	for (size_t i = 0; rc == 0 && c.argv[i]; i++) {
		strcat(joined, c.argv[i]);
		strcat(joined, "|");
	}
	assert_string_equal(joined, expected);
	assert_int_equal(rc, *expected ? 0 : 1);
}

static bool users(const char *cgroup)
{
	return end_manager_is_users(cgroup, strlen(cgroup));
}

static void test_names_that_users_chose(void **state)
{
	(void)state;
	assert_true(users("0::/user.slice/user-1000.slice/user@1000.service/user.slice/"
			  "libpod-3f2a.scope\n"));
	assert_true(
		users("1:name=systemd:/a\n0::/user.slice/user-1000.slice/session-3.scope\n"));
	assert_false(users("0::/machine.slice/libpod-3f2a.scope\n"));
	assert_false(users("0::/system.slice/docker-3f2a.scope\n"));
	assert_false(users(""));
}

static void test_managers(void **state)
{
	(void)state;
	manager_is("slurm:1234", "", "scancel|1234|");
	manager_is("", "podman:3f2a91c4d5e6", "sudo|-n|my podman|stop|3f2a91c4d5e6|");
	manager_is("slurm:1", "docker:2", "scancel|1|");
	manager_is("pbs:1", "docker:2", "docker|stop|2|"); /* pbs is not configured here */
	manager_is("", "", "");
	manager_is("slurm:--all", "", "");
	manager_is("slurm:1 2", "", "");
	manager_is("slurm:", "", "");
	manager_is("", "containerd:1", "");
}

/* A pod is ended by a command that gets its names as arguments, or not at all. */
static void pod_is(const char *job, const char *pod, const char *command, const char *expected)
{
	const struct config_end config = {
		.slurm = "scancel", .docker = "d", .kubernetes = command
	};
	const struct managed what = { job, "docker:2", pod, "it was idle" };
	struct manager_command c;
	struct err e = { 0 };
	char joined[512] = "";
	int rc = end_manager_find(&c, &config, &what, &e);
	for (size_t i = 0; rc == 0 && c.argv[i]; i++) {
		strcat(joined, c.argv[i]);
		strcat(joined, "|");
	}
	assert_string_equal(rc ? e.text : joined, expected);
	assert_true(rc == 0 || rc == ERR_NOTHING);
}

static void test_pods(void **state)
{
	(void)state;
	static const char unknown[] = "the whole name of its pod is not known";
	pod_is("", "ml/web-7c9d8f6b5d-x7k2p", "scale -v",
		"scale|-v|ml|web-7c9d8f6b5d-x7k2p|web|it was idle|");
	pod_is("", "ml/db.x", "scale", "scale|ml|db.x|db.x|it was idle|");
	pod_is("slurm:7", "ml/db", "scale", "scancel|7|");
	pod_is("", "ml/db", NULL,
		"it is a pod, and kubernetes in [end] of gua.conf names no command");
	pod_is("", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", "scale", unknown);
	pod_is("", "ml/nnnn~0f1e2d3c", "scale", unknown);
	pod_is("", "--all/db", "scale", unknown);
	pod_is("", "ml/-A", "scale", unknown);
	pod_is("", "ml/a b", "scale", unknown);
	pod_is("", "ml/", "scale", unknown);
	pod_is("", "/db", "scale", unknown);
}

static void run_both(const char *command, const char *tell, const char *why)
{
	const struct config_end config = { .slurm = command, .slurm_notify = tell };
	struct manager_command c;
	struct helper *h = NULL;
	struct err e = { 0 };
	const struct managed what = { "slurm:7", "", "", "" };
	assert_int_equal(end_manager_find(&c, &config, &what, &e), 0);
	assert_int_equal(end_manager_start(&h, &c, 60000, &e), 0);
	while (!end_manager_is_over(h, &e))
		usleep(1000);
	assert_string_equal(e.code ? e.text : "", why);
	helper_free(h, 0);
}

static void run_manager(const char *command, const char *why)
{
	run_both(command, NULL, why);
}

static void test_running_managers(void **state)
{
	(void)state;
	run_manager("true", "");
	run_manager(
		"sh -c 'echo job $0 unknown; exit 1'", "sh ended with status 1: job 7 unknown");
	/* The user is told first; that this fails is no reason not to end the job. */
	char told[] = "/tmp/gua-told-XXXXXX", command[128], text[128] = "";
	close(mkstemp(told));
	snprintf(command, sizeof(command), "sh -c 'echo $0 $1 >%s; exit 1'", told);
	run_both("true", command, "");
	FILE *file = fopen(told, "r");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	unlink(told);
	assert_string_equal(text, "7 gua ends this job: it holds GPUs and does not use them\n");
	run_manager("/nonexistent/manager",
		"cannot run /nonexistent/manager: No such file or directory");
}

/* A child that works for its parent counts; so does one whose parent has ended. */
static void test_cpu(void **state)
{
	(void)state;
	int proc = -1, ready[2];
	struct err e = { 0 };
	assert_int_equal(proc_open(&proc, "", &e), 0);
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		setsid();
		pid_t grandchild = fork();
		alarm(60); /* neither survives a test that fails */
		if (grandchild == 0)
			for (volatile unsigned i = 0;; i++)
				if (i == 0 && write(ready[1], "x", 1) < 0)
					break;
		pause();
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	const struct proc_life p = { (uint32_t)child, 0, 0 };
	const struct activity_group s = { &p, 1, "", "", "" };
	double before_s = activity_cpu_s(proc, &s);
	for (int i = 0; i < 6000 && activity_cpu_s(proc, &s) < before_s + 0.05; i++)
		usleep(10000);
	assert_true(activity_cpu_s(proc, &s) >= before_s + 0.05);
	kill(-child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(isnan(activity_cpu_s(-1, &s)));
	close(proc);
}

/* Writes a file of /proc; `ticks` are of CPU time. */
static void write_process(const char *root, uint32_t pid, int ticks, const char *cgroup)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/proc/%u", root, pid);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/proc/%u/stat", root, pid);
	FILE *f = fopen(path, "w");
	fprintf(f,
		"%u (x) S 1 %u %u 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 "
		"0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		pid, pid, pid, ticks);
	fclose(f);
	snprintf(path, sizeof(path), "%s/proc/%u/cgroup", root, pid);
	f = fopen(path, "w");
	fprintf(f, "0::%s\n", cgroup);
	fclose(f);
}

/* What runs in the same container or job counts, wherever it was started. */
static void test_cpu_of_a_container(void **state)
{
	(void)state;
	char root[] = "/tmp/gua-test-XXXXXX", command[64];
	int proc = -1;
	struct err e = { 0 };
	const struct proc_life p = { 10, 5, 0 };
	struct activity_group s = { &p, 1, "", "", "" };
	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command), "%s/proc", root);
	assert_int_equal(mkdir(command, 0700), 0);
#define ID "3f2a91c4d5e63f2a91c4d5e63f2a91c4d5e63f2a91c4d5e63f2a91c4d5e6aaaa"
	write_process(root, 10, 100, "/machine.slice/libpod-" ID ".scope/container");
	write_process(root, 20, 200, "/machine.slice/libpod-" ID ".scope/container");
	write_process(root, 30, 400, "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0");
	write_process(root, 40, 800, "/");
	assert_int_equal(proc_open(&proc, root, &e), 0);
	double second = (double)sysconf(_SC_CLK_TCK);
	assert_true(activity_cpu_s(proc, &s) * second == 100);
	s.container = "podman:3f2a91c4d5e6";
	assert_true(activity_cpu_s(proc, &s) * second == 300);
	s.job = "slurm:7";
	assert_true(activity_cpu_s(proc, &s) * second == 700);
	/* Of a pod all containers count, and cgroups know it by its uid. */
	const struct proc_life in_pod = { 50, 5, 0 };
#define POD "/kubepods.slice/kubepods-pod0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0.slice/"
	write_process(root, 50, 1600, POD "cri-containerd-" ID ".scope");
	write_process(root, 60, 3200, POD "cri-containerd-a" ID ".scope");
	s = (struct activity_group){ &in_pod, 1, "", "containerd:3f2a91c4d5e6/main",
		"ml/web-0" };
	assert_true(activity_cpu_s(proc, &s) * second == 4800);
	close(proc);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

/* A gua-end that answers nonsense, does not end when its socket is closed and ignores SIGTERM:
 * it is not waited for. */
static void test_a_hung_gua_end(void **state)
{
	(void)state;
	char path[] = "/tmp/gua-test-XXXXXX";
	struct end_link *link = NULL;
	struct end_reply reply;
	struct err e = { 0 };
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	dprintf(fd,
		"#!/bin/sh\ntrap '' TERM HUP\nprintf x >&0\nexec /bin/sleep 600 < /dev/null\n");
	fchmod(fd, 0700);
	close(fd);
	assert_int_equal(end_link_new(&link, path, NULL, &e), 0);
	int64_t from_us = clock_monotonic_us();
	assert_int_equal(end_link_ask(link, END_ASK_HOLD, &session[0], &reply, &e), ERR_WORLD);
	assert_string_equal(e.text, "gua-end has ended unexpectedly");
	assert_true(clock_monotonic_us() - from_us < INT64_C(300) * 1000000);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* it is gone */
	end_link_free(link);
	unlink(path);
}

static void test_terminals(void **state)
{
	(void)state;
	char path[32];
	activity_terminal(path, sizeof(path), (int)makedev(136, 5));
	assert_string_equal(path, "/dev/pts/5");
	activity_terminal(path, sizeof(path), (int)makedev(137, 5));
	assert_string_equal(path, "/dev/pts/261");
	activity_terminal(path, sizeof(path), (int)makedev(4, 1));
	assert_string_equal(path, "");
	activity_terminal(path, sizeof(path), 0);
	assert_string_equal(path, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_active),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_newcomers),
		cmocka_unit_test(test_companions),
		cmocka_unit_test(test_another_process),
		cmocka_unit_test(test_use_is_added_up),
		cmocka_unit_test(test_power),
		cmocka_unit_test(test_idle_floor),
		cmocka_unit_test(test_names_that_users_chose),
		cmocka_unit_test(test_managers),
		cmocka_unit_test(test_pods),
		cmocka_unit_test(test_running_managers),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_cpu_of_a_container),
		cmocka_unit_test(test_a_hung_gua_end),
		cmocka_unit_test(test_terminals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

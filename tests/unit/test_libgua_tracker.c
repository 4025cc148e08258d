/* The library's tracker as a program sees it: states, sizes, helpers that are left alone. */
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gua.h>

static struct gua_tracker *new_tracker(int helper)
{
	struct gua_tracker *t;
	struct gua_tracker_options o = GUA_INIT(struct gua_tracker_options);
	o.interval_s = 0.02;
	o.source = "none";
	o.helper = helper;
	assert_int_equal(gua_tracker_new(&t, &o), GUA_OK);
	return t;
}

static void check_life(int helper)
{
	struct gua_tracker *t = new_tracker(helper);
	struct gua_track_result r = GUA_INIT(struct gua_track_result);
	struct gua_track_sample s = GUA_INIT(struct gua_track_sample);
	struct gua_track_process p = GUA_INIT(struct gua_track_process);
	assert_int_equal(gua_tracker_state(t), GUA_TRACKER_NEW);
	assert_int_equal(gua_tracker_stop(t), GUA_WRONG_USE);
	assert_non_null(strstr(gua_tracker_error(t), "has not started yet"));
	assert_int_equal(gua_tracker_result(t, &r), GUA_WRONG_USE);
	assert_int_equal(gua_tracker_start(t), GUA_OK);
	assert_int_equal(gua_tracker_state(t), GUA_TRACKER_STARTED);
	assert_int_equal(gua_tracker_start(t), GUA_WRONG_USE);
	assert_non_null(strstr(gua_tracker_error(t), "has already started"));
	assert_int_equal(gua_tracker_result(t, &r), GUA_OK);
	usleep(100000);
	assert_int_equal(gua_tracker_snapshot(t, &s), GUA_OK);
	assert_int_equal(gua_tracker_stop(t), GUA_OK);
	assert_int_equal(gua_tracker_stop(t), GUA_WRONG_USE);
	assert_int_equal(gua_tracker_start(t), GUA_WRONG_USE);
	assert_non_null(strstr(gua_tracker_error(t), "has already stopped"));
	assert_int_equal(gua_tracker_result(t, &r), GUA_OK);
	assert_true(r.elapsed_s >= 0.1);
	assert_int_equal(r.processes_seen, 1);
	assert_int_equal(r.threads_max[GUA_MAIN], 1);
	assert_int_equal(r.gpu_known, 0);
	assert_int_equal(gua_tracker_process(t, 0, &p), GUA_OK);
	assert_int_equal(p.pid, getpid());
	assert_int_equal(gua_tracker_process(t, 1, &p), GUA_WRONG_USE);
	gua_tracker_free(t);
	/* Nothing is left behind. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_in_a_thread(void **state)
{
	(void)state;
	check_life(GUA_HELPER_THREAD);
}

static void test_in_a_process(void **state)
{
	(void)state;
	check_life(GUA_HELPER_PROCESS);
}

static void test_wrong_options(void **state)
{
	struct gua_tracker *t;
	struct gua_tracker_options o = GUA_INIT(struct gua_tracker_options);
	(void)state;
	o.interval_s = 0.001;
	assert_int_equal(gua_tracker_new(&t, &o), GUA_WRONG_USE);
	assert_true(gua_tracker_error(t)[0]);
	assert_int_equal(gua_tracker_start(t), GUA_WRONG_USE);
	gua_tracker_free(t);
	o.interval_s = NAN;
	assert_int_equal(gua_tracker_new(&t, &o), GUA_WRONG_USE);
	gua_tracker_free(t);
	o.interval_s = 1;
	o.source = "amd";
	assert_int_equal(gua_tracker_new(&t, &o), GUA_WRONG_USE);
	gua_tracker_free(t);
	o.size = 1;
	assert_int_equal(gua_tracker_new(&t, &o), GUA_WRONG_USE);
	gua_tracker_free(t);
	gua_tracker_free(NULL);
}

static void test_no_such_process(void **state)
{
	struct gua_tracker *t;
	struct gua_tracker_options o = GUA_INIT(struct gua_tracker_options);
	(void)state;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	o.pid = pid;
	for (o.helper = 0; o.helper < 2; o.helper++) {
		assert_int_equal(gua_tracker_new(&t, &o), GUA_OK);
		assert_int_equal(gua_tracker_start(t), GUA_FAILED);
		assert_non_null(strstr(gua_tracker_error(t), "no process"));
		gua_tracker_free(t);
	}
}

static void test_an_older_program(void **state)
{
	struct gua_tracker *t = new_tracker(GUA_HELPER_THREAD);
	struct gua_track_result r;
	(void)state;
	memset(&r, 0x5a, sizeof(r));
	r.size = offsetof(struct gua_track_result, exited);
	assert_int_equal(gua_tracker_start(t), GUA_OK);
	assert_int_equal(gua_tracker_result(t, &r), GUA_OK);
	assert_true(r.elapsed_s >= 0 && r.elapsed_s < 60);
	assert_int_equal(r.exited, 0x5a5a5a5a);
	/* Freeing stops. */
	gua_tracker_free(t);
}

/* A helper process ends when its program does, however that ends. */
static void test_the_helper_ends_with_its_program(void **state)
{
	int life[2];
	char c;
	(void)state;
	assert_int_equal(pipe(life), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct gua_tracker *t;
		struct gua_tracker_options o = GUA_INIT(struct gua_tracker_options);
		o.source = "none";
		o.helper = GUA_HELPER_PROCESS;
		_exit(gua_tracker_new(&t, &o) != GUA_OK || gua_tracker_start(t) != GUA_OK);
	}
	close(life[1]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* It kept none of the program's files: the pipe has ended already. */
	assert_int_equal(read(life[0], &c, 1), 0);
	close(life[0]);
}

static void test_the_host(void **state)
{
	struct gua *gua;
	struct gua_options o = GUA_INIT(struct gua_options);
	struct gua_host host = GUA_INIT(struct gua_host);
	(void)state;
	o.source = "sim";
	assert_int_equal(gua_open(&gua, &o), GUA_OK);
	assert_int_equal(gua_host_summary(gua, &host), GUA_OK);
	assert_true(host.cards > 0 && host.cards_ok <= host.cards);
	assert_true(host.mem_total_bytes > 0 && host.mem_used_bytes <= host.mem_total_bytes);
	assert_true(host.driver[0]);
	host.size = 0;
	assert_int_equal(gua_host_summary(gua, &host), GUA_WRONG_USE);
	assert_int_equal(gua_host_summary(NULL, &host), GUA_WRONG_USE);
	gua_close(gua);
}

/* A recorded /proc of this process. `blocked` is a file that is a FIFO: reading it blocks. */
static void make_root(char root[64], const char *blocked)
{
	static const char *const files[][2] = {
		{ "stat", "(test) S 1 0 0 0 0 0 0 0 0 0 1 1 0 0 20 0 1 0 7 0 250\n" },
		{ "status", "Tgid:\t0\nUid:\t1\t1\t1\t1\nVmHWM:\t1000 kB\n" },
		{ "cmdline", "test" },
		{ "smaps_rollup", "Rss: 8 kB\nPss: 4 kB\n" },
		{ "io", "read_bytes: 1\nwrite_bytes: 2\n" },
	};
	char path[128];
	snprintf(root, 64, "/tmp/gua-tracker-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/proc", root);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/proc/%d", root, (int)getpid());
	assert_int_equal(mkdir(path, 0755), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/proc/%d/%s", root, (int)getpid(), files[i][0]);
		if (strcmp(files[i][0], blocked) == 0) {
			assert_int_equal(mkfifo(path, 0644), 0);
			continue;
		}
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		if (i == 0)
			fprintf(file, "%d ", (int)getpid());
		fputs(files[i][1], file);
		fclose(file);
	}
}

static void remove_root(const char *root)
{
	static const char *const names[] = { "stat", "status", "cmdline", "smaps_rollup",
		"io" };
	char path[128];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/proc/%d/%s", root, (int)getpid(), names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/proc/%d", root, (int)getpid());
	rmdir(path);
	snprintf(path, sizeof(path), "%s/proc", root);
	rmdir(path);
	rmdir(root);
}

static struct gua_tracker *tracker_of_root(const char *root, int helper)
{
	struct gua_tracker *t;
	struct gua_tracker_options o = GUA_INIT(struct gua_tracker_options);
	o.interval_s = 0.02;
	o.source = "none";
	o.root = root;
	o.helper = helper;
	assert_int_equal(gua_tracker_new(&t, &o), GUA_OK);
	return t;
}

/* A process that cannot be read blocks the sampler, but not the program. */
static bool start_fails(int helper)
{
	char root[64];
	make_root(root, "cmdline");
	struct gua_tracker *t = tracker_of_root(root, helper);
	bool failed = gua_tracker_start(t) == GUA_FAILED &&
		      strstr(gua_tracker_error(t), "does not answer") != NULL;
	gua_tracker_free(t);
	remove_root(root);
	return failed;
}

/* The same when it blocks later; the numbers up to then are there. */
static bool stop_ends(int helper)
{
	char root[64], path[128];
	struct gua_track_result r = GUA_INIT(struct gua_track_result);
	make_root(root, "");
	struct gua_tracker *t = tracker_of_root(root, helper);
	bool started = gua_tracker_start(t) == GUA_OK;
	snprintf(path, sizeof(path), "%s/proc/%d/io", root, (int)getpid());
	bool blocked = unlink(path) == 0 && mkfifo(path, 0644) == 0;
	usleep(1500000); /* it is read every second */
	bool ended = gua_tracker_stop(t) == GUA_OK && gua_tracker_result(t, &r) == GUA_OK;
	gua_tracker_free(t);
	remove_root(root);
	return started && blocked && ended && r.ram_total_bytes[GUA_MAIN] == 4096;
}

/* Each waits for ten seconds: they do it at the same time. */
static void test_a_process_that_cannot_be_read(void **state)
{
	(void)state;
	pid_t children[4];
	for (int i = 0; i < 4; i++) {
		int helper = i % 2 ? GUA_HELPER_THREAD : GUA_HELPER_PROCESS;
		children[i] = fork();
		if (children[i] == 0)
			_exit((i < 2 ? start_fails : stop_ends)(helper) ? 0 : 1);
	}
	for (int i = 0; i < 4; i++) {
		int status = -1;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_a_thread),
		cmocka_unit_test(test_in_a_process),
		cmocka_unit_test(test_wrong_options),
		cmocka_unit_test(test_no_such_process),
		cmocka_unit_test(test_an_older_program),
		cmocka_unit_test(test_the_helper_ends_with_its_program),
		cmocka_unit_test(test_the_host),
		cmocka_unit_test(test_a_process_that_cannot_be_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

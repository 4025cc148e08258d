/* The library's tracker as a program sees it: states, sizes, helpers that are left alone. */
#include "test.h"

#include <math.h>
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

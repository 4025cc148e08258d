/* The driver's thread: jobs of one's own, a deadline for each, and a thread that hangs. */
#include "test.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "driver/host/worker.h"

/* For what must come, however busy the machine is, and for what never comes. */
enum { PATIENCE_MS = 60000, DEADLINE_MS = 50 };

/* A job that waits at a gate. In static storage because its thread may outlive a test. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool shut;
	int passed, released, result;
};
#define GATE                                                                                   \
	{                                                                                      \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER         \
	}

static int pass(struct source *s, void *context, struct err *e)
{
	struct gate *g = context;
	pthread_mutex_lock(&g->lock);
	while (g->shut)
		pthread_cond_wait(&g->changed, &g->lock);
	g->passed += s->n_cards > 0;
	int result = g->result;
	pthread_mutex_unlock(&g->lock);
	return result ? err_set(e, result, "as wished") : 0;
}

static void set_gate(struct gate *g, bool shut, int result)
{
	pthread_mutex_lock(&g->lock);
	g->shut = shut;
	g->result = result;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

static void release(void *context)
{
	struct gate *g = context;
	pthread_mutex_lock(&g->lock);
	g->released++;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

/* A worker on the simulated lab whose own job is the gate. */
static struct worker *worker_at(struct gate *g, int64_t deadline_ms)
{
	static struct clock clock;
	struct worker *w = NULL;
	struct err e = { 0 };
	clock_init_virtual(&clock, 0);
	struct source_options o = { .name = "sim", .root = "", .clock = &clock };
	if (worker_new(&w, &o, deadline_ms, &e) != 0)
		fail_msg("%s", e.text);
	worker_own(w, pass, g, release);
	return w;
}

/* Opening has all the time that it needs, whatever the deadline. */
static void open_source(struct worker *w)
{
	assert_true(worker_begin(w, JOB_OPEN));
	assert_int_equal(worker_result(w, PATIENCE_MS, NULL), 0);
}

static bool is_readable(int fd, int wait_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	return poll(&poll_fd, 1, wait_ms) == 1;
}

static void expect_own_job(int64_t deadline_ms)
{
	static struct gate g = GATE;
	struct err e = { 0 };
	g = (struct gate)GATE;
	struct worker *w = worker_at(&g, deadline_ms);
	assert_null(worker_opened(w));
	assert_int_equal(worker_run(w, JOB_OWN, &e), 0);
	assert_int_equal(g.passed, 1);
	assert_ptr_equal(worker_opened(w), worker_source(w));
	set_gate(&g, false, ERR_WORLD);
	assert_int_equal(worker_run(w, JOB_OWN, &e), ERR_WORLD);
	assert_string_equal(e.text, "as wished");
	assert_true(worker_end(w, PATIENCE_MS));
	assert_int_equal(g.released, 1);
}

static void test_own_job_opens_the_source_first(void **state)
{
	(void)state;
	expect_own_job(PATIENCE_MS);
}

static int note_thread(struct source *s, void *context, struct err *e)
{
	(void)s;
	(void)e;
	*(pthread_t *)context = pthread_self();
	return 0;
}

/* A source that cannot block needs no thread: the job is done at once, by its owner. */
static void test_without_a_deadline_there_is_no_thread(void **state)
{
	(void)state;
	static struct gate g = GATE;
	struct err e = { 0 };
	pthread_t by = 0;
	expect_own_job(0);
	struct worker *w = worker_at(&g, 0);
	worker_own(w, note_thread, &by, NULL);
	assert_true(worker_begin(w, JOB_OWN));
	assert_true(pthread_equal(by, pthread_self()));
	assert_non_null(worker_source(w));
	assert_int_equal(worker_result(w, 0, &e), 0);
	worker_free(w);
}

/* The job hangs behind the opening: the source is there, its readings are not. */
static void test_a_job_that_hangs_and_comes_back(void **state)
{
	(void)state;
	static struct gate g = GATE;
	struct err e = { 0 };
	struct worker *w = worker_at(&g, DEADLINE_MS);
	open_source(w);
	set_gate(&g, true, 0);
	assert_int_equal(worker_run(w, JOB_OWN, &e), ERR_BUSY);
	assert_non_null(worker_opened(w));
	assert_null(worker_source(w));
	assert_true(worker_took_ms(w) >= DEADLINE_MS);
	assert_false(worker_begin(w, JOB_OWN));
	set_gate(&g, false, 0);
	assert_int_equal(worker_result(w, PATIENCE_MS, &e), 0);
	int64_t took_ms = worker_took_ms(w);
	usleep(20000);
	assert_true(took_ms >= DEADLINE_MS && worker_took_ms(w) == took_ms);
	assert_true(worker_end(w, PATIENCE_MS));
}

static void test_the_end_of_a_job_can_be_polled_for(void **state)
{
	(void)state;
	static struct gate g = GATE;
	struct err e = { 0 };
	struct worker *w = worker_at(&g, PATIENCE_MS);
	for (int i = 0; i < 3; i++) {
		set_gate(&g, true, 0);
		assert_true(worker_begin(w, JOB_OWN));
		int fd = worker_fd(w);
		assert_false(is_readable(fd, 20));
		set_gate(&g, false, 0);
		assert_true(is_readable(fd, PATIENCE_MS));
		assert_int_equal(worker_result(w, 0, &e), 0);
		assert_false(is_readable(fd, 0));
	}
	/* One that was done before anybody asked. */
	assert_true(worker_begin(w, JOB_OWN));
	assert_int_equal(worker_result(w, PATIENCE_MS, &e), 0);
	assert_true(is_readable(worker_fd(w), 0));
	worker_free(w);
}

/* A thread that hangs is left behind, and frees what is its own when it comes back. The source
 * stays open: what it was opened with may be gone. */
static void test_a_thread_that_is_left_behind(void **state)
{
	(void)state;
	static struct gate g = GATE;
	static struct source *stays;
	struct worker *w = worker_at(&g, DEADLINE_MS);
	open_source(w);
	stays = worker_opened(w);
	set_gate(&g, true, 0);
	assert_int_equal(worker_run(w, JOB_OWN, NULL), ERR_BUSY);
	assert_false(worker_end(w, PATIENCE_MS));
	assert_int_equal(g.released, 0);
	assert_non_null(stays);
	set_gate(&g, false, 0);
	pthread_mutex_lock(&g.lock);
	while (!g.released)
		pthread_cond_wait(&g.changed, &g.lock);
	pthread_mutex_unlock(&g.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_job_opens_the_source_first),
		cmocka_unit_test(test_without_a_deadline_there_is_no_thread),
		cmocka_unit_test(test_a_job_that_hangs_and_comes_back),
		cmocka_unit_test(test_the_end_of_a_job_can_be_polled_for),
		cmocka_unit_test(test_a_thread_that_is_left_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The pool of the web server: equal questions, old answers, long ones, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

#include "serve/pool.h"

/* A question is a word; one that begins with "wait" is answered when the test says so. */
struct world {
	sem_t started, go, woken;
	atomic_int answered, dropped;
	_Atomic uint64_t version;
	atomic_size_t bytes;
	struct pool *pool;
};

static struct world world;

static void *answer(void *context, const struct pool_question *q, int64_t asked_us)
{
	struct world *w = context;
	(void)asked_us;
	if (q->len >= 4 && memcmp(q->bytes, "wait", 4) == 0) {
		sem_post(&w->started);
		sem_wait(&w->go);
	}
	w->answered++;
	return strndup(q->bytes, q->len);
}

static size_t size(const void *result)
{
	(void)result;
	return world.bytes;
}

static void drop(void *result)
{
	world.dropped++;
	free(result);
}

static void sleep_one(void *waiter)
{
	(void)waiter;
}

static void wake_one(void *waiter)
{
	sem_post(waiter);
}

static uint64_t version(void *context)
{
	return ((struct world *)context)->version;
}

static const struct pool_ops ops = { answer, size, drop, sleep_one, wake_one, version, &world };

static int set_up(void **state)
{
	struct err e = { 0 };
	(void)state;
	memset(&world, 0, sizeof(world));
	world.bytes = 10;
	sem_init(&world.started, 0, 0);
	sem_init(&world.go, 0, 0);
	sem_init(&world.woken, 0, 0);
	return pool_open(&world.pool, &ops, &e);
}

static int tear_down(void **state)
{
	(void)state;
	pool_close(world.pool);
	assert_int_equal(world.answered, world.dropped);
	return 0;
}

static struct pool_question asking(const char *word, int64_t max_age_us, int64_t sure_us)
{
	return (struct pool_question){ .bytes = word,
		.len = strlen(word),
		.lane = strncmp(word, "wait", 4) == 0 ? POOL_HEAVY : POOL_FIRST,
		.max_age_us = max_age_us,
		.sure_us = sure_us };
}

/* Asks, waits for the answer if need be, and checks it. */
static enum pool_found ask(const char *word, int64_t max_age_us, int64_t sure_us)
{
	struct pool_question q = asking(word, max_age_us, sure_us);
	struct pool_job *job;
	enum pool_found found = pool_ask(world.pool, &q, &world.woken, &job);
	if (found == POOL_WAIT)
		sem_wait(&world.woken);
	if (job)
		assert_string_equal(job->result, word);
	pool_release(world.pool, job);
	return found;
}

static const int64_t HOUR_US = 3600 * INT64_C(1000000);

static void test_old_answers(void **state)
{
	(void)state;
	assert_int_equal(ask("a", HOUR_US, 0), POOL_WAIT);
	assert_int_equal(ask("a", HOUR_US, 0), POOL_READY);
	assert_int_equal(ask("b", HOUR_US, HOUR_US), POOL_WAIT);
	world.version++; /* the store has changed */
	assert_int_equal(ask("a", HOUR_US, 0), POOL_WAIT);
	assert_int_equal(ask("b", HOUR_US, HOUR_US), POOL_READY);
	assert_int_equal(ask("c", 0, 0), POOL_WAIT);
	assert_int_equal(ask("c", 0, 0), POOL_WAIT);
	assert_int_equal(world.answered, 5);
}

static void test_equal_questions_are_answered_once(void **state)
{
	struct pool_question q = asking("wait", HOUR_US, HOUR_US);
	struct pool_job *jobs[100];
	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(pool_ask(world.pool, &q, &world.woken, &jobs[i]), POOL_WAIT);
	sem_post(&world.go);
	for (int i = 0; i < 100; i++)
		sem_wait(&world.woken);
	for (int i = 0; i < 100; i++) {
		assert_string_equal(jobs[i]->result, "wait");
		pool_release(world.pool, jobs[i]);
	}
	assert_int_equal(world.answered, 1);
}

static void test_a_long_answer_holds_up_no_quick_one(void **state)
{
	struct pool_question one = asking("wait 1", 0, 0), two = asking("wait 2", 0, 0);
	struct pool_job *first, *second;
	(void)state;
	assert_int_equal(pool_ask(world.pool, &one, &world.woken, &first), POOL_WAIT);
	assert_int_equal(pool_ask(world.pool, &two, &world.woken, &second), POOL_WAIT);
	sem_wait(&world.started);
	assert_int_equal(ask("quick", 0, 0), POOL_WAIT);
	assert_int_equal(world.answered, 1);
	sem_post(&world.go);
	sem_post(&world.go);
	sem_wait(&world.woken);
	sem_wait(&world.woken);
	pool_release(world.pool, first);
	pool_release(world.pool, second);
}

static void test_too_many_questions(void **state)
{
	struct pool_job *jobs[200];
	char word[16];
	int waiting = 0, busy = 0;
	(void)state;
	for (int i = 0; i < 200; i++) {
		snprintf(word, sizeof(word), "wait %d", i);
		struct pool_question q = asking(word, HOUR_US, HOUR_US);
		q.client = (uint64_t)i;
		enum pool_found found = pool_ask(world.pool, &q, &world.woken, &jobs[i]);
		waiting += found == POOL_WAIT;
		busy += found == POOL_BUSY;
		assert_int_equal(found == POOL_BUSY, jobs[i] == NULL);
	}
	assert_int_equal(waiting + busy, 200);
	assert_true(busy > 100);
	for (int i = 0; i < waiting; i++)
		sem_post(&world.go);
	for (int i = 0; i < waiting; i++)
		sem_wait(&world.woken);
	for (int i = 0; i < 200; i++)
		pool_release(world.pool, jobs[i]);
	assert_int_equal(ask("again", HOUR_US, 0), POOL_WAIT);
}

/* One client cannot fill the queue, also not that of quick questions, and joins others. */
static void test_a_client_has_a_limit(void **state)
{
	struct pool_job *jobs[6], *other, *same, *quick;
	char words[6][16];
	(void)state;
	for (int i = 0; i < 6; i++) {
		snprintf(words[i], sizeof(words[i]), "wait %d", i);
		struct pool_question q = asking(words[i], 0, 0);
		q.client = 7;
		assert_int_equal(pool_ask(world.pool, &q, &world.woken, &jobs[i]),
			i < 4 ? POOL_WAIT : POOL_GREEDY);
	}
	struct pool_question q = asking("wait other", 0, 0);
	q.client = 8;
	assert_int_equal(pool_ask(world.pool, &q, &world.woken, &other), POOL_WAIT);
	q.client = 7; /* an answer that comes anyway */
	assert_int_equal(pool_ask(world.pool, &q, &world.woken, &same), POOL_WAIT);
	q = asking("quick", 0, 0);
	q.client = 7;
	q.lane = POOL_QUICK;
	assert_int_equal(pool_ask(world.pool, &q, &world.woken, &quick), POOL_WAIT);
	sem_wait(&world.woken);
	assert_int_equal(world.answered, 1);
	assert_int_equal(pool_bytes(world.pool), 10);
	for (int i = 0; i < 5; i++)
		sem_post(&world.go);
	for (int i = 0; i < 6; i++)
		sem_wait(&world.woken);
	for (int i = 0; i < 4; i++)
		pool_release(world.pool, jobs[i]);
	pool_release(world.pool, other);
	pool_release(world.pool, same);
	pool_release(world.pool, quick);
	assert_int_equal(pool_bytes(world.pool), 0);
}

/* Nor do long answers or quick ones of others hold up what comes first. */
static void test_the_first_lane_is_always_open(void **state)
{
	struct pool_job *jobs[300] = { NULL };
	char word[16];
	int waiting = 0;
	(void)state;
	for (int i = 0; i < 300; i++) {
		snprintf(word, sizeof(word), "wait %d", i);
		struct pool_question q = asking(word, HOUR_US, HOUR_US);
		q.client = (uint64_t)i;
		q.lane = i % 2 ? POOL_HEAVY : POOL_QUICK;
		waiting += pool_ask(world.pool, &q, &world.woken, &jobs[i]) == POOL_WAIT;
	}
	struct pool_question q = asking("first", 0, 0);
	struct pool_job *first;
	assert_int_equal(pool_ask(world.pool, &q, &world.woken, &first), POOL_WAIT);
	sem_wait(&world.woken);
	assert_int_equal(world.answered, 1);
	pool_release(world.pool, first);
	for (int i = 0; i < waiting; i++)
		sem_post(&world.go);
	for (int i = 0; i < waiting; i++)
		sem_wait(&world.woken);
	for (int i = 0; i < 300; i++)
		pool_release(world.pool, jobs[i]);
}

static void test_large_answers_are_not_kept(void **state)
{
	char word[16];
	(void)state;
	world.bytes = 2 << 20;
	assert_int_equal(ask("large", HOUR_US, HOUR_US), POOL_WAIT);
	assert_int_equal(ask("large", HOUR_US, HOUR_US), POOL_WAIT);
	assert_int_equal(world.dropped, 2);
	/* More than fits all together: what is kept stays within the limit. */
	world.bytes = 1 << 20;
	for (int i = 0; i < 20; i++) {
		snprintf(word, sizeof(word), "%d", i);
		assert_int_equal(ask(word, HOUR_US, HOUR_US), POOL_WAIT);
	}
	assert_int_equal(world.answered - world.dropped, 2);
	assert_int_equal(ask("19", HOUR_US, HOUR_US), POOL_READY);
	assert_int_equal(ask("15", HOUR_US, HOUR_US), POOL_WAIT);
}

static void *finish_waiting(void *unused)
{
	sem_wait(&world.started);
	sem_post(&world.go);
	sem_post(&world.go);
	return unused;
}

static void test_stopping_wakes_all(void **state)
{
	struct pool_question one = asking("wait 1", 0, 0), two = asking("wait 2", 0, 0);
	struct pool_job *first, *second, *third;
	pthread_t thread;
	(void)state;
	pool_ask(world.pool, &one, &world.woken, &first);
	pool_ask(world.pool, &two, &world.woken, &second);
	pthread_create(&thread, NULL, finish_waiting, NULL);
	pool_stop(world.pool);
	pthread_join(thread, NULL);
	sem_wait(&world.woken);
	sem_wait(&world.woken);
	assert_true(*pool_stopping(world.pool));
	assert_non_null(second->result);
	assert_int_equal(pool_ask(world.pool, &one, &world.woken, &third), POOL_BUSY);
	pool_release(world.pool, first);
	pool_release(world.pool, second);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_old_answers),
		TEST(test_equal_questions_are_answered_once),
		TEST(test_a_long_answer_holds_up_no_quick_one),
		TEST(test_too_many_questions),
		TEST(test_a_client_has_a_limit),
		TEST(test_the_first_lane_is_always_open),
		TEST(test_large_answers_are_not_kept),
		TEST(test_stopping_wakes_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

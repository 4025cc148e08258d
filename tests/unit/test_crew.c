/* The crew: results come in the order of the items, whatever the threads do. */
#include "test.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/crew.h"

enum { ITEMS = 200 };

struct task {
	atomic_size_t worked, at_once, most;
	int results[ITEMS];
	size_t taken, stop_at;
};

static void work(void *context, size_t item)
{
	struct task *t = context;
	size_t now = atomic_fetch_add(&t->at_once, 1) + 1, most = t->most;
	while (now > most && !atomic_compare_exchange_weak(&t->most, &most, now))
		;
	usleep(item % 7 == 0 ? 300 : 10);
	t->results[item] = (int)item + 1;
	atomic_fetch_add(&t->worked, 1);
	atomic_fetch_sub(&t->at_once, 1);
}

static bool take(void *context, size_t item)
{
	struct task *t = context;
	assert_int_equal(item, t->taken);
	assert_int_equal(t->results[item], (int)item + 1);
	t->taken++;
	return item != t->stop_at;
}

static void run(struct task *t, size_t n, size_t threads)
{
	const struct crew crew = { n, work, take, t };
	crew_run(&crew, threads);
	assert_int_equal(t->taken, t->worked);
	assert_true(t->most <= threads);
}

static void results_come_in_order(void **state)
{
	(void)state;
	for (size_t threads = 1; threads <= CREW_MAX; threads *= 2) {
		struct task t = { .stop_at = ITEMS };
		run(&t, ITEMS, threads);
		assert_int_equal(t.taken, ITEMS);
	}
}

static void there_may_be_nothing_to_do(void **state)
{
	(void)state;
	struct task t = { .stop_at = ITEMS };
	run(&t, 0, 4);
	run(&t, 1, 4);
	assert_int_equal(t.taken, 1);
}

/* What is in work when it ends early is still taken. */
static void it_ends_early(void **state)
{
	(void)state;
	struct task t = { .stop_at = 20 };
	run(&t, ITEMS, 4);
	assert_true(t.taken > 20 && t.taken <= 20 + 4);
}

static void a_processor_is_there(void **state)
{
	(void)state;
	assert_true(crew_size() >= 1 && crew_size() <= CREW_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_come_in_order),
		cmocka_unit_test(there_may_be_nothing_to_do),
		cmocka_unit_test(it_ends_early),
		cmocka_unit_test(a_processor_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Connections of the web server: what is late is shut down, and what is too much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/connections.h"

enum { HOUR_MS = 3600 * 1000 };

/* A connection, and its other end. */
struct end {
	struct connection one;
	int other;
};

static struct connections *open_with(size_t max_all, size_t max_of_client)
{
	struct connections *c;
	struct err e = { 0 };
	assert_int_equal(connections_open(&c, max_all, max_of_client, &e), 0);
	return c;
}

static void add(struct connections *c, struct end *end, uint64_t client)
{
	int both[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
	end->one = (struct connection){ .fd = both[0], .client = client };
	end->other = both[1];
	connections_add(c, &end->one, HOUR_MS);
}

static bool is_open(const struct end *end)
{
	struct pollfd poller = { .fd = end->other, .events = POLLIN };
	return poll(&poller, 1, 0) == 0;
}

static void finish(struct connections *c, struct end *ends, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		connections_remove(c, &ends[i].one);
		close(ends[i].one.fd);
		close(ends[i].other);
	}
	connections_close(c);
}

static void test_late_is_cut(void **state)
{
	struct connections *c = open_with(10, 10);
	struct end ends[2];
	char byte;
	(void)state;
	add(c, &ends[0], 1);
	add(c, &ends[1], 1);
	connections_set(c, &ends[0].one, CONNECTION_READING, 1, 0);
	assert_int_equal(read(ends[0].other, &byte, 1), 0); /* waits for the end */
	assert_true(is_open(&ends[1]));
	finish(c, ends, 2);
}

/* Lets connections have been what they are for a minute. */
static void age(struct end *ends, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ends[i].one.since_us -= INT64_C(60000000);
}

/* One too many closes another of the same client: one that does nothing, the oldest; and who
 * has just come last. */
static void test_a_client_has_a_limit(void **state)
{
	struct connections *c = open_with(10, 3);
	struct end ends[6];
	(void)state;
	add(c, &ends[0], 1);
	add(c, &ends[1], 1);
	add(c, &ends[2], 1);
	add(c, &ends[3], 2);
	connections_set(c, &ends[0].one, CONNECTION_WAITING, HOUR_MS, 0);
	connections_set(c, &ends[1].one, CONNECTION_READING, HOUR_MS, 5);
	age(ends, 4);
	add(c, &ends[4], 1);
	assert_false(is_open(&ends[2]));
	add(c, &ends[5], 1);
	assert_false(is_open(&ends[1]));
	assert_true(is_open(&ends[0]) && is_open(&ends[3]) && is_open(&ends[4]) &&
		    is_open(&ends[5]));
	finish(c, ends, 6);
}

/* When all are taken, the client with the most gives one up. */
static void test_a_newcomer_is_let_in(void **state)
{
	struct connections *c = open_with(5, 5);
	struct end ends[8];
	(void)state;
	add(c, &ends[0], 2); /* older than all */
	for (int i = 1; i < 5; i++)
		add(c, &ends[i], 1);
	add(c, &ends[5], 3);
	assert_false(is_open(&ends[1]));
	add(c, &ends[6], 3);
	assert_false(is_open(&ends[2]));
	assert_true(is_open(&ends[0]) && is_open(&ends[3]) && is_open(&ends[4]) &&
		    is_open(&ends[5]) && is_open(&ends[6]));
	/* A proxy stands for many. */
	ends[3].one.unlimited = ends[4].one.unlimited = true;
	add(c, &ends[7], 4);
	assert_false(is_open(&ends[5]));
	finish(c, ends, 8);
}

static void test_memory_is_given_back(void **state)
{
	struct connections *c = open_with(10, 10);
	struct end ends[5];
	(void)state;
	for (int i = 0; i < 5; i++) {
		add(c, &ends[i], i == 0 ? 2 : 1);
		connections_set(c, &ends[i].one, CONNECTION_READING, HOUR_MS, 100);
	}
	connections_give_back(c, &ends[4].one, 150);
	assert_false(is_open(&ends[1]) || is_open(&ends[2]));
	assert_true(is_open(&ends[0]) && is_open(&ends[3]) && is_open(&ends[4]));
	connections_set(c, &ends[3].one, CONNECTION_QUIET, HOUR_MS, 0);
	connections_give_back(c, &ends[4].one, 1000);
	assert_false(is_open(&ends[0]));
	assert_true(is_open(&ends[3]) && is_open(&ends[4]));
	finish(c, ends, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_is_cut),
		cmocka_unit_test(test_a_client_has_a_limit),
		cmocka_unit_test(test_a_newcomer_is_let_in),
		cmocka_unit_test(test_memory_is_given_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Deadlines of connections: what is late is shut down, what is not stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/deadlines.h"

static void test_late_is_cut(void **state)
{
	struct deadlines *d;
	struct err e = { 0 };
	int late[2], early[2];
	char byte;
	(void)state;
	assert_int_equal(deadlines_open(&d, &e), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, late), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, early), 0);
	struct deadline *one = deadline_begin(d, late[0], 3600 * 1000);
	struct deadline *two = deadline_begin(d, early[0], 0);
	struct deadline *three = deadline_begin(d, early[0], 3600 * 1000);
	deadline_set(two, 3600 * 1000);
	deadline_set(one, 1);
	assert_int_equal(read(late[1], &byte, 1), 0); /* waits for the end */
	struct pollfd open = { .fd = early[1], .events = POLLIN };
	assert_int_equal(poll(&open, 1, 0), 0);
	deadline_end(d, two);
	deadline_end(d, one);
	deadline_end(d, three);
	deadline_end(d, NULL);
	deadline_set(NULL, 1);
	deadlines_close(d);
	for (int i = 0; i < 2; i++) {
		close(late[i]);
		close(early[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Names of users: cached, refreshed, and never waited for longer than the deadline. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "proc/user.h"

#define SECOND INT64_C(1000000)
#define SECOND_NS (1000 * SECOND)

/* A user database: counts what it is asked and can be made to hang. It is in static storage
 * because its threads may outlive a test. */
struct directory {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool hangs;
	bool has_name;
	int asked;
	const char *name;
};

static bool find_in(void *context, uint32_t uid, char *name, size_t cap)
{
	struct directory *d = context;
	pthread_mutex_lock(&d->lock);
	d->asked++;
	while (d->hangs)
		pthread_cond_wait(&d->changed, &d->lock);
	bool found = d->has_name;
	snprintf(name, cap, "%s%u", d->name, uid);
	pthread_mutex_unlock(&d->lock);
	return found;
}

static void set_directory(struct directory *d, bool hangs, bool has_name)
{
	pthread_mutex_lock(&d->lock);
	d->hangs = hangs;
	d->has_name = has_name;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

static int asked(struct directory *d)
{
	pthread_mutex_lock(&d->lock);
	int n = d->asked;
	pthread_mutex_unlock(&d->lock);
	return n;
}

static void expect_name(
	struct user_names *u, uint32_t uid, int64_t now_us, const char *expected)
{
	char name[64];
	user_names_get(u, uid, now_us, name, sizeof(name));
	assert_string_equal(name, expected);
}

static void test_cache(void **state)
{
	(void)state;
	static struct directory d = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
		false, true, 0, "al\nice" };
	struct user_names *u = NULL;
	assert_int_equal(user_names_new(&u, find_in, &d, 60000, NULL), 0);
	expect_name(u, 7, 0, "al\\x0Aice7");
	expect_name(u, 7, 3599 * SECOND, "al\\x0Aice7");
	assert_int_equal(asked(&d), 1);
	set_directory(&d, false, false);
	expect_name(u, 7, 3600 * SECOND, "al\\x0Aice7"); /* asked again; the name is kept */
	assert_int_equal(asked(&d), 2);
	expect_name(u, 8, 0, "uid:8");
	expect_name(u, 8, 299 * SECOND, "uid:8");
	assert_int_equal(asked(&d), 3);
	set_directory(&d, false, true);
	expect_name(u, 8, 300 * SECOND, "al\\x0Aice8");
	assert_int_equal(asked(&d), 4);
	user_names_free(u);
}

/* What SIGHUP asks for: users who had no name get it, and those who are gone keep theirs. */
static void test_expire(void **state)
{
	(void)state;
	static struct directory d = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
		false, false, 0, "u" };
	struct user_names *u = NULL;
	assert_int_equal(user_names_new(&u, find_in, &d, 60000, NULL), 0);
	expect_name(u, 7, 0, "uid:7");
	set_directory(&d, false, true);
	expect_name(u, 7, 0, "uid:7");
	user_names_expire(u);
	expect_name(u, 7, 0, "u7");
	set_directory(&d, false, false);
	user_names_expire(u);
	expect_name(u, 7, 0, "u7");
	assert_int_equal(asked(&d), 3);
	user_names_free(u);
}

static void test_more_users_than_places(void **state)
{
	(void)state;
	static struct directory d = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
		false, true, 0, "u" };
	struct user_names *u = NULL;
	char expected[16];
	assert_int_equal(user_names_new(&u, find_in, &d, 60000, NULL), 0);
	for (uint32_t uid = 0; uid < 300; uid++) {
		snprintf(expected, sizeof(expected), "u%u", uid);
		expect_name(u, uid, uid, expected);
	}
	expect_name(u, 299, 300, "u299");
	assert_int_equal(asked(&d), 300);
	expect_name(u, 0, 301, "u0"); /* had been pushed out */
	assert_int_equal(asked(&d), 301);
	user_names_free(u);
}

/* Asks until the answer of the released thread has come; a minute is for a very busy machine.
 */
static void wait_for_name(struct user_names *u, uint32_t uid, const char *expected)
{
	char name[64] = "";
	for (int i = 0; i < 60000 && strcmp(name, expected) != 0; i++) {
		user_names_get(u, uid, 0, name, sizeof(name));
		if (strcmp(name, expected) != 0)
			usleep(1000);
	}
	assert_string_equal(name, expected);
}

static void test_directory_hangs(void **state)
{
	(void)state;
	static struct directory d = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, true,
		true, 0, "u" };
	struct user_names *u = NULL;
	assert_int_equal(user_names_new(&u, find_in, &d, 10, NULL), 0);
	expect_name(u, 7, 0, "uid:7");
	expect_name(u, 7, 0, "uid:7"); /* the same lookup is still under way */
	expect_name(u, 8, 0, "uid:8");
	for (uint32_t uid = 100; uid < 120; uid++) { /* no more threads than 8 */
		char expected[16];
		snprintf(expected, sizeof(expected), "uid:%u", uid);
		expect_name(u, uid, 0, expected);
	}
	set_directory(&d, false, true);
	wait_for_name(u, 7, "u7");
	wait_for_name(u, 8, "u8");
	wait_for_name(u, 119, "u119");
	assert_true(asked(&d) <= 8 + 1);
	user_names_free(u);
}

/* Overdue lookups are not waited for one after the other: a hanging directory costs one
 * deadline, not one for each user. */
static void test_one_deadline_for_all(void **state)
{
	(void)state;
	static struct directory d = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, true,
		true, 0, "u" };
	struct user_names *u = NULL;
	struct timespec before, after;
	/* Six of them are so long that no busy machine takes it for six threads. */
	assert_int_equal(user_names_new(&u, find_in, &d, 1000, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &before);
	expect_name(u, 1, 0, "uid:1");
	clock_gettime(CLOCK_MONOTONIC, &after);
	int64_t one_ns =
		(after.tv_sec - before.tv_sec) * SECOND_NS + after.tv_nsec - before.tv_nsec;
	assert_true(one_ns >= SECOND_NS);
	for (uint32_t uid = 2; uid < 8; uid++) {
		char name[64];
		user_names_get(u, uid, 0, name, sizeof(name));
	}
	clock_gettime(CLOCK_MONOTONIC, &before);
	int64_t six_ns =
		(before.tv_sec - after.tv_sec) * SECOND_NS + before.tv_nsec - after.tv_nsec;
	assert_true(six_ns < 6 * SECOND_NS);
	user_names_free(u); /* while all seven hang: each thread frees its own request */
	set_directory(&d, false, true);
}

/* A tenth of a second for each user is in time for one, and not for many. */
static bool find_slowly(void *context, uint32_t uid, char *name, size_t cap)
{
	usleep(100 * 1000);
	return find_in(context, uid, name, cap);
}

static void test_a_slow_directory(void **state)
{
	(void)state;
	static struct directory d = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
		false, true, 0, "u" };
	struct user_names *u = NULL;
	char name[64];
	assert_int_equal(user_names_new(&u, find_slowly, &d, 300, NULL), 0);
	for (uint32_t uid = 1; uid < 4; uid++)
		user_names_get(u, uid, 0, name, sizeof(name));
	expect_name(u, 4, 0, "uid:4"); /* the three have taken all of the time */
	expect_name(u, 5, 0, "uid:5");
	assert_true(user_names_are_late(u));
	wait_for_name(u, 4, "u4");
	wait_for_name(u, 5, "u5");
	/* Ten seconds later there is time again. */
	user_names_get(u, 6, 10 * SECOND, name, sizeof(name));
	wait_for_name(u, 6, "u6");
	user_names_free(u);
}

static void test_system(void **state)
{
	(void)state;
	struct user_names *u = NULL;
	assert_int_equal(user_names_new(&u, user_find_system, NULL, 60000, NULL), 0);
	expect_name(u, 0, 0, "root");
	expect_name(u, 3999999999U, 0, "uid:3999999999");
	user_names_free(u);
}

static void test_passwd(void **state)
{
	(void)state;
	static const char text[] = "root:x:0:0:root:/root:/bin/sh\n"
				   "\n"
				   "#x:x:7:7\n"
				   "+::7:::\n"
				   ":x:7:7::\n"
				   "short:x:7\n"
				   "minus:x:-7:7\n"
				   "zeros:x:007:7::\n"
				   "seven:x:7:7::/:\n"
				   "again:x:7:7::/:\n"
				   "last:x:8:8::/";
	char name[8];
	assert_true(user_find_in_passwd(text, sizeof(text) - 1, 7, name, sizeof(name)));
	assert_string_equal(name, "seven");
	assert_true(user_find_in_passwd(text, sizeof(text) - 1, 8, name, sizeof(name)));
	assert_string_equal(name, "last");
	assert_true(user_find_in_passwd(text, sizeof(text) - 1, 0, name, 3));
	assert_string_equal(name, "ro");
	assert_false(user_find_in_passwd(text, sizeof(text) - 1, 9, name, sizeof(name)));
	assert_false(user_find_in_passwd(text, 0, 0, name, sizeof(name)));
}

static void test_file(void **state)
{
	(void)state;
	struct user_names *u = NULL;
	char *bytes = strdup("alice:x:1000:1000::/:\n");
	assert_int_equal(user_names_new_file(&u, bytes, strlen(bytes), NULL), 0);
	expect_name(u, 1000, 0, "alice");
	expect_name(u, 1001, 0, "uid:1001");
	user_names_free(u);
	user_names_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_expire),
		cmocka_unit_test(test_more_users_than_places),
		cmocka_unit_test(test_directory_hangs),
		cmocka_unit_test(test_one_deadline_for_all),
		cmocka_unit_test(test_a_slow_directory),
		cmocka_unit_test(test_system),
		cmocka_unit_test(test_passwd),
		cmocka_unit_test(test_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

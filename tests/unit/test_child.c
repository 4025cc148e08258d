/* Other programs: their input and output, how they end, and that none outlives its deadline. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"

static struct child_result run(const char *const *argv, const char *input, int64_t timeout_ms)
{
	struct child_result r;
	struct err e = { 0 };
	const struct child_command c = { .argv = argv,
		.input = input,
		.input_len = input ? strlen(input) : 0,
		.timeout_ms = timeout_ms };
	assert_int_equal(child_run(&c, &r, &e), 0);
	return r;
}

static void test_input_and_output(void **state)
{
	(void)state;
	const char *cat[] = { "cat", NULL };
	struct child_result r = run(cat, "one\033[2Jtwo\n", 60000);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.output, "one\\x1B[2Jtwo");
	r = run(cat, NULL, 60000);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.output, "");
}

/* A vector, not a line for a shell: nothing in an argument means anything. */
static void test_arguments(void **state)
{
	(void)state;
	const char *echo[] = { "echo", "$HOME; `id` *", NULL };
	struct child_result r = run(echo, NULL, 60000);
	assert_string_equal(r.output, "$HOME; `id` *");
	const char *env[] = { "sh", "-c", "echo $GUA_UNSEEN-$LC_ALL", NULL };
	setenv("GUA_UNSEEN", "seen", 1);
	r = run(env, NULL, 60000);
	assert_string_equal(r.output, "-C.UTF-8");
}

/* A program that does not read gets no signal for us and no deadlock. */
static void test_unread_input(void **state)
{
	(void)state;
	const char *no[] = { "true", NULL };
	char *much = calloc(1, 1 << 20);
	memset(much, 'x', (1 << 20) - 1);
	signal(SIGPIPE, SIG_IGN);
	struct child_result r = run(no, much, 60000);
	assert_int_equal(r.status, 0);
	const char *cat[] = { "cat", NULL };
	r = run(cat, much, 60000);
	assert_int_equal(r.status, 0);
	free(much);
}

static void test_endings(void **state)
{
	(void)state;
	char text[256];
	const char *three[] = { "sh", "-c", "echo no such job >&2; exit 3", NULL };
	struct child_result r = run(three, NULL, 60000);
	assert_int_equal(r.status, 3);
	child_result_text(text, sizeof(text), "scancel", &r);
	assert_string_equal(text, "scancel ended with status 3: no such job");
	const char *suicide[] = { "sh", "-c", "kill -TERM $$", NULL };
	r = run(suicide, NULL, 60000);
	assert_int_equal(r.signal, SIGTERM);
	child_result_text(text, sizeof(text), "scancel", &r);
	assert_string_equal(text, "scancel was ended by signal 15");
}

static void test_deadline(void **state)
{
	(void)state;
	char text[256];
	/* It ignores SIGTERM, and its child keeps the pipe open. */
	const char *slow[] = { "sh", "-c", "trap '' TERM; sleep 600 & sleep 600", NULL };
	int64_t before_us = clock_monotonic_us();
	struct child_result r = run(slow, NULL, 100);
	assert_true(r.timed_out);
	assert_true(clock_monotonic_us() - before_us < 300 * INT64_C(1000000));
	child_result_text(text, sizeof(text), "sendmail", &r);
	assert_string_equal(text, "sendmail did not end in time and was killed");
}

static void test_not_started(void **state)
{
	(void)state;
	struct child_result r;
	struct err e = { 0 };
	const char *nothing[] = { "/nonexistent/sendmail", NULL };
	const struct child_command c = { .argv = nothing, .timeout_ms = 1000 };
	assert_int_equal(child_run(&c, &r, &e), ERR_WORLD);
	assert_string_equal(
		e.text, "cannot run /nonexistent/sendmail: No such file or directory");
}

/* The output goes to a file, up to a limit; errors are kept. */
static void test_output_file(void **state)
{
	(void)state;
	const char *lines[] = { "sh", "-c", "echo one; echo two >&2; printf 12345", NULL };
	char path[] = "/tmp/gua-test-child-XXXXXX", found[32] = "";
	struct child_result r;
	struct err e = { 0 };
	int fd = mkstemp(path);
	unlink(path);
	struct child_command c = {
		.argv = lines, .output_fd = fd, .output_max = 100, .timeout_ms = 60000
	};
	assert_int_equal(child_run(&c, &r, &e), 0);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.output, "two");
	assert_int_equal(pread(fd, found, sizeof(found), 0), 9);
	assert_memory_equal(found, "one\n12345", 9);
	const char *much[] = { "head", "-c", "5000", "/dev/zero", NULL };
	c.argv = much;
	assert_int_equal(child_run(&c, &r, &e), 0);
	assert_int_equal(r.status, 1);
	assert_int_equal(lseek(fd, 0, SEEK_END), 100);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_input_and_output),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_unread_input),
		cmocka_unit_test(test_endings),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_not_started),
		cmocka_unit_test(test_output_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

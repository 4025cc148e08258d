/* A process for what may block: requests and replies, a helper that is stuck, one that dies,
 * and what it must not hold. */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/helper.h"
#include "base/log.h"

enum { PATIENCE_MS = 60000 };

/* Does what the first word of the request says. */
static void serve(void *context, const struct str *request, struct str *reply)
{
	const char *text = str_text(request);
	if (strcmp(text, "stuck") == 0)
		for (;;)
			pause();
	if (strcmp(text, "die") == 0)
		abort();
	if (strcmp(text, "large") == 0)
		str_add_repeat(reply, "0123456789abcdef", 1 << 18);
	else if (strcmp(text, "log") == 0)
		log_warning("from the helper");
	else if (strcmp(text, "files") == 0)
		for (int i = 0; i < 64; i++)
			str_add(reply, fcntl(i, F_GETFD) >= 0 ? "1" : "0");
	else if (strcmp(text, "place") == 0)
		str_addf(reply, "%s", *(char **)context);
	else
		str_addf(reply, "%zu:%s", request->len, text);
}

static struct helper_place *seen_place;

static void begin(void *context, struct helper_place *place)
{
	(void)context;
	seen_place = place;
	str_copy(place->text, sizeof(place->text), "card\n0");
}

static struct helper *start(void)
{
	static char *context = "as it was";
	struct helper *h = NULL;
	struct err e = { 0 };
	const struct helper_work work = {
		.name = "gua-test", .serve = serve, .begin = begin, .context = &context
	};
	assert_int_equal(helper_new(&h, &work, &e), 0);
	return h;
}

static int call(struct helper *h, const char *text, const struct str **reply, struct err *e)
{
	int rc = helper_send(h, text, strlen(text), e);
	return rc ? rc : helper_receive(h, PATIENCE_MS, reply, e);
}

static void test_answers(void **state)
{
	(void)state;
	struct helper *h = start();
	const struct str *reply = NULL;
	struct err e = { 0 };
	for (int i = 0; i < 100; i++) {
		assert_int_equal(call(h, "hello", &reply, &e), 0);
		assert_string_equal(str_text(reply), "5:hello");
	}
	assert_int_equal(call(h, "", &reply, &e), 0);
	assert_string_equal(str_text(reply), "0:");
	assert_int_equal(call(h, "place", &reply, &e), 0);
	assert_string_equal(str_text(reply), "as it was");
	assert_int_equal(call(h, "large", &reply, &e), 0);
	assert_int_equal(reply->len, 16 << 18);
	assert_int_equal(memcmp(reply->data + reply->len - 16, "0123456789abcdef", 16), 0);
	char where[HELPER_PLACE_CAP];
	helper_where(h, where, sizeof(where));
	assert_string_equal(where, "card\\x0A0");
	assert_int_equal(helper_free(h, PATIENCE_MS), -1);
}

/* It has its socket and /dev/null: no lock, no pipe, no store of its owner. */
static void test_holds_nothing(void **state)
{
	(void)state;
	int fd = open("/proc/self/stat", O_RDONLY);
	struct helper *h = start();
	const struct str *reply = NULL;
	assert_int_equal(call(h, "files", &reply, NULL), 0);
	assert_int_equal(strncmp(str_text(reply), "11110000", 8), 0);
	assert_null(strchr(str_text(reply) + 4, '1'));
	close(fd);
	assert_int_equal(helper_free(h, PATIENCE_MS), -1);
}

/* It ends by itself while its owner does something else. */
static void test_is_dismissed(void **state)
{
	(void)state;
	struct helper *h = start();
	const struct str *reply = NULL;
	siginfo_t info = { 0 };
	assert_int_equal(call(h, "hello", &reply, NULL), 0);
	helper_dismiss(h);
	assert_int_equal(waitid(P_PID, (id_t)helper_pid(h), &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, CLD_EXITED);
	assert_int_equal(helper_free(h, 0), -1);
}

static struct {
	int level;
	char text[64];
} logged;

static void keep_line(void *context, enum log_level level, const char *text)
{
	(void)context;
	logged.level = (int)level;
	str_copy(logged.text, sizeof(logged.text), text);
}

static void test_logs_through_its_owner(void **state)
{
	(void)state;
	log_divert(keep_line, NULL);
	struct helper *h = start();
	const struct str *reply = NULL;
	int rc = call(h, "log", &reply, NULL);
	log_divert(NULL, NULL);
	assert_int_equal(rc, 0);
	assert_int_equal(reply->len, 0);
	assert_int_equal(logged.level, LOG_LEVEL_WARNING);
	assert_string_equal(logged.text, "from the helper");
	assert_int_equal(helper_free(h, PATIENCE_MS), -1);
}

/* The owner goes on, and ends the helper by force. */
static void test_stuck(void **state)
{
	(void)state;
	struct helper *h = start();
	const struct str *reply = NULL;
	struct err e = { 0 };
	pid_t pid = helper_pid(h);
	assert_int_equal(helper_send(h, "stuck", 5, &e), 0);
	assert_int_equal(helper_receive(h, 10, &reply, &e), ERR_BUSY);
	assert_int_equal(helper_send(h, "stuck", 5, &e), ERR_BUSY);
	/* Signals of a terminal or a service manager do not end it, its owner does. */
	kill(pid, SIGTERM);
	kill(pid, SIGINT);
	assert_int_equal(helper_receive(h, 10, &reply, &e), ERR_BUSY);
	int left = helper_free(h, 0);
	struct pollfd exit = { .fd = left, .events = POLLIN };
	if (left >= 0) {
		assert_int_equal(poll(&exit, 1, PATIENCE_MS), 1);
		assert_true(helper_is_gone(left));
	}
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
}

static void test_dies(void **state)
{
	(void)state;
	struct helper *h = start();
	const struct str *reply = NULL;
	struct err e = { 0 };
	assert_int_equal(call(h, "die", &reply, &e), ERR_WORLD);
	assert_non_null(strstr(e.text, "gua-test"));
	assert_int_equal(call(h, "hello", &reply, &e), ERR_WORLD);
	assert_int_equal(helper_free(h, PATIENCE_MS), -1);
}

/* A helper does not outlive its owner, however the owner ends. */
static void test_owner_dies(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t owner = fork();
	if (owner == 0) {
		struct helper *h = start();
		pid_t pid = helper_pid(h);
		helper_send(h, "stuck", 5, NULL);
		if (write(ends[1], &pid, sizeof(pid)) == sizeof(pid))
			pause();
		_exit(1);
	}
	pid_t pid = 0;
	assert_int_equal(read(ends[0], &pid, sizeof(pid)), sizeof(pid));
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	bool alive = true;
	for (int i = 0; alive && i < PATIENCE_MS; i++) {
		char path[64], line[256] = "";
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		FILE *f = fopen(path, "r");
		alive = f && fgets(line, sizeof(line), f) && !strstr(line, ") Z ");
		if (f)
			fclose(f);
		usleep(1000);
	}
	assert_false(alive);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_holds_nothing),
		cmocka_unit_test(test_is_dismissed),
		cmocka_unit_test(test_logs_through_its_owner),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_dies),
		cmocka_unit_test(test_owner_dies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

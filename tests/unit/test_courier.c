/* Deliveries in processes of their own: through real programs and sockets, in time. */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/courier.h"

static char directory[] = "/tmp/gua-courier-XXXXXX";

static struct config_notices config(void)
{
	return (struct config_notices){ .channels = "mail webhook command login",
		.templates = "/nonexistent",
		.timeout_ms = 60000,
		.webhook_kind = "generic",
		.command_user = "nobody",
		.login_directory = directory };
}

/* Writes an executable file. */
static const char *script(const char *name, const char *text)
{
	static char path[128];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *file = fopen(path, "w");
	fprintf(file, "#!/bin/sh\n%s\n", text);
	fclose(file);
	chmod(path, 0755);
	return path;
}

static struct courier_result wait_for(struct courier *c)
{
	struct courier_result r;
	struct pollfd fds[COURIER_MOST];
	while (!courier_next(c, &r)) {
		assert_true(courier_wait_ms(c) >= 0);
		poll(fds, courier_fds(c, fds), (int)courier_wait_ms(c));
	}
	return r;
}

static struct courier_result deliver_with(const struct config_notices *config,
	enum channel channel, const struct post_program *post)
{
	struct courier *c = NULL;
	struct err e = { 0 };
	struct notice n;
	notice_init(&n, NOTICE_TEST);
	strcpy(n.user, "alice");
	strcpy(n.host, "gpu07");
	assert_int_equal(courier_new(&c, config, post, &e), 0);
	assert_int_equal(courier_wait_ms(c), -1);
	assert_int_equal(courier_send(c, 42, channel, &n, &e), 0);
	struct courier_result r = wait_for(c);
	assert_int_equal(r.ticket, 42);
	assert_int_equal(r.channel, channel);
	assert_int_equal(courier_wait_ms(c), -1);
	courier_free(c);
	return r;
}

static struct courier_result deliver(const struct config_notices *config, enum channel channel)
{
	return deliver_with(config, channel, NULL);
}

static void read_file(const char *name, char *dst, size_t cap)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	dst[fread(dst, 1, cap - 1, file)] = '\0';
	fclose(file);
}

static void test_mail(void **state)
{
	(void)state;
	char text[4096], sendmail[256];
	struct config_notices c = config();
	snprintf(text, sizeof(text), "echo \"$@\" > %s/mail; cat >> %s/mail", directory,
		directory);
	snprintf(sendmail, sizeof(sendmail), "%s", script("sendmail", text));
	c.sendmail = sendmail;
	c.mail_domain = "example.org";
	struct courier_result r = deliver(&c, CHANNEL_MAIL);
	assert_int_equal(r.delivery, DELIVERY_DONE);
	assert_string_equal(r.text, "to alice@example.org");
	read_file("mail", text, sizeof(text));
	assert_memory_equal(text, "-i -t\nTo: alice@example.org\nSubject: [gua] gpu07", 46);
	assert_non_null(strstr(text, "\n\nThis is a test of the notices of gua on gpu07"));
	c.sendmail = script("down", "echo queue is full >&2; exit 75");
	r = deliver(&c, CHANNEL_MAIL);
	assert_int_equal(r.delivery, DELIVERY_FAILED);
	assert_non_null(strstr(r.text, "ended with status 75: queue is full"));
	c.sendmail = "/nonexistent/sendmail";
	r = deliver(&c, CHANNEL_MAIL);
	assert_int_equal(r.delivery, DELIVERY_FAILED);
	assert_non_null(strstr(r.text, "No such file"));
}

/* One that never ends is ended, and nothing of it is left. */
static void test_deadline(void **state)
{
	(void)state;
	struct config_notices c = config();
	c.timeout_ms = 200;
	c.sendmail = script("hangs", "trap '' TERM; exec sleep 600.25");
	struct courier_result r = deliver(&c, CHANNEL_MAIL);
	assert_int_equal(r.delivery, DELIVERY_FAILED);
	assert_non_null(strstr(r.text, "did not end in time"));
	assert_int_not_equal(system("pgrep -fx 'sleep 600.25' >/dev/null"), 0);
}

static void test_command(void **state)
{
	(void)state;
	char text[4096], command[512];
	struct config_notices c = config();
	chmod(directory, 0777);
	snprintf(text, sizeof(text), "echo \"$#:$1:$2\" > %s/json; cat >> %s/json", directory,
		directory);
	snprintf(command, sizeof(command), "%s 'one word' \\$HOME", script("tell", text));
	c.command = command;
	struct courier_result r = deliver(&c, CHANNEL_COMMAND);
	assert_int_equal(r.delivery, DELIVERY_DONE);
	read_file("json", text, sizeof(text));
	assert_memory_equal(text, "2:one word:$HOME\n{\"kind\":\"test\"", 31);
	assert_non_null(strstr(text, "\"user\":\"alice\""));
	if (geteuid() == 0) {
		struct stat st;
		snprintf(text, sizeof(text), "%s/json", directory);
		assert_int_equal(stat(text, &st), 0);
		assert_int_not_equal(st.st_uid, 0);
		c.command_user = "root";
		r = deliver(&c, CHANNEL_COMMAND);
		assert_int_equal(r.delivery, DELIVERY_FAILED);
		assert_non_null(strstr(r.text, "must not run as root"));
	}
	c.command = "'";
	assert_int_equal(deliver(&c, CHANNEL_COMMAND).delivery, DELIVERY_FAILED);
}

static void test_terminal_and_login(void **state)
{
	(void)state;
	char text[4096];
	struct config_notices c = config();
	struct courier_result r = deliver(&c, CHANNEL_TERMINAL);
	assert_int_equal(r.delivery, DELIVERY_NOBODY);
	assert_string_equal(r.text, "alice has no terminal that accepts messages");
	r = deliver(&c, CHANNEL_LOGIN);
	assert_int_equal(r.delivery, DELIVERY_DONE);
	read_file("alice", text, sizeof(text));
	assert_memory_equal(text, "[gua] gpu07: a test\nThis is a test", 34);
}

static struct courier_result post(const struct config_notices *config, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s", script("gua-post", text));
	const struct post_program program = { path, NULL };
	return deliver_with(config, CHANNEL_WEBHOOK, &program);
}

/* What gua-post is given, and what becomes of its answers; a real one is in test_notices.py. */
static void test_webhook(void **state)
{
	(void)state;
	char text[8192];
	struct config_notices c = config();
	struct post_request request;
	struct err e = { 0 };
	c.webhook_url = "https://example.org/secret";
	snprintf(text, sizeof(text), "echo $# > %s/args; cat > %s/request; echo status 200",
		directory, directory);
	struct courier_result r = post(&c, text);
	assert_int_equal(r.delivery, DELIVERY_DONE);
	assert_string_equal(r.text, "status 200");
	read_file("args", text, sizeof(text));
	assert_string_equal(text, "0\n"); /* others can read a command line */
	read_file("request", text, sizeof(text));
	assert_int_equal(post_read(&request, text, strlen(text), &e), 0);
	assert_string_equal(request.url, "https://example.org/secret");
	assert_string_equal(request.header, "");
	assert_int_equal(request.timeout_ms, POST_LONGEST_MS);
	assert_memory_equal(request.body, "{\"kind\":\"test\"", 14);
	r = post(&c, "cat > /dev/null; echo status 500; exit 1");
	assert_int_equal(r.delivery, DELIVERY_FAILED);
	assert_string_equal(r.text, "status 500");
	r = post(&c, "exit 3");
	assert_int_equal(r.delivery, DELIVERY_FAILED);
	assert_string_equal(r.text, "gua-post ended with status 3");
	c.timeout_ms = 100;
	r = post(&c, "trap '' TERM; exec sleep 600.75");
	assert_int_equal(r.delivery, DELIVERY_FAILED);
	assert_string_equal(r.text, "gua-post did not end in time and was killed");
	assert_int_not_equal(system("pgrep -fx 'sleep 600.75' >/dev/null"), 0);
	r = deliver(&c, CHANNEL_WEBHOOK);
	assert_int_equal(r.delivery, DELIVERY_FAILED);
	assert_non_null(strstr(r.text, "gua-post, which sends webhooks, is not installed"));
}

static void test_secret(void **state)
{
	(void)state;
	char text[8192], key[128];
	struct config_notices c = config();
	struct post_request request;
	struct err e = { 0 };
	c.webhook_url = "https://example.org/";
	c.webhook_secret = "/nonexistent";
	assert_non_null(strstr(post(&c, "exit 0").text, "/nonexistent"));
	snprintf(key, sizeof(key), "%s", script("key", "x"));
	c.webhook_secret = key;
	assert_non_null(strstr(post(&c, "exit 0").text, "others can read the secret"));
	chmod(key, 0600);
	snprintf(text, sizeof(text), "cat > %s/request", directory);
	assert_int_equal(post(&c, text).delivery, DELIVERY_DONE);
	read_file("request", text, sizeof(text));
	assert_int_equal(post_read(&request, text, strlen(text), &e), 0);
	assert_memory_equal(request.header, "X-Gua-Signature: sha256=", 24);
	assert_int_equal(strlen(request.header), 24 + 64);
}

static void test_requests(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "\n\n\n", "100\nu\nh", "100\n\nh\n", "x\nu\nh\n",
		"0\nu\nh\n", "-1\nu\nh\n", "5001\nu\nh\n", "100 \nu\nh\n" };
	char bytes[64];
	struct post_request r = { 100, "http://x", "", "b\n", 2 };
	struct str out = { 0 };
	struct err e = { 0 };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(bytes, bad[i]);
		assert_int_equal(post_read(&r, bytes, strlen(bytes), &e), ERR_USAGE);
	}
	memcpy(bytes, "100\nu\0v\nh\n", 10);
	assert_int_equal(post_read(&r, bytes, 10, &e), ERR_USAGE);
	r = (struct post_request){ 100, "http://x\nX-Evil: y", "", "b\n", 2 };
	assert_int_equal(post_write(&out, &r, &e), ERR_USAGE);
	r.url = "http://x";
	assert_int_equal(post_write(&out, &r, &e), 0);
	assert_string_equal(str_text(&out), "100\nhttp://x\n\nb\n");
	str_finish(&out);
}

static void test_many(void **state)
{
	(void)state;
	struct courier *c = NULL;
	struct err e = { 0 };
	struct notice n;
	struct config_notices options = config();
	int64_t sum = 0;
	notice_init(&n, NOTICE_TEST);
	strcpy(n.user, "alice");
	assert_int_equal(courier_new(&c, &options, NULL, &e), 0);
	for (int i = 0; i < COURIER_MOST; i++)
		assert_int_equal(courier_send(c, i, CHANNEL_LOGIN, &n, &e), 0);
	assert_int_equal(courier_send(c, 99, CHANNEL_LOGIN, &n, &e), ERR_BUSY);
	for (int i = 0; i < COURIER_MOST; i++)
		sum += wait_for(c).ticket;
	assert_int_equal(sum, COURIER_MOST * (COURIER_MOST - 1) / 2);
	assert_int_equal(courier_send(c, 99, CHANNEL_LOGIN, &n, &e), 0);
	courier_free(c); /* one is under way */
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	char command[64];
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mail),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_terminal_and_login),
		cmocka_unit_test(test_webhook),
		cmocka_unit_test(test_secret),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

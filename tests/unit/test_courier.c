/* Deliveries in processes of their own: through real programs and sockets, in time. */
#include "test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
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

static struct courier_result deliver(const struct config_notices *config, enum channel channel)
{
	struct courier *c = NULL;
	struct err e = { 0 };
	struct notice n;
	notice_init(&n, NOTICE_TEST);
	strcpy(n.user, "alice");
	strcpy(n.host, "gpu07");
	assert_int_equal(courier_new(&c, config, &e), 0);
	assert_int_equal(courier_wait_ms(c), -1);
	assert_int_equal(courier_send(c, 42, channel, &n, &e), 0);
	struct courier_result r = wait_for(c);
	assert_int_equal(r.ticket, 42);
	assert_int_equal(r.channel, channel);
	assert_int_equal(courier_wait_ms(c), -1);
	courier_free(c);
	return r;
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

/* A port on which nobody listens. */
static unsigned closed_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static void test_webhook(void **state)
{
	(void)state;
	char url[64];
	struct config_notices c = config();
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/secret", closed_port());
	c.webhook_url = url;
	struct courier_result r = deliver(&c, CHANNEL_WEBHOOK);
	assert_int_equal(r.delivery, DELIVERY_FAILED);
	assert_null(strstr(r.text, "secret"));
	c.webhook_url = "file:///etc/passwd";
	assert_int_equal(deliver(&c, CHANNEL_WEBHOOK).delivery, DELIVERY_FAILED);
	c.webhook_url = url;
	c.webhook_secret = "/nonexistent";
	r = deliver(&c, CHANNEL_WEBHOOK);
	assert_non_null(strstr(r.text, "/nonexistent"));
	c.webhook_secret = script("key", "x");
	r = deliver(&c, CHANNEL_WEBHOOK);
	assert_non_null(strstr(r.text, "others can read the secret"));
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
	assert_int_equal(courier_new(&c, &options, &e), 0);
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
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

/* Who may ask the web server, and what its log keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <unistd.h>

#include "serve/gate.h"
#include "serve/request.h"

#define TOKEN "0123456789abcdef0123"

static const struct peer nobody = { .address = "192.0.2.1" };

static struct secrets *secrets_of(const char *text)
{
	struct secrets *s = NULL;
	struct err e = { 0 };
	assert_int_equal(secrets_parse(&s, "file", text, strlen(text), &e), 0);
	return s;
}

static void test_secrets(void **state)
{
	struct secrets *s = secrets_of(
		"# a comment\n\nann:" TOKEN "\r\nbob:a password with: colon\ncat:" TOKEN "x");
	static const struct {
		const char *header, *name; /* NULL: refused */
	} cases[] = {
		{ "Bearer " TOKEN, "ann" },
		{ "bearer  " TOKEN, "ann" },
		{ "Bearer " TOKEN "x", "cat" },
		{ "Bearer a password with: colon", "bob" },
		{ "Basic YW5uOjAxMjM0NTY3ODlhYmNkZWYwMTIz", "ann" },
		{ "Basic Ym9iOmEgcGFzc3dvcmQgd2l0aDogY29sb24=", "bob" },
		{ "Basic Ym9iOjAxMjM0NTY3ODlhYmNkZWYwMTIz", NULL }, /* bob with ann's */
		{ "Basic YW5u", NULL },				    /* no colon */
		{ "Basic !!!", NULL },
		{ "Basic YW5uOjAxMjM0NTY3ODlhYmNkZWYwMTIz=x", NULL },
		{ "Basic YW5uADo=", NULL },
		{ "Bearer", NULL },
		{ "Bearer ", NULL },
		{ "Bearer " TOKEN " ", NULL },
		{ "Bearer 0123456789abcdef012", NULL },
		{ "Digest " TOKEN, NULL },
		{ "", NULL },
		{ NULL, NULL },
	};
	char name[SECRET_NAME_CAP];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool allowed = secrets_allow(s, cases[i].header, name);
		if (allowed != (cases[i].name != NULL))
			fail_msg("case %zu", i);
		assert_string_equal(name, cases[i].name ? cases[i].name : "");
	}
	secrets_free(s);
}

static void test_bad_secrets(void **state)
{
	static const char *const bad[] = { "", "# nothing\n", "ann", ":" TOKEN, "ann:short",
		"ann:" TOKEN "\nbob" };
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct secrets *s = NULL;
		struct err e = { 0 };
		if (secrets_parse(&s, "file", bad[i], strlen(bad[i]), &e) == 0)
			fail_msg("accepted: %s", bad[i]);
		/* No message repeats a secret. */
		assert_null(strstr(e.text, "short:"));
		assert_null(strstr(e.text, TOKEN));
		secrets_free(s);
	}
}

static void test_host(void **state)
{
	const struct config_serve conf = { .host_names = "gpu.example.org, gpu" };
	const struct gate gate = { .conf = &conf };
	static const struct {
		const char *host;
		bool passes;
	} cases[] = {
		{ "localhost", true },
		{ "LOCALHOST:9848", true },
		{ "127.0.0.1:9848", true },
		{ "[::1]:9848", true },
		{ "[::1]", true },
		{ "192.0.2.7", true },
		{ "gpu.example.org", true },
		{ "GPU.example.org.:80", true },
		{ "gpu:1", true },
		{ NULL, true },
		{ "evil.example", false },
		{ "localhost.evil.example", false },
		{ "gpu.example.org.evil", false },
		{ "gpu.example", false },
		{ "", false },
		{ ":80", false },
		{ "[::1", false },
		{ "[::1]x", false },
		{ "localhost:80x", false },
		{ "localhost:80:80", false },
		{ "127.0.0.1@evil.example", false },
	};
	char user[SECRET_NAME_CAP];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gate_client client = { .peer = &nobody, .host = cases[i].host };
		bool passes = gate_check(&gate, &client, user) == GATE_PASS;
		if (passes != cases[i].passes)
			fail_msg("%s", cases[i].host);
	}
	const struct config_serve none = { 0 };
	const struct gate local = { .conf = &none, .any_host = true };
	const struct gate_client client = { .peer = &nobody, .host = "evil.example" };
	assert_int_equal(gate_check(&local, &client, user), GATE_PASS);
}

static void test_proxy(void **state)
{
	struct peer proxy = { .address = "192.0.2.7" }, other = { .address = "192.0.2.8" };
	struct secrets *s = secrets_of("ann:" TOKEN);
	const struct config_serve conf = { .trust_proxy = "192.0.2.7" };
	const struct gate gate = { .conf = &conf, .secrets = s };
	struct gate_client client = { .peer = &proxy, .user = "bob" };
	char user[SECRET_NAME_CAP];
	struct err e = { 0 };
	(void)state;
	assert_int_equal(gate_check(&gate, &client, user), GATE_PASS);
	assert_string_equal(user, "bob");
	/* From anywhere else the header says nothing. */
	client.peer = &other;
	assert_int_equal(gate_check(&gate, &client, user), GATE_NO_SECRET);
	assert_string_equal(user, "");
	client.authorization = "Bearer " TOKEN;
	assert_int_equal(gate_check(&gate, &client, user), GATE_PASS);
	assert_string_equal(user, "ann");
	client.authorization = NULL;
	client.open = true;
	assert_int_equal(gate_check(&gate, &client, user), GATE_PASS);
	assert_string_equal(user, "");
	assert_int_equal(gate_check_proxy("unix", &e), 0);
	assert_int_equal(gate_check_proxy("::1", &e), 0);
	assert_int_equal(gate_check_proxy("proxy.example", &e), ERR_USAGE);
	secrets_free(s);
}

/* On this host the uid decides: the proxy's header counts, others are themselves. */
static void test_local_peers(void **state)
{
	static const char *const places[] = { "unix", "127.0.0.1", "::1" };
	char user[SECRET_NAME_CAP];
	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const struct config_serve conf = { .trust_proxy = places[i] };
		struct gate gate = { .conf = &conf, .proxy_uid = 33 };
		struct peer peer = { .local = true, .has_uid = true, .uid = 33 };
		struct gate_client client = { .peer = &peer, .user = "bob" };
		strcpy(peer.address, places[i]);
		assert_int_equal(gate_check(&gate, &client, user), GATE_PASS);
		assert_string_equal(user, "bob");
		client.user = "bob\x1b[31m"; /* cannot be a name; the proxy is nobody */
		assert_int_equal(gate_check(&gate, &client, user), GATE_PASS);
		assert_string_equal(user, "");
		client.user = "bob";
		peer.uid = 1000;
		assert_int_equal(gate_check(&gate, &client, user), GATE_PASS);
		assert_string_equal(user, "uid:1000");
		peer = (struct peer){ .local = true }; /* the kernel does not say */
		strcpy(peer.address, places[i]);
		assert_int_equal(gate_check(&gate, &client, user), GATE_PASS);
		assert_string_equal(user, "");
		gate.proxy_uid = 0;
		assert_int_equal(gate_check(&gate, &client, user), GATE_PASS);
		assert_string_equal(user, "");
	}
}

/* The kernel says who is at the other end. */
static void test_peer(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(at);
	struct peer p, q;
	int both[2];
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
	gate_find_peer(&p, both[0], NULL);
	assert_true(p.local && p.has_uid && p.uid == geteuid());
	assert_string_equal(p.address, "unix");
	close(both[0]);
	close(both[1]);
	int listening = socket(AF_INET, SOCK_STREAM, 0),
	    client = socket(AF_INET, SOCK_STREAM, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listening, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, len), 0);
	int fd = accept(listening, (struct sockaddr *)&at, &len);
	assert_true(fd >= 0);
	gate_find_peer(&p, fd, (struct sockaddr *)&at);
	assert_true(p.local);
	assert_string_equal(p.address, "127.0.0.1");
	if (p.has_uid) /* a sandbox may forbid to ask */
		assert_int_equal(p.uid, geteuid());
	/* A socket without a process is nobody's: not root's, as its uid says. */
	close(client);
	gate_find_peer(&p, fd, (struct sockaddr *)&at);
	assert_false(p.has_uid);
	close(fd);
	close(listening);
	/* Another host is known by its address, or by its network. */
	inet_pton(AF_INET6, "::ffff:192.0.2.7", &mapped.sin6_addr);
	gate_find_peer(&p, -1, (struct sockaddr *)&mapped);
	assert_string_equal(p.address, "192.0.2.7");
	assert_false(p.local || p.has_uid);
	inet_pton(AF_INET6, "2001:db8::1", &mapped.sin6_addr);
	gate_find_peer(&p, -1, (struct sockaddr *)&mapped);
	inet_pton(AF_INET6, "2001:db8::ffff:2", &mapped.sin6_addr);
	gate_find_peer(&q, -1, (struct sockaddr *)&mapped);
	assert_true(gate_client_number(&p, "") == gate_client_number(&q, ""));
	inet_pton(AF_INET6, "2001:db8:0:1::1", &mapped.sin6_addr);
	gate_find_peer(&q, -1, (struct sockaddr *)&mapped);
	assert_true(gate_client_number(&p, "") != gate_client_number(&q, ""));
	assert_true(gate_client_number(&p, "ann") == gate_client_number(&q, "ann"));
	assert_true(gate_client_number(&p, "ann") != gate_client_number(&p, "bob"));
}

static void test_log_keeps_no_values(void **state)
{
	static const char *const cases[][2] = {
		{ "/", "/" },
		{ "/a/b", "/a/b" },
		{ "/a?token=secret", "/a?token" },
		{ "/a?token=secret&user=ann&x", "/a?token&user&x" },
		{ "/a?=secret&&y=", "/a?&&y" },
		{ "/a=b?c", "/a=b?c" },
		{ "", "" },
	};
	char shown[64], small[8];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		request_target_shown(shown, sizeof(shown), cases[i][0]);
		assert_string_equal(shown, cases[i][1]);
	}
	request_target_shown(small, sizeof(small), "/abc?defgh=secret&x=1");
	assert_string_equal(small, "/abc?de");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_bad_secrets),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_proxy),
		cmocka_unit_test(test_local_peers),
		cmocka_unit_test(test_peer),
		cmocka_unit_test(test_log_keeps_no_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The request layer of the web server: targets, routes, addresses, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "serve/listen.h"
#include "serve/route.h"

static int parse(struct request *q, const char *target)
{
	struct err e = { 0 };
	return request_parse(q, target, strlen(target), &e);
}

static void test_target(void **state)
{
	struct request q;
	(void)state;
	assert_int_equal(parse(&q, "/card/GPU%2d1?since=7d&user=a%20b&user=c+d&&flag"), 0);
	assert_int_equal(q.n_parts, 2);
	assert_string_equal(q.parts[0], "card");
	assert_string_equal(q.parts[1], "GPU-1");
	assert_int_equal(q.n_params, 4);
	assert_string_equal(request_param(&q, "since"), "7d");
	assert_string_equal(request_param(&q, "user"), "a b");
	assert_string_equal(q.params[2].value, "c d");
	assert_string_equal(request_param(&q, "flag"), "");
	assert_null(request_param(&q, "until"));
	request_finish(&q);
	assert_int_equal(parse(&q, "/"), 0);
	assert_int_equal(q.n_parts, 0);
	request_finish(&q);
	/* A slash that is encoded belongs to the name; a plus is a blank in a query only. */
	assert_int_equal(parse(&q, "/notebook/a%2Fb+c.ipynb"), 0);
	assert_string_equal(q.parts[1], "a/b+c.ipynb");
	request_finish(&q);
}

static void test_bad_targets(void **state)
{
	static const char *const bad[] = { "", "now", "http://host/", "*", "/%", "/%4", "/%zz",
		"/a%00b", "/a%0ab", "/%ff", "/%c0%af", "/..", "/a/%2e%2e/b", "/.",
		"/?x=%0d%0aSet-Cookie:", "/?%c2%9b=1", "/1/2/3/4/5/6/7/8/9",
		"/?1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16&17&18&19&20&21&22&23&24&25&26&27&28&"
		"29&30&31&32&33" };
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct request q;
		if (parse(&q, bad[i]) != ERR_USAGE)
			fail_msg("accepted: %s", bad[i]);
		request_finish(&q);
	}
	char *longer = test_calloc(1, REQUEST_MAX_BYTES + 2);
	struct request q;
	memset(longer, '/', REQUEST_MAX_BYTES + 1);
	assert_int_equal(parse(&q, longer), ERR_USAGE);
	request_finish(&q);
	test_free(longer);
}

static void test_accept(void **state)
{
	(void)state;
	assert_int_equal(request_accept(NULL), MEDIA_JSON);
	assert_int_equal(request_accept("*/*"), MEDIA_JSON);
	assert_int_equal(
		request_accept("text/html,application/xhtml+xml,*/*;q=0.8"), MEDIA_HTML);
	assert_int_equal(request_accept("image/png, TEXT/CSV;q=0.9"), MEDIA_CSV);
	assert_int_equal(request_accept("text/plain"), MEDIA_TEXT);
	assert_int_equal(request_accept(",,;;text/html"), MEDIA_JSON);
}

static void answer_fixed(const struct request *q, struct answer *a)
{
	(void)q;
	str_add(&a->body, "fixed");
}

static void answer_part(const struct request *q, struct answer *a)
{
	struct err e = { 0 };
	if (strcmp(q->parts[1], "a") == 0) {
		str_add(&a->body, "part");
		return;
	}
	err_set(&e, ERR_NOTHING, "there is no '%s'", q->parts[1]);
	answer_err(a, q, &e);
}

static const struct route table[] = {
	{ .path = "/", .answer = answer_fixed, .type = TYPE_HTML },
	{ .path = "/a/*", .answer = answer_part, .type = TYPE_TEXT, .params = "x yy" },
	{ .path = "/a/b/c", .answer = answer_fixed, .type = TYPE_JSON },
	{ 0 },
};

static int status_of(const char *target, enum media media, const char *body)
{
	struct request q;
	struct answer a;
	assert_int_equal(parse(&q, target), 0);
	q.media = media;
	const struct route *route = route_find(table, &q);
	if (!route) {
		assert_string_equal(body, "no route");
		request_finish(&q);
		return 404;
	}
	route_answer(route, &q, &a);
	assert_string_equal(str_text(&a.body), body);
	assert_non_null(a.type);
	str_finish(&a.body);
	request_finish(&q);
	return a.status;
}

static void test_routes(void **state)
{
	(void)state;
	assert_int_equal(status_of("/", MEDIA_HTML, "fixed"), 200);
	assert_int_equal(status_of("/a/b/c", MEDIA_HTML, "fixed"), 200);
	assert_int_equal(status_of("/a/a?x=1&yy=2", MEDIA_HTML, "part"), 200);
	assert_int_equal(status_of("/a/<", MEDIA_TEXT, "there is no '<'\n"), 404);
	assert_int_equal(status_of("/a", MEDIA_TEXT, "no route"), 404);
	assert_int_equal(status_of("/a/b/c/d", MEDIA_TEXT, "no route"), 404);
	assert_int_equal(status_of("/a/a/", MEDIA_TEXT, "part"), 200);
	assert_int_equal(status_of("/a/a?y=1", MEDIA_TEXT,
				 "there is no parameter 'y': /a/* takes x yy\n"),
		400);
	assert_int_equal(
		status_of("/?y=1", MEDIA_JSON,
			"{\n  \"schema\": \"gua-error-1\",\n  \"status\": 400,\n  \"error\": "
			"\"there is no parameter 'y': / takes none\"\n}\n"),
		400);
}

/* What a client sends comes back as text in an error page. */
static void test_error_page(void **state)
{
	struct request q;
	struct answer a;
	(void)state;
	assert_int_equal(parse(&q, "/a/%3Cscript%3E"), 0);
	q.media = MEDIA_HTML;
	route_answer(route_find(table, &q), &q, &a);
	assert_int_equal(a.status, 404);
	assert_string_equal(a.type, TYPE_HTML);
	assert_non_null(strstr(str_text(&a.body), "&lt;script&gt;"));
	assert_null(strstr(str_text(&a.body), "<script>"));
	assert_string_equal(answer_status_words(404), "Not Found");
	str_finish(&a.body);
	request_finish(&q);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *shown;
		bool local;
	} good[] = {
		{ "127.0.0.1:9848", "127.0.0.1:9848", true },
		{ "localhost:0", "127.0.0.1:0", true },
		{ "[::1]:80", "[::1]:80", true },
		{ "0.0.0.0:9848", "0.0.0.0:9848", false },
		{ "[::]:9848", "[::]:9848", false },
		{ "unix:/run/x", "unix:/run/x", true },
	};
	static const char *const bad[] = { "", "9848", ":9848", "::1:9848", "host:9848",
		"127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1: 1",
		"[]:1", "unix:", "unix:x", "127.0.0.1:1x" };
	struct listen_address a;
	struct err e = { 0 };
	char text[160];
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(listen_parse(&a, good[i].text, &e), 0);
		listen_text(text, sizeof(text), &a);
		assert_string_equal(text, good[i].shown);
		assert_int_equal(listen_is_local(&a), good[i].local);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (listen_parse(&a, bad[i], &e) != ERR_USAGE)
			fail_msg("accepted: %s", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_bad_targets),
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_error_page),
		cmocka_unit_test(test_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

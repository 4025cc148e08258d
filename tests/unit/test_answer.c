/* The answers of a fleet's engine: samples, warnings, errors, and what is refused. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/engine_answer.h"

struct found {
	char text[256];
	double sum;
	size_t n_series;
};

static int take(void *context, const struct sample *sample, struct err *e)
{
	struct found *found = context;
	(void)e;
	snprintf(found->text, sizeof(found->text), "%s",
		engine_answer_label(sample->labels, "host"));
	found->sum += sample->value;
	found->n_series += !*sample->note;
	*sample->note = 1;
	return 0;
}

/* Reads a text byte by byte. */
static int read_text(struct engine_answer *a, const char *text, struct err *e)
{
	int rc = 0;
	engine_answer_start(a);
	for (const char *at = text; *at && rc == 0; at++)
		rc = engine_answer_feed(a, at, 1, e);
	return rc ? rc : engine_answer_end(a, e);
}

#define VECTOR(series)                                                                         \
	"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" series "]}" \
	"}"

static void samples_are_handed_on(void **state)
{
	struct found found = { 0 };
	struct engine_answer a = { .take = take, .context = &found };
	struct err e = { 0 };
	(void)state;
	assert_int_equal(
		read_text(&a,
			VECTOR("{\"metric\":{\"host\":\"a\"},\"value\":[1.5,\"3\"]},"
			       "{\"metric\":{\"host\":\"\\u00e9\\ud83d\\ude00\"},\"values\":"
			       "[[1,\"4\"],[2,\"NaN\"],[3,\"5.5\"]]}"),
			&e),
		0);
	assert_true(a.success && a.has_result);
	assert_string_equal(found.text, "é😀");
	assert_true(found.sum == 12.5);
	assert_int_equal(found.n_series, 2);
	assert_int_equal(a.n_not_finite, 1);
	engine_answer_finish(&a);
}

/* Numbers are what strtod() makes of them, to the last bit. */
static void numbers_are_exact(void **state)
{
	static const char *const numbers[] = { "0", "0.1", "1727744400.781", "999999999999999",
		"9007199254740993", "123456789012345.6", "12345678901.2345", "1.", ".5", "1e3",
		"0.000000000000001", "-4", "00012", "4.35", "1.7976931348623157e308" };
	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		char text[256];
		struct found found = { 0 };
		struct engine_answer a = { .take = take, .context = &found };
		struct err e = { 0 };
		snprintf(text, sizeof(text), VECTOR("{\"metric\":{},\"value\":[1,\"%s\"]}"),
			numbers[i]);
		assert_int_equal(read_text(&a, text, &e), 0);
		assert_true(found.sum == strtod(numbers[i], NULL));
		engine_answer_finish(&a);
	}
}

static void errors_and_warnings_are_read(void **state)
{
	struct engine_answer a = { 0 };
	struct err e = { 0 };
	(void)state;
	assert_int_equal(
		read_text(&a,
			" {\"status\":\"error\",\"errorType\":\"422\",\"error\":\"too\\tmany\","
			"\"warnings\":[\"one\",\"two\\u001b\"],\"infos\":[\"three\"]} ",
			&e),
		0);
	assert_false(a.success || a.has_result);
	assert_string_equal(a.error, "too\\x09many");
	assert_string_equal(a.error_type, "422");
	assert_int_equal(a.n_warnings, 3);
	assert_string_equal(a.warnings[1], "two\\x1B");
	engine_answer_finish(&a);
}

static void what_is_wrong_is_refused(void **state)
{
	static const char *const wrong[] = { "", "[]", "<html>", "{", "{}}", "{\"a\":1,}",
		"{\"a\" 1}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":nul}", "{\"a\":\"\\x\"}",
		"{\"a\":\"\\ud800x\"}", "{\"a\":\"\n\"}", "{\"a\":[}]",
		VECTOR("{\"metric\":{\"a\":1},\"value\":[1,\"1\"]}"),
		VECTOR("{\"metric\":{},\"value\":[1,1]}"),
		VECTOR("{\"metric\":{},\"value\":[1,\"one\"]}"),
		VECTOR("{\"metric\":{},\"value\":[1,\"\"]}"),
		VECTOR("{\"metric\":{},\"value\":[1]}"),
		VECTOR("{\"metric\":{},\"value\":[\"1\",\"1\"]}"),
		VECTOR("{\"metric\":{},\"value\":\"1\"}"),
		VECTOR("{\"value\":[1,\"1\"],\"metric\":{}}"), VECTOR("[1,\"1\"]"),
		VECTOR("1,\"1\"") };
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct engine_answer a = { 0 };
		struct err e = { 0 };
		if (read_text(&a, wrong[i], &e) == 0)
			fail_msg("accepted: %s", wrong[i]);
		assert_true(*e.text != '\0');
		engine_answer_finish(&a);
	}
}

static void limits_hold(void **state)
{
	struct engine_answer a = { 0 };
	struct err e = { 0 };
	(void)state;
	engine_answer_start(&a);
	int rc = engine_answer_feed(&a, "{\"a\":", 5, &e);
	for (int i = 0; i < ANSWER_DEPTH && rc == 0; i++)
		rc = engine_answer_feed(&a, "[", 1, &e);
	assert_true(rc && strstr(e.text, "too deep"));
	engine_answer_start(&a);
	rc = engine_answer_feed(&a, "{\"", 2, &e);
	for (int i = 0; i <= ANSWER_TOKEN_MAX && rc == 0; i++)
		rc = engine_answer_feed(&a, "k", 1, &e);
	assert_true(rc && strstr(e.text, "too long"));
	engine_answer_finish(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_handed_on),
		cmocka_unit_test(numbers_are_exact),
		cmocka_unit_test(errors_and_warnings_are_read),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(limits_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

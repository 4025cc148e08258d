/* Foreign bytes never reach a terminal unescaped. */
#include "test.h"

#include <math.h>

#include "base/err.h"
#include "base/str.h"

static void expect_escape(const char *bytes, size_t len, const char *expected)
{
	char out[128];
	str_escape(out, sizeof(out), bytes, len);
	assert_string_equal(out, expected);
}

static void test_escape(void **state)
{
	(void)state;
	expect_escape("plain", 5, "plain");
	expect_escape("a\x1b[31mred\n", 10, "a\\x1B[31mred\\x0A");
	expect_escape("caf\xc3\xa9", 5, "caf\xc3\xa9");
	expect_escape("bad\xff\xc3", 5, "bad\\xFF\\xC3");
	expect_escape("\xc0\xaf", 2, "\\xC0\\xAF");		 /* overlong */
	expect_escape("\xed\xa0\x80", 3, "\\xED\\xA0\\x80");	 /* surrogate */
	expect_escape("x\xe2\x80\xaey", 5, "x\\xE2\\x80\\xAEy"); /* right-to-left override */
	expect_escape("\xc2\x9b"
		      "1m",
		4, "\\xC2\\x9B1m"); /* C1 control sequence */
	expect_escape("a\0b", 3, "a\\x00b");
	/* Not characters: U+FFFE, U+FDD0, U+1FFFF. U+FFFD is one. */
	expect_escape("\xef\xbf\xbe", 3, "\\xEF\\xBF\\xBE");
	expect_escape("\xef\xb7\x90", 3, "\\xEF\\xB7\\x90");
	expect_escape("\xf0\x9f\xbf\xbf", 4, "\\xF0\\x9F\\xBF\\xBF");
	expect_escape("\xef\xbf\xbd", 3, "\xef\xbf\xbd");
}

static void test_escape_twice_is_once(void **state)
{
	(void)state;
	char once[64], twice[64];
	size_t n = str_escape(once, sizeof(once), "\x1b]0;x\x07\\", 7);
	str_escape(twice, sizeof(twice), once, n);
	assert_string_equal(once, twice);
}

static void test_escape_cuts_at_a_character(void **state)
{
	(void)state;
	char out[4];
	assert_int_equal(str_escape(out, sizeof(out), "ab\xc3\xa9", 4), 2);
	assert_string_equal(out, "ab");
	assert_int_equal(str_escape(out, sizeof(out), "\x1b", 1), 0);
}

static void expect_exact(double number, const char *expected)
{
	char text[32];
	str_exact_number(text, sizeof(text), number);
	assert_string_equal(text, expected);
}

static void test_exact_numbers(void **state)
{
	(void)state;
	expect_exact(0, "0");
	expect_exact(0.1, "0.1");
	expect_exact(-67.2, "-67.2");
	expect_exact(1.0 / 3, "0.3333333333333333");
	expect_exact(1747776123.361256, "1747776123.361256");
	expect_exact(1.77e-6, "1.77e-06");
	expect_exact(NAN, "");
	expect_exact(INFINITY, "");
}

static void test_grow(void **state)
{
	(void)state;
	struct str s = { 0 };
	assert_string_equal(str_text(&s), "");
	for (int i = 0; i < 1000; i++)
		str_addf(&s, "%d,", i);
	assert_int_equal(s.len, 10 * 2 + 90 * 3 + 900 * 4);
	assert_false(s.failed);
	str_finish(&s);
}

static bool count_looks(void *looks)
{
	return ++*(int *)looks > 2;
}

/* A text ends at its length, or when the time is over: what was added is whole. */
static void test_limits(void **state)
{
	(void)state;
	int looks = 0;
	const struct str_limit limit = { 50000, count_looks, &looks };
	struct str s = { .limit = &limit };
	for (int i = 0; i < 8000; i++)
		str_add(&s, "x");
	assert_false(s.failed);
	assert_int_equal(looks, 1);
	for (int i = 0; i < 8000; i++)
		str_addf(&s, "%c", 'x');
	assert_true(s.failed);
	assert_int_equal(looks, 3);
	assert_int_equal(s.len, 3 * 4096 - 1);
	str_finish(&s);
	looks = -100;
	s.limit = &limit;
	str_add_repeat(&s, "x", 50000);
	assert_false(s.failed);
	str_add(&s, "x");
	assert_true(s.failed);
	assert_int_equal(s.len, 50000);
	str_finish(&s);
}

static void test_columns(void **state)
{
	(void)state;
	assert_int_equal(str_columns("abc"), 3);
	assert_int_equal(str_columns("caf\xc3\xa9"), 4);
	assert_int_equal(str_columns("\xe6\x97\xa5"), 2);
}

static void test_whole_numbers(void **state)
{
	(void)state;
	const int64_t numbers[] = { 0, 7, -10, 1234567890, INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_string_equal(str_whole(numbers[i], " MiB").text,
			str_brief("%lld MiB", (long long)numbers[i]).text);
	/* A unit that is too long is cut. */
	assert_int_equal(strlen(str_whole(12, "----------------------------------------").text),
		sizeof(struct brief) - 1);
}

static void test_errors_are_safe(void **state)
{
	(void)state;
	struct err e = { 0 };
	assert_int_equal(err_set(&e, ERR_USAGE, "no file '%s'", "\x1b[2J"), ERR_USAGE);
	assert_string_equal(e.text, "no file '\\x1B[2J'");
	err_prefix(&e, "line %d", 3);
	assert_string_equal(e.text, "line 3: no file '\\x1B[2J'");
	assert_int_equal(err_exit_code(e.code), 2);
	assert_int_equal(err_exit_code(ERR_WORLD), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_twice_is_once),
		cmocka_unit_test(test_escape_cuts_at_a_character),
		cmocka_unit_test(test_exact_numbers),
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_whole_numbers),
		cmocka_unit_test(test_errors_are_safe),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

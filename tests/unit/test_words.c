/* Words as a POSIX shell splits them. */
#include "test.h"

#include "base/words.h"

static void expect(const char *line, size_t n, const char *const *expected)
{
	char **words = NULL;
	size_t got = 0;
	struct err e = { 0 };
	assert_int_equal(words_split(line, &words, &got, &e), 0);
	assert_int_equal(got, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(words[i], expected[i]);
	assert_null(words[n]);
	free(words);
}

#define EXPECT(line, ...)                                                                      \
	expect(line, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *),                 \
		(const char *[]){ __VA_ARGS__ })

static void test_words(void **state)
{
	(void)state;
	EXPECT("python train.py --lr 0.1", "python", "train.py", "--lr", "0.1");
	EXPECT("  a\tb \n c  ", "a", "b", "c");
	EXPECT("bash -c 'exit 7'", "bash", "-c", "exit 7");
	EXPECT("echo \"a b\" 'c \"d\"' e\\ f", "echo", "a b", "c \"d\"", "e f");
	EXPECT("x''y \"\" ''", "xy", "", "");
	EXPECT("\"\\$HOME \\n \\\\\" '\\'", "$HOME \\n \\", "\\");
	EXPECT("a\\\nb \"c\\\nd\"", "ab", "cd");
	EXPECT("$(rm) `rm` > x; y", "$(rm)", "`rm`", ">", "x;", "y");
	expect("", 0, NULL);
	expect(" \t", 0, NULL);
}

static void test_mistakes(void **state)
{
	(void)state;
	static const char *const bad[] = { "'open", "\"open", "a \\", "\"a\\\"", "x'" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char **words = NULL;
		size_t n = 0;
		struct err e = { 0 };
		assert_int_equal(words_split(bad[i], &words, &n, &e), ERR_USAGE);
	}
}

/* What is quoted is read back as one word. */
static void test_quoting(void **state)
{
	(void)state;
	static const char *const texts[] = { "plain", "7d", "2026-11-02 06:00", "it's", "", "~",
		"$HOME", "a;b", "back\\slash", "'", "tab\there", "*" };
	struct str out = { 0 };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		words_quote(&out, texts[i]);
		expect(str_text(&out), 1, &texts[i]);
		bool quoted = strchr(str_text(&out), '\'') != NULL;
		assert_int_equal(quoted, i >= 2);
		str_clear(&out);
	}
	str_finish(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_quoting),
		cmocka_unit_test(test_mistakes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

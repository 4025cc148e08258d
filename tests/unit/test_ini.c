/* Ini files: sections, keys, values, comments, and lines that are wrong. */
#include "test.h"

#include <stdio.h>

#include "base/ini.h"
#include "base/str.h"

/* All items of a text in one line each: "1 [a|b]", "2 key=value", "3 ! what is wrong". */
static void expect_bytes(const char *text, size_t len, const char *expected)
{
	char bytes[512];
	struct ini reader;
	struct ini_item item;
	struct str got = { 0 };
	assert_true(len < sizeof(bytes));
	memcpy(bytes, text, len);
	ini_start(&reader, bytes, len);
	while (ini_next(&reader, &item)) {
		const char *second = item.second ? item.second : "-";
		if (item.kind == INI_SECTION)
			str_addf(&got, "%zu [%s|%s]\n", item.line, item.first, second);
		else if (item.kind == INI_PAIR)
			str_addf(&got, "%zu %s=%s\n", item.line, item.first, second);
		else
			str_addf(&got, "%zu !%.11s\n", item.line, item.first);
	}
	assert_string_equal(str_text(&got), expected);
	str_finish(&got);
}

static void expect(const char *text, const char *expected)
{
	expect_bytes(text, strlen(text), expected);
}

static void test_lines(void **state)
{
	(void)state;
	expect("", "");
	expect("\n# comment\n  ; comment\n\t\n", "");
	expect("[record]\ninterval = 30s\n", "1 [record|-]\n2 interval=30s\n");
	expect("[a]\r\nb=c\r\n", "1 [a|-]\n2 b=c\n");
	expect("\xef\xbb\xbf[a]\nb=c", "1 [a|-]\n2 b=c\n");
	expect(" [ a ] # why\n\tb\t=\tc d \n", "1 [a|-]\n2 b=c d\n");
	expect("[rule night shift]\n[rule \"a ] b\"]",
		"1 [rule|night shift]\n2 [rule|a ] b]\n");
	expect("a=\nb = # none\n", "1 a=\n2 b=\n");
	expect("a = b=c\n", "1 a=b=c\n");
}

static void test_quotes_and_comments(void **state)
{
	(void)state;
	expect("\"NVIDIA A100*\" = 2.50", "1 NVIDIA A100*=2.50\n");
	expect("NVIDIA A100* = 2.50", "1 NVIDIA A100*=2.50\n");
	expect("\"a = b\" = \"c # d\" # e", "1 a = b=c # d\n");
	expect("a = \"b \\\" \\\\ \\n\"", "1 a=b \" \\ \\n\n");
	expect("a = b#c", "1 a=b#c\n");
	expect("a = b #c", "1 a=b\n");
	expect("a = \"b\" \"c d\"", "1 a=\"b\" \"c d\"\n");
	expect("a = 5\" disk", "1 a=5\" disk\n");
}

static void test_wrong_lines(void **state)
{
	(void)state;
	expect("[a\nb = c\n", "1 !a section n\n2 b=c\n");
	expect("[a] b\n[]\n[ ]", "1 !there is so\n2 !the section\n3 !the section\n");
	expect("word\n= 5\n\"\" = 5\n", "1 !neither a s\n2 !there is no\n3 !there is no\n");
	expect("\"a = 5\na = \"b\n[a \"b]\n",
		"1 !a quote is \n2 !a quote is \n3 !a quote is \n");
	expect("a = \x1b[2J\na = \xff\nb = 1", "1 !a character\n2 !a character\n3 b=1\n");
	expect_bytes("a = \0b\nc = d", 12, "1 !a character\n2 c=d\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_quotes_and_comments),
		cmocka_unit_test(test_wrong_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

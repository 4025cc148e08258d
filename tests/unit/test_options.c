/* One table row parses, checks and explains an option. */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/options.h"

struct values {
	bool verbose;
	const char *db;
	struct text_list list;
	int64_t count, wait_ms, room;
	double cost;
	const char *format;
};

static const struct option_row table[] = {
	{ OPTION_FLAG, 'v', "verbose", .help = "say more",
		.offset = offsetof(struct values, verbose) },
	{ OPTION_TEXT, 0, "db", "PATH", "the store", .offset = offsetof(struct values, db) },
	{ OPTION_LIST, 0, "add", "X", "one more", .offset = offsetof(struct values, list) },
	{ OPTION_COUNT, 'n', "count", "N", "how many", .offset = offsetof(struct values, count),
		.min = 1, .max = 100 },
	{ OPTION_DURATION, 0, "wait", "D", "how long",
		.offset = offsetof(struct values, wait_ms), .min = 1000, .max = 8000 },
	{ OPTION_SIZE, 0, "room", "SIZE", "how much", .offset = offsetof(struct values, room),
		.max = 1e13 },
	{ OPTION_REAL, 0, "cost", "X", "price", .offset = offsetof(struct values, cost) },
	{ OPTION_CHOICE, 0, "format", "F", "text|json", .choices = "text|json",
		.offset = offsetof(struct values, format) },
	{ 0 },
};

static int parse(struct values *v, struct err *e, int *first, const char *line)
{
	char copy[256], *argv[16] = { "test" };
	int argc = 1;
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	/* The words die with this call: only numbers and flags are looked at by the caller. */
	struct command_line words = { .argc = argc, .argv = argv };
	int rc = options_parse(&words, table, v, e);
	*first = words.first_operand;
	v->db = v->db ? "given" : NULL;
	return rc;
}

static void test_values(void **state)
{
	(void)state;
	struct values v = { 0 };
	struct err e = { 0 };
	int first = 0;
	assert_int_equal(parse(&v, &e, &first,
				 "-v --db x --add 1 --add 2 -n7 --wait 5s --cost 2.5 operand"),
		0);
	assert_true(v.verbose);
	assert_int_equal(v.list.n, 2);
	assert_int_equal(v.count, 7);
	assert_int_equal(v.wait_ms, 5000);
	assert_true(v.cost == 2.5);
	assert_int_equal(first, 13);
}

static void expect_error(const char *line, const char *text)
{
	struct values v = { 0 };
	struct err e = { 0 };
	int first = 0;
	assert_int_equal(parse(&v, &e, &first, line), ERR_USAGE);
	assert_string_equal(e.text, text);
}

static void test_mistakes(void **state)
{
	(void)state;
	expect_error("--nope", "unknown option --nope");
	expect_error("--coutn 3", "unknown option --coutn; did you mean --count?");
	expect_error("--formta=json", "unknown option --formta=json; did you mean --format?");
	expect_error("--x", "unknown option --x");
	expect_error("-x", "unknown option -x");
	expect_error("--db", "--db needs a value");
	expect_error("-n", "-n needs a value");
	expect_error("--verbose=1", "--verbose=1 takes no value");
	expect_error("-n 1x", "--count takes a whole number, not '1x'");
	expect_error("-n 101", "--count 101 is out of range: 1 to 100");
	expect_error("--wait 9s", "--wait 9s is out of range: 1s to 8s");
	expect_error("--cost nan", "--cost takes a number, not 'nan'");
	expect_error("--format xml", "--format takes one of text|json, not 'xml'");
	expect_error("--format text|json", "--format takes one of text|json, not 'text|json'");
	expect_error("--db=", "--db needs a path, and this one is empty");
	expect_error("--format tex", "--format takes one of text|json, not 'tex'");
}

static void expect_size(const char *line, int64_t bytes)
{
	struct values v = { 0 };
	struct err e = { 0 };
	int first = 0;
	assert_int_equal(parse(&v, &e, &first, line), 0);
	assert_int_equal(v.room, bytes);
}

static void test_sizes(void **state)
{
	(void)state;
	expect_size("--room 0", 0);
	expect_size("--room 7B", 7);
	expect_size("--room 20G", 20000000000);
	expect_size("--room 20gb", 20000000000);
	expect_size("--room 512M", 512000000);
	expect_size("--room 1.5K", 1500);
	expect_size("--room 2T", 2000000000000);
	expect_size("--room 8GiB", 8589934592);
	expect_size("--room .5MiB", 524288);
	for (size_t i = 0; i < 8; i++) {
		static const char *const wrong[] = { "20", "G", "-1G", "0x10G", "1e3M", "infG",
			"nanG", "1 G" };
		char line[32];
		struct values v = { 0 };
		struct err e = { 0 };
		int first = 0;
		snprintf(line, sizeof(line), "--room=%s", wrong[i]);
		assert_int_equal(parse(&v, &e, &first, line), ERR_USAGE);
	}
	expect_error("--room 11T", "--room 11T is out of range: 0 to 1e+13 bytes");
	expect_error("--room 5X", "--room: '5X' is not a size: write 500M, 20G or 1.5GB");
}

static void test_help(void **state)
{
	(void)state;
	struct str out = { 0 };
	options_describe(table, &out);
	assert_non_null(strstr(str_text(&out), "  -v, --verbose             say more\n"));
	assert_non_null(strstr(str_text(&out), "      --db PATH             the store\n"));
	assert_non_null(strstr(str_text(&out), "  -h, --help                this text\n"));
	str_finish(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_help),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

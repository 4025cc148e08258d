/* CSV as RFC 4180 has it. */
#include "test.h"

#include <stdbool.h>

#include "base/csv.h"

static void expect_record(struct csv *c, size_t line, size_t n, const char *const *fields)
{
	assert_true(csv_next(c));
	assert_int_equal(c->line, line);
	assert_int_equal(c->n, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(c->fields[i], fields[i]);
}

#define EXPECT(c, line, ...)                                                                   \
	expect_record(c, line, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *),       \
		(const char *[]){ __VA_ARGS__ })

static void test_records(void **state)
{
	(void)state;
	char text[] = "a,b,c\r\n1,\"x,\"\"y\"\"\n z\",\n\n,\nlast,\"open";
	struct csv c;
	csv_start(&c, text, sizeof(text) - 1);
	EXPECT(&c, 1, "a", "b", "c");
	EXPECT(&c, 2, "1", "x,\"y\"\n z", "");
	EXPECT(&c, 5, "", "");
	EXPECT(&c, 6, "last", "open");
	assert_false(csv_next(&c));
}

static void test_trailing_comma_at_the_end(void **state)
{
	(void)state;
	char text[] = "a,";
	struct csv c;
	csv_start(&c, text, 2);
	EXPECT(&c, 1, "a", "");
	assert_false(csv_next(&c));
}

static void test_many_fields_are_cut_off(void **state)
{
	(void)state;
	char text[301];
	memset(text, ',', 300);
	struct csv c;
	csv_start(&c, text, 300);
	assert_true(csv_next(&c));
	assert_int_equal(c.n, CSV_MAX_FIELDS);
	assert_false(csv_next(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_trailing_comma_at_the_end),
		cmocka_unit_test(test_many_fields_are_cut_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

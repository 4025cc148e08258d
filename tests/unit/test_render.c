/* Text fits, bars are fair, numbers and names survive CSV and JSON. */
#include "test.h"

#include <jansson.h>
#include <math.h>

#include "base/shares.h"
#include "base/size.h"
#include "render/html.h"
#include "render/json.h"
#include "render/rows.h"
#include "render/text.h"

static const struct text_style utf8 = { .columns = 20, .utc = true };
static const struct text_style ascii = { .columns = 20, .ascii = true, .utc = true };

static void check_bar(const double parts[3], size_t cells)
{
	size_t shares[3], sum = 0, present = 0;
	shares_divide(parts, 3, cells, true, shares);
	for (int i = 0; i < 3; i++) {
		sum += shares[i];
		present += parts[i] > 0;
		if (parts[i] <= 0)
			assert_int_equal(shares[i], 0);
	}
	assert_int_equal(sum, present ? cells : 0);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			if (parts[i] > parts[k])
				assert_true(shares[i] >= shares[k]);
	for (int i = 0; i < 3 && cells >= present; i++)
		if (parts[i] > 0)
			assert_true(shares[i] >= 1);
}

static void test_bar_is_fair(void **state)
{
	(void)state;
	static const double amounts[] = { 0, 1, 2, 3, 59, 1000, 1e12 };
	enum { N = sizeof(amounts) / sizeof(amounts[0]) };
	for (int a = 0; a < N; a++)
		for (int b = 0; b < N; b++)
			for (int c = 0; c < N; c++)
				for (size_t cells = 3; cells < 70; cells++)
					check_bar((double[]){ amounts[a], amounts[b],
							  amounts[c] },
						cells);
}

static void test_bar_rounds_by_remainder(void **state)
{
	(void)state;
	size_t shares[3];
	shares_divide((double[]){ 15.7, 45.1, 39.2 }, 3, 60, true, shares);
	assert_int_equal(shares[0], 9);
	assert_int_equal(shares[1], 27);
	assert_int_equal(shares[2], 24);
	shares_divide((double[]){ 1, 1e9, 1 }, 3, 10, true, shares);
	assert_int_equal(shares[0], 1);
	assert_int_equal(shares[1], 8);
	assert_int_equal(shares[2], 1);
}

/* Printed with one decimal, shares add up to 100.0 %, and none is off by a tenth or more. */
static void test_parts_are_rounded_together(void **state)
{
	(void)state;
	int64_t fitted[5];
	assert_true(shares_fit((double[]){ 1.4, 1.4, 1.2 }, 3, 4, fitted));
	assert_true(fitted[0] == 2 && fitted[1] == 1 && fitted[2] == 1);
	/* Whole numbers stay, although a sum may be a hair below. */
	assert_true(shares_fit((double[]){ 2.9999999, 0, 5, 0.5, 0.5 }, 5, 9, fitted));
	assert_true(fitted[0] == 3 && fitted[1] == 0 && fitted[2] == 5);
	assert_int_equal(fitted[3] + fitted[4], 1);
	/* One below 0, and a whole that is not the sum. */
	assert_true(shares_fit((double[]){ -0.3, 10.3 }, 2, 10, fitted));
	assert_int_equal(fitted[0] + fitted[1], 10);
	assert_true(shares_fit((double[]){ 1, 9 }, 2, 100, fitted));
	assert_true(fitted[0] == 2 && fitted[1] == 98);
	assert_true(shares_fit((double[]){ 1, 9 }, 2, 0, fitted));
	assert_int_equal(fitted[0] + fitted[1], 0);
	assert_true(shares_fit(NULL, 0, 7, fitted));
}

static void test_shares_add_up(void **state)
{
	(void)state;
	double shares[SHARES_MAX];
	for (int a = 0; a < 40; a++)
		for (int b = 0; b < 40; b++)
			for (int c = 0; c < 40; c++) {
				const double parts[] = { a, b, c }, whole = a + b + c;
				long tenths = 0;
				shares_round(parts, 3, shares);
				for (int i = 0; i < 3 && whole > 0; i++) {
					tenths += lround(1000 * shares[i]);
					assert_true(fabs(shares[i] - parts[i] / whole) < 0.001);
				}
				assert_int_equal(tenths, whole > 0 ? 1000 : 0);
			}
	shares_round((double[]){ 0, 0 }, 2, shares);
	assert_true(isnan(shares[0]) && isnan(shares[1]));
}

static void check_cut(
	const struct text_style *style, const char *text, size_t columns, const char *expected)
{
	struct str out = { 0 };
	size_t used = text_add_cut(&out, text, columns, style);
	assert_string_equal(str_text(&out), expected);
	assert_int_equal(used, str_columns(expected));
	assert_true(used <= columns);
	str_finish(&out);
}

static void test_cut(void **state)
{
	(void)state;
	check_cut(&utf8, "exact", 5, "exact");
	check_cut(&utf8, "longer", 5, "long…");
	check_cut(&utf8, "longer", 1, "…");
	check_cut(&utf8, "longer", 0, "");
	check_cut(&utf8, "", 3, "");
	check_cut(&utf8, "日本語", 6, "日本語");
	check_cut(&utf8, "日本語", 5, "日本…");
	check_cut(&utf8, "日本語", 4, "日…"); /* two columns and the mark */
	check_cut(&ascii, "longer", 5, "long~");
	check_cut(&ascii, "é", 8, "\\xC3\\xA9");
	check_cut(&ascii, "ab日", 9, "ab~"); /* an escaped character is not cut in two */
}

static void check_wrapped(const struct text_style *style, const char *text)
{
	struct str out = { 0 };
	text_add_wrapped(&out, text, 4, 4, style);
	char *copy = strdup(str_text(&out)), *rest = copy;
	bool first = true;
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		assert_true(str_columns(line) + (first ? 4 : 0) <= style->columns);
		if (!first && *line)
			assert_memory_equal(line, "    ", 4);
		first = false;
	}
	assert_int_equal(out.data[out.len - 1], '\n');
	free(copy);
	str_finish(&out);
}

static void test_wrap(void **state)
{
	(void)state;
	static const char *const texts[] = { "", "one", "a few words that do not fit at once",
		"averyveryverylongwordwithoutanyspaceatallinside and more",
		"日本語日本語日本語日本語日本語日本語日本語",
		"  leading and   double  spaces " };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		check_wrapped(&utf8, texts[i]);
		check_wrapped(&ascii, texts[i]);
	}
}

static void check_number(double number, int decimals, const char *expected)
{
	char text[400];
	json_number_text(text, sizeof(text), number, decimals);
	assert_string_equal(text, expected);
}

static void test_numbers(void **state)
{
	(void)state;
	check_number(3600, 3, "3600");
	check_number(100, 0, "100");
	check_number(0, 0, "0");
	check_number(0.5, 3, "0.5");
	check_number(-0.0001, 3, "0");
	check_number(1234567.891, 3, "1234567.891");
	check_number((double)NAN, 3, "");
	check_number((double)INFINITY, 3, "");
}

struct row {
	const char *name;
	double count, time_ms, mem_kib;
	int64_t at_ms;
};

#define GET(getter, member) .get = getter, .of = offsetof(struct row, member)
static const struct column columns[] = {
	{ .key = "name",
		.title = "name",
		.kind = COLUMN_TEXT,
		.flexible = true,
		GET(table_get_string, name) },
	{ .title = "only text", .kind = COLUMN_COUNT, GET(table_get_double, count) },
	{ .key = "time",
		.title = "time",
		.kind = COLUMN_GPU_MS,
		GET(table_get_double, time_ms) },
	{ .key = "mem", .title = "mem", .kind = COLUMN_KIB, GET(table_get_double, mem_kib) },
	{ .key = "at", .title = "at", .kind = COLUMN_MOMENT, GET(table_get_known, at_ms) },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static void check_csv(const char *name, const char *expected)
{
	struct str out = { 0 };
	const struct cell cells[COLUMNS] = { table_text(name), table_number(1),
		table_number(90000), table_known(-1), table_known(1000) };
	rows_add(&out, columns, COLUMNS, cells);
	char line[256];
	snprintf(line, sizeof(line), "%s,90,,1970-01-01T00:00:01Z\r\n", expected);
	assert_string_equal(str_text(&out), line);
	str_finish(&out);
}

static void test_csv(void **state)
{
	(void)state;
	check_csv("plain", "plain");
	check_csv("a,b", "\"a,b\"");
	check_csv("say \"x\"", "\"say \"\"x\"\"\"");
	check_csv("=1+1", "\"'=1+1\"");
	check_csv("-", "\"'-\"");
	check_csv("a-b", "a-b");
	check_csv("-15", "\"'-15\"");
	check_csv("+1", "\"'+1\"");
	check_csv("-1+1", "\"'-1+1\"");
	check_csv("+inf", "\"'+inf\"");
	check_csv("-0x10", "\"'-0x10\"");
	check_csv("two\nlines", "\"two\nlines\"");
	check_csv(NULL, "");
	struct str out = { 0 };
	rows_header(&out, columns, COLUMNS);
	assert_string_equal(str_text(&out), "name,time,mem,at\r\n");
	str_finish(&out);
}

static void test_json_is_json(void **state)
{
	(void)state;
	struct str out = { 0 };
	struct json j = { .out = &out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "quo\"te", "back\\slash \"x\" \n\x01 日本");
	json_number(&j, "nan", (double)NAN, 3);
	json_number(&j, "x", 1.5, 3);
	json_bool(&j, "yes", true);
	json_moment(&j, "never", -1);
	json_open(&j, "empty", '[');
	json_close(&j, ']');
	json_open(&j, "rows", '[');
	const struct cell cells[COLUMNS] = { table_text(NULL), table_number(1),
		table_number(90), table_known(1000000), table_known(-1) };
	rows_json_row(&j, columns, COLUMNS, cells);
	rows_json_row(&j, columns, COLUMNS, cells);
	json_close(&j, ']');
	json_close(&j, '}');
	json_error_t error;
	json_t *root = json_loads(str_text(&out), JSON_REJECT_DUPLICATES, &error);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "quo\"te")),
		"back\\slash \"x\" \n\x01 日本");
	assert_true(json_is_null(json_object_get(root, "nan")));
	assert_true(json_is_null(json_object_get(root, "never")));
	assert_int_equal(json_array_size(json_object_get(root, "empty")), 0);
	json_t *row = json_array_get(json_object_get(root, "rows"), 1);
	assert_int_equal(json_object_size(row), 4);
	assert_true(json_is_null(json_object_get(row, "name")));
	assert_true(json_real_value(json_object_get(row, "time")) == 0.09);
	assert_true(json_is_integer(json_object_get(row, "mem")));
	json_decref(root);
	str_finish(&out);
}

/* Columns of one group are an object; a column may be in one format alone. */
static void test_json_groups(void **state)
{
	(void)state;
	static const struct column grouped[] = {
		{ .key = "a", .json = "x.a", .kind = COLUMN_COUNT },
		{ .key = "b", .json = "x.b", .kind = COLUMN_BOOL },
		{ .key = "c", .json = "", .kind = COLUMN_COUNT },
		{ .key = "d", .kind = COLUMN_COUNT },
		{ .json = "y.a", .kind = COLUMN_KWH },
		{ .title = "e", .kind = COLUMN_COUNT },
	};
	const struct cell cells[] = { table_number(1), table_number(1), table_number(3),
		table_known(-1), table_number(0.1234567), table_number(6) };
	struct str out = { 0 };
	struct json j = { .out = &out };
	rows_json_row(&j, grouped, 6, cells);
	assert_string_equal(str_text(&out),
		"{\"x\": {\"a\": 1, \"b\": true}, \"d\": null, \"y\": {\"a\": 0.123457}}\n");
	str_clear(&out);
	rows_add(&out, grouped, 6, cells);
	assert_string_equal(str_text(&out), "1,1,3,\r\n");
	str_finish(&out);
}

/* Powers of 1024; a decimal where there are few digits. */
static void test_sizes(void **state)
{
	(void)state;
	static const struct {
		double bytes;
		const char *text;
	} cases[] = { { 0, "0 MiB" }, { 1, "0.0 MiB" }, { 2621440, "2.5 MiB" },
		{ 10433332, "10 MiB" }, { 419430400, "400 MiB" }, { 1072693248, "1023 MiB" },
		{ 1073741824, "1.0 GiB" }, { 85899345920, "80.0 GiB" }, { -1, "-" },
		{ (double)NAN, "-" } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(size_text(cases[i].bytes).text, cases[i].text);
	}
}

static void test_table_fits(void **state)
{
	(void)state;
	struct text_style style = { .columns = 48, .utc = true };
	struct table t = { .columns = columns, .n_columns = COLUMNS };
	struct str out = { 0 };
	table_add(&t, &(struct row){ "a name that is much too long for this", 7, 5400e3,
			      1048576, 90061000 });
	table_add(&t, &(struct row){ NULL, (double)NAN, (double)NAN, (double)NAN, -1 });
	text_add_table(&out, &t, &style);
	assert_string_equal(str_text(&out),
		"  name     only text  time      mem           at\n"
		"  a name…          7  1.50  1.0 GiB  01-02 01:01\n"
		"  -                -     -        -            -\n");
	table_finish(&t);
	str_finish(&out);
}

struct notebook_row {
	const char *user, *path;
};

/* Names lead to pages, whatever is in them; a row without the name does not. */
static void test_html_links(void **state)
{
	(void)state;
	static const struct column notebook_columns[] = {
		{ .key = "user",
			.title = "user",
			.get = table_get_string,
			.of = offsetof(struct notebook_row, user) },
		{ .key = "path",
			.get = table_get_string,
			.of = offsetof(struct notebook_row, path) },
		{ .title = "what",
			.get = table_get_string,
			.of = offsetof(struct notebook_row, path) },
	};
	static const struct html_link links[] = {
		{ "what", "/notebook/", { "user", "path" } },
		{ "user", "/user/", { "user" } },
		{ 0 },
	};
	struct table t = { .columns = notebook_columns, .n_columns = 3 };
	struct str out = { 0 };
	table_add(&t, &(struct notebook_row){ "<i>", "/a b/\"c\"" });
	table_add(&t, &(struct notebook_row){ "bob", NULL });
	html_table(&out, &t, &(struct html_table_style){ .caption = "", .links = links });
	const char *html = str_text(&out);
	assert_non_null(strstr(html, "<a href=\"/user/%3Ci%3E\">&lt;i&gt;</a>"));
	assert_non_null(strstr(html, "<a href=\"/notebook/%3Ci%3E/%2Fa%20b%2F%22c%22\">"
				     "/a b/&quot;c&quot;</a>"));
	assert_non_null(strstr(html, "<a href=\"/user/bob\">bob</a></th><td>-</td>"));
	str_clear(&out);
	html_table(&out, &t, &(struct html_table_style){ .caption = "" });
	assert_null(strstr(str_text(&out), "<a "));
	str_finish(&out);
	table_finish(&t);
}

/* Which columns are shown is asked once of a table, not once of each cell: this many rows would
 * take minutes. */
static void test_html_as_printf(void **state)
{
	(void)state;
	struct str out = { 0 };
	html_addf(&out, "<a href=\"/%-s?%-s\">%s</a> %d%% %u %zu %.1f", "a b", "50%", "<%s>",
		-3, 4U, (size_t)5, 0.25);
	assert_string_equal(
		str_text(&out), "<a href=\"/a%20b?50%25\">&lt;%s&gt;</a> -3% 4 5 0.2");
	str_finish(&out);
}

static void test_html_of_many_rows(void **state)
{
	(void)state;
	enum { ROWS = 100000 };
	static const struct column many[] = {
		{ .title = "user",
			.get = table_get_string,
			.of = offsetof(struct notebook_row, user) },
		{ .title = "what",
			.get = table_get_string,
			.of = offsetof(struct notebook_row, path),
			.optional = true },
		{ .title = "where",
			.get = table_get_string,
			.of = offsetof(struct notebook_row, path),
			.optional = true },
	};
	struct table t = { .columns = many, .n_columns = 3 };
	struct str out = { 0 };
	for (int i = 0; i < ROWS; i++)
		table_add(&t, &(struct notebook_row){ "ann", NULL });
	html_table(&out, &t, &(struct html_table_style){ .caption = "" });
	static const char row[] = "<tr><th scope=\"row\">ann</th></tr>\n";
	size_t rows = 0;
	for (size_t at = 0; at + sizeof(row) <= out.len; at++)
		rows += memcmp(out.data + at, row, sizeof(row) - 1) == 0;
	assert_int_equal(rows, ROWS);
	str_finish(&out);
	table_finish(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_are_rounded_together),
		cmocka_unit_test(test_bar_is_fair),
		cmocka_unit_test(test_bar_rounds_by_remainder),
		cmocka_unit_test(test_shares_add_up),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_json_is_json),
		cmocka_unit_test(test_json_groups),
		cmocka_unit_test(test_table_fits),
		cmocka_unit_test(test_html_links),
		cmocka_unit_test(test_html_as_printf),
		cmocka_unit_test(test_html_of_many_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

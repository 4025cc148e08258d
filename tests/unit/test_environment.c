/* The variables that are found in an environment, and how they become labels. */
#include "test.h"

#include "proc/environment.h"

enum { MOST = 512 };

/* Parses variables that are separated by '|' here. */
static void parse(struct environment *env, char bytes[MOST], const char *variables, bool cut)
{
	size_t len = strlen(variables);
	assert_true(len < MOST);
	memcpy(bytes, variables, len + 1);
	for (size_t i = 0; i < len; i++)
		if (bytes[i] == '|')
			bytes[i] = '\0';
	environment_parse(env, bytes, len, cut);
}

static void expect_label(const char *variables, enum variable which, const char *expected)
{
	struct environment env;
	char bytes[MOST], out[32];
	parse(&env, bytes, variables, false);
	environment_label(out, sizeof(out), env.values[which]);
	assert_string_equal(out, expected);
}

static void test_labels(void **state)
{
	(void)state;
	expect_label("HOME=/a|GUA_TAG=vision|TOKEN=x|", VARIABLE_TAG, "vision");
	expect_label("GUA_TAG=a b|", VARIABLE_TAG, "a b");
	expect_label("GUA_TAG= \t a \n|", VARIABLE_TAG, "a");
	expect_label("GUA_TAG= \t |", VARIABLE_TAG, "");
	expect_label("GUA_TAG=|GUA_TAG=second|", VARIABLE_TAG, "second");
	expect_label("GUA_TAG=first|GUA_TAG=second|", VARIABLE_TAG, "first");
	expect_label("GUA_TAG=R&D?|", VARIABLE_TAG, "R&D?");
	expect_label("GUA_TAG=\x1b[2J|", VARIABLE_TAG, "\\x1B[2J");
	expect_label("GUA_TAG=0123456789012345678901234567890123456789", VARIABLE_TAG,
		"0123456789012345678901234567890");
	expect_label("MY_GUA_TAG=a|GUA_TAGS=b|gua_tag=c|GUA_TAG|", VARIABLE_TAG, "");
	expect_label("SLURM_JOB_ACCOUNT=lab|SLURM_JOB_NAME=fit|", VARIABLE_ACCOUNT, "lab");
	expect_label("SLURM_JOB_NAME=fit token=hunter2|", VARIABLE_JOB_NAME, "fit token=");
	expect_label("SLURM_JOB_NAME=ftp://u:hunter2@h/x|", VARIABLE_JOB_NAME, "ftp://h/x");
	expect_label("", VARIABLE_JOB_NAME, "");
}

static void expect_path(const char *variables, const char *expected)
{
	struct environment env;
	char bytes[MOST], out[32];
	parse(&env, bytes, variables, false);
	environment_path(out, sizeof(out), env.values[VARIABLE_NOTEBOOK]);
	assert_string_equal(out, expected);
}

static void test_paths(void **state)
{
	(void)state;
	expect_path("HOME=/a|JPY_SESSION_NAME=exp1.ipynb|TOKEN=x|", "exp1.ipynb");
	expect_path("JPY_SESSION_NAME=/a/\x1b[2J.ipynb", "/a/\\x1B[2J.ipynb");
	expect_path("JPY_SESSION_NAME=/home/alice/a-long-project/and/sub/exp.ipynb|",
		"/and/sub/exp.ipynb");
	expect_path("JPY_SESSION_NAME=0123456789012345678901234567890123456789",
		"0123456789012345678901234567890");
	expect_path("JPY_SESSION_NAME=a/b.ipynb?token=hunter2|", "a/b.ipynb");
	expect_path("JPY_SESSION_NAME=http://u:hunter2@h/b.ipynb|", "http://h/b.ipynb");
	expect_path("JPY_SESSION_NAME=?token=hunter2|", "");
	expect_path("JPY_SESSION_NAME=|X=1|", "");
	expect_path("NOT_JPY_SESSION_NAME=a|jpy_session_name=b|", "");
	expect_path("", "");
}

/* The last variable of a longer environment may be cut, and half a name names another thing. */
static void test_a_cut_environment(void **state)
{
	(void)state;
	struct environment env;
	char bytes[MOST];
	parse(&env, bytes, "SLURM_JOB_NAME=fit|GUA_TAG=gran", true);
	assert_int_equal(env.values[VARIABLE_JOB_NAME].len, 3);
	assert_null(env.values[VARIABLE_TAG].at);
	parse(&env, bytes, "GUA_TAG=grant|", true);
	assert_int_equal(env.values[VARIABLE_TAG].len, 5);
	parse(&env, bytes, "GUA_TAG=gran", false);
	assert_int_equal(env.values[VARIABLE_TAG].len, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_a_cut_environment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Kernels by their connection file, in every spelling of the option. */
#include "test.h"

#include "proc/command.h"

#define ID "2f6b1c9e-0d4a-4b7f-9a53-7c1e0d2b8f46"
#define FILE_NAME "/run/user/1000/jupyter/runtime/kernel-" ID ".json"

/* Arguments are separated by '|' here. */
static void expect_label(const char *arguments, const char *expected)
{
	char bytes[512], out[128];
	size_t len = strlen(arguments);
	memcpy(bytes, arguments, len + 1);
	for (size_t i = 0; i < len; i++)
		if (bytes[i] == '|')
			bytes[i] = '\0';
	assert_int_equal(command_kernel(out, sizeof(out), bytes, len), *expected != '\0');
	assert_string_equal(out, expected);
}

static void test_forms(void **state)
{
	(void)state;
	expect_label("python|-m|ipykernel_launcher|-f|" FILE_NAME "|", "jupyter:" ID);
	expect_label("python|-m|ipykernel_launcher|-f=" FILE_NAME "|", "jupyter:" ID);
	expect_label("python|-m|ipykernel_launcher|-f" FILE_NAME "|", "jupyter:" ID);
	expect_label("python|-m|ipykernel_launcher|--f=" FILE_NAME "|", "jupyter:" ID);
	expect_label("python|-m|ipykernel_launcher|--f|" FILE_NAME "|", "jupyter:" ID);
	expect_label("xcpp|-f|kernel-" ID ".json", "jupyter:" ID);
	expect_label("python|x|--IPKernelApp.connection_file=" FILE_NAME "|", "jupyter:" ID);
	expect_label("java|-cp|a.jar|--connection-file|" FILE_NAME "|", "jupyter:" ID);
	expect_label("evcxr_jupyter|--control_file|" FILE_NAME "|", "jupyter:" ID);
	expect_label("julia|kernel.jl|" FILE_NAME "|", "jupyter:" ID);
	expect_label("python|-m|x|--f=/r/kernel-v3abc.json|", "jupyter:v3abc");
	expect_label("python|-m|x|--f=/r/kernel-\x1b[2J.json|", "jupyter:\\x1B[2J");
}

static void test_others(void **state)
{
	(void)state;
	expect_label("", "");
	expect_label("kernel-" ID ".json|", "");
	expect_label("python|plot.py|kernel-bandwidth.json|", "");
	expect_label("python|plot.py|-v|kernel-bandwidth.json|", "");
	expect_label("python|plot.py|--data=kernel-bandwidth.json|", "");
	expect_label("python|x|-f|kernel-.json|", "");
	expect_label("python|x|-f|kernel-" ID ".jso|", "");
	expect_label("python|x|-f|", "");
	expect_label("python|x|-f|/r/other-" ID ".json|", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

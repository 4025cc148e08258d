/* The command that ends a process, as a user may copy it into a shell. */
#include "test.h"

#include "model/release.h"

static void expect_of(
	const char *job, const char *container, const char *pod, const char *command)
{
	char text[RELEASE_CAP];
	release_command(text, 4242, job, container, pod);
	assert_string_equal(text, command);
}

static void expect(const char *job, const char *container, const char *command)
{
	expect_of(job, container, NULL, command);
}

static void test_commands(void **state)
{
	(void)state;
	expect(NULL, NULL, "kill 4242");
	expect("", "", "kill 4242");
	expect("slurm:1234", "", "scancel 1234");
	expect("pbs:77", NULL, "qdel 77");
	expect("slurm:9", "docker:3f2a91c4d5e6", "scancel 9");
	expect("", "docker:3f2a91c4d5e6", "docker stop 3f2a91c4d5e6");
	expect("nomad:x.y", "podman:abc", "podman stop abc");
	expect_of("", "docker:2", "ml/web-0.a", "kubectl delete pod -n ml web-0.a");
	expect_of("slurm:9", "", "ml/web-0", "scancel 9");
}

/* Names of others never reach a shell as anything but a word. */
static void test_hostile_names(void **state)
{
	(void)state;
	static const char *const bad[] = { "slurm:", "slurm:1;rm -rf ~", "slurm:$(x)",
		"slurm:-1", "slurm:1 2", "docker:a/b", "docker:\xc3\xa9", "slurm:\\x0A",
		"slurm:00000000000000000000000000000000000000000000000000000000000000000000" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		expect(bad[i], NULL, "kill 4242");
		expect(NULL, bad[i], "kill 4242");
	}
	static const char *const pods[] = { "0f1e2d3c-4b5a", "ml/", "/x", "-A/x", "ml/--all",
		"ml/$(x)", "ml/a b", "ml/a/b", "ml/x~0f1e2d3c", "ml/\\x1B" };
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++)
		expect_of("", "", pods[i], "kill 4242");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_hostile_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

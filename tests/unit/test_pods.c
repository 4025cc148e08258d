/* Names of pods: which are believed, when they are read again, and how long they may be. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/pods.h"

#define UID "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define OTHER "1f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define HEX64 "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90"

static struct process_id describe(struct pods *p, const char *uid)
{
	struct process_id id = { .container = "containerd:a1b2c3d4e5f6" };
	snprintf(id.pod, sizeof(id.pod), "%s", uid);
	pods_describe(p, &id);
	return id;
}

static void make(const char *root, const char *path)
{
	char command[512];
	snprintf(command, sizeof(command), "mkdir -p '%s/%s'", root, path);
	assert_int_equal(system(command), 0);
}

static void write_table(const char *root, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/run/gua/leases/" PODS_TABLE, root);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_files(void **state)
{
	(void)state;
	char root[] = "/tmp/gua-pods-XXXXXX", proc[64], command[128];
	struct pods p;
	assert_non_null(mkdtemp(root));
	make(root, "proc");
	snprintf(proc, sizeof(proc), "%s/proc", root);
	int fd = open(proc, O_RDONLY | O_DIRECTORY);
	pods_init(&p, fd, true);
	struct process_id id = describe(&p, UID);
	assert_string_equal(id.pod, UID); /* there is no place at all */
	make(root, "var/log/pods/ml_web-0_" UID);
	assert_string_equal(describe(&p, UID).pod, "ml/web-0");
	id = describe(&p, OTHER);
	/* A pod that comes is found, and one that has a name needs no files. */
	make(root, "run/gua/leases/pod");
	write_table(root, "ml_job-1_" OTHER "\nweb-0_ml_nginx-" HEX64 ".log\nnonsense\n");
	id = describe(&p, OTHER);
	assert_string_equal(id.pod, "ml/job-1");
	assert_string_equal(id.container, "containerd:a1b2c3d4e5f6/nginx");
	snprintf(command, sizeof(command), "rm -r '%s/var' '%s/run'", root, root);
	assert_int_equal(system(command), 0);
	assert_string_equal(describe(&p, UID).pod, "ml/web-0");
	pods_finish(&p);
	/* Not of a recorded tree: others than root may not say who it is. */
	make(root, "var/log/pods/ml_web-0_" UID);
	snprintf(command, sizeof(command), "chmod 777 '%s/var/log/pods'", root);
	assert_int_equal(system(command), 0);
	pods_init(&p, fd, false);
	assert_string_equal(describe(&p, UID).pod, UID);
	pods_finish(&p);
	close(fd);
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	assert_int_equal(system(command), 0);
}

static void expect(const char *name, const char *uid, const char *pod)
{
	struct pods p;
	pods_init(&p, -1, true);
	pods_add(&p, name, strlen(name));
	pods_sort(&p);
	assert_string_equal(describe(&p, uid).pod, pod);
	pods_finish(&p);
}

static void test_names(void **state)
{
	(void)state;
	char longest[600], name[400], cut[LABEL_CAP];
	expect("ml_web.0-x_" UID, UID, "ml/web.0-x");
	expect("a_b_0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef",
		"a/b");
	expect("ml_web_0_" UID, UID, UID);
	expect("ml.x_web_" UID, UID, UID);
	expect("_web_" UID, UID, UID);
	expect("ml__" UID, UID, UID);
	expect("ML_web_" UID, UID, UID);
	expect("ml_we\x1b_" UID, UID, UID);
	expect("ml/../x_web_" UID, UID, UID);
	expect(UID, UID, UID);
	expect("", UID, UID);
	memset(name, 'n', 254);
	name[254] = '\0';
	snprintf(longest, sizeof(longest), "ml_%s_" UID, name);
	expect(longest, UID, UID);
	snprintf(longest, sizeof(longest), "ml_%s_" UID, name + 1);
	snprintf(cut, sizeof(cut), "ml/%.*s~0f1e2d3c", LABEL_CAP - 13, name);
	expect(longest, UID, cut);
	assert_int_equal(strlen(cut), LABEL_CAP - 1);
	/* The longest that fits is whole. */
	snprintf(longest, sizeof(longest), "ml_%.*s_" UID, LABEL_CAP - 4, name);
	snprintf(cut, sizeof(cut), "ml/%.*s", LABEL_CAP - 4, name);
	expect(longest, UID, cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Who a process is: every recorded tree in tests/roots against its `expected` file, and the
 * live /proc. With GUA_UPDATE in the environment, it rewrites these files. */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "model/session.h"
#include "proc/owners.h"

static void root_path(char *path, size_t cap, const char *tree, const char *file)
{
	const char *source = getenv("GUA_SOURCE_ROOT");
	snprintf(path, cap, "%s/tests/roots/%s%s", source ? source : ".", tree, file);
}

static void add_field(struct str *out, const char *name, const char *value)
{
	if (*value)
		str_addf(out, "  %s %s\n", name, value);
}

/* A process as the `expected` files write it; what is unknown is left out. */
static void add_process(struct str *out, struct owners *o, uint32_t pid)
{
	struct process_id id;
	bool alive = owners_describe(o, pid, false, &id);
	assert_int_equal(id.pid, pid);
	assert_int_equal(id.start_ticks, owners_start_ticks(o, pid));
	str_addf(out, "%u%s\n", pid, alive ? "" : " dead");
	add_field(out, "user", id.user);
	if (id.uid != -1)
		str_addf(out, "  uid %lld\n", (long long)id.uid);
	if (id.start_ticks)
		str_addf(out, "  start %llu\n", (unsigned long long)id.start_ticks);
	if (id.started_ms != -1)
		str_addf(out, "  started_ms %lld\n", (long long)id.started_ms);
	for (size_t i = 0; i < PROCESS_TEXTS; i++)
		add_field(out, process_fields[i].name, process_text(&id, i));
}

/* Fails and shows both texts from the process on that differs first. */
static void expect_same(const char *tree, const char *got, const char *expected)
{
	size_t from = 0;
	for (size_t i = 0; got[i] == expected[i]; i++) {
		if (got[i] == '\0')
			return;
		if (got[i] == '\n' && got[i + 1] != ' ')
			from = i + 1;
	}
	fail_msg("%s:\n%.350s\nis not\n%.350s", tree, got + from, expected + from);
}

static int is_pid(const struct dirent *entry)
{
	return entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
}

static void write_expected(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void check_tree(const char *tree)
{
	char root[4096], path[4096], *expected = NULL;
	struct err e = { 0 };
	struct owners *o = NULL;
	struct str out = { 0 };
	struct dirent **pids = NULL;
	size_t len = 0;
	root_path(root, sizeof(root), tree, "");
	if (owners_open(&o, root, 0, &e) != 0)
		fail_msg("%s", e.text);
	str_addf(&out, "boot %s\n", owners_boot_id(o));
	root_path(path, sizeof(path), tree, "/proc");
	int n = scandir(path, &pids, is_pid, alphasort);
	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		add_process(&out, o, (uint32_t)strtoul(pids[i]->d_name, NULL, 10));
		free(pids[i]);
	}
	free(pids);
	root_path(path, sizeof(path), tree, "/expected");
	if (getenv("GUA_UPDATE"))
		write_expected(path, str_text(&out));
	if (file_read_all(path, 1 << 20, &expected, &len, &e) != 0)
		fail_msg("%s; got:\n%s", e.text, str_text(&out));
	expect_same(tree, str_text(&out), expected);
	free(expected);
	str_finish(&out);
	owners_close(o);
}

static int is_tree(const struct dirent *entry)
{
	return entry->d_type == DT_DIR && entry->d_name[0] != '.';
}

static void test_trees(void **state)
{
	(void)state;
	char path[4096];
	struct dirent **trees = NULL;
	root_path(path, sizeof(path), "", "");
	int n = scandir(path, &trees, is_tree, alphasort);
	assert_true(n >= 14);
	for (int i = 0; i < n; i++) {
		check_tree(trees[i]->d_name);
		free(trees[i]);
	}
	free(trees);
}

static uint64_t start_in(const char *tree, uint32_t pid)
{
	char root[4096];
	struct err e = { 0 };
	struct owners *o = NULL;
	root_path(root, sizeof(root), tree, "");
	assert_int_equal(owners_open(&o, root, 0, &e), 0);
	uint64_t start = owners_start_ticks(o, pid);
	owners_close(o);
	return start;
}

static void test_reused_pid(void **state)
{
	(void)state;
	assert_int_equal(start_in("reused-before", 2301), 1000);
	assert_int_equal(start_in("reused-after", 2301), 900000);
	assert_int_equal(start_in("reused-after", 2302), 0);
}

static void test_live(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct owners *o = NULL;
	struct process_id id;
	assert_int_equal(owners_open(&o, "", 0, &e), 0);
	assert_int_equal(strlen(owners_boot_id(o)), 36);
	assert_true(owners_describe(o, (uint32_t)getpid(), false, &id));
	assert_string_equal(id.command, "test_owners");
	assert_int_equal(id.uid, getuid());
	assert_int_equal(id.start_ticks, owners_start_ticks(o, (uint32_t)getpid()));
	assert_true(id.started_ms > 0 && id.started_ms / 1000 <= time(NULL) + 1);
	owners_close(o);
}

/* A child that has ended and is not waited for has no arguments; one that is gone is dead. */
static void test_end_of_a_life(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct owners *o = NULL;
	struct process_id id;
	siginfo_t info;
	assert_int_equal(owners_open(&o, "", 0, &e), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(owners_describe(o, (uint32_t)child, false, &id));
	assert_string_equal(id.command, "[test_owners]");
	assert_true(id.start_ticks > 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(owners_describe(o, (uint32_t)child, false, &id));
	assert_string_equal(id.user, "_dead");
	assert_int_equal(id.start_ticks, 0);
	assert_int_equal(id.started_ms, -1);
	assert_int_equal(id.uid, -1);
	assert_int_equal(owners_start_ticks(o, (uint32_t)child), 0);
	owners_close(o);
}

/* What may not be read is left out, and nothing is said about it. */
static void test_environment_of_another_user(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct owners *o = NULL;
	struct process_id id;
	int status = -1;
	assert_int_equal(setenv("GUA_TAG", "mine", 1), 0);
	pid_t other = fork();
	if (other == 0) {
		execl("/bin/sleep", "sleep", "60", NULL);
		_exit(1);
	}
	assert_int_equal(owners_open(&o, "", 0, &e), 0);
	while (owners_describe(o, (uint32_t)other, false, &id) &&
		strcmp(id.command, "sleep") != 0)
		;
	assert_string_equal(id.origin.tag, "mine");
	pid_t nobody = fork();
	if (nobody == 0) {
		uint32_t pid = getuid() == 0 ? (uint32_t)other : 1;
		bool dropped = getuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
		bool described = owners_describe(o, pid, false, &id);
		_exit(dropped && described && !*id.origin.tag && id.uid == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(nobody, &status, 0), nobody);
	assert_int_equal(status, 0);
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	owners_close(o);
}

static void test_no_such_root(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct owners *o = NULL;
	assert_int_equal(owners_open(&o, "/nonexistent\x1b", 0, &e), ERR_WORLD);
	assert_string_equal(e.text,
		"cannot look at processes in /nonexistent\\x1B/proc: No such "
		"file or directory");
	owners_close(NULL);
}

static void test_a_claim_decides_nothing(void **state)
{
	(void)state;
	char key[SESSION_KEY_CAP];
	struct process_id id = {
		.pid = 7, .posix_session = 5, .user = "eve", .job = "slurm:3385"
	};
	assert_int_equal(session_key_of(key, &id, "boot"), SESSION_JOB);
	process_restrict(&id, PRIVACY_STRICT);
	assert_string_equal(id.job, "slurm:3385");
	str_copy(id.job, sizeof(id.job), JOB_CLAIM "slurm:3385");
	assert_int_equal(session_key_of(key, &id, "boot"), SESSION_POSIX);
	assert_string_equal(key, "session 5 of eve, boot boot");
	const struct session_member m = {
		.texts = { [PROCESS_JOB] = id.job, [PROCESS_LOGIN] = "ssh" }
	};
	assert_int_equal(session_use(&m), USE_INTERACTIVE);
	process_restrict(&id, PRIVACY_STRICT);
	assert_string_equal(id.job, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_reused_pid),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_end_of_a_life),
		cmocka_unit_test(test_environment_of_another_user),
		cmocka_unit_test(test_no_such_root),
		cmocka_unit_test(test_a_claim_decides_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The files of a process: cut, odd and hostile ones too. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "proc/proc.h"

#define TAIL " S 1 2 3 4 -1 6 7 8 9 10 11 12 13 14 20 0 9 0 4711 5 6\n"

static void expect_comm(const char *line, const char *comm)
{
	struct proc_stat stat;
	if (!proc_parse_stat(line, strlen(line), &stat))
		fail_msg("%s", line);
	assert_int_equal(stat.comm_len, strlen(comm));
	assert_memory_equal(stat.comm, comm, stat.comm_len);
	assert_int_equal(stat.start_ticks, 4711);
	assert_int_equal(stat.state, 'S');
}

static void test_stat(void **state)
{
	(void)state;
	expect_comm("12 (python3)" TAIL, "python3");
	expect_comm("12 (a b)" TAIL, "a b");
	expect_comm("12 (a) R 1 (b)" TAIL, "a) R 1 (b");
	expect_comm("12 (\n)\x1b\xff)" TAIL, "\n)\x1b\xff");
	expect_comm("12 ()" TAIL, "");
}

/* A line that was cut before the end of field 22 is not believed: half a number is another. */
static void test_cut_stat(void **state)
{
	(void)state;
	static const char line[] = "12 (python3)" TAIL;
	size_t whole = (size_t)(strstr(line, "4711 ") - line) + 5;
	struct proc_stat stat;
	for (size_t len = 0; len < sizeof(line) - 1; len++)
		assert_int_equal(proc_parse_stat(line, len, &stat), len >= whole);
}

static void test_bad_stat(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "12", "12 python3 S", ")12 (", "1 (a)", "1 (a) ",
		"1 (a) S 1 2 3 4 -1 6 7 8 9 10 11 12 13 14 20 0 9 0 x 5\n",
		"1 (a) S 1 2 3 4 -1 6 7 8 9 10 11 12 13 14 20 0 9 0 -1 5\n",
		"1 (a) S 1 2 3 4 -1 6 7 8 9 10 11 12 13 14 20 0 9 0 18446744073709551616 5\n" };
	struct proc_stat stat;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(proc_parse_stat(bad[i], strlen(bad[i]), &stat));
}

static void test_uid(void **state)
{
	(void)state;
	uint32_t uid = 1;
	static const char text[] =
		"Name:\tUid:\t7\t7\nUid:\t1000\t4294967295\t0\t0\nGid:\t5\t5\n";
	assert_true(proc_parse_uid(text, sizeof(text) - 1, &uid));
	assert_int_equal(uid, 4294967295U);
	static const char *const bad[] = { "", "Uid:\t1\t1\t1\n", "\nUid:\t1\n", "\nUid:\t1\t",
		"\nUid:\t1\t10", "\nUid:\t1\t4294967296\t\n", "\nUid:\ta\tb\n", "\nUid:" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(proc_parse_uid(bad[i], strlen(bad[i]), &uid));
}

static void test_number(void **state)
{
	(void)state;
	uint64_t n = 0;
	assert_true(proc_parse_number("4294967295", 10, &n) && n == 4294967295U);
	assert_true(proc_parse_number("1000\n", 5, &n) && n == 1000);
	assert_false(proc_parse_number("", 0, &n));
	assert_false(proc_parse_number("-1", 2, &n));
	assert_false(proc_parse_number("10x", 3, &n));
	assert_false(proc_parse_number("99999999999999999999", 20, &n));
}

/* Arguments are separated by '|' here. */
static void expect_command(const char *arguments, const char *expected)
{
	char bytes[512], out[256];
	size_t len = strlen(arguments);
	memcpy(bytes, arguments, len + 1);
	for (size_t i = 0; i < len; i++)
		if (bytes[i] == '|')
			bytes[i] = '\0';
	const struct proc_stat stat = { "comm", 4, 'S', 1 };
	proc_command(out, sizeof(out), bytes, len, &stat);
	assert_string_equal(out, expected);
}

static void test_command(void **state)
{
	(void)state;
	expect_command("", "[comm]");
	expect_command("|x|", "[comm]");
	expect_command("/usr/bin/nvidia-smi|-l|1|", "nvidia-smi");
	expect_command("./a.out|--token=secret|", "a.out");
	expect_command("-bash|", "bash");
	expect_command("/|x|", "/");
	expect_command("/opt/my tools/run|x|", "run");
	expect_command("sshd: alice@pts/3", "sshd:");
	expect_command("/opt/chrome --key=secret /x/y|||", "chrome");
	expect_command("ray::Worker|||", "ray::Worker");
}

static void test_scripts(void **state)
{
	(void)state;
	expect_command("/usr/bin/python3.11|/home/a/train.py|--key|s|", "python3.11 train.py");
	expect_command("python|-u|-W|ignore|-Xdev|-X|a=b|t.py|", "python t.py");
	expect_command(
		"python|-m|torch.distributed.run|t.py|", "python -m torch.distributed.run");
	expect_command("python|-um|http.server|", "python -m http.server");
	expect_command("python|-mpdb|t.py|", "python -m pdb");
	expect_command("python|-c|import secret|x|", "python");
	expect_command("python|-Bc|import secret|", "python");
	expect_command("python|-|secret|", "python");
	expect_command("python|--|-odd.py|", "python -odd.py");
	expect_command("python|-m|", "python");
	expect_command("python|-W|", "python");
	expect_command("python|--check-hash-based-pycs|always|t.py|", "python t.py");
	expect_command("bash|-lc|mysql -psecret|", "bash");
	expect_command("bash|-o|pipefail|run.sh|", "bash run.sh");
	expect_command("/bin/sh|/x/job.sh|secret|", "sh job.sh");
	expect_command("julia|-t|8|--project|/p|fit.jl|", "julia fit.jl");
	expect_command("julia|-e|secret()|", "julia");
	expect_command("node|-r|mod|/srv/app.js|", "node app.js");
	expect_command("R|--no-echo|--file=/x/fit.R|--args|s|", "R fit.R");
	expect_command("Rscript|--vanilla|fit.R|", "Rscript fit.R");
	expect_command("perl|-e|secret|", "perl");
	expect_command("perl5.36|-w|-I|lib|x.pl|", "perl5.36 x.pl");
	expect_command("ruby|/x/a b.rb|", "ruby a b.rb");
	expect_command("pythonic|secret|", "pythonic");
}

static void test_command_is_cut(void **state)
{
	(void)state;
	char out[8];
	const struct proc_stat stat = { "abcdefgh", 8, 'S', 1 };
	proc_command(out, sizeof(out), "python\0train.py", 15, &stat);
	assert_string_equal(out, "python ");
	proc_command(out, sizeof(out), "", 0, &stat);
	assert_string_equal(out, "[abcdef");
}

static void test_boot_time(void **state)
{
	(void)state;
	char dir[] = "/tmp/gua-test-XXXXXX", path[64], buffer[300];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/stat", dir);
	for (int padding = 0; padding < 700; padding += 7) {
		FILE *f = fopen(path, "w");
		fprintf(f, "cpu 1\nintr %0*d\nbtime 1793952000\nprocesses 1\n", padding, 0);
		fclose(f);
		assert_int_equal(proc_boot_time(dir, buffer, sizeof(buffer)), 1793952000);
	}
	unlink(path);
	assert_int_equal(proc_boot_time(dir, buffer, sizeof(buffer)), -1);
	rmdir(dir);
}

/* What the handle is for: it stays with the life that it was opened for. */
static void test_handle_dies_with_its_process(void **state)
{
	(void)state;
	char buffer[2048];
	int gate[2];
	assert_int_equal(pipe(gate), 0);
	pid_t child = fork();
	if (child == 0) {
		close(gate[1]);
		ssize_t n = read(gate[0], buffer, 1);
		_exit((int)n);
	}
	int dirfd = proc_open("/proc", (uint32_t)child);
	assert_true(dirfd >= 0);
	assert_true(file_read_at(dirfd, "stat", buffer, sizeof(buffer)) > 0);
	close(gate[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(file_read_at(dirfd, "stat", buffer, sizeof(buffer)), -1);
	assert_int_equal(errno, ESRCH);
	close(dirfd);
	close(gate[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_cut_stat),
		cmocka_unit_test(test_bad_stat),
		cmocka_unit_test(test_uid),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_command_is_cut),
		cmocka_unit_test(test_boot_time),
		cmocka_unit_test(test_handle_dies_with_its_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

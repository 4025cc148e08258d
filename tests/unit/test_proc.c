/* The files of a process: cut, odd and hostile ones too. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/command.h"
#include "proc/mappings.h"
#include "proc/proc.h"
#include "proc/secret.h"

/* Up to resident pages: all that is used. */
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
	for (size_t len = 0; len < sizeof(line) - 1; len++) {
		assert_int_equal(proc_parse_stat(line, len, &stat), len >= whole);
		if (len >= whole)
			assert_int_equal(stat.rss_pages, -1);
	}
	assert_true(proc_parse_stat(line, sizeof(line) - 1, &stat));
	assert_int_equal(stat.rss_pages, 6);
}

/* A cut number is another one. */
static void test_statm(void **state)
{
	(void)state;
	static const char line[] = "1200 417 300 9 0 250 0\n";
	size_t whole = (size_t)(strstr(line, "417 ") - line) + 4;
	for (size_t len = 0; len < sizeof(line); len++)
		assert_int_equal(proc_parse_resident(line, len), len >= whole ? 417 : -1);
	assert_int_equal(proc_parse_resident("1 -2 3\n", 7), -1);
	assert_int_equal(proc_parse_resident("1 9223372036854775807 3\n", 24), -1);
	assert_int_equal(proc_parse_resident("x 2 3\n", 6), -1);
}

static void test_all_of_stat(void **state)
{
	static const char line[] =
		"42 (a) b (c) S 7 42 42 0 -1 4194560 100 200 3 4 50 60 70 80 20 "
		"0 5 0 12345 1000000 256 18446744073709551615 1 1 0\n";
	struct proc_stat s;
	(void)state;
	assert_true(proc_parse_stat(line, sizeof(line) - 1, &s));
	assert_int_equal(s.state, 'S');
	assert_int_equal(s.ppid, 7);
	assert_int_equal(s.minor_faults, 100);
	assert_int_equal(s.waited_minor_faults, 200);
	assert_int_equal(s.major_faults, 3);
	assert_int_equal(s.waited_major_faults, 4);
	assert_int_equal(s.user_ticks, 50);
	assert_int_equal(s.system_ticks, 60);
	assert_int_equal(s.waited_user_ticks, 70);
	assert_int_equal(s.waited_system_ticks, 80);
	assert_int_equal(s.threads, 5);
	assert_int_equal(s.start_ticks, 12345);
	assert_int_equal(s.rss_pages, 256);
}

/* Callers add counts: no sum of a few may overflow. */
static void test_counts_that_no_host_reaches(void **state)
{
	static const char line[] = "1 (a) S 1 2 3 4 -1 6 9223372036854775807 8 "
				   "9223372036854775807 10 9223372036854775807 -5 13 14 20 0 "
				   "9 0 5 5 9223372036854775807 1\n";
	struct proc_stat s;
	struct proc_status status;
	(void)state;
	assert_true(proc_parse_stat(line, sizeof(line) - 1, &s));
	assert_int_equal(s.minor_faults, INT64_C(1) << 59);
	assert_int_equal(s.minor_faults + s.major_faults, INT64_C(1) << 60);
	assert_int_equal(s.user_ticks, INT64_C(1) << 59);
	assert_int_equal(s.system_ticks, 0);
	assert_int_equal(s.rss_pages, -1);
	static const char text[] = "voluntary_ctxt_switches:\t9223372036854775807\n";
	proc_parse_status(text, sizeof(text) - 1, &status);
	assert_int_equal(status.voluntary, INT64_C(1) << 59);
}

static void test_long_comm(void **state)
{
	char line[256];
	struct proc_stat s;
	(void)state;
	int n = snprintf(line, sizeof(line), "1 (%0100d)" TAIL, 7);
	assert_true(proc_parse_stat(line, (size_t)n, &s));
	assert_int_equal(s.comm_len, PROC_COMM_CAP);
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

static int64_t uid_in(const char *text, size_t len)
{
	struct proc_status status;
	proc_parse_status(text, len, &status);
	return status.uid;
}

/* The real uid, which is the first: a setuid program is its caller's. */
static void test_uid(void **state)
{
	(void)state;
	static const char text[] =
		"Name:\tUid:\t7\t7\nUid:\t4294967295\t1000\t0\t0\nGid:\t5\t5\n";
	size_t whole = (size_t)(strstr(text, "5\t1000") - text) + 2;
	for (size_t len = 0; len < sizeof(text) - 1; len++)
		assert_int_equal(uid_in(text, len), len < whole ? -1 : 4294967295);
	static const char *const bad[] = { "", "\nUid:\t1", "\nUid:\t4294967296\t\n",
		"\nUid:\ta\tb\n", "\nUid:", "\nUid:\t-5\t1\n" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(uid_in(bad[i], strlen(bad[i])), -1);
}

static void test_status_and_rollup(void **state)
{
	static const char status[] =
		"Name:\tx\nTgid:\t42\nUid:\t1000\t0\t0\t0\nVmHWM:\t  2048 kB\n"
		"voluntary_ctxt_switches:\t11\nnonvoluntary_ctxt_switches:\t12\n";
	static const char rollup[] =
		"00400000-7fff ---p 00000000 00:00 0 [rollup]\nRss: 4000 kB\nPss: 1000 kB\n"
		"Pss_Dirty: 900 kB\nShared_Clean: 3000 kB\nPrivate_Clean: 100 kB\n"
		"Private_Dirty: 400 kB\nSwap: 8 kB\nSwapPss: 4 kB\n";
	struct proc_status s;
	struct proc_rollup r;
	(void)state;
	proc_parse_status(status, sizeof(status) - 1, &s);
	assert_int_equal(s.tgid, 42);
	assert_int_equal(s.uid, 1000);
	assert_int_equal(s.least_uid, 0);
	assert_int_equal(s.peak_rss_bytes, 2048 * 1024);
	assert_int_equal(s.voluntary, 11);
	assert_int_equal(s.involuntary, 12);
	proc_parse_status("Name:\tzombie\n", 13, &s);
	assert_int_equal(s.peak_rss_bytes, -1);
	assert_true(proc_parse_rollup(rollup, sizeof(rollup) - 1, &r));
	assert_int_equal(r.rss_bytes, 4000 * 1024);
	assert_int_equal(r.pss_bytes, 1000 * 1024);
	assert_int_equal(r.uss_bytes, 500 * 1024);
	assert_int_equal(r.swap_bytes, 4 * 1024);
	assert_false(proc_parse_rollup(rollup, 20, &r));
}

/* What a process has of each file: all its mappings together, without its own copies of pages,
 * and nothing of what it shares with nobody. */
static void test_mappings(void **state)
{
	static const char smaps[] =
		"7f00-7f10 r--p 00000000 fe:00 247134      /usr/lib/libx.so: Rss: 9 kB\n"
		"Size: 900 kB\nRss: 400 kB\nPss: 100 kB\nPss_Dirty: 7 kB\nAnonymous: 0 kB\n"
		"7f10-7f20 rw-p 00010000 fe:00 247134      /usr/lib/libx.so\n"
		"Rss: 100 kB\nPss: 70 kB\nAnonymous: 60 kB\nVmFlags: rd mr\n"
		"7f20-7f30 rw-p 00000000 00:00 0           [heap]\nRss: 999 kB\nPss: 3 kB\n"
		"7f30-7f40 rw-s 00000000 00:01 247134      /dev/zero (deleted)\n"
		"Rss: 50 kB\nPss: 50 kB\n"
		"7f40-7f50 r--s 00000000 00:01 9           /dev/shm/x\nRss: 80 kB\nPss: 20 "
		"kB\n";
	struct mappings m = { 0 };
	(void)state;
	assert_int_equal(mappings_parse(&m, smaps, sizeof(smaps) - 2), sizeof(smaps) - 1 - 11);
	mappings_parse(&m, "Pss: 20 kB\n", 11);
	mappings_end(&m);
	assert_int_equal(m.n, 2);
	assert_int_equal(m.rows[0].inode, 247134);
	assert_int_equal(m.rows[0].device, UINT64_C(0xfe) << 32);
	assert_int_equal(m.rows[0].resident_bytes, (400 + 100 - 60) * 1024);
	assert_int_equal(m.rows[0].share_bytes, (100 + 70 - 60) * 1024);
	assert_int_equal(m.rows[1].resident_bytes, 80 * 1024);
}

/* Of more files than there is room for, those that are shared most. */
static void test_many_mappings(void **state)
{
	struct mappings m = { 0 };
	char text[128];
	(void)state;
	for (int i = 1; i <= 2 * MAPPINGS_MAX; i++) {
		int n = snprintf(text, sizeof(text),
			"7f00-7f10 r--p 0 fe:00 %d /x\nRss: %d kB\nPss: 1 kB\n", i, 100 + i);
		assert_int_equal(mappings_parse(&m, text, (size_t)n), n);
	}
	mappings_end(&m);
	assert_int_equal(m.n, MAPPINGS_MAX);
	for (size_t i = 0; i < m.n; i++)
		assert_true(m.rows[i].inode > MAPPINGS_MAX);
}

static void test_io(void **state)
{
	static const char text[] = "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n";
	struct proc_io io;
	(void)state;
	assert_true(proc_parse_io(text, sizeof(text) - 1, &io));
	assert_int_equal(io.read_bytes, 4096);
	assert_int_equal(io.written_bytes, 8192);
	assert_false(proc_parse_io(text, sizeof(text) - 2, &io));
}

static void test_the_hosts_files(void **state)
{
	static const char text[] = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 5 kB\n"
				   "Buffers: 50 kB\nCached: 300 kB\nSReclaimable: 50 kB\n";
	struct proc_memory memory;
	struct proc_cpu cpu;
	int64_t newest;
	(void)state;
	assert_true(proc_parse_memory(text, sizeof(text) - 1, &memory));
	assert_int_equal(memory.total_bytes, 1000 * 1024);
	assert_int_equal(memory.used_bytes, 500 * 1024);
	assert_true(proc_parse_cpu("cpu  10 1 20 100 50 2 3 4 9 9\ncpu0 1\n", 37, &cpu));
	assert_int_equal(cpu.busy_ticks, 40);
	assert_int_equal(cpu.all_ticks, 190);
	assert_false(proc_parse_cpu("cpu0 1 2\n", 9, &cpu));
	assert_true(proc_parse_newest("0.1 0.2 0.3 1/161 24212\n", 24, &newest));
	assert_int_equal(newest, 24212);
	assert_false(proc_parse_newest("nothing\n", 8, &newest));
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
static void command_named(const char *arguments, const char *comm, char *out, size_t cap)
{
	char bytes[512];
	size_t len = strlen(arguments);
	memcpy(bytes, arguments, len + 1);
	for (size_t i = 0; i < len; i++)
		if (bytes[i] == '|')
			bytes[i] = '\0';
	struct proc_stat stat = { .comm_len = strlen(comm) };
	memcpy(stat.comm, comm, stat.comm_len);
	command_text(out, cap, bytes, len, &stat);
}

static void command_of(const char *arguments, char *out, size_t cap)
{
	command_named(arguments, "comm", out, cap);
}

static void expect_command(const char *arguments, const char *expected)
{
	char out[256];
	command_of(arguments, out, sizeof(out));
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
	expect_command("/opt/my tools/comm|x|", "comm");
	expect_command("/opt/my tools/run|x|", "my");
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
	expect_command("python|--|-odd.py|", "python");
	expect_command("python|--|odd.py|", "python odd.py");
	expect_command("python|-m|", "python");
	expect_command("python|-W|", "python");
	expect_command("python|--check-hash-based-pycs|always|t.py|", "python t.py");
	expect_command("bash|-lc|mysql -psecret|", "bash");
	expect_command("bash|-o|pipefail|run.sh|", "bash run.sh");
	expect_command("/bin/sh|/x/job.sh|secret|", "sh job.sh");
	expect_command("julia|-t|8|--project|fit.jl|hunter2|", "julia fit.jl");
	expect_command("julia|-e|secret()|", "julia");
	expect_command("node|-r|mod|/srv/app.js|", "node app.js");
	expect_command("R|--no-echo|--file=/x/fit.R|--args|s|", "R fit.R");
	expect_command("R|--no-echo|--file=fit|--args|s|", "R fit");
	expect_command("Rscript|--vanilla|fit.R|", "Rscript fit.R");
	expect_command("perl|-e|secret|", "perl");
	expect_command("perl5.36|-w|-I|lib|x.pl|", "perl5.36 x.pl");
	expect_command("ruby|/x/b.rb|", "ruby b.rb");
	expect_command("pythonic|secret|", "pythonic");
	expect_command("python3-config|secret|", "python3-config");
	expect_command("julia-1.9|fit.jl|", "julia-1.9 fit.jl");
	expect_command("python3.11-dbg|t.py|", "python3.11-dbg t.py");
}

/* Code and credentials in the arguments of every program that takes them: none is kept. */
static void test_secrets(void **state)
{
	(void)state;
	static const char *const lines[] = { "node|--eval|hunter2|", "node|--eval=hunter2|x|",
		"node|-e|hunter2|", "node|-p|hunter2|", "node|-pe|hunter2|",
		"node|--print|hunter2|", "node|--unknown|hunter2|x.js|",
		"julia|--eval|hunter2|", "julia|--eva|hunter2|", "julia|-E|hunter2|",
		"julia|-ehunter2|", "julia|--project|fit|hunter2|",
		"julia|--print=hunter2|hunter2.jl|", "R|--args|hunter2|",
		"R|--no-echo|--args|hunter2.R|", "R|hunter2|", "R|-e|hunter2|", "R|--|hunter2|",
		"Rscript|-e|hunter2|x.R|", "bash|-s|hunter2|", "bash|-ls|hunter2|",
		"bash|-c|hunter2|x.sh|", "bash|+o|hunter2|", "bash|--login|job|hunter2|",
		"sh|-c|hunter2|", "sh|-xc|hunter2|", "dash|-s|hunter2|", "zsh|-c|hunter2|",
		"perl|-e|hunter2|", "perl|-E|hunter2|", "perl|-ne|hunter2|",
		"perl|-lane|hunter2|", "perl|-pi.bak|-e|hunter2|", "perl|-Z|hunter2|x.pl|",
		"ruby|-e|hunter2|", "ruby|-ne|hunter2|", "python|-c|hunter2|",
		"python|-Ic|hunter2|", "python|-chunter2|", "python|-|hunter2|",
		"python|--token|hunter2|t.py|", "python|-y|hunter2|t.py|",
		"python|token=hunter2|", "python|x hunter2|", "python|x;hunter2|",
		"python|print('/hunter2')|", "python|https://hunter2@host/|",
		"python|-m|hunter2 x|", "python|-m|token=hunter2|", "php|-r|hunter2|",
		"psql|postgres://user:hunter2@host/db|", "env|TOKEN=hunter2|prog|",
		"TOKEN=hunter2|", "--password=hunter2|", "postgres://user:hunter2@host||",
		"worker --password=hunter2|x|", "python worker|hunter2|",
		"worker /x/y --token=a/hunter2|x|", "worker\npassword hunter2|",
		"curl|-u|user:hunter2|", "user:hunter2@host|", "python3.11-x|hunter2|",
		"python|sk-hunter2hunter2hunter2|",
		"python|sk-proj-a_b-hunter2hunter2xyz|x.py|",
		"python|/tmp/ghp_hunter2hunter2xyz|", "python|-m|hf_hunter2hunter2hunter|",
		"bash|glpat-hunter2_hunter2-x|", "node|xoxb-12-hunter2|",
		"python|AKIAhunter2hunter2xy|", "sk-hunter2hunter2hunter2|x|",
		"python|eyJhunter2hunter2hunter2.hunter2.hunter2|",
		"/x/my-nvapi-hunter2hunter2hunter2/|", "a,gsk_hunter2hunter2hunter2.py|" };
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char out[256];
		command_of(lines[i], out, sizeof(out));
		if (out[0] == '\0' || strstr(out, "hunter2"))
			fail_msg("%s is shown as %s", lines[i], out);
	}
	expect_command("node|--inspect|app.js|hunter2|", "node app.js");
	expect_command("julia|--startup-file=no|fit.jl|", "julia fit.jl");
	expect_command("bash|-x|job|hunter2|", "bash job");
	expect_command("perl|-lw|x|hunter2|", "perl x");
	expect_command("worker /x/y --token=hunter2|x|", "worker");
	expect_command("postgres://user:hunter2@host|", "host");
	expect_command("TOKEN=hunter2|", "TOKEN");
	/* Names that only begin as keys do. */
	expect_command("python|sk-learn-fit-all-folds.py|", "python sk-learn-fit-all-folds.py");
	expect_command(
		"python|hf_train_llama_model_v2.py|", "python hf_train_llama_model_v2.py");
	expect_command("python|disk-cleanup2024everything.py|",
		"python disk-cleanup2024everything.py");
	expect_command("python|ghp_x.py|", "python ghp_x.py");
}

/* setproctitle(3) gives the beginning of the title also to the kernel, as the comm. */
static void test_titles(void **state)
{
	(void)state;
	static const struct {
		const char *arguments, *comm, *expected;
	} cases[] = {
		{ "trainer --password hunter2|", "trainer --passw", "trainer" },
		{ "job hunter2|", "job hunter2", "job" },
		{ "text-generation-launcher --token hunter2|", "text-generation",
			"text-generation-launcher" },
		{ "/opt/a b/text-generation-launcher --token hunter2|", "text-generation",
			"text-generation-launcher" },
		{ "/opt/a b/text-generation-launcher|hunter2|", "text-generation",
			"text-generation-launcher" },
		{ "/opt/a b/my prog|hunter2|", "my prog", "my prog" },
		{ "", "job hunter2", "[job]" },
		{ "", "token=hunter2", "[token]" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[256];
		command_named(cases[i].arguments, cases[i].comm, out, sizeof(out));
		assert_string_equal(out, cases[i].expected);
	}
}

static void test_cuts(void **state)
{
	(void)state;
	static const struct {
		const char *text, *path, *word;
	} cases[] = {
		{ "/a/b.ipynb", "/a/b.ipynb", "/a/b.ipynb" },
		{ "/a/b.ipynb?token=x", "/a/b.ipynb", "/a/b.ipynb" },
		{ "http://u:p@h/b.ipynb?x#y", "http://h/b.ipynb", "http://h/b.ipynb" },
		{ "http://u:p/@h/@x", "http://x", "http://x" },
		{ "u:p@h", "u:p@h", "u:h" },
		{ "http://h/b", "http://h/b", "http://h/b" },
		{ "lr=0.1/b.ipynb", "lr=0.1/b.ipynb", "lr" },
		{ "a/API_KEY=x/b", "a/API_KEY=", "a/API_KEY" },
		{ "--Password=x", "--Password=", "--Password" },
		{ "a&token=x", "a", "a" },
		{ "run of ghp_0123456789abcdef, 2", "run of ghp_, 2", "run of ghp_, 2" },
		{ "a/SG.0123456789abcdef.x/b", "a/SG./b", "a/SG./b" },
		{ "sk-0123456789abcde", "sk-0123456789abcde", "sk-0123456789abcde" },
		{ "", "", "" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64];
		size_t n = strlen(cases[i].text);
		memcpy(text, cases[i].text, n);
		text[secret_cut(text, n, SECRET_PATH)] = '\0';
		assert_string_equal(text, cases[i].path);
		memcpy(text, cases[i].text, n);
		text[secret_cut(text, n, SECRET_WORD)] = '\0';
		assert_string_equal(text, cases[i].word);
	}
}

static void test_command_is_cut(void **state)
{
	(void)state;
	char out[8];
	const struct proc_stat stat = { .comm = "abcdefgh", .comm_len = 8 };
	command_text(out, sizeof(out), "python\0train.py", 15, &stat);
	assert_string_equal(out, "python ");
	command_text(out, sizeof(out), "", 0, &stat);
	assert_string_equal(out, "[abcdef");
}

/* The line may lie across two pieces that are read. */
static void test_boot_time(void **state)
{
	(void)state;
	struct err e = { 0 };
	char dir[] = "/tmp/gua-test-XXXXXX", path[96], below[64];
	int proc = -1;
	assert_non_null(mkdtemp(dir));
	snprintf(below, sizeof(below), "%s/proc", dir);
	assert_int_equal(mkdir(below, 0700), 0);
	assert_int_equal(proc_open(&proc, dir, &e), 0);
	snprintf(path, sizeof(path), "%s/stat", below);
	for (int padding = 16300; padding < 16500; padding++) {
		FILE *f = fopen(path, "w");
		fprintf(f, "cpu 1\nintr %0*d\nbtime 1793952000\nprocesses 1\n", padding, 0);
		fclose(f);
		assert_int_equal(proc_boot_ms(proc, false), 1793952000000);
	}
	unlink(path);
	assert_int_equal(proc_boot_ms(proc, false), -1);
	close(proc);
	rmdir(below);
	rmdir(dir);
}

/* The list of processes has this one, and no threads or files. */
static void test_list(void **state)
{
	(void)state;
	struct err e = { 0 };
	int proc = -1;
	bool found = false;
	assert_int_equal(proc_open(&proc, "", &e), 0);
	DIR *list = proc_open_list(proc);
	assert_non_null(list);
	for (uint32_t pid; (pid = proc_next_listed(list)) != 0;)
		found |= pid == (uint32_t)getpid();
	assert_true(found);
	closedir(list);
	close(proc);
}

/* What the handle is for: it stays with the life that it was opened for. */
static void test_handle_dies_with_its_process(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct proc_stat stat;
	char byte;
	int gate[2], proc = -1;
	assert_int_equal(pipe(gate), 0);
	pid_t child = fork();
	if (child == 0) {
		close(gate[1]);
		ssize_t n = read(gate[0], &byte, 1);
		_exit((int)n);
	}
	assert_int_equal(proc_open(&proc, "", &e), 0);
	int handle = proc_open_process(proc, (uint32_t)child);
	int open_stat = proc_open_file(proc, (uint32_t)child, "stat");
	assert_true(handle >= 0 && open_stat >= 0);
	assert_int_equal(proc_read_stat(handle, 0, &stat), 0);
	assert_int_equal(proc_read_stat_again(open_stat, &stat), 0);
	assert_int_equal(stat.start_ticks, proc_start_ticks(proc, (uint32_t)child));
	assert_int_equal(stat.ppid, getpid());
	close(gate[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(proc_read_stat(handle, 0, &stat), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(proc_read_stat_again(open_stat, &stat), -1);
	assert_int_equal(proc_start_ticks(proc, (uint32_t)child), 0);
	close(open_stat);
	close(handle);
	close(proc);
	close(gate[0]);
}

/* Who has locked a file: only whole lines count, and only those that have the lock. */
static void test_locks(void **state)
{
	(void)state;
	static const char text[] = "1: FLOCK  ADVISORY  WRITE 12 fe:00:4711 0 EOF\n"
				   "1: -> FLOCK  ADVISORY  WRITE 13 fe:00:815 0 EOF\n"
				   "2: POSIX  ADVISORY  WRITE 14 fe:00:815 0 EOF\n"
				   "3: OFDLCK ADVISORY  READ -1 fe:00:815 0 EOF\n"
				   "44: FLOCK  ADVISORY  READ 15 fe:00:815 0 EOF\n"
				   "45: FLOCK  ADVISORY  READ 16 1a:2b:815 0 EOF\n"
				   "46: FLOCK  ADVISORY  READ 17 fe:00:99";
	const struct file_id files[] = { { makedev(0xfe, 0), 4711 }, { makedev(0xfe, 0), 815 },
		{ makedev(0x1a, 0x2b), 815 }, { makedev(0xfe, 0), 99 },
		{ makedev(0xfe, 1), 815 } };
	const int64_t pids[] = { 12, 15, 16, -1, -1 };
	for (size_t i = 0; i < 5; i++) {
		char bytes[sizeof(text)];
		memcpy(bytes, text, sizeof(text));
		assert_int_equal(proc_parse_locks(bytes, &files[i]), pids[i]);
	}
}

/* The process of a record lock is named; our own lock and a file without one are nobody's. */
static void test_record_locks(void **state)
{
	(void)state;
	const struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct err e = { 0 };
	struct lock_owner owner;
	int ready[2], done[2], proc = -1;
	pid_t found = 1;
	char byte = 0;
	FILE *file = tmpfile();
	assert_non_null(file);
	assert_true(proc_record_lock(fileno(file), &whole, &found));
	assert_int_equal(found, 0);
	assert_int_equal(pipe(ready) | pipe(done), 0);
	pid_t child = fork();
	if (child == 0) {
		close(done[1]);
		if (fcntl(fileno(file), F_SETLK, &whole) != 0 || write(ready[1], &byte, 1) != 1)
			_exit(1);
		_exit(read(done[0], &byte, 1) < 0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(proc_record_lock(fileno(file), &whole, &found));
	assert_int_equal(found, child);
	assert_int_equal(proc_open(&proc, "", &e), 0);
	assert_true(proc_lock_owner(&owner, proc, child));
	assert_int_equal(owner.uid, getuid());
	assert_string_equal(owner.name, "test_proc");
	close(done[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(proc_lock_owner(&owner, proc, child));
	assert_true(proc_record_lock(fileno(file), &whole, &found));
	assert_int_equal(found, 0);
	assert_false(proc_record_lock(-1, &whole, &found));
	for (int i = 0; i < 2; i++)
		close(ready[i]);
	close(done[0]);
	close(proc);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_record_locks),
		cmocka_unit_test(test_cut_stat),
		cmocka_unit_test(test_statm),
		cmocka_unit_test(test_all_of_stat),
		cmocka_unit_test(test_counts_that_no_host_reaches),
		cmocka_unit_test(test_long_comm),
		cmocka_unit_test(test_bad_stat),
		cmocka_unit_test(test_uid),
		cmocka_unit_test(test_status_and_rollup),
		cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_many_mappings),
		cmocka_unit_test(test_io),
		cmocka_unit_test(test_the_hosts_files),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_titles),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_command_is_cut),
		cmocka_unit_test(test_boot_time),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_handle_dies_with_its_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

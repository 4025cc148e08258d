/* The reader: the same answers as the owners give, many at once, and what it does about
 * processes that block and about its own process when that dies. */
#include "test.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/owners.h"
#include "proc/reader.h"
#include "proc/wary.h"

#define SECOND INT64_C(1000000)
enum { ALICE = 1001, BOB = 1002, PID_MOST = 4 * 1024 * 1024 };

struct host {
	char root[64];
	struct reader *reader;
};

static void write_file(const struct host *h, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", h->root, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void make_directory(const struct host *h, const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", h->root, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

/* A process "python train.py"; one that blocks has FIFOs. */
static void add_process(const struct host *h, uint32_t pid, int uid, bool blocks)
{
	char name[64], text[256];
	snprintf(name, sizeof(name), "proc/%u", pid);
	make_directory(h, name);
	snprintf(name, sizeof(name), "proc/%u/stat", pid);
	snprintf(text, sizeof(text),
		"%u (python) S 1 0 0 0 0 0 0 0 0 0 1 1 0 0 20 0 1 0 %u 0 0\n", pid, pid * 10);
	write_file(h, name, text);
	snprintf(name, sizeof(name), "proc/%u/status", pid);
	snprintf(text, sizeof(text), "Uid:\t%d\t%d\t%d\t%d\n", uid, uid, uid, uid);
	write_file(h, name, text);
	static const char *const files[] = { "cmdline", "smaps_rollup", "io", "environ",
		"smaps" };
	static const char *const texts[] = { "python", "Rss: 8 kB\nPss: 4 kB\n",
		"read_bytes: 1\nwrite_bytes: 2\n", "",
		"7f-80 r--p 0 fe:00 7 /x\nRss: 40 kB\nPss: 4 kB\n" };
	for (size_t i = 0; i < 5; i++) {
		char path[256];
		snprintf(name, sizeof(name), "proc/%u/%s", pid, files[i]);
		snprintf(path, sizeof(path), "%s/%s", h->root, name);
		if (blocks)
			assert_int_equal(mkfifo(path, 0644), 0);
		else
			write_file(h, name, texts[i]);
	}
}

static int setup(void **state)
{
	struct host *h = calloc(1, sizeof(*h));
	struct err e = { 0 };
	snprintf(h->root, sizeof(h->root), "/tmp/gua-reader-XXXXXX");
	assert_non_null(mkdtemp(h->root));
	make_directory(h, "proc");
	make_directory(h, "etc");
	write_file(h, "etc/passwd", "alice:x:1001:1001::/:\nbob:x:1002:1002::/:\n");
	assert_int_equal(reader_open(&h->reader, h->root, 0, &e), 0);
	*state = h;
	return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
	(void)info;
	(void)type;
	(void)at;
	return remove(path);
}

static int teardown(void **state)
{
	struct host *h = *state;
	reader_close(h->reader);
	nftw(h->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(h);
	return 0;
}

static void expect_process(
	struct host *h, uint32_t pid, const char *user, const char *command, bool brief)
{
	struct process_id id;
	bool is_brief = !brief;
	assert_true(reader_describe(h->reader, pid, &id, &is_brief));
	assert_int_equal(id.pid, pid);
	assert_int_equal(id.start_ticks, pid * 10);
	assert_string_equal(id.user, user);
	assert_string_equal(id.command, command);
	assert_int_equal(is_brief, brief);
}

static void test_answers_like_the_owners(void **state)
{
	(void)state;
	static const char *const trees[] = { "docker", "evil", "jupyter", "no-passwd", "sudo",
		"vanished", "zombie" };
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		char root[4096];
		struct reader *r = NULL;
		struct owners *o = NULL;
		struct err e = { 0 };
		const char *source = getenv("GUA_SOURCE_ROOT");
		snprintf(root, sizeof(root), "%s/tests/roots/%s", source ? source : ".",
			trees[i]);
		assert_int_equal(reader_open(&r, root, 0, &e), 0);
		assert_int_equal(owners_open(&o, root, 0, &e), 0);
		assert_string_equal(owners_boot_id(reader_owners(r)), owners_boot_id(o));
		for (uint32_t pid = 1; pid < 5000; pid++) {
			struct process_id a, b;
			bool brief;
			if (owners_start_ticks(o, pid) == 0)
				continue;
			memset(&a, 0, sizeof(a));
			memset(&b, 0, sizeof(b));
			assert_int_equal(reader_describe(r, pid, &a, &brief),
				owners_describe(o, pid, false, &b));
			assert_memory_equal(&a, &b, sizeof(a));
			assert_false(brief);
		}
		owners_close(o);
		reader_close(r);
	}
}

static void test_many_at_once(void **state)
{
	struct host *h = *state;
	uint32_t pids[301];
	for (uint32_t i = 0; i < 100; i++) {
		add_process(h, 2000 + i, ALICE, false);
		pids[3 * i] = pids[3 * i + 1] = 2099 - i; /* on several cards */
		pids[3 * i + 2] = 2000 + i;
	}
	pids[300] = 77; /* there is no such process */
	reader_expect(h->reader, pids, 301);
	assert_false(reader_knows(h->reader, 1999));
	for (uint32_t i = 0; i < 100; i++) {
		assert_true(reader_knows(h->reader, 2000 + i));
		expect_process(h, 2000 + i, "alice", "python", false);
		assert_false(reader_knows(h->reader, 2000 + i));
	}
	struct process_id id;
	bool brief = true;
	assert_false(reader_describe(h->reader, 77, &id, &brief));
	assert_string_equal(id.user, "_dead");
	assert_false(brief);
	reader_expect(h->reader, pids, 0);
	assert_false(reader_knows(h->reader, 2000));
}

/* A description may become better as long as the pod has no name: what names pods may start
 * later than the recorder. */
static void test_a_pod_whose_name_comes_late(void **state)
{
	struct host *h = *state;
	add_process(h, 100, ALICE, false);
	write_file(
		h, "proc/100/cgroup", "0::/kubepods/pod0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n");
	expect_process(h, 100, "alice", "python", true); /* nobody names pods yet */
	make_directory(h, "var");
	make_directory(h, "var/log");
	make_directory(h, "var/log/pods");
	make_directory(h, "var/log/pods/a_b_1f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0");
	expect_process(h, 100, "alice", "python", true);
	make_directory(h, "var/log/pods/ml_web_0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0");
	expect_process(h, 100, "ml", "python", false);
}

static void test_a_process_that_blocks(void **state)
{
	struct host *h = *state;
	char text[256];
	uint32_t pids[] = { 1001, 1002, 1003 };
	add_process(h, 1001, ALICE, true);
	add_process(h, 1002, ALICE, false);
	add_process(h, 1003, BOB, false);
	assert_false(reader_trouble(h->reader, text, sizeof(text)));
	reader_expect(h->reader, pids, 3);
	expect_process(h, 1001, "alice", "[python]", false);
	expect_process(h, 1002, "alice", "[python]", true);
	expect_process(h, 1003, "bob", "python", false);
	assert_true(reader_trouble(h->reader, text, sizeof(text)));
	assert_string_equal(text,
		"process 1001 (python, user alice) cannot be read: its memory is locked; "
		"described by its name only");
	/* It is not read again: its own user waits for ten minutes, others for seconds. */
	expect_process(h, 1001, "alice", "[python]", false);
	struct process_id id = { .pid = 1001, .start_ticks = 10010, .uid = ALICE };
	struct proc_rollup rollup;
	assert_int_equal(reader_rollup(h->reader, &id, &rollup), -1);
	assert_int_equal(errno, EBUSY);
	assert_false(reader_can_improve(h->reader, &id));
	/* Another life of the pid. */
	write_file(h, "proc/1001/stat",
		"1001 (python) S 1 0 0 0 0 0 0 0 0 0 1 1 0 0 20 0 1 0 7 0 0\n");
	assert_false(reader_trouble(h->reader, text, sizeof(text)));
}

static void make_fifo(const struct host *h, const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", h->root, name);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
}

/* Whatever blocks while a process is described, it is that process that is described briefly:
 * its environment, or the arguments of its parent. */
static void test_an_environment_or_a_parent_that_blocks(void **state)
{
	struct host *h = *state;
	add_process(h, 1001, ALICE, false);
	make_fifo(h, "proc/1001/environ");
	expect_process(h, 1001, "alice", "[python]", false);
	add_process(h, 1002, BOB, false);
	add_process(h, 1003, BOB, false);
	write_file(h, "proc/1003/stat",
		"1003 (python) S 1002 0 0 0 0 0 0 0 0 0 1 1 0 0 20 0 1 0 10030 0 0\n");
	make_fifo(h, "proc/1002/cmdline");
	expect_process(h, 1003, "bob", "[python]", false);
}

static void test_files(void **state)
{
	struct host *h = *state;
	char text[64];
	struct proc_rollup rollup;
	struct proc_io io;
	add_process(h, 1003, BOB, false);
	struct process_id id = { .pid = 1003, .start_ticks = 10030, .uid = BOB };
	assert_int_equal(reader_arguments(h->reader, &id, text, sizeof(text)), 6);
	assert_string_equal(text, "python");
	assert_int_equal(reader_rollup(h->reader, &id, &rollup), 0);
	assert_int_equal(rollup.rss_bytes, 8192);
	assert_int_equal(rollup.pss_bytes, 4096);
	struct mappings mappings;
	assert_int_equal(reader_mappings(h->reader, &id, &mappings), 0);
	assert_int_equal(mappings.n, 1);
	assert_int_equal(mappings.rows[0].resident_bytes, 40960);
	assert_int_equal(reader_io(h->reader, &id, &io), 0);
	assert_int_equal(io.written_bytes, 2);
	id.start_ticks++;
	assert_int_equal(reader_io(h->reader, &id, &io), -1);
	assert_int_equal(errno, ESRCH);
	id.start_ticks--;
	/* More than fits is not taken. */
	assert_int_equal(reader_arguments(h->reader, &id, text, 4), -1);
}

/* A file that blocks is found out by any question. */
static void test_a_file_that_blocks(void **state)
{
	struct host *h = *state;
	char text[256];
	struct proc_io io;
	add_process(h, 1001, ALICE, true);
	struct process_id id = { .pid = 1001, .start_ticks = 10010, .uid = ALICE };
	assert_int_equal(reader_io(h->reader, &id, &io), -1);
	assert_int_equal(errno, EBUSY);
	assert_true(reader_trouble(h->reader, text, sizeof(text)));
}

static pid_t process_of(const struct reader *r)
{
	for (pid_t pid = 1; pid < PID_MOST; pid++)
		if (reader_owns(r, pid))
			return pid;
	return 0;
}

static void test_its_process_dies(void **state)
{
	struct host *h = *state;
	struct process_id id;
	bool brief = true;
	add_process(h, 1003, BOB, false);
	assert_int_equal(process_of(h->reader), 0); /* not before it is needed */
	expect_process(h, 1003, "bob", "python", false);
	pid_t first = process_of(h->reader);
	assert_true(first > 0);
	assert_int_equal(kill(first, SIGKILL), 0);
	/* Until there is another one, the name of the user is remembered. */
	for (int i = 0; i < 600 && brief; i++) {
		assert_true(reader_describe(h->reader, 1003, &id, &brief));
		assert_string_equal(id.user, "bob");
		usleep(100000);
	}
	assert_false(brief);
	assert_string_equal(id.command, "python");
	assert_int_not_equal(process_of(h->reader), first);
}

/* A process that dies between two requests was not reading anything. */
static void test_nobody_is_blamed_for_an_earlier_request(void **state)
{
	struct host *h = *state;
	char text[256];
	struct proc_io io;
	add_process(h, 1003, BOB, false);
	struct process_id id = { .pid = 1003, .start_ticks = 10030, .uid = BOB };
	assert_int_equal(reader_io(h->reader, &id, &io), 0);
	assert_int_equal(kill(process_of(h->reader), SIGKILL), 0);
	assert_int_equal(reader_io(h->reader, &id, &io), -1);
	assert_int_equal(errno, EBUSY);
	int rc = -1;
	for (int i = 0; i < 600 && rc != 0; i++) {
		usleep(100000);
		rc = reader_io(h->reader, &id, &io);
	}
	assert_int_equal(rc, 0);
	assert_false(reader_trouble(h->reader, text, sizeof(text)));
}

static void move(const struct host *h, const char *from, const char *to)
{
	char old[256], new[256];
	snprintf(old, sizeof(old), "%s/%s", h->root, from);
	snprintf(new, sizeof(new), "%s/%s", h->root, to);
	assert_int_equal(rename(old, new), 0);
}

/* Its process has no answer to anything: it is replaced, later and later. */
static void test_its_process_cannot_answer(void **state)
{
	struct host *h = *state;
	char text[256] = "";
	struct process_id id;
	struct proc_io io;
	bool brief = true;
	add_process(h, 1003, BOB, false);
	move(h, "proc", "hidden");
	expect_process(h, 1003, "uid:1002", "[python]", true);
	/* Once may be an accident. */
	assert_false(reader_trouble(h->reader, text, sizeof(text)));
	for (int i = 0; i < 600 && !reader_trouble(h->reader, text, sizeof(text)); i++) {
		usleep(100000);
		assert_true(reader_describe(h->reader, 1003, &id, &brief));
		assert_true(brief);
	}
	assert_string_equal(text, "processes are described by their names only: the process "
				  "gua-reader sent an invalid answer");
	id = (struct process_id){ .pid = 1003, .start_ticks = 10030, .uid = BOB };
	assert_int_equal(reader_io(h->reader, &id, &io), -1);
	assert_int_equal(errno, EBUSY);
	move(h, "hidden", "proc");
	for (int i = 0; i < 600 && brief; i++) {
		usleep(100000);
		assert_true(reader_describe(h->reader, 1003, &id, &brief));
	}
	assert_string_equal(id.user, "bob");
	assert_string_equal(id.command, "python");
	assert_false(reader_trouble(h->reader, text, sizeof(text)));
}

static void test_names_are_asked_for_again(void **state)
{
	struct host *h = *state;
	reader_ask_again(h->reader);
	add_process(h, 1003, BOB, false);
	expect_process(h, 1003, "bob", "python", false);
	reader_ask_again(h->reader);
	expect_process(h, 1003, "bob", "python", false);
}

static void test_who_is_avoided_and_for_how_long(void **state)
{
	(void)state;
	struct wary w = { 0 };
	const struct process_id bad = { .pid = 7, .start_ticks = 70, .uid = ALICE };
	const struct process_id same = { .pid = 8, .start_ticks = 80, .uid = ALICE };
	const struct process_id other = { .pid = 9, .start_ticks = 90, .uid = BOB };
	assert_true(wary_is_calm(&w) && wary_allows(&w, &bad, 1));
	wary_add(&w, &bad, SECOND);
	assert_false(wary_is_calm(&w));
	assert_false(wary_allows(&w, &same, 600 * SECOND));
	assert_true(wary_allows(&w, &same, 601 * SECOND));
	assert_false(wary_allows(&w, &bad, 601 * SECOND)); /* as long as it lives */
	assert_true(wary_allows(&w, &other, SECOND));
	wary_add(&w, &same, 700 * SECOND); /* the second time is longer */
	assert_false(wary_allows(
		&w, &(struct process_id){ .pid = 1, .uid = ALICE }, (700 + 1199) * SECOND));
	assert_true(wary_allows(
		&w, &(struct process_id){ .pid = 1, .uid = ALICE }, (700 + 1200) * SECOND));
	/* Two in a row: nobody is read for a while, and each time longer. */
	assert_true(wary_allows(&w, &other, 700 * SECOND));
	wary_add(&w, NULL, 5000 * SECOND);
	assert_true(wary_allows(&w, &other, 5000 * SECOND));
	wary_add(&w, NULL, 5009 * SECOND);
	assert_false(wary_allows(&w, &other, 5013 * SECOND));
	assert_true(wary_allows(&w, &other, 5014 * SECOND));
	wary_add(&w, NULL, 5015 * SECOND);
	assert_false(wary_allows(&w, &other, 5024 * SECOND));
	assert_true(wary_allows(&w, &other, 5025 * SECOND));
	for (int i = 0; i < 20; i++)
		wary_add(&w, NULL, 5026 * SECOND);
	assert_false(wary_allows(&w, &other, 5325 * SECOND));
	assert_true(wary_allows(&w, &other, 5326 * SECOND)); /* never for longer */
	wary_add(&w, NULL, 9000 * SECOND);		     /* long after */
	wary_add(&w, NULL, 9001 * SECOND);
	assert_false(wary_allows(&w, &other, 9005 * SECOND));
	assert_true(wary_allows(&w, &other, 9006 * SECOND));
}

/* However many there are, the tables do not grow. */
static void test_many_are_avoided(void **state)
{
	(void)state;
	struct wary w = { 0 };
	for (uint32_t i = 1; i <= 10000; i++) {
		const struct process_id id = { .pid = i, .start_ticks = i, .uid = i };
		wary_add(&w, &id, i);
		assert_non_null(wary_find(&w, i, i));
		assert_false(wary_allows(&w, &id, i));
	}
	assert_null(wary_find(&w, 1, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_like_the_owners),
		cmocka_unit_test_setup_teardown(test_many_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_pod_whose_name_comes_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_process_that_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_an_environment_or_a_parent_that_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_file_that_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_its_process_dies, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_nobody_is_blamed_for_an_earlier_request, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_its_process_cannot_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_names_are_asked_for_again, setup, teardown),
		cmocka_unit_test(test_who_is_avoided_and_for_how_long),
		cmocka_unit_test(test_many_are_avoided),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Small files: read to the end, or in the one piece that the kernel hands over. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* A FIFO shows each read: what was written in two pieces takes two. */
static void test_pieces(void **state)
{
	(void)state;
	char dir[] = "/tmp/gua-file-XXXXXX", bytes[64];
	assert_non_null(mkdtemp(dir));
	int at = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkfifoat(at, "fifo", 0600), 0);
	int both = openat(at, "fifo", O_RDWR);
	assert_int_equal(write(both, "one", 3), 3);
	assert_int_equal(file_read_piece(openat(at, "fifo", O_RDONLY | O_NONBLOCK), bytes,
				 sizeof(bytes)),
		3);
	assert_string_equal(bytes, "one");
	/* The end of this file is not there yet. */
	assert_int_equal(write(both, "three", 5), 5);
	assert_int_equal(file_read_at(at, "fifo", bytes, sizeof(bytes)), -1);
	close(both);
	unlinkat(at, "fifo", 0);
	close(at);
	rmdir(dir);
}

/* Each file of a process that is read in one piece is whole then. */
static void test_files_of_a_process_come_in_one_piece(void **state)
{
	(void)state;
	static const char *const names[] = { "status", "cgroup", "cmdline", "environ", "comm" };
	static char piece[1 << 18], whole[1 << 18];
	int at = open("/proc/self", O_RDONLY | O_DIRECTORY);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ssize_t n =
			file_read_piece(openat(at, names[i], O_RDONLY), piece, sizeof(piece));
		assert_true(n > 0);
		/* Numbers in status differ between two readings. */
		assert_true(labs(file_read_at(at, names[i], whole, sizeof(whole)) - n) < 16);
	}
	assert_int_equal(file_read_piece(openat(at, "status", O_RDONLY), piece, 5), 4);
	assert_string_equal(piece, "Name");
	assert_int_equal(file_read_piece(-1, piece, sizeof(piece)), -1);
	close(at);
}

static void test_nearest_directory(void **state)
{
	(void)state;
	static const char *const cases[][2] = { { "/usr/none/gua/gua.db", "/usr" },
		{ "/usr/bin/env", "/usr/bin" }, { "/gua.db", "/" }, { "gua.db", "." },
		{ "none/gua.db", "." }, { "", "." } };
	char dir[64];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		file_nearest_directory(dir, sizeof(dir), cases[i][0]);
		assert_string_equal(dir, cases[i][1]);
	}
}

static void test_paths_below_a_root(void **state)
{
	(void)state;
	static char root[PATH_MAX + 1];
	char path[PATH_MAX], bytes[8];
	assert_true(file_path(path, "%s/%d", "/tmp", 7));
	assert_string_equal(path, "/tmp/7");
	assert_true(file_read_below("/proc", "/self/comm", bytes, sizeof(bytes)) > 0);
	assert_true(file_is_below("", "/proc/self"));
	assert_false(file_is_below("/proc/self", "/none"));
	/* PATH_MAX counts the NUL. */
	memset(root, '/', PATH_MAX);
	assert_false(file_path(path, "%s", root));
	assert_true(file_path(path, "%s", root + 1));
	assert_int_equal(file_read_below(root, "", bytes, sizeof(bytes)), -1);
	assert_false(file_is_below(root, ""));
	assert_true(file_is_below(root + 1, ""));
}

/* What a user does whose directory root writes to: a link there leads elsewhere every moment.
 */
static void *swap_for_ever(void *stop)
{
	for (int i = 0; !*(atomic_bool *)stop; i++) {
		if (symlink(i % 2 ? "roots" : "theirs", "other") != 0 ||
			rename("other", "link") != 0)
			return stop;
	}
	return NULL;
}

enum { SWAPS = 3000, THEM = 65534 };

static void test_what_root_makes_belongs_to_the_owner_of_its_directory(void **state)
{
	(void)state;
	char dir[] = "/tmp/gua-file-XXXXXX", here[PATH_MAX];
	atomic_bool stop = false;
	pthread_t thread;
	struct stat st;
	if (geteuid() != 0)
		return; /* meson takes cmocka's skip() for a failure */
	assert_non_null(getcwd(here, sizeof(here)));
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(mkdir("roots", 0700), 0);
	assert_int_equal(mkdir("theirs", 0700), 0);
	assert_int_equal(chown("theirs", THEM, THEM), 0);
	assert_int_equal(symlink("roots", "link"), 0);
	assert_int_equal(pthread_create(&thread, NULL, swap_for_ever, &stop), 0);
	unsigned wrong = 0;
	for (int i = 0; i < SWAPS; i++) {
		close(file_open_or_make("link/file", O_NOFOLLOW, 0600));
		wrong += stat("roots/file", &st) == 0 && st.st_uid != 0;
		wrong += stat("theirs/file", &st) == 0 && st.st_uid != THEM;
		unlink("roots/file");
		unlink("theirs/file");
	}
	stop = true;
	void *failed;
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_int_equal(wrong, 0);

	/* A file of theirs in a directory such as /tmp is opened; O_CREAT lets
	 * fs.protected_regular refuse it. What a link names that leads nowhere is made with
	 * O_CREAT only. */
	assert_int_equal(chmod("roots", 01777), 0);
	close(file_open_or_make("roots/file", O_NOFOLLOW, 0600));
	assert_int_equal(chown("roots/file", THEM, THEM), 0);
	int fd = file_open_or_make("roots/file", O_NOFOLLOW, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink("roots/made", "away"), 0);
	assert_int_equal(file_open_or_make("away", 0, 0600), -1);
	fd = file_open_or_make("away", O_CREAT, 0600);
	assert_true(fd >= 0 && stat("roots/made", &st) == 0);
	close(fd);
	assert_int_equal(file_open_or_make("none/file", O_CREAT, 0600), -1);
	assert_int_equal(errno, ENOENT);
	unlink("roots/made");
	unlink("roots/file");
	unlink("link");
	unlink("away");
	assert_int_equal(rmdir("roots") | rmdir("theirs") | chdir(here) | rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_files_of_a_process_come_in_one_piece),
		cmocka_unit_test(test_nearest_directory),
		cmocka_unit_test(test_paths_below_a_root),
		cmocka_unit_test(test_what_root_makes_belongs_to_the_owner_of_its_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

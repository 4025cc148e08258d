/* Opening: what is made, what is migrated, what is refused and left as it was. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "store/foreign.h"
#include "store/identify.h"
#include "store_fixture.h"

enum { FILE_MAX = 1 << 20 };

/* A file's bytes, to see that they stay. */
struct bytes {
	char data[FILE_MAX];
	size_t len;
};

static void read_bytes(struct bytes *b, const char *path)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	b->len = fread(b->data, 1, sizeof(b->data), f);
	fclose(f);
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Both ways of opening refuse the file with this sentence and touch nothing. */
static void expect_refused(const struct world *w, const char *part)
{
	static struct bytes before, after;
	struct err e = { 0 };
	struct store *s = NULL;
	sqlite3 *db = NULL;
	char side[160];
	read_bytes(&before, w->path);
	assert_int_equal(store_open(&s, w->path, &e), ERR_WORLD);
	assert_null(s);
	assert_says(e.text, part);
	assert_says(e.text, w->path);
	assert_int_equal(store_open_read(&db, w->path, &e), ERR_WORLD);
	assert_null(db);
	assert_says(e.text, part);
	read_bytes(&after, w->path);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.data, after.data, before.len);
	snprintf(side, sizeof(side), "%s-shm", w->path);
	assert_int_equal(access(side, F_OK), -1);
}

/* Whether this process has SQLite's shared lock on the file, as another process sees it. */
static bool is_locked(const char *path)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		/* The bytes of SQLite's lock (https://sqlite.org/c3ref/file_control.html). */
		struct flock lock = { .l_type = F_WRLCK, .l_start = 0x40000002, .l_len = 510 };
		int fd = open(path, O_RDWR);
		_exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* A thread that opens the store must not drop the lock under which another one reads it. */
static void test_readers_keep_their_locks(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = NULL;
	sqlite3 *first = NULL, *second = NULL;
	assert_int_equal(store_open(&s, w->path, &e), 0);
	store_close(s);
	assert_int_equal(store_open_read(&second, w->path, &e), 0);
	sqlite3_close(second);
	assert_int_equal(store_open_read(&first, w->path, &e), 0);
	assert_int_equal(
		sqlite3_exec(first, "BEGIN; SELECT * FROM run", NULL, NULL, NULL), SQLITE_OK);
	assert_true(is_locked(w->path));
	assert_int_equal(store_open_read(&second, w->path, &e), 0);
	assert_true(is_locked(w->path));
	sqlite3_close(second);
	assert_true(is_locked(w->path));
	sqlite3_close(first);
	assert_false(is_locked(w->path));
}

static void test_made_when_missing(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = NULL;
	struct stat st;
	char path[160], dir[100];
	mode_t mask = umask(022);
	snprintf(dir, sizeof(dir), "%s/a/b", w->dir);
	snprintf(path, sizeof(path), "%s/x y#%%?.db", dir);
	assert_int_equal(store_open(&s, path, &e), 0);
	umask(mask);
	store_close(s);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(ask(path, "PRAGMA user_version"), STORE_VERSION);
	assert_int_equal(ask(path, "PRAGMA application_id"), STORE_APPLICATION_ID);
	assert_string_equal(ask_text(path, "PRAGMA journal_mode"), "wal");
	assert_int_equal(store_open(&s, path, &e), 0);
	store_close(s);
	sqlite3 *db = NULL;
	assert_int_equal(store_open_read(&db, path, &e), 0);
	sqlite3_close(db);
}

/* Version 0 in its forms: no bytes, and a database without tables. */
static void test_version_0_is_migrated(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = NULL;
	sqlite3 *db = NULL;
	for (int form = 0; form < 2; form++) {
		unlink(w->path);
		write_text(w->path, "");
		if (form == 1)
			tell(w->path, "PRAGMA user_version = 0; CREATE TABLE x (y);"
				      "DROP TABLE x; VACUUM");
		assert_int_equal(store_open_read(&db, w->path, &e), ERR_WORLD);
		assert_says(e.text, "is empty");
		assert_int_equal(store_open(&s, w->path, &e), 0);
		store_close(s);
		assert_int_equal(ask(w->path, "PRAGMA user_version"), STORE_VERSION);
		assert_int_equal(ask(w->path, "SELECT count(*) FROM usage_1m"), 0);
	}
}

/* A creation that was cut off between the mark and the schema. */
static void test_an_older_version_of_ours(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = NULL;
	sqlite3 *db = NULL;
	tell(w->path, "PRAGMA application_id = 0x47554131; VACUUM");
	assert_int_equal(store_open_read(&db, w->path, &e), ERR_WORLD);
	assert_says(e.text, "has no tables yet");
	assert_int_equal(store_open(&s, w->path, &e), 0);
	store_close(s);
	assert_int_equal(store_open_read(&db, w->path, &e), 0);
	sqlite3_close(db);
}

static void test_a_newer_version_is_refused(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	store_close(s);
	tell(w->path, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 7");
	expect_refused(w, "has schema version 7 and this gua knows up to 5: use a newer gua");
	tell(w->path, "PRAGMA user_version = 2");
	expect_refused(w, "has schema version 2, from before the first release");
	tell(w->path, "PRAGMA user_version = -3");
	expect_refused(w, "and this gua knows up to 5: use a newer gua");
}

/* The newer number is still in the write-ahead log: the header does not tell. */
static void test_a_newer_version_in_the_wal(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = world_open(w);
	sqlite3 *db = NULL, *other = NULL;
	assert_int_equal(sqlite3_open(w->path, &other), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(other, "PRAGMA user_version = 7", NULL, NULL, NULL), SQLITE_OK);
	store_close(s);
	assert_int_equal(store_open(&s, w->path, &e), ERR_WORLD);
	assert_says(e.text, "has schema version 7 and this gua knows up to 5");
	assert_int_equal(store_open_read(&db, w->path, &e), ERR_WORLD);
	assert_says(e.text, "has schema version 7 and this gua knows up to 5");
	sqlite3_close(other);
}

static void test_the_python_tool(void **state)
{
	struct world *w = *state;
	tell(w->path, "CREATE TABLE gpu_sample (ts TEXT, gpu_uuid TEXT, util_pct INTEGER);"
		      "CREATE TABLE proc_sample (ts TEXT, gpu_uuid TEXT, pid INTEGER)");
	expect_refused(w, "is a database of the Python tool; take it over with: gua import ");
	tell(w->path, "PRAGMA journal_mode = WAL");
	expect_refused(w, "is a database of the Python tool; take it over with: gua import ");
}

/* As file systems on disks give it again, unless another program gets it first; those in memory
 * do not. The file is refused in any case. */
static void test_a_file_with_the_inode_of_a_store(void **state)
{
	(void)state;
	char dir[] = "/var/tmp/gua-test-XXXXXX", path[64];
	struct err e = { 0 };
	struct store *s = NULL;
	sqlite3 *db = NULL;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/gua.db", dir);
	assert_int_equal(store_open(&s, path, &e), 0);
	store_close(s);
	assert_int_equal(store_open_read(&db, path, &e), 0);
	sqlite3_close(db);
	unlink(path);
	usleep(20000);
	tell(path, "CREATE TABLE bookmarks (url TEXT)");
	int code = store_open_read(&db, path, &e);
	unlink(path);
	rmdir(dir);
	assert_int_equal(code, ERR_WORLD);
	assert_says(e.text, "is a database of another program, not of gua");
}

static void test_foreign_files(void **state)
{
	struct world *w = *state;
	tell(w->path, "CREATE TABLE bookmarks (url TEXT)");
	expect_refused(w, "is a database of another program, not of gua");
	write_text(w->path, "just some text\n");
	expect_refused(w, "is not a store of gua (not a database)");
	char longer[400];
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	write_text(w->path, longer);
	expect_refused(w, "is not a store of gua (not a database)");
}

static void expect_no_store(const char *path, int code, const char *part)
{
	struct err e = { 0 };
	struct store *s = NULL;
	sqlite3 *db = NULL;
	assert_int_equal(store_open(&s, path, &e), code);
	assert_says(e.text, part);
	assert_int_not_equal(store_open_read(&db, path, &e), 0);
	assert_null(db);
}

static void test_paths_that_are_no_files(void **state)
{
	struct world *w = *state;
	char path[200];
	expect_no_store("", ERR_USAGE, "the path of the store is empty");
	expect_no_store(w->dir, ERR_WORLD, "is a directory");
	write_text(w->path, "");
	snprintf(path, sizeof(path), "%s/below/gua.db", w->path);
	expect_no_store(path, ERR_WORLD, "Not a directory");
	snprintf(path, sizeof(path), "%s/fifo", w->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_no_store(path, ERR_WORLD, "is not a regular file");
	snprintf(path, sizeof(path), "%s/missing.db", w->dir);
	struct err e = { 0 };
	sqlite3 *db = NULL;
	assert_int_equal(store_open_read(&db, path, &e), ERR_WORLD);
	assert_says(e.text, "there is no store at");
	assert_int_equal(access(path, F_OK), -1);
}

/* Who may not write in the directory can still read a store that nobody writes. */
static void test_read_where_nothing_can_be_written(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, WORLD_START_MS / 1000, 1000, 1);
	world_write(w, s);
	store_close(s);
	assert_int_equal(chmod(w->dir, 0755), 0);
	assert_int_equal(chmod(w->path, 0644), 0);
	pid_t child = fork();
	if (child == 0) {
		struct err e = { 0 };
		sqlite3 *db = NULL;
		sqlite3_stmt *q = NULL;
		if (getuid() == 0 && setuid(65534) != 0)
			_exit(9);
		if (getuid() != 65534 && chmod(w->dir, 0555) != 0)
			_exit(8);
		if (store_open_read(&db, w->path, &e) != 0)
			_exit(1);
		sqlite3_prepare_v2(db, "SELECT sum(ms) FROM usage_1m", -1, &q, NULL);
		int ok = sqlite3_step(q) == SQLITE_ROW && sqlite3_column_int(q, 0) == 2000;
		sqlite3_finalize(q);
		sqlite3_close(db);
		_exit(ok ? 0 : 2);
	}
	int status = -1;
	waitpid(child, &status, 0);
	chmod(w->dir, 0755);
	assert_int_equal(status, 0);
}

/* As for policy.db of the package: the log is beside the file, not beside the link. */
static void test_the_log_of_a_linked_file_is_seen(void **state)
{
	struct world *w = *state;
	char link[160];
	struct store *s = world_open(w);
	world_fill(w, WORLD_START_MS / 1000, 1000, 1);
	world_write(w, s);
	snprintf(link, sizeof(link), "%s/link.db", w->dir);
	assert_int_equal(symlink(w->path, link), 0);
	assert_true(foreign_has_log(w->path));
	assert_true(foreign_has_log(link));
	store_close(s);
	unlink(link);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_readers_keep_their_locks),
		WORLD_TEST(test_made_when_missing),
		WORLD_TEST(test_version_0_is_migrated),
		WORLD_TEST(test_an_older_version_of_ours),
		WORLD_TEST(test_a_newer_version_is_refused),
		WORLD_TEST(test_a_newer_version_in_the_wal),
		WORLD_TEST(test_the_python_tool),
		WORLD_TEST(test_a_file_with_the_inode_of_a_store),
		WORLD_TEST(test_foreign_files),
		WORLD_TEST(test_paths_that_are_no_files),
		WORLD_TEST(test_read_where_nothing_can_be_written),
		WORLD_TEST(test_the_log_of_a_linked_file_is_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

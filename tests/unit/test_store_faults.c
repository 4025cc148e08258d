/* What the world does to a store: full disks, locks, damage, kill -9, readers that stay. Each
 * time: a clear sentence, nothing stored is lost, and it goes on when the world is mended. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "store_fixture.h"

static const int64_t minute = WORLD_START_MS / 1000;

static int64_t file_size(const char *path, const char *suffix)
{
	char name[200];
	struct stat st;
	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return stat(name, &st) == 0 ? st.st_size : 0;
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* No file of this process can grow beyond `bytes`: EFBIG stands for a full disk. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_disk_full(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = world_open(w);
	int64_t written = 0;
	int failures = 0;
	signal(SIGXFSZ, SIG_IGN);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	written++;
	limit_files((rlim_t)file_size(w->path, "-wal") + 40000);
	for (int i = 1; i < 40; i++) {
		world_fill(w, minute + i * 60, 1000, 1);
		w->processes[0].dirty = true;
		if (write_tick(s, &w->tick, &e) == 0) {
			written++;
			continue;
		}
		failures++;
		assert_int_equal(e.code, ERR_BUSY);
		assert_says(e.text, "the disk is full");
		assert_says(e.text, w->path);
		assert_true(w->processes[0].dirty);
	}
	assert_true(written > 1 && failures > 1);
	limit_files(RLIM_INFINITY);
	world_write(w, s);
	written++;
	store_close(s);
	assert_false(w->processes[0].dirty);
	assert_string_equal(ask_text(w->path, "PRAGMA integrity_check"), "ok");
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), written * 2000);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM total_gpu"), written * 2000);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 3);
}

/* Full from the first tick: the entries are not told that they are stored. */
static void test_disk_full_at_once(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = world_open(w);
	signal(SIGXFSZ, SIG_IGN);
	world_fill(w, minute, 1000, 1);
	limit_files((rlim_t)file_size(w->path, "-wal"));
	assert_int_equal(write_tick(s, &w->tick, &e), ERR_BUSY);
	limit_files(RLIM_INFINITY);
	for (int i = 0; i < WORLD_PROCESSES; i++) {
		assert_int_equal(w->processes[i].store_id, 0);
		assert_true(w->processes[i].dirty);
	}
	assert_int_equal(w->cards[0].store_id, 0);
	world_write(w, s);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 2000);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holder"), 3);
}

/* SQLite's own word for it, after which the connection is kept: half a tick does not stay. */
static void test_full_within_a_tick(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	sqlite3 *db = store_handle(s);
	sqlite3_exec(db, "PRAGMA max_page_count = 1", NULL, NULL, NULL);
	int written = 0;
	while (write_tick(s, &w->tick, &e) == 0) {
		assert_true(++written < 2000);
		world_fill(w, minute + written * 60, 1000, 1);
	}
	assert_says(e.text, "the disk is full");
	assert_ptr_equal(store_handle(s), db);
	assert_true(sqlite3_get_autocommit(db));
	sqlite3_exec(db, "PRAGMA max_page_count = 100000", NULL, NULL, NULL);
	world_write(w, s);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), (written + 1) * 2000);
	assert_int_equal(
		ask(w->path, "SELECT sum(active_ms) FROM holding_1m"), (written + 1) * 3000);
}

/* Runs `body` in a child that may not write in the world's directory. */
static int in_poor_child(struct world *w, int (*body)(struct world *w))
{
	assert_int_equal(chmod(w->dir, 0555), 0);
	pid_t child = fork();
	if (child == 0) {
		if (getuid() == 0 && setuid(65534) != 0)
			_exit(99);
		_exit(body(w));
	}
	int status = -1;
	waitpid(child, &status, 0);
	chmod(w->dir, 0755);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static int refused_read_only(struct world *w)
{
	struct err e = { 0 };
	struct store *s = NULL;
	if (store_open(&s, w->path, &e) != ERR_WORLD)
		return 1;
	if (!strstr(e.text, "the file or its directory is read-only"))
		return 2;
	snprintf(w->path, sizeof(w->path), "%s/new.db", w->dir);
	if (store_open(&s, w->path, &e) != ERR_WORLD)
		return 3;
	return strstr(e.text, "Permission denied") ? 0 : 4;
}

static void test_read_only_directory(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	store_close(s);
	assert_int_equal(chmod(w->path, 0444), 0);
	assert_int_equal(in_poor_child(w, refused_read_only), 0);
}

static sqlite3 *connect_other(const struct world *w, const char *sql)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 2000);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	return db;
}

/* How long the store waits for another writer. */
static int64_t busy_timeout_ms(struct store *s)
{
	sqlite3_stmt *q = NULL;
	sqlite3_prepare_v2(store_handle(s), "PRAGMA busy_timeout", -1, &q, NULL);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	int64_t ms = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return ms;
}

static void test_locked(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	sqlite3 *other = connect_other(w, "BEGIN IMMEDIATE");
	int64_t before = now_ms();
	assert_int_equal(write_tick(s, &w->tick, &e), ERR_BUSY);
	assert_true(now_ms() - before >= 500);
	assert_in_range(busy_timeout_ms(s), 500, 2000);
	assert_says(e.text, "it is locked by another program");
	assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	world_write(w, s);
	sqlite3_close(other);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 4000);
}

/* A run that could not be begun is begun by the first tick that can. */
static void test_locked_at_the_start(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = NULL;
	assert_int_equal(store_open(&s, w->path, &e), 0);
	sqlite3 *other = connect_other(w, "BEGIN IMMEDIATE");
	assert_int_equal(store_begin_run(s, &w->info, &e), ERR_BUSY);
	sqlite3_close(other);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM run"), 1);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 2000);
}

/* A process that keeps an old state of the store open until it is killed. */
static pid_t start_reader(const struct world *w)
{
	int ends[2];
	char word = 0;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		sqlite3 *db = NULL;
		bool ok = sqlite3_open_v2(w->path, &db, SQLITE_OPEN_READONLY, NULL) == 0 &&
			  sqlite3_exec(db, "BEGIN; SELECT * FROM run", NULL, NULL, NULL) == 0;
		if (ok && write(ends[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &word, 1), 1);
	close(ends[0]);
	return child;
}

/* The -wal file grows while a reader keeps an old state; the reader is named. */
static void test_reader_keeps_an_old_state(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	char who[40];
	struct store *s = world_open(w);
	store_close(s);
	pid_t reader = start_reader(w);
	s = world_open(w);
	assert_int_equal(store_check_wal(s, &e), 0);
	assert_int_equal(store_begin_batch(s, &e), 0);
	assert_int_equal(
		sqlite3_exec(store_handle(s),
			"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
			" WHERE i < 20000) INSERT INTO event (host, at_ms, kind, value,"
			" text) SELECT 1, i, 'gap', 0, hex(zeroblob(500)) FROM n",
			NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(store_end_batch(s, true, &e), 0);
	assert_int_equal(store_check_wal(s, &e), ERR_WORLD);
	assert_says(e.text, "-wal has grown to");
	snprintf(who, sizeof(who), "(pid %d, uid %u, ", (int)reader, getuid());
	assert_says(e.text, who);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	world_write(w, s);
	assert_int_equal(store_check_wal(s, &e), 0);
	assert_true(file_size(w->path, "-wal") <= 2 << 20);
	store_close(s);
}

static void overwrite(const char *path, off_t from)
{
	char junk[4096];
	memset(junk, 0xa5, sizeof(junk));
	int fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	for (off_t at = from; at < file_size(path, ""); at += (off_t)sizeof(junk))
		assert_true(pwrite(fd, junk, sizeof(junk), at) > 0);
	close(fd);
}

static void test_damaged(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	char copy[200], command[500];
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	tell(w->path, "PRAGMA wal_checkpoint(TRUNCATE)");
	snprintf(copy, sizeof(copy), "%s/copy.db", w->dir);
	snprintf(command, sizeof(command), "VACUUM INTO '%s'", copy);
	tell(w->path, command);
	overwrite(w->path, 2048);
	world_fill(w, minute + 60, 1000, 1);
	assert_int_equal(write_tick(s, &w->tick, &e), ERR_WORLD);
	assert_says(e.text,
		"the file is damaged; stop what writes it, then move it away or restore");
	assert_says(e.text, w->path);
	/* The copy comes back, and the recorder goes on. */
	assert_int_equal(rename(copy, w->path), 0);
	world_write(w, s);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 4000);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM run"), 1);
}

/* Child: reads in transactions that overlap with the other reader's, until it is killed. */
static void read_for_ever(const struct world *w, int delay_us)
{
	sqlite3 *db = NULL;
	sqlite3_open(w->path, &db);
	for (;;) {
		sqlite3_exec(db, "BEGIN; SELECT sum(ms) FROM usage_1m", NULL, NULL, NULL);
		usleep((useconds_t)delay_us);
		sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	}
}

static void test_wal_stays_small_beside_readers(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	pid_t readers[2];
	int64_t largest = 0;
	for (int i = 0; i < 2; i++) {
		readers[i] = fork();
		if (readers[i] == 0)
			read_for_ever(w, 4000 + 3000 * i);
	}
	for (int i = 0; i < 1500; i++) {
		world_fill(w, minute + i * 60, 1000, 1);
		world_write(w, s);
		int64_t size = file_size(w->path, "-wal");
		largest = size > largest ? size : largest;
	}
	for (int i = 0; i < 2; i++) {
		kill(readers[i], SIGKILL);
		waitpid(readers[i], NULL, 0);
	}
	store_close(s);
	assert_true(largest > 500 * 1024);
	assert_true(largest < 8 * 1024 * 1024);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 1500 * 2000);
}

static int n_syncs;

/* SQLite's. */
int fdatasync(int fd)
{
	(void)fd;
	n_syncs++;
	return 0;
}

/* The log of a host with few cards takes an hour to grow by a MiB: a power failure must not
 * lose that much. */
static void test_ticks_are_synced(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	for (int i = 0; i < 30; i++) {
		int before = n_syncs;
		for (int k = 0; k < 10; k++) {
			world_fill(w, minute + (i * 10 + k) * 60, 1000, 1);
			world_write(w, s);
		}
		assert_true(n_syncs > before);
		assert_true(n_syncs - before < 10);
	}
	store_close(s);
}

/* A transaction that is left open: the file grows, nothing blocks, and it is cut afterwards. */
static void test_wal_is_cut_when_a_reader_ends(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	int i = 0;
	sqlite3 *reader = connect_other(w, "BEGIN; SELECT count(*) FROM usage_1m");
	for (; file_size(w->path, "-wal") < 6300 * 1024; i++) {
		world_fill(w, minute + i * 60, 1000, 1);
		world_write(w, s);
	}
	/* A tenth of a second each, not the second for another writer; the host may be busy. */
	int64_t least_ms = INT64_MAX;
	for (int k = 0; k < 5; k++, i++) {
		int64_t before = now_ms();
		world_write(w, s);
		int64_t took_ms = now_ms() - before;
		least_ms = took_ms < least_ms ? took_ms : least_ms;
	}
	assert_true(least_ms < 1000);
	sqlite3_close(reader);
	world_write(w, s);
	assert_true(file_size(w->path, "-wal") <= 4 * 1024 * 1024);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), (i + 1) * 2000);
}

/* Shared with the child that is killed. */
struct shared {
	volatile int64_t done; /* ticks whose writing returned */
};

/* Child: ticks as fast as it can, a minute each, with compaction in between. */
static void record_for_ever(struct world *w, struct shared *shared)
{
	const struct retention keep = { .minute_s = 600, .five_s = 7200 };
	struct store *s = NULL;
	struct err e = { 0 };
	bool more;
	if (store_open(&s, w->path, &e) != 0 || store_begin_run(s, &w->info, &e) != 0)
		_exit(1);
	for (;;) {
		int64_t slot = minute + shared->done * 60;
		world_fill(w, slot, 1000, 1);
		if (write_tick(s, &w->tick, &e) != 0)
			_exit(2);
		shared->done++;
		if (compact_store(
			    s, &(struct compaction){ slot * 1000, keep, 30 }, &more, &e) != 0)
			_exit(3);
	}
}

/* After kill -9: the sums are those of the ticks that were acknowledged, and perhaps of the one
 * in flight. Leaves the count that the file has in shared->done. */
static void check_prefix(const struct world *w, struct shared *shared)
{
	assert_string_equal(ask_text(w->path, "PRAGMA integrity_check"), "ok");
	int64_t ticks = ask(w->path, "SELECT sum(ms) FROM usage") / 2000;
	assert_in_range(ticks, shared->done, shared->done + 1);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage"), ticks * 2000);
	assert_int_equal(ask(w->path, "SELECT sum(active_ms) FROM holding"), ticks * 3000);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM total_gpu"), ticks * 2000);
	assert_int_equal(ask(w->path, "SELECT sum(presence_ms) FROM total_user"), ticks * 2000);
	assert_int_equal(ask(w->path, "SELECT max(last_tick_ms) FROM run"),
		(minute + ticks * 60) * 1000);
	shared->done = ticks;
}

static void test_kill_at_any_moment(void **state)
{
	struct world *w = *state;
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	unsigned random = 7;
	for (int kills = 0; kills < 20; kills++) {
		world_forget(w);
		w->info.started_ms = WORLD_START_MS + kills;
		random = random * 1103515245 + 12345;
		int64_t enough = shared->done + 1 + random / 65536 % 40;
		pid_t child = fork();
		if (child == 0)
			record_for_ever(w, shared);
		while (shared->done < enough && waitpid(child, NULL, WNOHANG) == 0)
			usleep(50);
		usleep(random / 7 % 1500);
		kill(child, SIGKILL);
		int status = 0;
		waitpid(child, &status, 0);
		assert_true(WIFSIGNALED(status));
		check_prefix(w, shared);
	}
	assert_int_equal(
		ask(w->path, "SELECT count(*) FROM run WHERE how_ended = 'killed'"), 19);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 3);
	assert_true(ask(w->path, "SELECT count(*) FROM usage_1h") > 0);
	munmap(shared, sizeof(*shared));
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_disk_full),
		WORLD_TEST(test_disk_full_at_once),
		WORLD_TEST(test_full_within_a_tick),
		WORLD_TEST(test_read_only_directory),
		WORLD_TEST(test_locked),
		WORLD_TEST(test_locked_at_the_start),
		WORLD_TEST(test_reader_keeps_an_old_state),
		WORLD_TEST(test_damaged),
		WORLD_TEST(test_wal_stays_small_beside_readers),
		WORLD_TEST(test_ticks_are_synced),
		WORLD_TEST(test_wal_is_cut_when_a_reader_ends),
		WORLD_TEST(test_kill_at_any_moment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

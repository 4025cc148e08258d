/* Import: what is put into hours at once is what compaction would have made of minutes, and the
 * time that a store has is found. */
#include "test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "import/import.h"
#include "store/recorded.h"

#define START_S 1777629600 /* 2026-05-01 10:00:00 UTC */
enum { SPAN_S = 4114 * 420 };
#define END_MS ((START_S + SPAN_S) * INT64_C(1000))

struct names {
	char file[64], store[2][64];
};

static void name_files(struct names *n)
{
	int pid = (int)getpid();
	snprintf(n->file, sizeof(n->file), "/tmp/gua-test-import-%d.py.db", pid);
	for (int i = 0; i < 2; i++)
		snprintf(n->store[i], sizeof(n->store[i]), "/tmp/gua-test-import-%d.%d.db", pid,
			i);
}

static void remove_files(const struct names *n)
{
	unlink(n->file);
	for (int i = 0; i < 2; i++)
		unlink(n->store[i]);
}

static void run_sql(const char *path, const char *sql)
{
	sqlite3 *db;
	char *why = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, sql, NULL, NULL, &why);
	assert_string_equal(why ? why : "", "");
	sqlite3_close(db);
}

/* How many samples a card has: one in 7 minutes if all is played, else in 14. */
static int samples(void)
{
	return plays_all() ? 4114 : 2057;
}

/* Twenty days of two cards, processes that come and go. */
static void make_file(const char *path)
{
	char sql[1024];
	snprintf(sql, sizeof(sql),
		"CREATE TABLE gpu_sample (ts TEXT, gpu_uuid TEXT, util_pct INTEGER);"
		"CREATE TABLE proc_sample (ts TEXT, gpu_uuid TEXT, pid INTEGER, mem_used_mb "
		"INTEGER,"
		" loginuid_user TEXT);"
		"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		" INSERT INTO gpu_sample SELECT strftime('%%Y-%%m-%%dT%%H:%%M:%%S+00:00', "
		"1777629600 "
		"+ i * %d,"
		" 'unixepoch'), 'GPU-' || c, (i * 7 + c * 3) %% 23 FROM n, (SELECT 0 AS c "
		"UNION "
		"SELECT 1);"
		"INSERT INTO proc_sample SELECT ts, gpu_uuid, 10 + p + g.rowid / 500, (g.rowid "
		"%% "
		"300) + p * 40,"
		" 'user' || p FROM gpu_sample AS g, (SELECT 0 AS p UNION SELECT 1 UNION SELECT "
		"2)"
		" WHERE (g.rowid / (p + 3)) %% 4 > 0;",
		samples() - 1, SPAN_S / samples());
	run_sql(path, sql);
}

static void import_at(const struct names *n, const char *store_path, int64_t now_ms)
{
	struct err e = { 0 };
	struct store *s = NULL;
	struct pyfile *f = NULL;
	struct import_summary summary;
	const struct import_question q = {
		.path = n->file, .now_ms = now_ms, .interval_ms = 30000
	};
	assert_int_equal(pyfile_open(&f, n->file, END_MS, &e), 0);
	assert_int_equal(store_open(&s, store_path, &e), 0);
	assert_int_equal(import_run(s, f, &q, &summary, &e), 0);
	assert_int_equal(summary.samples, 2 * samples());
	pyfile_close(f);
	store_close(s);
}

static void compact_at(const char *store_path, int64_t now_ms)
{
	struct err e = { 0 };
	struct store *s = NULL;
	const struct retention keep = RETENTION_DEFAULT;
	bool more = true;
	assert_int_equal(store_open(&s, store_path, &e), 0);
	while (more)
		assert_int_equal(
			compact_store(s, &(struct compaction){ now_ms, keep, 1000 }, &more, &e),
			0);
	store_close(s);
}

/* Every row of a table as text. */
static void dump(const char *path, const char *table, struct str *out)
{
	sqlite3 *db;
	sqlite3_stmt *row;
	char sql[64];
	snprintf(sql, sizeof(sql), "SELECT * FROM %s", table);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
	while (sqlite3_step(row) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(row); i++) {
			const char *text = (const char *)sqlite3_column_text(row, i);
			str_addf(out, "%s ", text ? text : "NULL");
		}
		str_add(out, "\n");
	}
	sqlite3_finalize(row);
	sqlite3_close(db);
}

static void expect_same_table(const struct names *n, const char *table)
{
	struct str a = { 0 }, b = { 0 };
	dump(n->store[0], table, &a);
	dump(n->store[1], table, &b);
	assert_string_equal(str_text(&a), str_text(&b));
	str_finish(&a);
	str_finish(&b);
}

static void test_young_and_old_end_up_the_same(void **state)
{
	(void)state;
	static const char *const tables[] = { "usage_1m", "usage_5m", "usage_1h", "usage_hour",
		"usage_1d", "heat_1h", "holding_1m", "holding_5m", "holding_1h", "holding_hour",
		"holding_1d", "process", "total_gpu", "total_user" };
	struct names n;
	name_files(&n);
	make_file(n.file);
	import_at(&n, n.store[0], START_S * INT64_C(1000)); /* all of it is young */
	compact_at(n.store[0], END_MS);
	import_at(&n, n.store[1], END_MS); /* minutes, five minutes and hours */
	struct str hours = { 0 };
	dump(n.store[1], "usage_1h", &hours);
	assert_true(hours.len > 1000);
	str_finish(&hours);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		expect_same_table(&n, tables[i]);
	remove_files(&n);
}

static void test_recorded(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct names n;
	struct store *s = NULL;
	struct recorded r = { 0 };
	name_files(&n);
	assert_int_equal(store_open(&s, n.store[0], &e), 0);
	store_close(s);
	run_sql(n.store[0],
		"INSERT INTO host VALUES (1,'lab','','','',0,0),(2,'other','','','',0,0);"
		"INSERT INTO gpu VALUES "
		"(1,1,'A','','','',0,NULL,NULL,NULL,NULL,'ok',0,0,'nvml'),"
		"(2,2,'A','','','',0,NULL,NULL,NULL,NULL,'ok',0,0,'nvml');"
		"INSERT INTO usage_1m VALUES (12000,1,0,1,0,0,1,0,0),(12000,1,1,1,0,0,1,0,0),"
		"(12060,1,0,1,0,0,1,0,0),(12180,1,3,1,0,0,1,0,0),(0,2,0,1,0,0,1,0,0);"
		"INSERT INTO usage_5m VALUES (11700,1,0,1,0,0,1,0,0);"
		"INSERT INTO usage_1h VALUES (3600,1,0,1,0,0,1,0,0);");
	assert_int_equal(store_open(&s, n.store[0], &e), 0);
	assert_int_equal(recorded_read(&r, store_handle(s), "lab", &e), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.cards[0].n, 3); /* what touches is one */
	static const struct {
		int64_t at_ms;
		bool has;
	} cases[] = { { 0, false }, { 3599999, false }, { 3600000, true }, { 7199999, true },
		{ 7200000, false }, { 11699999, false }, { 11700000, true }, { 12119999, true },
		{ 12120000, false }, { 12180000, true }, { 12240000, false } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(recorded_has(&r, "A", cases[i].at_ms), cases[i].has);
	assert_false(recorded_has(&r, "B", 3600000));
	recorded_finish(&r);
	store_close(s);
	remove_files(&n);
}

static int stop_at_once(void *context, int64_t done, int64_t total)
{
	(void)done;
	(void)total;
	++*(int *)context;
	return 1;
}

static void test_stopped(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct names n;
	struct store *s = NULL;
	struct pyfile *f = NULL;
	struct import_summary summary;
	struct str rows = { 0 };
	int calls = 0;
	name_files(&n);
	make_file(n.file);
	const struct import_question q = { .path = n.file,
		.now_ms = END_MS,
		.interval_ms = 30000,
		.progress = stop_at_once,
		.context = &calls };
	assert_int_equal(pyfile_open(&f, n.file, END_MS, &e), 0);
	assert_int_equal(store_open(&s, n.store[0], &e), 0);
	assert_int_equal(import_run(s, f, &q, &summary, &e), ERR_WORLD);
	assert_string_equal(e.text, "interrupted: nothing was imported");
	assert_int_equal(calls, 1);
	pyfile_close(f);
	store_close(s);
	dump(n.store[0], "run", &rows);
	dump(n.store[0], "host", &rows);
	assert_int_equal(rows.len, 0);
	str_finish(&rows);
	remove_files(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_young_and_old_end_up_the_same),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

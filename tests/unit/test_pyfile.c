/* Files of the Python gpu-usage-audit: time stamps, layouts, order, what is left out. */
#include "test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/pylives.h"
#include "import/pyfile.h"

static int64_t parsed(const char *text)
{
	int64_t ms = 0;
	return pyfile_parse_time(text, &ms) ? ms : -1;
}

static void test_times(void **state)
{
	(void)state;
	const int64_t at = 1777629600000; /* 2026-05-01 10:00:00 UTC */
	assert_int_equal(parsed("2026-05-01T10:00:00+00:00"), at);
	assert_int_equal(parsed("2026-05-01T10:00:00.123456+00:00"), at + 123);
	assert_int_equal(parsed("2026-05-01 10:00:00.9"), at + 900);
	assert_int_equal(parsed("2026-05-01T10:00:00Z"), at);
	assert_int_equal(parsed("2026-05-01T12:30:00+02:30"), at);
	assert_int_equal(parsed("2026-05-01T07:00:00-03:00"), at);
	assert_int_equal(parsed("2024-02-29T00:00:00Z"), 1709164800000);
	static const char *const bad[] = { "", "yesterday", "2026-05-01", "2026-05-01T10:00",
		"2026-02-30T10:00:00", "2026-13-01T10:00:00", "2026-05-01T24:00:00",
		"2026-05-01T10:60:00", "2026-05-01T10:00:00.", "2026-05-01T10:00:00+0200",
		"2026-05-01T10:00:00Zx", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+01:00",
		"2026-00-01T10:00:00", "2026-05-00T10:00:00", "\xff\xff" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parsed(bad[i]), -1);
}

static void test_lives(void **state)
{
	(void)state;
	struct pylives l = { 0 };
	const struct sighting a = { 7, "ann", "train", 1000000, 30000 };
	struct sighting later = a, other = a, much_later = a;
	later.at_ms += 300000; /* ten intervals: the same life */
	other.user = "bob";
	much_later.at_ms = later.at_ms + 300001;
	assert_int_equal(pylives_sight(&l, &a), 0);
	assert_int_equal(pylives_sight(&l, &other), 1);
	assert_int_equal(pylives_sight(&l, &later), 0);
	assert_int_equal(pylives_sight(&l, &much_later), 2);
	assert_int_equal(l.entries[0].first_seen_ms, 1000000);
	assert_int_equal(l.entries[0].last_seen_ms, 1330000);
	assert_int_equal(l.entries[0].ended_ms, 1330000);
	assert_int_equal(l.entries[2].ended_ms, -1);

	pylives_end(&l, much_later.at_ms);
	assert_int_equal(l.entries[1].ended_ms, 1030000);
	pylives_forget(&l);
	assert_int_equal(l.n, 1);
	assert_int_equal(pylives_sight(&l, &much_later), 0);
	assert_int_equal(pylives_sight(&l, &other), 1);
	pylives_finish(&l);
}

static void test_lives_are_forgotten(void **state)
{
	(void)state;
	struct pylives l = { 0 };
	for (uint32_t i = 0; i < 100000; i++) {
		const struct sighting s = { i, "u", "c", (int64_t)i * 30000, 30000 };
		assert_true(pylives_sight(&l, &s) >= 0);
		if (i % 100 == 0) {
			pylives_end(&l, s.at_ms);
			pylives_forget(&l);
		}
	}
	assert_true(l.cap <= 256);
	pylives_finish(&l);
}

/* A file with these statements; the name is static storage. */
static const char *make(const char *sql)
{
	static char path[64];
	sqlite3 *db;
	snprintf(path, sizeof(path), "/tmp/gua-test-pyfile-%d.db", (int)getpid());
	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	char *why = NULL;
	sqlite3_exec(db, sql, NULL, NULL, &why);
	assert_string_equal(why ? why : "", "");
	sqlite3_close(db);
	return path;
}

#define EARLY_LAYOUT                                                                           \
	"CREATE TABLE gpu_sample (ts TEXT, gpu_uuid TEXT, util_pct INTEGER);"                  \
	"CREATE TABLE proc_sample (ts TEXT, gpu_uuid TEXT, pid INTEGER, mem_used_mb INTEGER, " \
	"loginuid_user TEXT);"
static const int64_t now_ms = INT64_C(1777680000000); /* 2026-05-02 */
#define TICK(n) "2026-05-01T10:00:" n ".500000+00:00"

static struct pyfile *open_made(const char *sql)
{
	struct err e = { 0 };
	struct pyfile *f = NULL;
	assert_int_equal(pyfile_open(&f, make(sql), now_ms, &e), 0);
	return f;
}

static void close_made(struct pyfile *f)
{
	pyfile_close(f);
	unlink(make(""));
}

static void test_early_layout(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct pyfile_sample s;
	struct pyfile_facts facts;
	struct pyfile *f = open_made(
		EARLY_LAYOUT "INSERT INTO gpu_sample VALUES ('" TICK("30") "','B',5),('" TICK(
			"00") "','B',50),('" TICK("00") "','A',0);"
							"INSERT INTO proc_sample VALUES "
							"('" TICK(
								"00") "','B',2,10,'zoe'),("
								      "'" TICK(
									      "00") "','B',1,"
										    "20,NULL),"
										    "('" TICK(
											    "0"
											    "0") "','B',2,5,'"
												 "zoe');");
	assert_int_equal(pyfile_facts(f, &facts, &e), 0);
	assert_string_equal(facts.hostname, "unknown");
	assert_int_equal(facts.samples, 3);
	assert_int_equal(facts.rows, 6);
	assert_int_equal(facts.first_ms, 1777629600500);
	assert_int_equal(facts.last_ms, 1777629630500);
	assert_int_equal(pyfile_next(f, &s, &e), 1);
	assert_string_equal(s.uuid, "A");
	assert_int_equal(s.n_processes, 0);
	assert_int_equal(pyfile_next(f, &s, &e), 1);
	assert_string_equal(s.uuid, "B");
	assert_true(s.util_pct == 50);
	assert_int_equal(s.interval_ms, -1);
	assert_int_equal(s.n_processes, 2);
	assert_string_equal(s.processes[0].user, "unknown");
	assert_string_equal(s.processes[1].user, "zoe");
	assert_int_equal(s.processes[1].mem_bytes, 15000000);
	assert_int_equal(pyfile_next(f, &s, &e), 1);
	assert_int_equal(s.at_ms, 1777629630500);
	assert_int_equal(pyfile_next(f, &s, &e), 0);
	assert_int_equal(pyfile_rows(f)->bad, 0);
	assert_int_equal(pyfile_rows(f)->done, 6);
	close_made(f);
}

static void test_late_layout(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct pyfile_sample s;
	struct pyfile_facts facts;
	struct card_id id = { .mem_total_bytes = -1 };
	struct pyfile *f = open_made(
		"CREATE TABLE host (hostname TEXT, env_kind TEXT, driver_version TEXT, "
		"first_seen, "
		"last_seen);"
		"INSERT INTO host VALUES "
		"('old','bare','1','a','a'),('new','docker','2','b','b');"
		"CREATE TABLE daemon_run (id INTEGER PRIMARY KEY, started_at, interval_seconds "
		"REAL);"
		"INSERT INTO daemon_run VALUES (1,'',2.5),(2,'',0);"
		"CREATE TABLE gpu_device (gpu_uuid, name, memory_total_mb);"
		"INSERT INTO gpu_device VALUES ('A','Card \x1b[31m',81920);"
		"CREATE TABLE gpu_sample (ts, gpu_uuid, util_pct, run_id, gpu_index, "
		"usage_state);"
		"CREATE TABLE proc_sample (ts, gpu_uuid, pid, mem_used_mb, loginuid_user, "
		"run_id, "
		"process_name, process_type);"
		"INSERT INTO gpu_sample VALUES ('" TICK(
			"00") "','A',1,1,3,'x'),"
			      "('" TICK("00") "','A',2,2,3,'x'),('" TICK(
				      "00") "','A',3,NULL,3,'x');"
					    "INSERT INTO proc_sample VALUES ('" TICK(
						    "00") "','A',1,NULL,'u',1,'py','compute'),"
							  "('" TICK(
								  "00") "','A',2,10,'u',1,'"
									"Xorg','graphics'),"
									"('" TICK(
										"00") "','A',3,"
										      "10,'u',"
										      "NULL,'z'"
										      ",NULL)"
										      ";");
	assert_int_equal(pyfile_facts(f, &facts, &e), 0);
	assert_string_equal(facts.hostname, "new");
	assert_string_equal(facts.environment, "docker");
	pyfile_device(f, "A", &id);
	assert_string_equal(id.name, "Card \\x1B[31m");
	assert_int_equal(id.mem_total_bytes, 81920000000);
	assert_int_equal(pyfile_next(f, &s, &e), 1); /* NULL run ids come first */
	assert_true(s.util_pct == 3);
	assert_int_equal(s.n_processes, 1);
	assert_int_equal(s.processes[0].pid, 3);
	assert_int_equal(pyfile_next(f, &s, &e), 1);
	assert_int_equal(s.interval_ms, 2500);
	assert_int_equal(s.index, 3);
	assert_int_equal(s.n_processes, 1);
	assert_int_equal(s.processes[0].mem_bytes, -1);
	assert_string_equal(s.processes[0].command, "py");
	assert_int_equal(pyfile_next(f, &s, &e), 1);
	assert_int_equal(s.interval_ms, -1);
	assert_int_equal(pyfile_next(f, &s, &e), 0);
	assert_int_equal(pyfile_rows(f)->bad, 0);
	close_made(f);
}

static void test_malformed_rows(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct pyfile_sample s;
	struct pyfile *f = open_made(EARLY_LAYOUT
		"INSERT INTO gpu_sample VALUES (NULL,'A',1),('nonsense','A',1),(17,'A',1),"
		"('" TICK("00") "',NULL,1),('" TICK(
			"00") "','',1),"
			      "('" TICK("00") "','A','fast'),('" TICK(
				      "00") "','B',-1),"
					    "('" TICK("00") "','C',101),('" TICK(
						    "00") "','D',NULL),"
							  "('" TICK(
								  "00") "','E',9e999),("
									"'" TICK(
										"00") "',x'"
										      "00ff',"
										      "3),"
										      "("
										      "'" TICK("00") "','F',7),('" TICK(
											      "00") "','F',8);"
												    "INSERT INTO proc_sample VALUES ('" TICK(
													    "00") "','F',-1,10,'u'),"
														  "('" TICK("00") "','F','x',10,'u'),('" TICK(
															  "00") "','F',1,-10,'u'),"
																"('" TICK("00") "','F',1,'lots','u'),('" TICK(
																	"00") "','F',1,1e300,'u'),"
																	      "(NULL,NULL,1,1,'u'),('" TICK(
																		      "00") "','A',1,1,'u'),"
																			    "('" TICK("59") "','Z',1,1,'u'),('" TICK(
																				    "00") "','F',1,10,x'1b5b');");
	assert_int_equal(pyfile_next(f, &s, &e), 1);
	assert_string_equal(s.uuid, "F");
	assert_true(s.util_pct == 7 || s.util_pct == 8);
	assert_int_equal(s.n_processes, 1);
	assert_string_equal(s.processes[0].user, "\\x1B[");
	assert_int_equal(pyfile_next(f, &s, &e), 0);
	assert_int_equal(pyfile_rows(f)->bad, 12 + 8);
	close_made(f);
}

static void expect_refused(const char *path, const char *text)
{
	struct err e = { 0 };
	struct pyfile *f = NULL;
	assert_int_equal(pyfile_open(&f, path, now_ms, &e), ERR_WORLD);
	assert_null(f);
	assert_non_null(strstr(e.text, text));
}

static void test_refused(void **state)
{
	(void)state;
	expect_refused("/nonexistent/x.db", "No such file");
	expect_refused("/tmp", "cannot");
	expect_refused("/proc/self/exe", "is not a SQLite database");
	expect_refused(make("CREATE TABLE t (x);"), "not a database of the Python");
	expect_refused(make("CREATE TABLE gpu_sample (ts, gpu_uuid);"),
		"it has no gpu_sample.util_pct");
	expect_refused(make("CREATE TABLE usage_1h (slot, gpu);"), "a store of gua already");
	unlink(make(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_lives_are_forgotten),
		cmocka_unit_test(test_early_layout),
		cmocka_unit_test(test_late_layout),
		cmocka_unit_test(test_malformed_rows),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The audit's sums are those of the store, whatever is in it: compared with SQL's own. */
#include "test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "audit/audit.h"
#include "base/idmap.h"
#include "store/sums.h"

#define NOON 1793620800LL /* 2026-11-02 12:00 UTC */

static void exec(sqlite3 *db, const char *sql)
{
	char *why = NULL;
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
}

/* An empty store with a host, a run over `hours` up to noon, and cards 1..n. */
static sqlite3 *make_store(char *path, int n_cards, int hours)
{
	const char *root = getenv("GUA_SOURCE_ROOT");
	char name[512], sql[1024], *schema = NULL;
	size_t len = 0;
	struct err e = { 0 };
	sqlite3 *db;
	int fd = mkstemp(strcpy(path, "/tmp/gua-test-XXXXXX"));
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	exec(db, "BEGIN");
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s/src/store/%s.sql", root ? root : "..",
			i ? "views" : "schema");
		assert_int_equal(file_read_all(name, 1 << 20, &schema, &len, &e), 0);
		exec(db, schema);
		free(schema);
	}
	long long start_ms = (NOON - hours * 3600LL) * 1000;
	snprintf(sql, sizeof(sql),
		"INSERT INTO host VALUES (1, 'h', 'm', 'bare', '1', %lld, %lld);"
		"INSERT INTO run (id, host, version, source, boot_id, started_ms, "
		"last_tick_ms, "
		"ended_ms, how_ended, interval_ms, drain_ms, active_util_pct, held_mem_bytes, "
		"count_graphics, glance_ms) VALUES (1, 1, 'v', 'nvml', 'b', %lld, %lld, NULL, "
		"NULL, "
		"30000, "
		"5000, 10, 100000000, 0, 1000);",
		start_ms, NOON * 1000, start_ms, NOON * 1000);
	exec(db, sql);
	for (int i = 1; i <= n_cards; i++) {
		snprintf(sql, sizeof(sql),
			"INSERT INTO gpu VALUES (%d, 1, 'GPU-%d', 'A100', '', '', %d, NULL, "
			"NULL, "
			"NULL, NULL, 'ok', %lld, %lld, 'nvml')",
			i, i, n_cards - i, start_ms, NOON * 1000);
		exec(db, sql);
	}
	return db;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	int64_t number = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return number;
}

static void run_audit(struct audit *a, const char *path, int64_t since_s, size_t max)
{
	struct err e = { 0 };
	const struct audit_question q = { .paths = &path,
		.n_paths = 1,
		.since_ms = since_s * 1000,
		.until_ms = NOON * 1000,
		.now_ms = NOON * 1000,
		.utc = true,
		.want_processes = true,
		.max_processes = max };
	if (audit_run(a, &q, &e) != 0)
		fail_msg("%s", e.text);
}

/* A number below n from a generator that is the same everywhere. */
static int next(unsigned *random, int n)
{
	*random = *random * 1103515245u + 12345u;
	return (int)(*random >> 8) % n;
}

static void fill_slot(sqlite3 *db, const char *suffix, int seconds, long long slot, int card,
	unsigned *random)
{
	char sql[512];
	int part = seconds * 250;
	for (int state = 0; state < CARD_STATES; state++) {
		int ms = 100 + next(random, part), energy_mj = next(random, 9999);
		snprintf(sql, sizeof(sql),
			"INSERT INTO usage_%s VALUES (%lld, %d, %d, %d, %d, %d, %d, %d, 0)",
			suffix, slot, card, state, ms, 50 * ms, energy_mj, next(random, ms),
			next(random, 100) - 10);
		exec(db, sql);
	}
	int process = 1 + next(random, 200), active = 5 + next(random, part);
	int held = 5 + next(random, part), double_ms = next(random, 5);
	snprintf(sql, sizeof(sql),
		"INSERT INTO holding_%s VALUES (%lld, %d, %d, %d, %d, 7, 8, %d, -6, 2, 3, %d, "
		"%d, "
		"NULL, %d, 11, 4, 0, NULL)",
		suffix, slot, card, process, active, held, double_ms, active / 2, held / 3,
		active + held);
	exec(db, sql);
}

/* Random sums in all three tables, as compaction leaves them: hours, then fives, then minutes.
 */
static void fill(sqlite3 *db, int n_cards, int hours)
{
	static const struct {
		const char *suffix;
		int seconds, from_hour, to_hour;
	} spans[] = { { "1h", 3600, 0, 40 }, { "5m", 300, 40, 46 }, { "1m", 60, 46, 48 } };
	char sql[512];
	unsigned random = 12345;
	long long start = NOON - hours * 3600LL;
	for (size_t k = 0; k < 3; k++)
		for (long long at = spans[k].from_hour * 3600LL; at < spans[k].to_hour * 3600LL;
			at += spans[k].seconds)
			for (int card = 1; card <= n_cards; card++)
				fill_slot(db, spans[k].suffix, spans[k].seconds, start + at,
					card, &random);
	for (int i = 1; i <= 200; i++) {
		snprintf(sql, sizeof(sql),
			"INSERT INTO process (id, host, run, pid, start_ticks, user, command, "
			"first_seen_ms, last_seen_ms) VALUES (%d, 1, 1, %d, 1, 'user%d', 'c', "
			"0, 0)",
			i, 1000 + i, i % 7);
		exec(db, sql);
	}
	/* The last hour is not complete. */
	assert_true(sums_make(db, (struct sums_span){ start, NOON - 3600 }));
}

/* The hours of the week and what is known of energy, of the slots from `since` on. */
static void expect_sums_over_cards(const struct audit *a, sqlite3 *db, long long since)
{
	char sql[512];
	for (int s = 0; s < CARD_STATES; s++) {
		if (!state_has_util(s))
			continue;
		snprintf(sql, sizeof(sql),
			"SELECT sum(ms - energy_unknown_ms) FROM usage WHERE slot >= %lld "
			"AND state = %d",
			since, s);
		assert_int_equal(a->energy_known_ms[s], ask(db, sql));
		for (int i = 0; i < 7 * 24; i++) {
			/* 1970 began on a Thursday. */
			snprintf(sql, sizeof(sql),
				"SELECT coalesce(sum(ms), 0) FROM usage WHERE slot >= %lld AND "
				"state = %d AND (slot / 3600 + 96) %% 168 = %d",
				since, s, i);
			assert_int_equal(a->heat[i / 24][i % 24].ms[s], ask(db, sql));
		}
	}
}

static void test_sums_are_the_stores(void **state)
{
	(void)state;
	char path[64], sql[512];
	sqlite3 *db = make_store(path, 3, 48);
	fill(db, 3, 48);
	exec(db, "COMMIT");
	long long since = NOON - 44 * 3600; /* in the fives: from there on, to the minute */
	struct audit a;
	run_audit(&a, path, since, 0);
	assert_int_equal(a.n_cards, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(a.cards[i].id.index, i);
		for (int s = 0; s < CARD_UNOBSERVED; s++) {
			snprintf(sql, sizeof(sql),
				"SELECT sum(ms) FROM usage WHERE slot >= %lld AND state = %d "
				"AND gpu = %zu",
				since, s, 3 - i);
			assert_int_equal(a.cards[i].ms[s], ask(db, sql));
		}
	}
	snprintf(
		sql, sizeof(sql), "SELECT sum(energy_mj) FROM usage WHERE slot >= %lld", since);
	int64_t energy_mj = 0;
	for (int s = 0; s < CARD_STATES; s++)
		energy_mj += a.energy_mj[s];
	assert_int_equal(energy_mj, ask(db, sql));
	snprintf(sql, sizeof(sql),
		"SELECT sum(unsure_ms) FROM usage WHERE slot >= %lld AND state IN (0, 1, 2, 5)",
		since);
	assert_int_equal(a.unsure_ms, ask(db, sql));
	snprintf(sql, sizeof(sql), "SELECT sum(ms) FROM usage WHERE slot >= %lld AND state = 4",
		since);
	assert_int_equal(a.ms[CARD_USE_UNKNOWN], ask(db, sql));
	expect_sums_over_cards(&a, db, since);
	assert_int_equal(a.resolution_ms, 3600 * 1000);
	assert_int_equal(a.n_identities, 7);
	for (size_t i = 0; i < a.n_identities; i++) {
		const struct audit_identity *who = &a.identities[i];
		snprintf(sql, sizeof(sql),
			"SELECT sum(idle_held_presence_ms) FROM holding JOIN process p ON "
			"p.id = holding.process WHERE slot >= %lld AND p.user = '%s'",
			since, who->identity);
		assert_int_equal(who->sums.ms[HOLDER_IDLE_HELD], ask(db, sql));
		snprintf(sql, sizeof(sql),
			"SELECT sum(use_unknown_presence_ms) FROM holding JOIN process p ON "
			"p.id = holding.process WHERE slot >= %lld AND p.user = '%s'",
			since, who->identity);
		assert_int_equal(who->sums.ms[HOLDER_USE_UNKNOWN], ask(db, sql));
		snprintf(sql, sizeof(sql),
			"SELECT max(mem_peak_kib) FROM holding JOIN process p ON "
			"p.id = holding.process WHERE slot >= %lld AND p.user = '%s'",
			since, who->identity);
		assert_int_equal(who->sums.peak_mem_kib, ask(db, sql));
	}
	snprintf(sql, sizeof(sql),
		"SELECT count(*) FROM (SELECT DISTINCT process, gpu FROM holding WHERE slot >= "
		"%lld)",
		since);
	assert_int_equal(a.n_processes, ask(db, sql));
	audit_finish(&a);
	sqlite3_close(db);
	unlink(path);
}

/* What plain additions of the slots give, in a time zone. */
struct truth {
	int64_t card_ms[CARD_STATES], heat[7 * 24][CARD_STATES], days[4][CARD_STATES], held_ms;
	int64_t first_day; /* local, since 1970 */
};

static int64_t local_second(int64_t at, int64_t hour)
{
	time_t t = (time_t)hour;
	struct tm tm;
	localtime_r(&t, &tm);
	return at + tm.tm_gmtoff;
}

static void add_truth(struct truth *t, int64_t local_s, int state, int64_t ms)
{
	int64_t day = local_s / 86400 - t->first_day;
	day = day < 0 ? 0 : day > 3 ? 3 : day;
	t->days[day][state] += ms;
	t->heat[(local_s / 3600 + 96) % 168][state] += ms; /* 1970 began on a Thursday */
}

/* Adds the slots that overlap the window. An hour is spread over its quarters where hours of
 * the zone begin at another minute. `user` NULL: the time of all cards. */
static struct truth find_truth(
	sqlite3 *db, const struct audit *a, const struct audit_question *q, const char *user)
{
	struct truth t = { .first_day = a->days.first };
	long long since = q->since_ms / 1000, until = q->until_ms / 1000;
	char sql[1024];
	sqlite3_stmt *row = NULL;
	snprintf(sql, sizeof(sql),
		user ? "SELECT slot, seconds, value, CASE value WHEN 0 THEN active_presence_ms "
		       "WHEN 1 THEN idle_held_presence_ms + squatting_presence_ms WHEN 2 THEN "
		       "truly_idle_presence_ms ELSE use_unknown_presence_ms END FROM holding, "
		       "(SELECT column1 AS value FROM (VALUES (0), (1), (2), (4))) WHERE slot "
		       "+ "
		       "seconds > %lld AND slot < %lld AND process IN (SELECT id FROM process "
		       "WHERE user = '%s')"
		     : "SELECT slot, seconds, state, ms FROM usage WHERE slot + seconds > %lld "
		       "AND slot < %lld AND state <> 3 %s",
		since, until, user ? user : "");
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
	while (sqlite3_step(row) == SQLITE_ROW) {
		int64_t slot = sqlite3_column_int64(row, 0), ms = sqlite3_column_int64(row, 3);
		int64_t local = local_second(slot, slot - slot % 3600);
		int state = sqlite3_column_int(row, 2);
		bool spread = sqlite3_column_int(row, 1) == 3600 && (local - slot) % 3600 != 0;
		t.card_ms[state] += ms;
		for (int i = 0; i < (spread ? 4 : 1); i++)
			add_truth(&t, local + 900 * i, state,
				!spread ? ms
				: i < 3 ? ms / 4
					: ms - ms / 4 * 3);
	}
	sqlite3_finalize(row);
	return t;
}

static void expect_truth(const struct audit *a, const struct truth *t)
{
	for (int state = 0; state < CARD_STATES; state++) {
		int64_t ms = 0;
		for (size_t i = 0; i < a->days.n; i++) {
			ms += a->days.items[i].ms[state];
			if (state != CARD_UNOBSERVED)
				assert_int_equal(a->days.items[i].ms[state], t->days[i][state]);
		}
		if (state != CARD_UNOBSERVED)
			assert_int_equal(ms, t->card_ms[state]);
		for (int i = 0; i < 7 * 24 && state_has_util(state); i++)
			assert_int_equal(a->heat[i / 24][i % 24].ms[state], t->heat[i][state]);
	}
}

/* The sums of a window are those of its slots, whatever part of it comes from sums of hours and
 * days, in zones whose hours begin at any quarter. */
static void test_random_windows(void **state)
{
	(void)state;
	static const char *const zones[] = { "UTC", "XST-1", "XST5", "XST-5:30", "XST-5:45",
		"XST3:30" };
	char path[64];
	unsigned random = 99;
	sqlite3 *db = make_store(path, 2, 48);
	fill(db, 2, 48);
	exec(db, "COMMIT");
	for (int i = 0; i < 60; i++) {
		struct audit a;
		struct err e = { 0 };
		int64_t since = NOON - 60 - next(&random, 48 * 60) * 60, until = NOON;
		if (i % 3)
			until = since + 60 + next(&random, (int)(NOON - since));
		if (i % 4 == 0)
			since -= since % 3600;
		until = until < NOON ? until : NOON;
		const char *paths[] = { path }, *user = i % 5 == 0 ? "user3" : NULL;
		struct audit_question q = { .paths = paths,
			.n_paths = 1,
			.since_ms = since * 1000,
			.until_ms = until * 1000,
			.now_ms = NOON * 1000 };
		if (user)
			q.only.lists[ONLY_USER] = (struct text_list){ { user }, 1 };
		else if (i % 7 == 0) /* both cards, but by their own rows */
			q.only.lists[ONLY_MODEL] = (struct text_list){ { "A100" }, 1 };
		setenv("TZ", zones[i % 6], 1);
		tzset();
		if (audit_run(&a, &q, &e) != 0)
			fail_msg("%s", e.text);
		struct truth t = find_truth(db, &a, &q, user);
		expect_truth(&a, &t);
		audit_finish(&a);
	}
	setenv("TZ", "UTC", 1);
	sqlite3_close(db);
	unlink(path);
}

/* The card was active in the last minute. */
static void close_with_a_minute(sqlite3 *db)
{
	char sql[128];
	snprintf(sql, sizeof(sql),
		"INSERT INTO usage_1m VALUES (%lld, 1, 0, 60000, 0, 0, 60000, 0, 0)",
		NOON - 60);
	exec(db, sql);
	exec(db, "COMMIT");
	sqlite3_close(db);
}

static void test_many_identities_in_order(void **state)
{
	(void)state;
	enum { N = 5000 };
	char path[64], sql[512];
	sqlite3 *db = make_store(path, 1, 1);
	for (int i = 1; i <= N; i++) {
		snprintf(sql, sizeof(sql),
			"INSERT INTO process (id, host, run, pid, start_ticks, user, command, "
			"first_seen_ms, last_seen_ms) VALUES (%d, 1, 1, %d, 1, 'user%04d', "
			"'c', 0, 0);"
			"INSERT INTO holding_1m VALUES (%lld, 1, %d, %d, 0, 0, 0, 0, 0, 0, 0, "
			"0, 0, "
			"NULL, NULL, 0, 0, 0, NULL)",
			i * 20, i, i, NOON - 60, i * 20, 100 + i / 2);
		exec(db, sql);
	}
	close_with_a_minute(db);
	struct audit a;
	run_audit(&a, path, NOON - 3600, 10);
	assert_int_equal(a.n_identities, N);
	for (size_t i = 1; i < N; i++) {
		const struct audit_identity *p = &a.identities[i - 1], *q = &a.identities[i];
		assert_true(p->sums.ms[0] >= q->sums.ms[0]);
		if (p->sums.ms[0] == q->sums.ms[0])
			assert_true(strcmp(p->identity, q->identity) < 0);
	}
	assert_int_equal(a.n_processes, 10);
	assert_int_equal(a.n_processes_left_out, N - 10);
	for (size_t i = 0; i < a.n_processes; i++) {
		/* Renumbered with the identities that were sorted. */
		snprintf(sql, sizeof(sql), "user%04u", a.processes[i].pid);
		assert_string_equal(a.identities[a.processes[i].identity].identity, sql);
		assert_string_equal(a.processes[i].texts[PROCESS_COMMAND], "c");
		assert_int_equal(a.processes[i].sums.peak_mem_kib, -1);
	}
	audit_finish(&a);
	unlink(path);
}

/* alice and bob are in the group given as context, others in none. */
static const char *group_of(const void *context, const char *user)
{
	return *user == 'a' || *user == 'b' ? context : NULL;
}

/* Three users on one card for a minute; bob has two processes there and is present once. */
static void test_groups(void **state)
{
	(void)state;
	static const char *const users[] = { "alice", "bob", "bob", "carol" };
	char path[64], sql[512], team[] = "team";
	const char *paths = path;
	struct err e = { 0 };
	sqlite3 *db = make_store(path, 1, 1);
	for (int i = 0; i < 4; i++) {
		snprintf(sql, sizeof(sql),
			"INSERT INTO process (id, host, run, pid, start_ticks, user, command, "
			"first_seen_ms, last_seen_ms) VALUES (%d, 1, 1, %d, 1, '%s', 'c', 0, "
			"0);"
			"INSERT INTO holding_1m VALUES (%lld, 1, %d, 60000, 0, 0, 0, %d, 0, 0, "
			"0, 15000, 0, NULL, NULL, 0, 0, 0, NULL)",
			i + 1, i + 1, users[i], NOON - 60, i + 1, i == 2 ? 60000 : 0);
		exec(db, sql);
	}
	close_with_a_minute(db);
	struct audit_question q = { .paths = &paths,
		.n_paths = 1,
		.since_ms = (NOON - 3600) * 1000,
		.until_ms = NOON * 1000,
		.now_ms = NOON * 1000,
		.group_of = group_of,
		.group_context = team };
	struct audit a;
	assert_int_equal(identity_by_parse(&q.by, "group,user", &e), 0);
	assert_int_equal(audit_run(&a, &q, &e), 0);
	assert_int_equal(a.breakdown.n[0], 2);
	assert_int_equal(a.breakdown.n[1], 3);
	assert_int_equal(a.breakdown.measures[0], MEASURE_USERS);
	assert_int_equal(a.breakdown.measures[1], MEASURE_PRESENCE);
	for (size_t i = 0; i < 2; i++) {
		const struct audit_row *row = &a.breakdown.rows[0][i];
		bool in = row->key && strcmp(row->key, "team") == 0;
		assert_true(in || !row->key);
		assert_int_equal(row->sums.ms[HOLDER_ACTIVE], in ? 120000 : 60000);
		assert_int_equal(row->sums.active_share_ms, in ? 45000 : 15000);
		assert_int_equal(row->n_processes, in ? 3 : 1);
	}
	audit_finish(&a);
	unlink(path);
}

static void test_no_data_says_where_there_is_some(void **state)
{
	(void)state;
	char path[64], sql[256];
	sqlite3 *db = make_store(path, 1, 48);
	exec(db, "COMMIT");
	struct audit a;
	run_audit(&a, path, NOON - 3600, 0);
	assert_int_equal(a.n_cards, 0);
	assert_int_equal(a.oldest_ms, -1);
	audit_finish(&a);
	snprintf(sql, sizeof(sql), "INSERT INTO usage_1h VALUES (%lld, 1, 0, 1, 0, 0, 1, 0, 0)",
		NOON - 24 * 3600);
	exec(db, sql);
	sqlite3_close(db);
	run_audit(&a, path, NOON - 3600, 0);
	assert_int_equal(a.n_cards, 0);
	assert_int_equal(a.oldest_ms, (NOON - 24 * 3600) * 1000);
	assert_int_equal(a.newest_ms, (NOON - 23 * 3600) * 1000);
	audit_finish(&a);
	unlink(path);
}

static void test_idmap(void **state)
{
	(void)state;
	struct idmap m = { 0 };
	uint32_t to[1000];
	assert_int_equal(idmap_get(&m, 7), IDMAP_NONE);
	for (int64_t i = 0; i < 1000; i++) {
		assert_true(idmap_put(&m, i * 0x100000000LL - 5, (uint32_t)i));
		to[i] = i % 2 ? (uint32_t)i / 2 : IDMAP_NONE;
	}
	for (int64_t i = 0; i < 1000; i++)
		assert_int_equal(idmap_get(&m, i * 0x100000000LL - 5), i);
	assert_int_equal(idmap_get(&m, 1), IDMAP_NONE);
	idmap_renumber(&m, to);
	for (int64_t i = 0; i < 1000; i++)
		assert_int_equal(idmap_get(&m, i * 0x100000000LL - 5), to[i]);
	assert_true(idmap_put(&m, -5, 3));
	assert_int_equal(idmap_get(&m, -5), 3);
	size_t cap = m.cap;
	idmap_clear(&m);
	assert_int_equal(idmap_get(&m, -5), IDMAP_NONE);
	/* Several values of one key, between those of others. */
	for (uint32_t i = 0; i < 300; i++)
		assert_true(idmap_add(&m, i % 3, i));
	assert_int_equal(m.cap, cap);
	size_t step = 0;
	for (uint32_t i = 1; i < 300; i += 3)
		assert_int_equal(idmap_next(&m, 1, &step), i);
	assert_int_equal(idmap_next(&m, 1, &step), IDMAP_NONE);
	idmap_finish(&m);
	idmap_finish(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_are_the_stores),
		cmocka_unit_test(test_random_windows),
		cmocka_unit_test(test_many_identities_in_order),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_no_data_says_where_there_is_some),
		cmocka_unit_test(test_idmap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Compaction conserves every sum: random months against a model, and its edges. */
#include "test.h"

#include <stdio.h>

#include <sqlite3.h>

#include "store_fixture.h"

#if defined(__SANITIZE_ADDRESS__)
enum { ALL_DAYS = 40, DAYS = 24 };
#else
enum { ALL_DAYS = 365, DAYS = 48 };
#endif
enum { HOURS = ALL_DAYS * 24, TICK_S = 3600 };

static const int64_t start_s = WORLD_START_MS / 1000;
static const struct retention keep = RETENTION_DEFAULT;

struct card_sum {
	int64_t ms, util_pct_ms, energy_mj, energy_ms, unsure_ms, unsure_ms2;
};

struct holder_sum {
	int64_t ms[HOLDER_STATES], twice[HOLDER_STATES], share[2];
	int64_t sm_pct_ms, mem_peak_kib; /* -1: never known */
	int64_t engine_ms, own_unknown_ms;
	int64_t sm_max_pct; /* -2: one of its rows has none */
};

/* What must be in the file, by hour. */
struct model {
	uint64_t random;
	int hours; /* that are played: one tick each */
	struct card_sum cards[HOURS][WORLD_CARDS][CARD_STATES];
	struct holder_sum holders[HOURS][WORLD_CARDS][WORLD_PROCESSES];
};

static int64_t pick(struct model *m, int64_t below)
{
	m->random = m->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int64_t)((m->random >> 33) % (uint64_t)below);
}

static void add_known(int64_t *sum, int64_t value)
{
	if (value >= 0)
		*sum = (*sum < 0 ? 0 : *sum) + value;
}

/* A minute in the hour before `now_s`, now and then one that was compacted long ago. */
static int64_t pick_slot(struct model *m, int64_t now_s)
{
	int64_t back = pick(m, 50) == 0 ? pick(m, 20 * 86400) : pick(m, TICK_S);
	int64_t slot = (now_s - 1 - back) / SLOT_SECONDS * SLOT_SECONDS;
	return slot < start_s ? start_s : slot;
}

static void random_usage(struct model *m, struct usage_sum *u, int64_t now_s)
{
	*u = (struct usage_sum){ .slot = pick_slot(m, now_s),
		.card = (uint32_t)pick(m, WORLD_CARDS),
		.state = (enum card_state)pick(m, CARD_STATES),
		.ms = pick(m, 60001),
		.util_pct_ms = pick(m, 6000000),
		.energy_mj = pick(m, 1000000000) };
	u->energy_ms = pick(m, 3) ? u->ms : pick(m, 200) - 100;
	u->unsure_ms = pick(m, 1000) - 100;
	u->unsure_ms2 = pick(m, 1000000);
	struct card_sum *sum = &m->cards[(u->slot - start_s) / 3600][u->card][u->state];
	sum->ms += u->ms;
	sum->util_pct_ms += u->util_pct_ms;
	sum->energy_mj += u->energy_mj;
	sum->energy_ms += u->energy_ms;
	sum->unsure_ms += u->unsure_ms;
	sum->unsure_ms2 += u->unsure_ms2;
}

static void random_holding(struct model *m, struct holding_sum *h, int64_t now_s)
{
	int64_t ms = pick(m, 60000) + 1;
	*h = (struct holding_sum){ .slot = pick_slot(m, now_s),
		.card = (uint32_t)pick(m, WORLD_CARDS),
		.process = (uint32_t)pick(m, WORLD_PROCESSES),
		.active_share_ms = pick(m, ms + 1),
		.idle_share_ms = pick(m, ms + 1),
		.sm_pct_ms = pick(m, 3) ? pick(m, 6000000) : -1,
		.engine_ms = pick(m, 4) ? 0 : pick(m, 60000),
		.own_unknown_ms = pick(m, 4) ? 0 : pick(m, 60000),
		.sm_max_pct = pick(m, 40) ? pick(m, 101) : -1,
		.mem_peak_kib = pick(m, 3) ? pick(m, 80000000) : -1 };
	struct holder_sum *sum = &m->holders[(h->slot - start_s) / 3600][h->card][h->process];
	int own = (int)pick(m, HOLDER_STATES), user = (int)pick(m, HOLDER_STATES);
	h->ms[own] = ms;
	h->presence_ms[user] = pick(m, 2) ? ms : pick(m, ms + 1);
	sum->ms[own] += ms;
	sum->twice[own] += ms;
	sum->twice[user] -= h->presence_ms[user];
	sum->share[0] += h->active_share_ms;
	sum->share[1] += h->idle_share_ms;
	add_known(&sum->sm_pct_ms, h->sm_pct_ms);
	sum->engine_ms += h->engine_ms;
	sum->own_unknown_ms += h->own_unknown_ms;
	if (h->sm_max_pct < 0 || sum->sm_max_pct == -2)
		sum->sm_max_pct = -2;
	else if (h->sm_max_pct > sum->sm_max_pct)
		sum->sm_max_pct = h->sm_max_pct;
	if (h->mem_peak_kib > sum->mem_peak_kib)
		sum->mem_peak_kib = h->mem_peak_kib;
}

static struct model *new_model(void)
{
	struct model *m = calloc(1, sizeof(*m));
	assert_non_null(m);
	m->random = 20261101;
	m->hours = (plays_all() ? ALL_DAYS : DAYS) * 24;
	for (int hour = 0; hour < m->hours; hour++)
		for (int card = 0; card < WORLD_CARDS; card++) {
			for (int i = 0; i < WORLD_PROCESSES; i++) {
				m->holders[hour][card][i].sm_pct_ms = -1;
				m->holders[hour][card][i].mem_peak_kib = -1;
				m->holders[hour][card][i].sm_max_pct = -1;
			}
		}
	return m;
}

static int64_t column(sqlite3_stmt *q, int i)
{
	return sqlite3_column_type(q, i) == SQLITE_NULL ? -1 : sqlite3_column_int64(q, i);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *q = NULL;
	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	return q;
}

/* Every hour, card and state; what the model has and the file has not shows in the count. */
static void compare_usage(const struct model *m, sqlite3 *db)
{
	int rows = 0, expected = 0;
	for (int hour = 0; hour < m->hours; hour++)
		for (int i = 0; i < WORLD_CARDS * CARD_STATES; i++)
			expected += (&m->cards[hour][0][0])[i].ms > 0;
	sqlite3_stmt *q = prepare(db,
		"SELECT slot / 3600 * 3600 AS hour, gpu, state, sum(ms), sum(util_pct_ms),"
		" sum(energy_mj), sum(ms - energy_unknown_ms), sum(unsure_ms), sum(unsure_ms2)"
		" FROM usage GROUP BY 1, 2, 3");
	while (sqlite3_step(q) == SQLITE_ROW) {
		const struct card_sum *sum = &m->cards[(column(q, 0) - start_s) / 3600]
						      [column(q, 1) - 1][column(q, 2)];
		assert_int_equal(column(q, 3), sum->ms);
		assert_int_equal(column(q, 4), sum->util_pct_ms);
		assert_int_equal(column(q, 5), sum->energy_mj);
		assert_int_equal(column(q, 6), sum->energy_ms);
		assert_int_equal(column(q, 7), sum->unsure_ms);
		assert_int_equal(column(q, 8), sum->unsure_ms2);
		rows += sum->ms > 0;
	}
	sqlite3_finalize(q);
	assert_int_equal(rows, expected);
	assert_true(rows > m->hours / 2);
}

static void compare_holding(const struct model *m, sqlite3 *db)
{
	int rows = 0, expected = 0;
	for (int hour = 0; hour < m->hours; hour++)
		for (int i = 0; i < WORLD_CARDS * WORLD_PROCESSES; i++)
			for (int state = 0; state < HOLDER_STATES; state++)
				expected += (&m->holders[hour][0][0])[i].ms[state] > 0;
	sqlite3_stmt *q = prepare(db,
		"SELECT slot / 3600 * 3600 AS hour, gpu, process, sum(active_ms),"
		" sum(idle_held_ms), sum(truly_idle_ms), sum(squatting_ms),"
		" sum(use_unknown_ms), sum(active_ms - active_presence_ms), sum(idle_held_ms - "
		"idle_held_presence_ms),"
		" sum(truly_idle_ms - truly_idle_presence_ms),"
		" sum(squatting_ms - squatting_presence_ms),"
		" sum(use_unknown_ms - use_unknown_presence_ms), sum(active_share_ms),"
		" sum(idle_share_ms), sum(sm_pct_ms), max(mem_peak_kib), sum(engine_ms), "
		"iif(count(*) = count(sm_max_pct), max(sm_max_pct), -2), sum(own_unknown_ms) "
		"FROM holding"
		" GROUP BY 1, 2, 3");
	while (sqlite3_step(q) == SQLITE_ROW) {
		const struct holder_sum *sum = &m->holders[(column(q, 0) - start_s) / 3600]
							  [column(q, 1) - 1][column(q, 2) - 1];
		for (int state = 0; state < HOLDER_STATES; state++) {
			assert_int_equal(column(q, 3 + state), sum->ms[state]);
			assert_int_equal(column(q, 8 + state), sum->twice[state]);
			rows += sum->ms[state] > 0;
		}
		assert_int_equal(column(q, 13), sum->share[0]);
		assert_int_equal(column(q, 14), sum->share[1]);
		assert_int_equal(column(q, 15), sum->sm_pct_ms);
		assert_int_equal(column(q, 16), sum->mem_peak_kib);
		assert_int_equal(column(q, 17), sum->engine_ms);
		assert_int_equal(column(q, 18), sum->sm_max_pct);
		if (sum->sm_max_pct >= 0)
			assert_int_equal(column(q, 19), sum->own_unknown_ms);
	}
	sqlite3_finalize(q);
	assert_int_equal(rows, expected);
}

#define HOLDER_SUMS                                                                            \
	"gpu, process, sum(active_ms), sum(idle_held_ms), sum(truly_idle_ms),"                 \
	" sum(squatting_ms), sum(active_double_ms), sum(idle_held_double_ms),"                 \
	" sum(truly_idle_double_ms), sum(squatting_double_ms), sum(active_share_ms),"          \
	" sum(idle_share_ms), sum(sm_pct_ms), max(mem_peak_kib), sum(use_unknown_ms),"         \
	" sum(use_unknown_double_ms), sum(engine_ms),"                                         \
	" iif(count(*) = count(own_use), max(own_use & 255) + (sum(own_use >> 8) << 8), NULL)"
#define CARD_SUMS                                                                              \
	"gpu, state, sum(ms), sum(util_pct_ms), sum(energy_mj), sum(energy_unknown_ms),"       \
	" sum(unsure_ms), sum(unsure_ms2)"
/* The slots of complete hours. */
#define FINE_SLOTS(kind) "SELECT * FROM " kind "_1m UNION ALL SELECT * FROM " kind "_5m"
#define ALL_SLOTS(kind) FINE_SLOTS(kind) " UNION ALL SELECT * FROM " kind "_1h"
#define SUMS_OF(width, columns, slots)                                                         \
	"SELECT slot / " width " * " width ", " columns " FROM (" slots                        \
	") WHERE slot < (SELECT max(slot) + 3600 FROM heat_1h) GROUP BY 1, 2, 3"
/* Over all cards: the states of the hour, and the first quarter of an hour with fine slots. */
#define STATE_OF_SLOTS(state) ", total(ms) FILTER (WHERE state = " state ")"
#define HEAT_OF_SLOTS                                                                          \
	"SELECT slot / 3600 * 3600" STATE_OF_SLOTS("0") STATE_OF_SLOTS("1") STATE_OF_SLOTS(    \
		"2") STATE_OF_SLOTS("4")                                                       \
		STATE_OF_SLOTS("5") " FROM (" ALL_SLOTS(                                       \
			"usage") ") WHERE"                                                     \
				 " slot < (SELECT max(slot) + 3600 FROM heat_1h) GROUP BY 1"
#define HEAT_OF_TABLE                                                                          \
	"SELECT slot, active_ms, idle_held_ms, truly_idle_ms, use_unknown_ms, reserved_ms "    \
	"FROM heat_1h"                                                                         \
	" WHERE slot IN (SELECT slot / 3600 * 3600 FROM usage)"
#define FINE_HOURS                                                                             \
	" slot / 3600 * 3600 NOT IN (SELECT slot FROM usage_1h) AND slot / 3600 * 3600 IN "    \
	"(SELECT slot FROM usage_hour) AND slot < (SELECT max(slot) + 3600 FROM heat_1h)"
#define QUARTERS_OF_SLOTS                                                                      \
	"SELECT slot / 3600 * 3600, total(ms) FILTER (WHERE state = 0 AND slot % 3600 < 900)," \
	" total(ms) FILTER (WHERE state = 2 AND slot % 3600 / 900 = 1), total(ms) FILTER "     \
	"(WHERE state = 4 AND slot % 3600 / 900 = 2) FROM (" FINE_SLOTS(                       \
		"usage") ") WHERE" FINE_HOURS " GROUP BY 1"
#define QUARTERS_OF_TABLE                                                                      \
	"SELECT slot, active_q1_ms, truly_idle_q2_ms, use_unknown_q3_ms FROM heat_1h "         \
	"WHERE" FINE_HOURS

/* Two statements yield the same rows. */
static void expect_same_rows(const char *path, const char *one, const char *other)
{
	char sql[4096];
	const char *both[] = { one, other };
	for (int i = 0; i < 2; i++) {
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM (%s EXCEPT %s)", both[i],
			both[1 - i]);
		assert_int_equal(ask(path, sql), 0);
	}
}

/* By hour, by day and over all cards, the same once more; and the running totals. */
static void compare_rollups(const char *path)
{
	expect_same_rows(path, SUMS_OF("3600", CARD_SUMS, FINE_SLOTS("usage")),
		"SELECT * FROM usage_hour");
	expect_same_rows(path, SUMS_OF("3600", HOLDER_SUMS, FINE_SLOTS("holding")),
		"SELECT * FROM holding_hour");
	expect_same_rows(path, SUMS_OF("86400", CARD_SUMS, ALL_SLOTS("usage")),
		"SELECT * FROM usage_1d");
	expect_same_rows(path, SUMS_OF("86400", HOLDER_SUMS, ALL_SLOTS("holding")),
		"SELECT * FROM holding_1d");
	expect_same_rows(path, HEAT_OF_SLOTS, HEAT_OF_TABLE);
	expect_same_rows(path, QUARTERS_OF_SLOTS, QUARTERS_OF_TABLE);
	assert_int_equal(ask(path, "SELECT count(*) FROM (SELECT gpu, state, sum(ms),"
				   " sum(energy_mj), sum(energy_unknown_ms), sum(unsure_ms),"
				   " sum(unsure_ms2)"
				   " FROM usage GROUP BY 1, 2"
				   " EXCEPT SELECT * FROM total_gpu)"),
		0);
	assert_int_equal(
		ask(path, "SELECT (SELECT sum(presence_ms) FROM total_user WHERE user ="
			  " 'bob') - (SELECT sum(active_presence_ms +"
			  " idle_held_presence_ms + truly_idle_presence_ms +"
			  " squatting_presence_ms + use_unknown_presence_ms)"
			  " FROM holding WHERE process > 1)"),
		0);
	assert_int_equal(ask(path, "SELECT (SELECT sum(share_ms) FROM total_user) - (SELECT"
				   " sum(active_share_ms + idle_share_ms) FROM holding)"),
		0);
}

static void compare(const struct model *m, const char *path)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	compare_usage(m, db);
	compare_holding(m, db);
	sqlite3_close(db);
	compare_rollups(path);
}

/* All that is old enough for the next table is there, and nothing younger. */
static void expect_ages(const char *path, int64_t now_s)
{
	int64_t minute_edge = (now_s - keep.minute_s) / 300 * 300;
	int64_t five_edge = (now_s - keep.five_s) / 3600 * 3600;
	assert_true(ask(path, "SELECT min(slot) FROM usage_1m") >= minute_edge);
	assert_true(ask(path, "SELECT min(slot) FROM holding_1m") >= minute_edge);
	assert_true(ask(path, "SELECT max(slot) + 300 FROM usage_5m") <= minute_edge);
	assert_true(ask(path, "SELECT max(slot) + 300 FROM holding_5m") <= minute_edge);
	assert_true(ask(path, "SELECT min(slot) FROM usage_5m") >= five_edge);
	assert_true(ask(path, "SELECT max(slot) + 3600 FROM usage_1h") <= five_edge);
	assert_true(ask(path, "SELECT max(slot) + 3600 FROM holding_1h") <= five_edge);
}

static void compact_all(struct store *s, int64_t now_s, const struct retention *ages)
{
	struct err e = { 0 };
	bool more = true;
	while (more)
		if (compact_store(s, &(struct compaction){ now_s * 1000, *ages, 1000 }, &more,
			    &e) != 0)
			fail_msg("%s", e.text);
}

static void play_tick(struct world *w, struct model *m, struct store *s, int64_t now_s)
{
	struct err e = { 0 };
	bool more = false;
	for (size_t i = 0; i < 4; i++) {
		random_usage(m, &w->usage[i], now_s);
		random_holding(m, &w->holding[i], now_s);
	}
	w->tick.n_usage = w->tick.n_holding = 4;
	w->tick.at_ms = now_s * 1000;
	world_write(w, s);
	if (compact_store(s, &(struct compaction){ now_s * 1000, keep, 100 }, &more, &e) != 0)
		fail_msg("%s", e.text);
}

static void test_random_months(void **state)
{
	struct world *w = *state;
	struct model *m = new_model();
	struct store *s = world_open(w);
	for (int tick = 1; tick <= m->hours; tick++) {
		play_tick(w, m, s, start_s + tick * (int64_t)TICK_S);
		if (tick % (m->hours / 12) == 0) /* what comes late then meets hours */
			compact_all(s, start_s + tick * (int64_t)TICK_S, &keep);
		if (tick == m->hours / 4)
			compare(m, w->path);
	}
	int64_t end_s = start_s + m->hours * (int64_t)3600;
	compare(m, w->path);
	compact_all(s, end_s, &keep);
	expect_ages(w->path, end_s);
	compare(m, w->path);
	compact_all(s, end_s + 40 * 86400, &keep);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM usage_1m"), 0);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holding_5m"), 0);
	compare(m, w->path);
	store_close(s);
	free(m);
}

static int64_t minutes_left(struct world *w, struct store *s, int64_t now_ms)
{
	compact_all(s, now_ms / 1000, &keep);
	return ask(w->path, "SELECT count(DISTINCT slot) FROM usage_1m");
}

/* While the clock is far ahead nothing is moved, until it has stayed there for six hours. */
static void test_clock_far_ahead(void **state)
{
	struct world *w = *state;
	const int64_t year_ms = 366 * INT64_C(86400000), hour_ms = 3600000;
	int64_t now_ms = start_s * 1000;
	w->info.started_ms = now_ms;
	struct store *s = world_open(w);
	world_fill(w, start_s, 1000, 1);
	w->tick.at_ms = now_ms;
	world_write(w, s);
	world_fill(w, start_s + 60, 1000, 1);
	w->tick.at_ms = now_ms + year_ms;
	w->events[0] = (struct event){ .at_ms = now_ms + year_ms,
		.kind = EVENT_CLOCK_STEP,
		.card = -1,
		.value = year_ms };
	w->tick.n_events = 1;
	world_write(w, s);
	assert_int_equal(minutes_left(w, s, now_ms + year_ms), 2);
	assert_int_equal(minutes_left(w, s, now_ms + year_ms + 5 * hour_ms), 2);
	/* It was wrong: a day later on the right clock, what is due is moved. */
	assert_int_equal(minutes_left(w, s, now_ms + 24 * hour_ms), 2);
	assert_int_equal(minutes_left(w, s, now_ms + 24 * hour_ms + 300000), 0);
	store_close(s);
}

/* The same when the clock was set while no recorder ran. */
static void test_clock_far_ahead_at_the_start(void **state)
{
	struct world *w = *state;
	const int64_t year_ms = 366 * INT64_C(86400000), hour_ms = 3600000;
	int64_t now_ms = start_s * 1000;
	struct err e = { 0 };
	w->info.started_ms = now_ms;
	struct store *s = world_open(w);
	world_fill(w, start_s, 1000, 1);
	w->tick.at_ms = now_ms;
	world_write(w, s);
	store_close(s);
	for (int run = 0; run < 2; run++) { /* a quick restart does not make it trusted */
		world_forget(w);
		w->info.started_ms = now_ms + year_ms + run * hour_ms;
		s = world_open(w);
		assert_int_equal(minutes_left(w, s, now_ms + year_ms + 5 * hour_ms), 1);
		assert_int_equal(store_end_run(s, w->info.started_ms, "stopped", &e), 0);
		store_close(s);
	}
	s = world_open(w);
	assert_int_equal(minutes_left(w, s, now_ms + year_ms + 6 * hour_ms), 0);
	store_close(s);
}

/* A call moves at most what it was allowed, in whole coarse slots, and says whether it is done.
 */
static void test_small_steps(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = world_open(w);
	for (int i = 0; i < 100; i++) {
		world_fill(w, start_s + i * 60, 1000, 1);
		world_write(w, s);
	}
	int64_t now_ms = (start_s + 86400 + 50 * 60 + 59) * 1000;
	bool more = false;
	assert_int_equal(
		compact_store(s, &(struct compaction){ now_ms, keep, 10 }, &more, &e), 0);
	assert_true(more);
	assert_int_equal(ask(w->path, "SELECT max(slot) FROM heat_1h"), start_s);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM usage_5m"), 2 * 2);
	assert_int_equal(ask(w->path, "SELECT min(slot) FROM usage_1m"), start_s + 600);
	assert_int_equal(
		compact_store(s, &(struct compaction){ now_ms, keep, 1 }, &more, &e), 0);
	assert_true(more);
	assert_int_equal(ask(w->path, "SELECT max(slot) FROM heat_1h"), start_s + 3600);
	assert_int_equal(ask(w->path, "SELECT min(slot) FROM usage_1m"), start_s + 900);
	while (more)
		assert_int_equal(
			compact_store(s, &(struct compaction){ now_ms, keep, 7 }, &more, &e),
			0);
	/* 50 minutes and 59 seconds: the eleventh five minutes are not over. */
	assert_int_equal(ask(w->path, "SELECT min(slot) FROM usage_1m"), start_s + 3000);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage"), 200000);
	assert_int_equal(
		compact_store(s, &(struct compaction){ now_ms, keep, 7 }, &more, &e), 0);
	assert_false(more);
	store_close(s);
}

/* A holder without a card's slot, and the other way round, move too. */
static void test_tables_that_differ(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, start_s, 1000, 1);
	w->tick.n_usage = 0;
	world_write(w, s);
	world_fill(w, start_s + 7200, 1000, 1);
	w->tick.n_holding = 0;
	world_write(w, s);
	compact_all(s, start_s + 40 * 86400, &keep);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(active_ms) FROM holding_1h"), 3000);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1h"), 2000);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holding_1m"), 0);
}

/* The newest 100,000 events stay. */
static void test_events_are_bounded(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, start_s, 1000, 1);
	world_write(w, s);
	tell(w->path, "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n"
		      " WHERE i < 100500) INSERT INTO event (host, at_ms, kind, value, text)"
		      " SELECT 1, i, 'gap', 0, '' FROM n");
	compact_all(s, start_s + 40 * 86400, &keep);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM event"), 100000);
	assert_int_equal(ask(w->path, "SELECT max(at_ms) FROM event"), 100500);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

/* Processes that were seen and never held a card long enough to be counted. */
static void add_processes(const char *path, int n)
{
	char sql[512];
	snprintf(sql, sizeof(sql),
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT %d)"
		" INSERT INTO process (host, run, pid, start_ticks, user, command,"
		" first_seen_ms, last_seen_ms, ended_ms) SELECT 1, 1, 1000 + x, x, 'u', 'c',"
		" %lld, %lld, %lld FROM c",
		n, (long long)start_s * 1000, (long long)start_s * 1000,
		(long long)start_s * 1000);
	tell(path, sql);
}

static void compact_at(struct store *s, int64_t now_s)
{
	struct err e = { 0 };
	bool more = false;
	if (compact_store(s, &(struct compaction){ now_s * 1000, keep, 1000 }, &more, &e) != 0)
		fail_msg("%s", e.text);
}

/* What nothing refers to is removed, a bounded part at a time; what has a slot, a holder or an
 * open life stays. */
static void test_unused_processes_are_removed(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, start_s, 1000, 1);
	world_write(w, s);
	int64_t counted = ask(w->path, "SELECT count(*) FROM process");
	assert_int_equal(counted, WORLD_PROCESSES);
	add_processes(w->path, 4500);
	tell(w->path, "INSERT INTO open_life SELECT pid, id FROM process WHERE pid = 1007;"
		      "INSERT INTO holder SELECT 1, id, 1, 1, 1, 1 FROM process"
		      " WHERE pid = 1009;"
		      "UPDATE process SET ended_ms = NULL WHERE pid = 1010;");
	compact_all(s, start_s + 86400, &keep); /* too young */
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), counted + 4500);
	compact_all(s, start_s + 4 * 86400, &keep);
	for (int i = 0; i < 3; i++) {
		int64_t before = ask(w->path, "SELECT count(*) FROM process");
		compact_at(s, start_s + 4 * 86400);
		assert_in_range(before - ask(w->path, "SELECT count(*) FROM process"), 0, 2000);
	}
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), counted + 3);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"
				      " WHERE pid IN (1007, 1009, 1010)"),
		3);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holding LEFT JOIN process"
				      " ON process.id = process WHERE process.id IS NULL"),
		0);
	store_close(s);
}

/* A slot that the clock put into the future is not in the days yet: nothing is removed. */
static void test_no_sweep_while_the_clock_was_ahead(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, start_s + 365 * 86400, 1000, 1);
	world_write(w, s);
	add_processes(w->path, 10);
	for (int i = 0; i < 3; i++)
		compact_at(s, start_s + 30 * 86400);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), WORLD_PROCESSES + 10);
	store_close(s);
}

/* Slots at the ends of the range of numbers, of a damaged file, are moved like others. */
static void test_slots_of_a_damaged_file(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, start_s, 1000, 1);
	world_write(w, s);
	tell(w->path, "INSERT INTO usage_1m (slot, gpu, state, ms, util_pct_ms) VALUES"
		      " (-9223372036854775808, 1, 0, 1, 1), (-9223372036854775000, 1, 0, 1, 1),"
		      " (9223372036854775807, 1, 0, 1, 1)");
	compact_all(s, start_s + 40 * 86400, &keep);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM usage_1m"), 1);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1h"), 2002);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_clock_far_ahead),
		WORLD_TEST(test_clock_far_ahead_at_the_start),
		WORLD_TEST(test_small_steps),
		WORLD_TEST(test_tables_that_differ),
		WORLD_TEST(test_events_are_bounded),
		WORLD_TEST(test_unused_processes_are_removed),
		WORLD_TEST(test_no_sweep_while_the_clock_was_ahead),
		WORLD_TEST(test_slots_of_a_damaged_file),
		WORLD_TEST(test_random_months),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

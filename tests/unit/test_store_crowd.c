/* Crowds: short processes beyond a user's limit share a row, and no sum changes. */
#include "test.h"

#include <stdio.h>

#include <sqlite3.h>

#include "store/crowd.h"
#include "store_fixture.h"

enum { MAX_LIVES = 4000, MAX_SUMS = 3 * MAX_LIVES, TICK_MS = 30000, DAY_S = 86400 };

/* Lives of a user or several, each with sums of every tick in which it is alive. */
struct lives {
	struct world *world;
	struct process_entry entries[MAX_LIVES];
	struct holding_sum sums[MAX_SUMS];
	struct holder_now holders[MAX_LIVES];
	size_t n, n_sums, n_holders;
	uint64_t random;
	uint32_t born;
	int64_t now_ms;
};

static struct lives *new_lives(struct world *w)
{
	struct lives *l = calloc(1, sizeof(*l));
	assert_non_null(l);
	l->world = w;
	l->now_ms = WORLD_START_MS;
	l->random = 20261101;
	return l;
}

static int64_t pick(struct lives *l, int64_t below)
{
	l->random = l->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int64_t)((l->random >> 33) % (uint64_t)below);
}

static struct process_entry *add_life(struct lives *l, const char *user)
{
	assert_true(l->n < MAX_LIVES);
	struct process_entry *p = &l->entries[l->n++];
	*p = (struct process_entry){ .first_seen_ms = l->now_ms,
		.last_seen_ms = l->now_ms,
		.last_active_ms = -1,
		.ended_ms = -1,
		.dirty = true };
	p->id = (struct process_id){ .pid = 1000 + l->born,
		.start_ticks = 5000 + l->born,
		.started_ms = l->now_ms,
		.uid = 1000,
		.owner_uid = -1 };
	l->born++;
	snprintf(p->id.user, sizeof(p->id.user), "%s", user);
	snprintf(p->id.command, sizeof(p->id.command), "python3 step.py");
	return p;
}

static void end_life(struct lives *l, struct process_entry *p)
{
	p->ended_ms = p->last_seen_ms = p->last_active_ms = l->now_ms;
	p->dirty = true;
}

/* Random sums of every life on one or two cards, and the list of those that are alive. */
static void fill(struct lives *l)
{
	l->n_sums = l->n_holders = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		for (uint32_t card = 0; card < 1 + i % 2; card++) {
			struct holding_sum *h = &l->sums[l->n_sums++];
			int64_t ms = 1 + pick(l, TICK_MS);
			*h = (struct holding_sum){ .slot = l->now_ms / 60000 * 60,
				.card = card,
				.process = i,
				.active_share_ms = pick(l, ms),
				.idle_share_ms = pick(l, ms),
				.sm_pct_ms = pick(l, 3) ? pick(l, 1000) : -1,
				.mem_peak_kib = pick(l, 3) ? pick(l, 80000) : -1 };
			h->ms[pick(l, HOLDER_STATES)] = ms;
			h->presence_ms[pick(l, HOLDER_STATES)] = pick(l, 2) ? ms : 0;
		}
		if (l->entries[i].ended_ms < 0)
			l->holders[l->n_holders++] = (struct holder_now){ 0, i, PROCESS_COMPUTE,
				1000, l->entries[i].first_seen_ms, -1 };
	}
}

static int write_lives(struct lives *l, struct store *s, struct err *e)
{
	struct tick t = { .at_ms = l->now_ms,
		.cards = l->world->cards,
		.n_cards = WORLD_CARDS,
		.processes = l->entries,
		.n_processes = l->n,
		.holding = l->sums,
		.n_holding = l->n_sums,
		.holders = l->holders,
		.n_holders = l->n_holders };
	return write_tick(s, &t, e);
}

static void forget_ended(struct lives *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		if (l->entries[i].ended_ms < 0)
			l->entries[n++] = l->entries[i];
	l->n = n;
}

/* Writes a tick with sums, forgets who ended, and goes to the next tick. */
static void tick(struct lives *l, struct store *s)
{
	struct err e = { 0 };
	fill(l);
	if (write_lives(l, s, &e) != 0)
		fail_msg("%s", e.text);
	forget_ended(l);
	l->now_ms += TICK_MS;
}

/* `n` lives of one tick. */
static void burst(struct lives *l, struct store *s, const char *user, int n)
{
	for (int i = 0; i < n; i++)
		end_life(l, add_life(l, user));
	tick(l, s);
}

static void assert_nothing_lost(const struct world *w)
{
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holding LEFT JOIN process"
				      " ON process.id = process WHERE process.id IS NULL"),
		0);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holding_1d LEFT JOIN process"
				      " ON process.id = process WHERE process.id IS NULL"),
		0);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holder LEFT JOIN process"
				      " ON process.id = process WHERE process.id IS NULL"),
		0);
}

#define SUM(column) "sum(" column ") || ' ' || "
/* Every sum of a table by slot, card and user, as text. */
#define ALL_SUMS(table)                                                                        \
	"SELECT group_concat(line, x'0a') FROM (SELECT slot || ' ' || gpu || ' ' || user ||"   \
	" ': ' || " SUM("active_ms") SUM("idle_held_ms") SUM("truly_idle_ms") SUM(             \
		"squatting_ms") SUM("use_unknown_ms") SUM("engine_ms") SUM("active_double_ms") \
		SUM("idle_held_double_ms") SUM("truly_idle_double_ms") SUM(                    \
			"squatting_double_"                                                    \
			"ms") SUM("use_unknown_double_ms") SUM("active_share_ms")              \
			SUM("idle_share_ms")                                                   \
				SUM("sm_pct_ms") "max(mem_peak_kib)"                           \
						 " AS line FROM " table                        \
						 " JOIN process ON process.id = process"       \
						 " GROUP BY slot, gpu, user ORDER BY "         \
						 "slot, gpu, user)"

static void assert_same(const struct world *a, const struct world *b, const char *sql)
{
	char *first = strdup(ask_text(a->path, sql));
	assert_non_null(first);
	assert_true(strlen(first) > 100);
	assert_string_equal(first, ask_text(b->path, sql));
	free(first);
}

static void compact(struct store *s, int64_t now_ms)
{
	struct err e = { 0 };
	const struct compaction c = { now_ms, RETENTION_DEFAULT, 1000 };
	for (bool more = true; more;)
		if (compact_store(s, &c, &more, &e) != 0)
			fail_msg("%s", e.text);
}

/* A random hour: some lives end in their first tick, some after some minutes, few stay. */
static void play(struct lives *l, struct store *s)
{
	static const char *const users[] = { "alice", "bob", "bob", "bob", "bob", "uid:7" };
	for (int i = 0; i < 120; i++) {
		for (size_t k = 0; k < l->n; k++)
			if (pick(l, 4) == 0 && l->entries[k].id.pid % 500 != 0)
				end_life(l, &l->entries[k]);
		for (int k = 0; k < 40; k++) {
			struct process_entry *p = add_life(l, users[pick(l, 6)]);
			if (pick(l, 2))
				end_life(l, p);
		}
		tick(l, s);
	}
}

/* The same hour with the limit and without it (an import has none): every sum of every user,
 * card and slot is the same, before and after compaction, and so are the totals. */
static void test_no_sum_changes(void **state)
{
	struct world *with = *state;
	void *other = NULL;
	assert_int_equal(world_setup(&other), 0);
	struct world *worlds[] = { with, other };
	struct store *stores[2];
	snprintf(worlds[1]->info.source, sizeof(worlds[1]->info.source), "import");
	for (int i = 0; i < 2; i++) {
		struct lives *l = new_lives(worlds[i]);
		stores[i] = world_open(worlds[i]);
		play(l, stores[i]);
		free(l);
	}
	static const char totals[] =
		"SELECT group_concat(user || state || ' ' || presence_ms || ' ' || share_ms)"
		" FROM (SELECT * FROM total_user ORDER BY user, state)";
	assert_same(worlds[0], worlds[1], ALL_SUMS("holding_1m"));
	assert_same(worlds[0], worlds[1], totals);
	assert_true(ask(with->path, "SELECT count(*) FROM process") * 3 <
		    ask(worlds[1]->path, "SELECT count(*) FROM process") * 2);
	for (int i = 0; i < 2; i++)
		compact(stores[i], WORLD_START_MS + INT64_C(20000) * DAY_S);
	assert_same(worlds[0], worlds[1], ALL_SUMS("holding_1h"));
	assert_same(worlds[0], worlds[1], ALL_SUMS("holding_1d"));
	assert_nothing_lost(with);
	store_close(stores[0]);
	store_close(stores[1]);
	world_teardown(&other);
}

#define CROWDS "SELECT count(*) FROM process WHERE " CROWD_SQL
#define OWN "SELECT count(*) FROM process WHERE NOT " CROWD_SQL

/* The limit is each user's, and each day's. */
static void test_rows_are_limited(void **state)
{
	struct world *w = *state;
	struct lives *l = new_lives(w);
	struct store *s = world_open(w);
	for (int i = 0; i < 4; i++)
		burst(l, s, "bob", CROWD_LIVES / 2);
	burst(l, s, "alice", 10);
	assert_int_equal(ask(w->path, OWN), CROWD_LIVES + 10);
	assert_int_equal(ask(w->path, CROWDS), 1);
	assert_int_equal(
		ask(w->path, "SELECT ended_ms = last_seen_ms AND last_active_ms ="
			     " ended_ms AND user = 'bob' FROM process WHERE " CROWD_SQL),
		1);
	/* A row for each slot and card, whatever the number of processes. */
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holding_1m JOIN process ON"
				      " process.id = process WHERE " CROWD_SQL),
		2);
	l->now_ms += DAY_S * 1000LL;
	burst(l, s, "bob", CROWD_LIVES + 7);
	burst(l, s, "bob", 7);
	assert_int_equal(ask(w->path, OWN), 2 * CROWD_LIVES + 10);
	assert_int_equal(ask(w->path, CROWDS), 2);
	assert_nothing_lost(w);
	store_close(s);
	free(l);
}

/* Each session has a row, up to a limit for each user and day; then the rest share one. */
static void test_sessions_have_rows(void **state)
{
	struct world *w = *state;
	struct lives *l = new_lives(w);
	struct store *s = world_open(w);
	burst(l, s, "bob", CROWD_LIVES);
	for (int twice = 0; twice < 2; twice++) {
		for (int i = 0; i < CROWD_SESSIONS + 5; i++) {
			struct process_entry *p = add_life(l, "bob");
			if (i % 2)
				p->id.posix_session = 7000 + i;
			else
				snprintf(p->id.job, sizeof(p->id.job), "slurm:%d", i);
			end_life(l, p);
		}
		tick(l, s);
		if (twice == 0) {
			store_close(s);
			s = world_open(w);
		}
	}
	assert_int_equal(ask(w->path, OWN), CROWD_LIVES);
	assert_int_equal(ask(w->path, CROWDS), CROWD_SESSIONS + 1);
	assert_int_equal(
		ask(w->path, CROWDS " AND job LIKE 'slurm:%' AND posix_session IS NULL"),
		CROWD_SESSIONS / 2);
	assert_int_equal(ask(w->path, CROWDS " AND job IS NULL AND posix_session > 7000"),
		CROWD_SESSIONS / 2);
	/* The next day counts anew. */
	l->now_ms += DAY_S * 1000LL;
	burst(l, s, "bob", CROWD_LIVES);
	struct process_entry *p = add_life(l, "bob");
	snprintf(p->id.job, sizeof(p->id.job), "slurm:99");
	end_life(l, p);
	tick(l, s);
	assert_int_equal(ask(w->path, CROWDS " AND job = 'slurm:99'"), 1);
	assert_nothing_lost(w);
	store_close(s);
	free(l);
}

/* A process that is alive has its own row, and keeps it if it holds for long. Only one that
 * ends soon joins the crowd, with what it had. */
static void test_long_holders_keep_their_rows(void **state)
{
	struct world *w = *state;
	struct lives *l = new_lives(w);
	struct store *s = world_open(w);
	burst(l, s, "bob", CROWD_LIVES);
	add_life(l, "bob");
	add_life(l, "bob");
	tick(l, s);
	assert_int_equal(ask(w->path, OWN), CROWD_LIVES + 2);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM now_holders WHERE pid > 0"), 2);
	end_life(l, &l->entries[1]);
	tick(l, s);
	assert_int_equal(ask(w->path, OWN), CROWD_LIVES + 1);
	assert_int_equal(ask(w->path, CROWDS), 1);
	while (l->now_ms < l->entries[0].first_seen_ms + CROWD_SHORT_MS)
		tick(l, s);
	end_life(l, &l->entries[0]);
	tick(l, s);
	assert_int_equal(ask(w->path, OWN), CROWD_LIVES + 1);
	assert_int_equal(ask(w->path, "SELECT ended_ms - first_seen_ms FROM process ORDER BY"
				      " last_seen_ms DESC LIMIT 1"),
		CROWD_SHORT_MS);
	assert_nothing_lost(w);
	store_close(s);
	free(l);
}

/* A recorder that was started again goes on counting, and knows how long a process was there
 * before. */
static void test_limit_survives_a_restart(void **state)
{
	struct world *w = *state;
	struct lives *l = new_lives(w);
	struct store *s = world_open(w);
	struct process_entry *old = add_life(l, "bob");
	tick(l, s);
	burst(l, s, "bob", CROWD_LIVES + 1);
	l->now_ms += 3600 * 1000;
	store_close(s);
	s = world_open(w);
	old->first_seen_ms = l->now_ms;
	old->store_id = 0;
	old->dirty = true;
	tick(l, s);
	end_life(l, old);
	tick(l, s);
	burst(l, s, "bob", 5);
	assert_int_equal(ask(w->path, OWN), CROWD_LIVES + 1);
	assert_int_equal(ask(w->path, CROWDS), 1);
	assert_int_equal(ask(w->path, "SELECT ended_ms - first_seen_ms > 3600000 FROM process"
				      " WHERE pid = 1000"),
		1);
	assert_nothing_lost(w);
	store_close(s);
	free(l);
}

/* A tick that could not be written is written later, although its crowd was rolled back. */
static void test_failed_tick_is_written_again(void **state)
{
	struct world *w = *state;
	struct lives *l = new_lives(w);
	struct err e = { 0 };
	struct store *s = world_open(w);
	burst(l, s, "bob", CROWD_LIVES);
	add_life(l, "bob");
	tick(l, s);
	end_life(l, &l->entries[0]);
	end_life(l, add_life(l, "bob"));
	for (int i = 0; i < CROWD_LIVES; i++)
		end_life(l, add_life(l, "alice"));
	fill(l);
	/* As if the disk were full after the first rows. */
	sqlite3_exec(store_handle(s), "PRAGMA max_page_count = 1", NULL, NULL, NULL);
	assert_int_equal(write_lives(l, s, &e), ERR_BUSY);
	assert_int_equal(ask(w->path, CROWDS), 0);
	assert_int_equal(ask(w->path, OWN), CROWD_LIVES + 1);
	sqlite3_exec(store_handle(s), "PRAGMA max_page_count = 100000", NULL, NULL, NULL);
	tick(l, s);
	assert_int_equal(ask(w->path, CROWDS), 1);
	assert_int_equal(ask(w->path, OWN), 2 * CROWD_LIVES);
	assert_nothing_lost(w);
	store_close(s);
	free(l);
}

/* Time that is accounted after a process has ended goes to the crowd too; a change of its
 * description does not touch the crowd's row. */
static void test_late_time(void **state)
{
	struct world *w = *state;
	struct lives *l = new_lives(w);
	struct err e = { 0 };
	struct store *s = world_open(w);
	burst(l, s, "bob", CROWD_LIVES);
	add_life(l, "bob");
	tick(l, s);
	end_life(l, &l->entries[0]);
	fill(l);
	assert_int_equal(write_lives(l, s, &e), 0);
	l->now_ms += DAY_S * 1000LL; /* the crowd of another day would be another row */
	l->entries[0].dirty = true;
	fill(l);
	assert_int_equal(write_lives(l, s, &e), 0);
	assert_int_equal(ask(w->path, CROWDS), 1);
	assert_int_equal(ask(w->path, OWN), CROWD_LIVES);
	assert_int_equal(ask(w->path, "SELECT count(DISTINCT slot) FROM holding_1m JOIN process"
				      " ON process.id = process WHERE " CROWD_SQL),
		3);
	assert_nothing_lost(w);
	store_close(s);
	free(l);
}

/* A process with a spell is not one of many. */
static void test_the_process_of_a_spell_keeps_its_row(void **state)
{
	struct world *w = *state;
	struct lives *l = new_lives(w);
	struct store *s = world_open(w);
	burst(l, s, "bob", CROWD_LIVES + 1);
	for (int i = 0; i < 2; i++) {
		struct process_entry *p = add_life(l, "bob");
		p->has_spell = i == 0;
		end_life(l, p);
	}
	tick(l, s);
	assert_int_equal(ask(w->path, OWN), CROWD_LIVES + 1);
	assert_int_equal(ask(w->path, CROWDS), 1);
	assert_nothing_lost(w);
	store_close(s);
	free(l);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_no_sum_changes),
		WORLD_TEST(test_rows_are_limited),
		WORLD_TEST(test_sessions_have_rows),
		WORLD_TEST(test_long_holders_keep_their_rows),
		WORLD_TEST(test_limit_survives_a_restart),
		WORLD_TEST(test_failed_tick_is_written_again),
		WORLD_TEST(test_late_time),
		WORLD_TEST(test_the_process_of_a_spell_keeps_its_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Spells in the store: open ones that each tick replaces, ended ones that stay, and what a
 * stop, a kill and another boot make of them. */
#include "test.h"

#include <stdio.h>

#include <sqlite3.h>

#include "present/last_run.h"
#include "store_fixture.h"

#define MINUTE_MS 60000LL
#define IDLE_SPELLS "SELECT count(*) FROM idle_spells"

/* A stretch of process 0 on card 0 from the start of the world on. */
static struct spell stretch(int64_t minutes, enum spell_end how)
{
	return (struct spell){ .card = 0,
		.process = 0,
		.begin_ms = WORLD_START_MS,
		.end_ms = WORLD_START_MS + minutes * MINUTE_MS,
		.idle_held_ms = minutes * MINUTE_MS,
		.mem_peak_kib = 2048,
		.energy_mj = -1,
		.how = how,
		.stored_end_ms = -1 };
}

/* A tick in which this is the only spell; NULL: there is none. */
static void write_spell(struct world *w, struct store *s, const struct spell *spell)
{
	for (int i = 0; i < WORLD_CARDS; i++)
		w->cards[i].listed = true;
	w->tick.spells = spell;
	w->tick.n_spells = spell != NULL;
	world_write(w, s);
}

/* A recorder that is started again: what it is told of the last run. */
static struct store *start_again(
	struct world *w, const char *boot_id, struct past_spell **past, size_t *n)
{
	struct err e = { 0 };
	for (int i = 0; i < WORLD_CARDS; i++)
		w->cards[i].listed = false;
	world_forget(w);
	w->info.started_ms += 3600000;
	strcpy(w->info.boot_id, boot_id);
	struct store *s = world_open(w);
	assert_int_equal(store_past_spells(s, past, n, &e), 0);
	return s;
}

static void test_an_open_spell_is_replaced(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	struct spell spell = stretch(4, SPELL_OPEN);
	write_spell(w, s, &spell);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM open_spell"), 1);
	assert_int_equal(ask(w->path, IDLE_SPELLS), 0); /* it is too short */
	spell = stretch(5, SPELL_OPEN);
	write_spell(w, s, &spell);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM open_spell"), 1);
	assert_string_equal(ask_text(w->path, "SELECT user || idle_hours || began"
					      " FROM idle_spells WHERE ended IS NULL"),
		"alice0.0832026-11-01 00:00:00");
	/* The card is lost: nothing is said about it, and nothing changes. */
	w->cards[0].listed = false;
	w->tick.n_spells = 0;
	world_write(w, s);
	assert_int_equal(ask(w->path, IDLE_SPELLS), 1);
	/* It became active. */
	spell.how = SPELL_ACTIVE;
	write_spell(w, s, &spell);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM open_spell"), 0);
	assert_string_equal(
		ask_text(w->path, "SELECT how_ended || ended || coalesce(energy_kwh, '?')"
				  " FROM idle_spells"),
		"active2026-11-01 00:05:00?");
	/* Its last energy comes with the next tick. */
	spell.energy_mj = 3600000000;
	write_spell(w, s, &spell);
	assert_string_equal(ask_text(w->path, "SELECT energy_kwh FROM idle_spells"), "1.0");
	assert_int_equal(ask(w->path, IDLE_SPELLS), 1);
	store_close(s);
}

/* Stopped or killed, and started again: the spell is there once, whatever comes next. */
static void goes_on(struct world *w, bool killed)
{
	struct err e = { 0 };
	struct past_spell *past = NULL;
	size_t n = 0;
	struct store *s = world_open(w);
	struct spell spell = stretch(10, SPELL_OPEN);
	spell.energy_mj = 77;
	write_spell(w, s, &spell);
	if (!killed)
		assert_int_equal(store_end_run(s, WORLD_START_MS + 700000, "stopped", &e), 0);
	store_close(s);
	assert_string_equal(ask_text(w->path, "SELECT coalesce(how_ended, '-')"
					      " FROM idle_spells"),
		killed ? "-" : "stopped");
	s = start_again(w, "boot-1", &past, &n);
	assert_string_equal(ask_text(w->path, "SELECT how_ended FROM idle_spells"), "stopped");
	assert_int_equal(n, 1);
	assert_string_equal(past->uuid, "GPU-0");
	assert_int_equal(past->pid, 100);
	assert_int_equal(past->start_ticks, 5000);
	assert_int_equal(past->spell.begin_ms, spell.begin_ms);
	assert_int_equal(past->spell.idle_held_ms, spell.idle_held_ms);
	assert_int_equal(past->spell.mem_peak_kib, 2048);
	assert_int_equal(past->spell.energy_mj, 77);
	assert_int_equal(past->spell.stored_end_ms, spell.end_ms);
	/* The card is not listed yet, then the process is idle as before. */
	world_write(w, s);
	assert_int_equal(ask(w->path, IDLE_SPELLS), 1);
	spell = stretch(70, SPELL_OPEN);
	spell.stored_end_ms = past->spell.stored_end_ms;
	write_spell(w, s, &spell);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM spell"), 0);
	assert_string_equal(ask_text(w->path, "SELECT idle_hours FROM idle_spells"), "1.167");
	assert_int_equal(ask(w->path, IDLE_SPELLS), 1);
	store_close(s);
	free(past);
}

/* A file may have been changed by others: no sum of such numbers is made. */
static void test_impossible_spells_are_not_continued(void **state)
{
	static const char *const changes[] = { "energy_mj = 9223372036854775807",
		"idle_held_ms = 1e308", "squatting_ms = -1", "end_ms = 9223372036854775807",
		"begin_ms = end_ms + 1", "mem_peak_kib = 'x'" };
	struct world *w = *state;
	struct past_spell *past = NULL;
	size_t n = 0;
	struct store *s = world_open(w);
	struct spell spell = stretch(10, SPELL_OPEN);
	write_spell(w, s, &spell);
	store_close(s);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		sqlite3 *db = NULL;
		char sql[128];
		snprintf(sql, sizeof(sql),
			"CREATE TABLE old AS SELECT * FROM open_spell; UPDATE open_spell SET "
			"%s",
			changes[i]);
		assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
		store_close(start_again(w, "boot-1", &past, &n));
		assert_int_equal(n, 0);
		free(past);
		assert_int_equal(sqlite3_exec(db,
					 "DELETE FROM open_spell; INSERT INTO open_spell"
					 " SELECT * FROM old; DROP TABLE old",
					 NULL, NULL, NULL),
			SQLITE_OK);
		sqlite3_close(db);
	}
	store_close(start_again(w, "boot-1", &past, &n));
	assert_int_equal(n, 1);
	free(past);
}

static void test_a_stopped_spell_goes_on(void **state)
{
	goes_on(*state, false);
}

static void test_a_killed_spell_goes_on(void **state)
{
	goes_on(*state, true);
}

static void test_what_does_not_go_on_has_ended(void **state)
{
	struct world *w = *state;
	struct past_spell *past = NULL;
	size_t n = 0;
	struct store *s = world_open(w);
	struct spell spell = stretch(10, SPELL_OPEN);
	write_spell(w, s, &spell);
	store_close(s);
	s = start_again(w, "boot-1", &past, &n);
	assert_int_equal(n, 1);
	write_spell(w, s, NULL); /* the card is listed, and the process is not on it */
	assert_string_equal(ask_text(w->path, "SELECT how_ended || ended FROM idle_spells"),
		"stopped2026-11-01 00:10:00");
	assert_int_equal(ask(w->path, "SELECT count(*) FROM open_spell"), 0);
	store_close(s);
	free(past);
}

static void test_a_stretch_that_is_short_goes_on_too(void **state)
{
	struct world *w = *state;
	struct past_spell *past = NULL;
	size_t n = 0;
	struct store *s = world_open(w);
	struct spell spell = stretch(1, SPELL_OPEN);
	write_spell(w, s, &spell);
	store_close(s);
	s = start_again(w, "boot-1", &past, &n);
	assert_int_equal(n, 1);
	assert_int_equal(past->spell.stored_end_ms, -1);
	assert_int_equal(ask(w->path, IDLE_SPELLS), 0);
	store_close(s);
	free(past);
}

static void test_another_boot_ends_it(void **state)
{
	struct world *w = *state;
	struct past_spell *past = NULL;
	size_t n = 1;
	struct store *s = world_open(w);
	struct spell spell = stretch(10, SPELL_OPEN);
	write_spell(w, s, &spell);
	store_close(s);
	s = start_again(w, "boot-2", &past, &n);
	assert_int_equal(n, 0);
	assert_string_equal(ask_text(w->path, "SELECT how_ended FROM idle_spells"), "stopped");
	assert_int_equal(ask(w->path, "SELECT count(*) FROM open_spell"), 0);
	store_close(s);
}

/* The file is opened again in the middle of a run: nothing has ended. */
static void test_a_fault_of_the_store_ends_nothing(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	struct spell spell = stretch(10, SPELL_OPEN);
	write_spell(w, s, &spell);
	store_close(s);
	s = world_open(w); /* the same run */
	world_forget(w);
	spell = stretch(11, SPELL_OPEN);
	write_spell(w, s, &spell);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM spell"), 0);
	assert_int_equal(ask(w->path, IDLE_SPELLS), 1);
	store_close(s);
}

/* A run with another rule: what is long enough is decided by the run that saw it. */
static void test_the_rule_is_that_of_the_run(void **state)
{
	struct world *w = *state;
	struct past_spell *past = NULL;
	size_t n = 0;
	w->info.rules.spell_ms = MINUTE_MS;
	struct store *s = world_open(w);
	struct spell spell = stretch(2, SPELL_OPEN);
	write_spell(w, s, &spell);
	store_close(s);
	w->info.rules.spell_ms = 10 * MINUTE_MS;
	s = start_again(w, "boot-1", &past, &n);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM spell"), 1);
	assert_int_equal(
		ask(w->path, "SELECT group_concat(spell_ms) = '60000,600000' FROM run"), 1);
	store_close(s);
	free(past);
}

/* Processes without sums are removed in the end, but not those of spells. */
static void test_the_process_of_a_spell_is_not_swept(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	const struct compaction later = { WORLD_START_MS + 30 * 86400000LL, RETENTION_DEFAULT,
		1000 };
	bool more = true;
	struct store *s = world_open(w);
	for (int i = 0; i < WORLD_PROCESSES; i++) {
		w->processes[i].ended_ms = WORLD_START_MS + 6 * MINUTE_MS;
		w->processes[i].dirty = true;
	}
	struct spell spell = stretch(6, SPELL_EXITED);
	write_spell(w, s, &spell);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 3);
	while (more)
		assert_int_equal(compact_store(s, &later, &more, &e), 0);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 1);
	assert_string_equal(ask_text(w->path, "SELECT user FROM idle_spells"), "alice");
	store_close(s);
}

/* What policy asks: since when each process is idle on each card. */
static void test_open_spells_of_holders(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct last_run n = { 0 };
	struct store *s = world_open(w);
	struct spell spell = stretch(7, SPELL_OPEN);
	spell.squatting_ms = 1000;
	world_fill(w, WORLD_START_MS / 1000, 1000, 1);
	write_spell(w, s, &spell);
	assert_int_equal(last_run_read(&n, w->path, 1000, true, &e), 0);
	const struct last_run_holder *idle =
		last_run_find(&n, "GPU-0", &w->processes[0].id, w->info.boot_id);
	const struct last_run_holder *busy =
		last_run_find(&n, "GPU-1", &w->processes[1].id, w->info.boot_id);
	assert_non_null(idle);
	assert_non_null(busy);
	assert_int_equal(idle->idle.begin_ms, WORLD_START_MS);
	assert_int_equal(spell_idle_ms(&idle->idle), 7 * MINUTE_MS + 1000);
	assert_int_equal(idle->idle.mem_peak_kib, 2048);
	assert_int_equal(idle->idle.energy_mj, -1);
	assert_int_equal(busy->idle.begin_ms, -1);
	assert_int_equal(n.rules.spell_ms, 5 * MINUTE_MS);
	last_run_close(&n);
	store_close(s);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_an_open_spell_is_replaced),
		WORLD_TEST(test_a_stopped_spell_goes_on),
		WORLD_TEST(test_impossible_spells_are_not_continued),
		WORLD_TEST(test_a_killed_spell_goes_on),
		WORLD_TEST(test_what_does_not_go_on_has_ended),
		WORLD_TEST(test_a_stretch_that_is_short_goes_on_too),
		WORLD_TEST(test_another_boot_ends_it),
		WORLD_TEST(test_a_fault_of_the_store_ends_nothing),
		WORLD_TEST(test_the_rule_is_that_of_the_run),
		WORLD_TEST(test_the_process_of_a_spell_is_not_swept),
		WORLD_TEST(test_open_spells_of_holders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Runs and ticks: what is written, when the recorder is told so, and what a restart finds. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "store_fixture.h"

static const int64_t minute = WORLD_START_MS / 1000;

static struct card_past past_of_card(struct store *s, const char *uuid)
{
	struct card_id id = { .mig_index = -1 };
	str_copy(id.uuid, sizeof(id.uuid), uuid);
	return store_card_past(s, &id);
}

static void test_a_tick_is_stored(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, minute, 30000, 9000);
	w->events[0] = (struct event){ w->tick.at_ms, EVENT_CARD_LOST, 1, 79, "fell\noff" };
	w->events[1] = (struct event){ w->tick.at_ms, EVENT_SUSPEND, -1, 5, "" };
	w->tick.n_events = 2;
	world_write(w, s);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 60000);
	assert_int_equal(ask(w->path, "SELECT sum(energy_mj) FROM usage_1m"), 18000);
	assert_int_equal(ask(w->path, "SELECT sum(active_ms) FROM holding_1m"), 90000);
	assert_int_equal(ask(w->path, "SELECT sum(active_double_ms) FROM holding_1m"), 30000);
	assert_int_equal(ask(w->path, "SELECT max(mem_peak_kib) FROM holding_1m"), 3000);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holder"), 3);
	assert_int_equal(ask(w->path, "SELECT last_tick_ms FROM run"), w->tick.at_ms);
	assert_int_equal(ask(w->path, "SELECT min(seen_ms) FROM reading"), w->tick.at_ms);
	assert_string_equal(
		ask_text(w->path, "SELECT text FROM event WHERE gpu = 2"), "fell\\x0Aoff");
	assert_string_equal(
		ask_text(w->path, "SELECT group_concat(kind) FROM event"), "card-lost,suspend");
	assert_string_equal(ask_text(w->path, "SELECT mem_total_bytes FROM gpu"), "NULL");
	assert_string_equal(ask_text(w->path, "SELECT notebook FROM process"), "NULL");
}

static void set_user(struct process_entry *p, int64_t owner_uid, const char *user)
{
	p->id.owner_uid = owner_uid;
	snprintf(p->id.user, sizeof(p->id.user), "%s", user);
	p->dirty = true;
}

/* Bob's first process is stored before his name is known. The running totals, which an engine
 * has seen, stay under the number. */
static void test_a_late_name_joins_what_is_stored(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	set_user(&w->processes[0], 1000, "uid:1000");
	set_user(&w->processes[1], 1001, "uid:1001");
	set_user(&w->processes[2], 1001, "bob");
	world_fill(w, minute, 30000, 9000);
	world_write(w, s);
	assert_string_equal(ask_text(w->path, "SELECT group_concat(user) FROM process"),
		"uid:1000,uid:1001,bob");
	set_user(&w->processes[2], 1001, "bob");
	world_fill(w, minute + 600, 30000, 9000);
	w->tick.n_holding = 0;
	world_write(w, s);
	store_close(s);
	assert_string_equal(ask_text(w->path, "SELECT group_concat(user) FROM process"),
		"uid:1000,bob,bob");
	assert_string_equal(
		ask_text(w->path, "SELECT group_concat(DISTINCT user) FROM total_user"),
		"bob,uid:1000,uid:1001");
	assert_int_equal(
		ask(w->path, "SELECT sum(presence_ms) FROM total_user WHERE user = 'bob'"), 0);
	assert_int_equal(ask(w->path, "SELECT group_concat(user) = 'bob,uid:1000,uid:1001' FROM"
				      " identity"),
		1);
	assert_int_equal(ask(w->path, "SELECT named_ms = (SELECT max(moved_ms) FROM total_user"
				      " WHERE user = 'uid:1001') FROM identity WHERE user ="
				      " 'uid:1001'"),
		1);
	assert_int_equal(ask(w->path, "SELECT sum(presence_ms) FROM total_user"), 60000);
}

/* Numbers of another host are other people's. */
static void test_a_late_name_is_of_its_host(void **state)
{
	struct world *w = *state;
	snprintf(w->info.machine_id, sizeof(w->info.machine_id), "one");
	struct store *s = world_open(w);
	set_user(&w->processes[0], 1000, "uid:1000");
	world_fill(w, minute, 30000, 9000);
	world_write(w, s);
	store_close(s);
	world_forget(w);
	snprintf(w->info.hostname, sizeof(w->info.hostname), "lab02");
	snprintf(w->info.machine_id, sizeof(w->info.machine_id), "another");
	s = world_open(w);
	set_user(&w->processes[0], 1000, "alice");
	world_fill(w, minute + 60, 30000, 9000);
	world_write(w, s);
	store_close(s);
	assert_int_equal(
		ask(w->path, "SELECT count(*) FROM process WHERE user = 'uid:1000'"), 1);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process WHERE user = 'alice'"), 1);
}

/* A killed run of the host's older name says until when the host was seen. */
static void test_a_host_that_was_renamed(void **state)
{
	struct world *w = *state;
	snprintf(w->info.machine_id, sizeof(w->info.machine_id), "one");
	struct store *s = world_open(w);
	world_fill(w, minute, 30000, 9000);
	world_write(w, s);
	store_close(s);
	int64_t last_ms = w->tick.at_ms;
	world_forget(w);
	snprintf(w->info.hostname, sizeof(w->info.hostname), "lab02");
	w->info.started_ms++;
	s = world_open(w);
	world_fill(w, minute + 60, 30000, 9000);
	world_write(w, s);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM host"), 1);
	assert_int_equal(ask(w->path, "SELECT last_seen_ms FROM host"), last_ms);
}

/* Several ticks meet in one slot; the states of a holder lie side by side. */
static void test_sums_add_up(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	for (int i = 0; i < 3; i++) {
		world_fill(w, minute, 1000, i == 1 ? -1 : 500);
		w->holding[0].sm_pct_ms = i == 2 ? 7 : -1;
		w->holding[0].mem_peak_kib = i == 1 ? 77 : -1;
		w->holding[0].ms[HOLDER_ACTIVE] = 0;
		w->holding[0].ms[i] = 1000;
		world_write(w, s);
	}
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT ms FROM usage_1m WHERE gpu = 1"), 3000);
	assert_int_equal(
		ask(w->path, "SELECT util_pct_ms FROM usage_1m WHERE gpu = 1"), 150000);
	assert_int_equal(ask(w->path, "SELECT energy_mj FROM usage_1m WHERE gpu = 1"), 1000);
	assert_int_equal(ask(w->path, "SELECT energy_mj FROM total_gpu WHERE gpu = 1"), 1000);
	/* known for two of three seconds */
	assert_int_equal(
		ask(w->path, "SELECT energy_unknown_ms FROM usage_1m WHERE gpu = 1"), 1000);
	assert_int_equal(
		ask(w->path, "SELECT energy_unknown_ms FROM total_gpu WHERE gpu = 1"), 1000);
	assert_string_equal(
		ask_text(w->path,
			"SELECT format('%d %d %d %d, %d %d, %d %d', active_ms, idle_held_ms,"
			" truly_idle_ms, squatting_ms, active_share_ms, idle_share_ms, "
			"sm_pct_ms,"
			" mem_peak_kib) FROM holding_1m WHERE process = 1"),
		"1000 1000 1000 0, 3000 0, 7 77");
	assert_int_equal(
		ask(w->path, "SELECT sum(presence_ms) FROM total_user WHERE user = 'bob'"),
		3000);
	assert_int_equal(
		ask(w->path, "SELECT sum(share_ms) FROM total_user WHERE user = 'bob'"), 3000);
}

/* A process that idles beside its owner's busy one: its own state is not its user's. Energy
 * comes a tick late, and SM activity is kept by the hour. */
static void test_own_states_and_late_energy(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, -1);
	w->holding[0].ms[HOLDER_ACTIVE] = 0;
	w->holding[0].ms[HOLDER_IDLE_HELD] = 1000;
	w->holding[1].ms[HOLDER_ACTIVE] = w->holding[1].presence_ms[HOLDER_ACTIVE] = 0;
	w->holding[1].ms[HOLDER_USE_UNKNOWN] = w->holding[1].presence_ms[HOLDER_USE_UNKNOWN] =
		1000;
	w->usage[0].unsure_ms = 300;
	w->usage[0].sm_active_ms = 1000;
	w->usage[0].sm_active_pct_ms = 40000;
	world_write(w, s);
	world_fill(w, minute, 0, 700);
	w->usage[0].energy_ms = 900;
	w->usage[0].unsure_ms = -100;
	world_write(w, s);
	store_close(s);
	assert_string_equal(
		ask_text(w->path, "SELECT format('%d %d %d %d', active_ms, idle_held_ms,"
				  " active_double_ms, idle_held_double_ms)"
				  " FROM holding_1m WHERE process = 1"),
		"0 1000 -1000 1000");
	assert_string_equal(
		ask_text(w->path, "SELECT format('%d %d', active_presence_ms,"
				  " idle_held_presence_ms) FROM holding WHERE process = 1"),
		"1000 0");
	assert_int_equal(
		ask(w->path, "SELECT use_unknown_presence_ms FROM holding WHERE process = 2"),
		1000);
	assert_int_equal(
		ask(w->path, "SELECT presence_ms FROM total_user WHERE state = 4"), 1000);
	assert_string_equal(
		ask_text(w->path, "SELECT format('%d %d %d %d', ms, energy_mj,"
				  " energy_unknown_ms, unsure_ms) FROM usage_1m WHERE gpu = 1"),
		"1000 700 100 200");
	assert_string_equal(
		ask_text(w->path, "SELECT format('%d %d %d', slot % 3600, ms, pct_ms)"
				  " FROM sm_active"),
		"0 1000 40000");
	assert_int_equal(ask(w->path, "SELECT count(*) FROM sm_active"), 1);
}

static void test_unknown_stays_null(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	for (int i = 0; i < 2; i++) {
		world_fill(w, minute, 1000, -1);
		w->holding[0].sm_pct_ms = w->holding[0].mem_peak_kib = -1;
		w->holders[0].mem_bytes = UNKNOWN_BYTES;
		world_write(w, s);
	}
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT energy_unknown_ms FROM usage_1m"), 2000);
	assert_int_equal(ask(w->path, "SELECT energy_unknown_ms FROM total_gpu"), 2000);
	assert_string_equal(
		ask_text(w->path, "SELECT sm_pct_ms FROM holding_1m WHERE process = 1"),
		"NULL");
	assert_string_equal(
		ask_text(w->path, "SELECT mem_peak_kib FROM holding_1m WHERE process = 1"),
		"NULL");
	assert_string_equal(
		ask_text(w->path, "SELECT mem_bytes FROM holder WHERE process = 1"), "NULL");
}

static void test_entries_are_written_when_they_changed(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	assert_int_not_equal(w->processes[0].store_id, 0);
	assert_false(w->processes[0].dirty);
	assert_false(w->cards[1].dirty);
	snprintf(w->processes[0].id.command, COMMAND_CAP, "not told");
	snprintf(w->processes[1].id.command, COMMAND_CAP, "told");
	w->processes[1].dirty = true;
	w->processes[1].last_active_ms = 42;
	w->cards[0].status = CARD_STATUS_LOST;
	w->cards[0].dirty = true;
	world_write(w, s);
	store_close(s);
	assert_string_equal(ask_text(w->path, "SELECT command FROM process WHERE pid = 100"),
		"python3 train.py");
	assert_string_equal(
		ask_text(w->path, "SELECT command FROM process WHERE pid = 101"), "told");
	assert_int_equal(
		ask(w->path, "SELECT last_active_ms FROM process WHERE pid = 101"), 42);
	assert_string_equal(ask_text(w->path, "SELECT status FROM gpu WHERE idx = 0"), "lost");
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 3);
}

/* Each text is in the column that has its name, whether the row is added or changed. */
static void test_texts_are_in_their_columns(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	struct process_id *id = &w->processes[0].id;
	char question[128];
	world_fill(w, minute, 1000, 1);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < PROCESS_TEXTS; i++)
			snprintf((char *)id + process_fields[i].offset, process_fields[i].cap,
				"%d%s", round, process_fields[i].name);
		w->processes[0].dirty = true;
		world_write(w, s);
		for (size_t i = 0; i < PROCESS_TEXTS; i++) {
			snprintf(question, sizeof(question),
				"SELECT %s FROM process WHERE pid = 100",
				process_fields[i].name);
			assert_string_equal(ask_text(w->path, question), process_text(id, i));
		}
	}
	assert_string_equal(
		ask_text(w->path, "SELECT tag FROM process WHERE pid = 101"), "NULL");
	store_close(s);
}

static void test_holders_are_of_the_last_tick(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	w->holders[1].mem_bytes = 5;
	w->tick.n_holders = 2;
	world_write(w, s);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holder"), 2);
	assert_int_equal(ask(w->path, "SELECT min(mem_bytes) FROM holder"), 5);
	/* The same once more is not written: a change from outside stays until they differ. */
	tell(w->path, "UPDATE holder SET mem_bytes = 6 WHERE mem_bytes = 5");
	world_write(w, s);
	assert_int_equal(ask(w->path, "SELECT min(mem_bytes) FROM holder"), 6);
	/* Nor is it when another one has changed, or is gone. */
	w->holders[0].mem_bytes = 7;
	world_write(w, s);
	assert_int_equal(ask(w->path, "SELECT min(mem_bytes) FROM holder"), 6);
	assert_int_equal(ask(w->path, "SELECT max(mem_bytes) FROM holder"), 7);
	w->holders[0] = w->holders[1];
	w->tick.n_holders = 1;
	world_write(w, s);
	assert_int_equal(ask(w->path, "SELECT sum(mem_bytes) FROM holder"), 6);
	w->tick.n_holders = 0;
	world_write(w, s);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holder"), 0);
	store_close(s);
}

static void test_a_run_ends(void **state)
{
	struct world *w = *state;
	struct err e;
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	assert_int_equal(store_end_run(s, w->tick.at_ms + 7, "stopped", &e), 0);
	assert_int_equal(store_end_run(s, w->tick.at_ms + 9, "again", &e), 0);
	store_close(s);
	assert_string_equal(ask_text(w->path, "SELECT how_ended FROM run"), "stopped");
	assert_int_equal(ask(w->path, "SELECT last_seen_ms FROM host"), w->tick.at_ms);
	assert_int_equal(ask(w->path, "SELECT min(last_seen_ms) FROM gpu"), w->tick.at_ms);
	assert_int_equal(ask(w->path, "SELECT ended_ms FROM run"), w->tick.at_ms + 7);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holder"), 0);
	assert_int_equal(ask(w->path, "SELECT min(ended_ms) FROM process"), w->tick.at_ms);
}

/* A killed recorder leaves its run and holders open; the next one closes them at the last tick,
 * and goes on with the lives that are still there. */
static void test_a_killed_run_is_finished(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	int64_t last_tick = w->tick.at_ms;
	w->holders[0].last_active_ms = last_tick - 5;
	world_write(w, s);
	store_close(s);
	w->info.started_ms += 3600000;
	world_forget(w);
	s = world_open(w);
	assert_int_equal(
		ask(w->path, "SELECT max(last_active_ms) FROM process"), last_tick - 5);
	assert_string_equal(
		ask_text(w->path, "SELECT how_ended FROM run WHERE id = 1"), "killed");
	assert_int_equal(ask(w->path, "SELECT ended_ms FROM run WHERE id = 1"), last_tick);
	assert_string_equal(
		ask_text(w->path, "SELECT how_ended FROM run WHERE id = 2"), "NULL");
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holder"), 0);
	assert_int_equal(ask(w->path, "SELECT min(last_seen_ms) FROM process"), last_tick);
	assert_int_equal(ask(w->path, "SELECT min(ended_ms) FROM process"), last_tick);
	assert_int_equal(past_of_card(s, "GPU-1").seen_ms, last_tick);
	assert_int_equal(past_of_card(s, "GPU-9").seen_ms, -1);
	world_fill(w, minute + 3600, 1000, 1);
	w->processes[2].id.start_ticks++; /* the pid was used again */
	world_write(w, s);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM gpu"), 2);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 4);
	assert_int_equal(
		ask(w->path, "SELECT count(*) FROM process WHERE ended_ms IS NULL"), 3);
}

/* A life that no tick of the run between named is the same one in the run after that. */
static void test_a_life_is_found_two_runs_later(void **state)
{
	struct world *w = *state;
	size_t n_processes = w->tick.n_processes;
	for (int run = 0; run < 3; run++) {
		world_forget(w);
		w->info.started_ms += 60000;
		struct store *s = world_open(w);
		world_fill(w, minute + 60 * run, 1000, 1);
		if (run == 1)
			w->tick.n_processes = w->tick.n_holding = w->tick.n_holders = 0;
		world_write(w, s);
		w->tick.n_processes = n_processes;
		store_close(s);
	}
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 3);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM run"), 3);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM open_life"), 3);
}

/* Another boot: pid and start time say nothing across it. */
static void test_a_boot_makes_new_lives(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	store_close(s);
	w->info.started_ms += 3600000;
	snprintf(w->info.boot_id, sizeof(w->info.boot_id), "boot-2");
	snprintf(w->info.driver, sizeof(w->info.driver), "560.1");
	world_forget(w);
	s = world_open(w);
	world_write(w, s);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 6);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM open_life WHERE process < 4"), 0);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM host"), 1);
	assert_string_equal(ask_text(w->path, "SELECT driver FROM host"), "560.1");
}

/* Deleted or replaced under the recorder: found by the inode, and written as if new. */
static void test_a_file_that_is_replaced(void **state)
{
	struct world *w = *state;
	char aside[160];
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	world_write(w, s);
	snprintf(aside, sizeof(aside), "%s/aside.db", w->dir);
	tell(w->path, "PRAGMA wal_checkpoint(TRUNCATE)");
	assert_int_equal(rename(w->path, aside), 0);
	world_write(w, s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 2000);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM run"), 1);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holder"), 3);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 3);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM gpu"), 2);
	/* The old file comes back: the run in it goes on. */
	tell(w->path, "PRAGMA wal_checkpoint(TRUNCATE)");
	assert_int_equal(rename(aside, w->path), 0);
	world_write(w, s);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 6000);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM run"), 1);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 3);
	assert_string_equal(ask_text(w->path, "SELECT how_ended FROM run"), "NULL");
}

static void test_a_batch_is_whole_or_nothing(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = world_open(w);
	assert_int_equal(store_begin_batch(s, &e), 0);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	world_write(w, s);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM usage_1m"), 0);
	assert_int_equal(store_end_batch(s, false, &e), 0);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM usage_1m"), 0);
	world_forget(w);
	assert_int_equal(store_begin_batch(s, &e), 0);
	world_write(w, s);
	world_write(w, s);
	assert_int_equal(store_end_batch(s, true, &e), 0);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 4000);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM process"), 3);
}

/* Data about the past beside a live recorder: its run, its holders and what is known of the
 * host and the cards stay. */
static void test_an_import_leaves_the_present_alone(void **state)
{
	struct world *w = *state;
	struct err e = { 0 };
	struct store *s = world_open(w);
	world_fill(w, minute, 1000, 1);
	world_write(w, s);
	struct store *past = NULL;
	struct run_info old = w->info;
	snprintf(old.source, sizeof(old.source), "import");
	snprintf(old.driver, sizeof(old.driver), "1.0");
	old.started_ms -= 86400000;
	assert_int_equal(store_open(&past, w->path, &e), 0);
	assert_int_equal(store_begin_run(past, &old, &e), 0);
	world_forget(w);
	snprintf(w->cards[0].id.name, CARD_NAME_CAP, "Old Name");
	for (int i = 0; i < WORLD_CARDS; i++)
		w->cards[i].first_seen_ms -= 86400000;
	world_fill(w, minute - 86400, 500, -1);
	w->tick.n_holders = 0;
	world_write(w, past);
	assert_int_equal(store_end_run(past, old.started_ms + 60000, "finished", &e), 0);
	store_close(past);
	assert_int_equal(ask(w->path, "SELECT count(*) FROM holder"), 3);
	assert_string_equal(ask_text(w->path, "SELECT driver FROM host"), "550.54.15");
	int64_t last_tick = (minute + 60) * 1000;
	assert_int_equal(ask(w->path, "SELECT min(coalesce(seen_ms, last_seen_ms)) FROM gpu "
				      "JOIN reading ON gpu = gpu.id"),
		last_tick);
	assert_string_equal(
		ask_text(w->path, "SELECT name FROM gpu WHERE idx = 0"), "Test Card");
	assert_int_equal(
		ask(w->path, "SELECT first_seen_ms FROM gpu"), WORLD_START_MS - 86400000);
	assert_string_equal(
		ask_text(w->path, "SELECT how_ended FROM run WHERE id = 1"), "NULL");
	assert_string_equal(
		ask_text(w->path, "SELECT how_ended FROM run WHERE id = 2"), "finished");
	store_close(s);
}

/* A clock that was wrong by years and was set back. */
static void test_a_clock_that_goes_back(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	world_fill(w, minute + 86400 * 1000, 1000, 1);
	world_write(w, s);
	world_fill(w, minute + 60, 1000, 1);
	world_write(w, s);
	assert_int_equal(ask(w->path, "SELECT last_tick_ms FROM run"), w->tick.at_ms);
	assert_int_equal(past_of_card(s, "GPU-0").seen_ms, w->tick.at_ms);
	store_close(s);
}

/* The same minute passes twice: it stays a minute long, and holders keep their part of it. */
static void test_no_slot_is_longer_than_it_is(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	w->tick.slot_ms = 60000;
	for (int i = 0; i < 2; i++) {
		world_fill(w, minute, 40000, 600);
		world_write(w, s);
	}
	assert_int_equal(ask(w->path, "SELECT max(ms) FROM usage_1m"), 60000);
	assert_int_equal(ask(w->path, "SELECT min(ms) FROM usage_1m"), 60000);
	assert_int_equal(ask(w->path, "SELECT max(energy_mj) FROM usage_1m"), 900);
	assert_int_equal(ask(w->path, "SELECT max(active_ms) FROM holding_1m"), 60000);
	assert_int_equal(ask(w->path, "SELECT max(mem_peak_kib) FROM holding_1m"), 3000);
	world_fill(w, minute + 60, 60000, 600);
	world_write(w, s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m WHERE gpu = 1"), 120000);
	store_close(s);
}

/* Steady state: the same tick for ever neither grows the heap nor the file. */
static void test_no_growth(void **state)
{
	struct world *w = *state;
	struct store *s = world_open(w);
	struct stat before, after;
	world_fill(w, minute, 1000, 1);
	for (int i = 0; i < 1500; i++)
		world_write(w, s);
	assert_int_equal(stat(w->path, &before), 0);
	int64_t used = ask(w->path, "SELECT 0") + sqlite3_memory_used();
	for (int i = 0; i < 2000; i++)
		world_write(w, s);
	assert_true(sqlite3_memory_used() <= used);
	assert_int_equal(stat(w->path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	store_close(s);
	assert_int_equal(ask(w->path, "SELECT sum(ms) FROM usage_1m"), 3500 * 2000);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_tick_is_stored),
		WORLD_TEST(test_a_late_name_joins_what_is_stored),
		WORLD_TEST(test_a_late_name_is_of_its_host),
		WORLD_TEST(test_a_host_that_was_renamed),
		WORLD_TEST(test_sums_add_up),
		WORLD_TEST(test_own_states_and_late_energy),
		WORLD_TEST(test_unknown_stays_null),
		WORLD_TEST(test_entries_are_written_when_they_changed),
		WORLD_TEST(test_texts_are_in_their_columns),
		WORLD_TEST(test_holders_are_of_the_last_tick),
		WORLD_TEST(test_a_run_ends),
		WORLD_TEST(test_a_killed_run_is_finished),
		WORLD_TEST(test_a_life_is_found_two_runs_later),
		WORLD_TEST(test_a_boot_makes_new_lives),
		WORLD_TEST(test_a_file_that_is_replaced),
		WORLD_TEST(test_a_batch_is_whole_or_nothing),
		WORLD_TEST(test_an_import_leaves_the_present_alone),
		WORLD_TEST(test_a_clock_that_goes_back),
		WORLD_TEST(test_no_slot_is_longer_than_it_is),
		WORLD_TEST(test_no_growth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

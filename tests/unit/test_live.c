/* A live view when the world is against it: no memory, a clock that is set, a store that is
 * replaced or broken under it. */
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <sqlite3.h>

#include "audit/audit.h"
#include "store_fixture.h"
#include "present/live.h"

static const char scenario[] = "host lab\n"
			       "start 2026-11-01T00:00:00Z\n"
			       "card 0 uuid GPU-a name \"NVIDIA A100\" memory 80GiB\n"
			       "card 1 uuid GPU-b name \"NVIDIA A100\" memory 80GiB\n"
			       "card 2 uuid GPU-c name \"NVIDIA A100\" memory 80GiB\n"
			       "process one pid 101 user alice command one started -2h\n"
			       "process two pid 102 user bob command two started -2h\n"
			       "process more pid 103 user carol command more started -30m\n"
			       "at 0s hold one card 0 memory 2GiB\n"
			       "at 0s hold two card 1 memory 2GiB\n"
			       "at 0s load two card 1 sm 90\n"
			       "at 100s load two card 1 sm 0\n"
			       "at 110s hold more card 0 memory 3GiB\n"
			       "at 110s hold one card 2 memory 1GiB\n";

/* Allocations of this thread fail from then on: -1 never, 0 now. The linker hands them all to
 * the functions below. */
static __thread int until_failure = -1;
static __thread bool failed_once;

static bool fails(void)
{
	if (until_failure < 0)
		return false;
	failed_once |= until_failure == 0;
	return until_failure == 0 || until_failure-- == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
	return fails() ? NULL : __real_reallocarray(old, n, size);
}

enum { CROWD = 100 }; /* more lives at once than there is room for at first */

static bool write_scenario(FILE *f, const char *more)
{
	bool written = f && fputs(scenario, f) >= 0 && fputs(more, f) >= 0;
	for (int i = 0; written && i < CROWD; i++)
		written = fprintf(f,
				  "process crowd%d pid %d user dora command c started -1h\n"
				  "at 110s hold crowd%d card 0 memory 1MiB\n",
				  i, 2000 + i, i) > 0;
	return written;
}

/* A view on the scenario, some seconds after its start. */
struct view {
	struct clock clock;
	struct live *live;
	char path[160];
};

static void open_view(struct view *v, const struct world *w, int64_t seconds, const char *more)
{
	struct err e = { 0 };
	snprintf(v->path, sizeof(v->path), "%s/scenario", w->dir);
	FILE *f = fopen(v->path, "w");
	assert_true(write_scenario(f, more) && fclose(f) == 0);
	clock_init_virtual(&v->clock, WORLD_START_MS);
	clock_advance(&v->clock, seconds * 1000000);
	struct live_options o = { .source = { .name = "sim",
					  .scenario = v->path,
					  .root = "",
					  .clock = &v->clock },
		.db = access(w->path, F_OK) == 0 ? w->path : NULL,
		.rules = RULES_DEFAULT,
		.deadline_ms = 60000 };
	if (live_open(&v->live, &o, &e) != 0)
		fail_msg("%s", e.text);
}

static void look(struct view *v, int64_t seconds)
{
	struct err e = { 0 };
	clock_advance(&v->clock, seconds * 1000000);
	if (live_refresh(v->live, -1, &e) != 0)
		fail_msg("%s", e.text);
}

static const struct present_card *card(const struct view *v, size_t i)
{
	const struct present *now = live_present(v->live);
	assert_true(i < now->n_cards);
	return &now->cards[i];
}

static const struct present_process *process(const struct view *v, size_t on, size_t i)
{
	const struct present *now = live_present(v->live);
	assert_true(card(v, on)->first_process + i < now->n_processes &&
		    i < card(v, on)->n_processes);
	return &now->processes[card(v, on)->first_process + i];
}

/* What is shown of the cards and who is on them, in a line. */
static const char *shown(const struct view *v)
{
	static char text[2][40 * (CROWD + 10)];
	static unsigned turn;
	char *at = text[turn ^= 1], *end = at + sizeof(text[0]);
	for (size_t i = 0; i < 3; i++) {
		at += snprintf(
			at, (size_t)(end - at), "| %s ", state_looks[card(v, i)->state].key);
		for (size_t k = 0; k < card(v, i)->n_processes; k++) {
			const struct present_process *p = process(v, i, k);
			at += snprintf(at, (size_t)(end - at), "%u %s %d ", p->id.pid,
				p->id.user, p->active || p->idle_since_ms >= 0);
		}
	}
	return text[turn];
}

/* However far it came: what was shown stands, or the answer is shown whole. */
static void test_no_memory(void **state)
{
	const char *was = "| idle_held 101 alice 1 | active 102 bob 1 | truly_idle ";
	char is[40 * (CROWD + 10)];
	struct view whole;
	open_view(&whole, *state, 130, "");
	look(&whole, 0);
	snprintf(is, sizeof(is), "%s", shown(&whole));
	assert_says(is, " 2099 dora 1 ");
	live_close(whole.live);
	int refused = 0;
	bool tried = true;
	for (int at = 0; tried; at++) {
		struct view v;
		open_view(&v, *state, 60, "");
		look(&v, 10);
		assert_string_equal(shown(&v), was);
		clock_advance(&v.clock, 60 * 1000000);
		failed_once = false;
		until_failure = at;
		int rc = live_refresh(v.live, -1, NULL);
		until_failure = -1;
		tried = failed_once;
		refused += rc != 0;
		assert_string_equal(shown(&v), rc ? was : is);
		look(&v, 1);
		assert_string_equal(shown(&v), is);
		live_close(v.live);
	}
	assert_true(refused > 0);
}

/* How long ago, seconds. */
static double ago(const struct view *v, int64_t at_ms)
{
	return (double)(live_present(v->live)->now_ms - at_ms) / 1000;
}

static void check_lengths(const struct view *v, double looked_s)
{
	assert_true(fabs(ago(v, card(v, 1)->state_since_ms) - (looked_s - 30)) < 2);
	assert_true(fabs(ago(v, card(v, 2)->free_since_ms) - looked_s) < 2);
	assert_true(fabs(ago(v, process(v, 1, 0)->idle_since_ms) - (looked_s - 30)) < 2);
	assert_true(fabs(ago(v, process(v, 1, 0)->last_active_ms) - (looked_s - 30)) < 2);
	assert_true(fabs(ago(v, process(v, 1, 0)->id.started_ms) - 7270 - looked_s) < 2);
	assert_true(ago(v, process(v, 0, 0)->idle_since_ms) >= looked_s);
}

/* Somebody sets the clock: nothing is longer or shorter because of that. */
static void test_a_clock_that_is_set(void **state)
{
	static const char *const steps[] = { "at 109s step +1h\n", "at 109s step -1h\n",
		"at 109s step -700d\n", "at 109s step +2s\n" };
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct view v;
		open_view(&v, *state, 70, steps[i]);
		int64_t looked_s = 0;
		for (look(&v, 0); looked_s < 38; looked_s += 2)
			look(&v, 2);
		check_lengths(&v, (double)looked_s);
		look(&v, 1);
		look(&v, 0);
		check_lengths(&v, (double)looked_s + 1);
		for (int k = 0; k < 15; k++)
			look(&v, 2);
		/* On the cards 0 and 2 others came meanwhile. */
		assert_true(fabs(ago(&v, card(&v, 1)->state_since_ms) - 39) < 2);
		assert_false(card(&v, 1)->state_longer);
		live_close(v.live);
	}
}

/* Samples of before are stamped as it was then. */
static void test_samples_of_before_the_clock_was_set(void **state)
{
	static const char *const steps[] = { "at 101s step +1h\n", "at 101s step -1h\n" };
	for (size_t i = 0; i < 2; i++) {
		struct view v;
		open_view(&v, *state, 89, steps[i]);
		for (int k = 0; k < 10; k++)
			look(&v, 1);
		assert_int_equal(card(&v, 1)->state, CARD_ACTIVE);
		look(&v, 3);
		assert_int_equal(card(&v, 1)->state, CARD_IDLE_HELD);
		/* Between the looks. */
		assert_true(fabs(ago(&v, card(&v, 1)->state_since_ms) - 1.5) < 2);
		assert_true(fabs(ago(&v, process(&v, 1, 0)->idle_since_ms) - 1.5) < 2);
		live_close(v.live);
	}
}

/* Opening read the driver's ring. The first look comes late, on a host under load. */
static void test_what_was_read_while_opening_is_not_lost(void **state)
{
	struct view v;
	open_view(&v, *state, 60, "");
	look(&v, 2);
	assert_true(ago(&v, process(&v, 0, 0)->idle_since_ms) > 9);
	live_close(v.live);
}

static void test_metrics_that_rest_keep_their_values(void **state)
{
	static const unsigned char resting[METRIC_COUNT] = { [METRIC_POWER_DRAW] = 1 };
	struct view v;
	open_view(&v, *state, 60, "");
	look(&v, 2);
	double loaded_w = card(&v, 1)->values[METRIC_POWER_DRAW];
	live_rest(v.live, resting);
	look(&v, 60); /* it is idle since 100 s */
	assert_true(card(&v, 1)->values[METRIC_POWER_DRAW] == loaded_w);
	assert_true(card(&v, 1)->values[METRIC_UTILIZATION_GPU] == 0);
	live_rest(v.live, NULL);
	look(&v, 1);
	assert_true(card(&v, 1)->values[METRIC_POWER_DRAW] < loaded_w);
	live_close(v.live);
}

/* Nobody knows what was on the cards while the host slept and after, until the first look. */
static void test_a_host_that_slept(void **state)
{
	struct view v;
	open_view(&v, *state, 70, "at 90s suspend 2h\n");
	for (int k = 0; k < 19; k++)
		look(&v, 1);
	assert_true(ago(&v, card(&v, 0)->state_since_ms) >= 18);
	look(&v, 7205);
	assert_int_equal(card(&v, 0)->state, CARD_IDLE_HELD);
	assert_true(ago(&v, card(&v, 0)->state_since_ms) < 12 && card(&v, 0)->state_longer);
	assert_true(ago(&v, process(&v, 0, 0)->idle_since_ms) < 12);
	assert_true(process(&v, 0, 0)->idle_longer);
	live_close(v.live);
}

/* Time that nobody saw before is not free time, however idle the card was in it. */
static void test_a_card_is_free_from_the_first_look_on(void **state)
{
	struct view v;
	open_view(&v, *state, 60, "");
	look(&v, 0);
	look(&v, 0);
	assert_int_equal(card(&v, 2)->state, CARD_TRULY_IDLE);
	assert_true(card(&v, 2)->free_since_ms == live_present(v.live)->now_ms);
	assert_true(card(&v, 2)->state_longer);
	live_close(v.live);
}

/* A store in which a recorder is at work that began its run so long ago. */
static void make_store(struct world *w, double active_pct, int64_t seconds)
{
	struct err e = { 0 };
	world_forget(w);
	w->info.rules.active_util_pct = active_pct;
	w->info.started_ms = WORLD_START_MS + 60000 - seconds * 1000;
	w->tick.at_ms = WORLD_START_MS + 60000;
	w->tick.n_usage = w->tick.n_holding = w->tick.n_events = w->tick.n_holders = 0;
	struct store *s = world_open(w);
	assert_int_equal(write_tick(s, &w->tick, &e), 0);
	store_close(s);
}

/* Another file under the same name is the store from then on, with its rules. */
static void test_a_store_that_is_replaced(void **state)
{
	struct world *w = *state;
	struct view v;
	make_store(w, 95, 50);
	open_view(&v, w, 70, "");
	look(&v, 0);
	assert_string_equal(live_present(v.live)->hosts[0].note, "");
	assert_true(live_present(v.live)->hosts[0].rules.active_util_pct == 95);
	assert_int_equal(card(&v, 1)->state, CARD_IDLE_HELD);
	char other[160];
	snprintf(other, sizeof(other), "%s.old", w->path);
	assert_int_equal(rename(w->path, other), 0);
	look(&v, 11);
	assert_says(live_present(v.live)->hosts[0].note, "no store at");
	assert_int_equal(card(&v, 1)->state, CARD_IDLE_HELD);
	make_store(w, 20, 50);
	look(&v, 11);
	assert_string_equal(live_present(v.live)->hosts[0].note, "");
	assert_true(live_present(v.live)->hosts[0].rules.active_util_pct == 20);
	assert_int_equal(card(&v, 1)->state, CARD_ACTIVE);
	live_close(v.live);
}

/* What was read of it stands, for as long as a recorder that writes is believed. */
static void test_a_store_that_breaks(void **state)
{
	struct world *w = *state;
	struct view v;
	make_store(w, 95, 50);
	open_view(&v, w, 70, "");
	look(&v, 0);
	assert_int_equal(live_present(v.live)->hosts[0].recorded_until_ms, -1);
	assert_int_equal(truncate(w->path, 0), 0);
	look(&v, 11);
	assert_says(live_present(v.live)->hosts[0].note, "is empty");
	assert_int_equal(live_present(v.live)->hosts[0].recorded_until_ms, -1);
	assert_true(live_present(v.live)->hosts[0].rules.active_util_pct == 95);
	look(&v, 60);
	assert_int_equal(
		live_present(v.live)->hosts[0].recorded_until_ms, WORLD_START_MS + 60000);
	live_close(v.live);
}

/* The third card was free since the run began. */
static void add_free_card(const struct world *w)
{
	tell(w->path, "INSERT INTO gpu SELECT 99, host, 'GPU-c', name, parent_uuid, pci, idx, "
		      "mig_index, gpu_instance, compute_instance, mem_total_bytes, status, "
		      "first_seen_ms, last_seen_ms, source FROM gpu LIMIT 1");
	tell(w->path, "INSERT INTO usage_1m (slot, gpu, state, ms, util_pct_ms) "
		      "SELECT started_ms / 60000 * 60, 99, 2, 50000, 0 FROM run");
}

/* Somebody starts the recorder while somebody else looks: what it knows of before is asked. */
static void test_a_recorder_that_comes_later(void **state)
{
	struct world *w = *state;
	struct view v;
	make_store(w, 10, 50);
	tell(w->path, "UPDATE run SET ended_ms = last_tick_ms, how_ended = 'stopped'");
	open_view(&v, w, 70, "");
	look(&v, 0);
	assert_says(live_present(v.live)->hosts[0].note, "the recorder stopped 10 s ago");
	assert_true(ago(&v, card(&v, 2)->free_since_ms) < 1);
	tell(w->path, "UPDATE run SET ended_ms = NULL");
	add_free_card(w);
	look(&v, 11);
	assert_string_equal(live_present(v.live)->hosts[0].note, "");
	assert_true(fabs(ago(&v, card(&v, 2)->free_since_ms) - 71) < 2);
	live_close(v.live);
}

/* Just before somebody looked the card was used, and the recorder had not written that yet. */
static void test_what_the_recorder_writes_later(void **state)
{
	struct world *w = *state;
	struct view v;
	make_store(w, 10, 50);
	add_free_card(w);
	open_view(&v, w, 85, "");
	look(&v, 0);
	assert_true(fabs(ago(&v, card(&v, 2)->free_since_ms) - 75) < 2);
	look(&v, 11);
	assert_true(fabs(ago(&v, card(&v, 2)->free_since_ms) - 86) < 2);
	tell(w->path, "UPDATE run SET last_tick_ms = last_tick_ms + 40000");
	tell(w->path,
		"INSERT INTO usage_1m (slot, gpu, state, ms, util_pct_ms) "
		"SELECT slot + 60, gpu, column1, 20000, 0 FROM usage_1m, (VALUES (0), (2))");
	look(&v, 11);
	assert_true(fabs(ago(&v, card(&v, 2)->free_since_ms) - 22) < 2);
	assert_true(card(&v, 2)->state_longer);
	live_close(v.live);
}

static const char instances[] = "card 3 uuid GPU-d name \"NVIDIA A100\" memory 40GiB\n"
				"mig 3 index 0 gi 1 ci 0 uuid MIG-0 name \"1g\" memory 5GiB\n"
				"mig 3 index 1 gi 2 ci 0 uuid MIG-1 name \"1g\" memory 5GiB\n"
				"process part pid 104 user dan command part started -1h\n"
				"at 0s hold part mig 3/0 memory 1GiB\n"
				"at 80s release part mig 3/0\n"
				"at 90s fail nvml* code 9 until 100s\n";

/* Without utilisation the looks decide, however far apart; without a driver there are none.
 */
static void test_a_card_whose_use_is_unknown(void **state)
{
	struct view v;
	open_view(&v, *state, 60, instances);
	look(&v, 0);
	assert_int_equal(card(&v, 3)->state, CARD_USE_UNKNOWN);
	assert_true(card(&v, 3)->state_longer && card(&v, 3)->free_since_ms < 0);
	assert_false(process(&v, 3, 0)->active);
	assert_int_equal(process(&v, 3, 0)->idle_since_ms, -1);
	assert_int_equal(card(&v, 4)->state, CARD_TRULY_IDLE);
	look(&v, 10);
	assert_true(ago(&v, card(&v, 3)->state_since_ms) >= 10);
	assert_true(ago(&v, card(&v, 4)->free_since_ms) >= 10);
	look(&v, 12);
	assert_int_equal(card(&v, 3)->state, CARD_TRULY_IDLE);
	assert_true(ago(&v, card(&v, 3)->free_since_ms) < 1 && !card(&v, 3)->state_longer);
	clock_advance(&v.clock, 10 * 1000000);
	assert_true(live_refresh(v.live, -1, NULL) != 0);
	look(&v, 10);
	assert_true(ago(&v, card(&v, 4)->free_since_ms) < 1 && card(&v, 4)->state_longer);
	live_close(v.live);
}

/* Its last process is killed at 80 s, and it goes on reporting 100 %; at 100 s it is itself. */
static void test_a_card_that_is_not_believed(void **state)
{
	static const char latched[] = "process part pid 104 user dan command part started -1h\n"
				      "at 0s hold part card 2 memory 1GiB\n"
				      "at 0s load card 2 util 100\n"
				      "at 80s exit part\n"
				      "at 100s load card 2 util 0\n";
	struct view v;
	open_view(&v, *state, 75, latched);
	look(&v, 0);
	assert_int_equal(card(&v, 2)->state, CARD_ACTIVE);
	/* What was read was of its time, or may have been. */
	look(&v, 6);
	assert_int_equal(card(&v, 2)->state, CARD_ACTIVE);
	look(&v, 2);
	assert_int_equal(card(&v, 2)->state, CARD_SUSPECT);
	assert_true(card(&v, 2)->free_since_ms < 0);
	assert_true(isnan(card(&v, 2)->values[METRIC_GUA_FREE_FOR]));
	assert_true(isnan(card(&v, 2)->values[METRIC_GUA_IDLE_SINCE]));
	look(&v, 0); /* no new sample: what was said stands */
	assert_int_equal(card(&v, 2)->state, CARD_SUSPECT);
	look(&v, 8);
	assert_true(ago(&v, card(&v, 2)->state_since_ms) >= 8);
	look(&v, 11);
	assert_int_equal(card(&v, 2)->state, CARD_TRULY_IDLE);
	assert_true(ago(&v, card(&v, 2)->free_since_ms) < 1);
	live_close(v.live);
}

/* What could not be learned is not taken for learned. */
static void test_contexts_are_asked_for_again(void **state)
{
	struct world *w = *state;
	struct context_floors floors = { 0 };
	struct err e = { 0 };
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_true(audit_read_floors(&floors, db, &e) != 0);
	assert_int_equal(floors.n, 0);
	sqlite3_close(db);
	make_store(w, 10, 50);
	assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
	assert_int_equal(audit_read_floors(&floors, db, &e), 0);
	sqlite3_close(db);
	context_finish(&floors);
}

/* Puts a process on a card on a day into an otherwise empty store. */
static void add_life(sqlite3 *db, int day, int card, int process, int mib)
{
	char sql[256];
	snprintf(sql, sizeof(sql),
		"INSERT INTO holding_1d VALUES (%d, %d, %d, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
		"NULL, "
		"%d, 0, 0, 0, NULL)",
		day * 86400, card, process, mib * 1024);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* A context is the smallest memory on which three lives agree: by the largest memory of each
 * process on a card, and a process on several cards of a model is one life. */
static void test_contexts_are_learned_from_lives(void **state)
{
	struct world *w = *state;
	struct context_floors floors = { 0 };
	struct err e = { 0 };
	sqlite3 *db = NULL;
	make_store(w, 10, 50);
	assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			"DELETE FROM holding_1m; DELETE FROM holding_1d; DELETE FROM "
			"gpu; INSERT INTO gpu SELECT column1, 1, column1, 'A', '', '', "
			"0, NULL, NULL, NULL, NULL, 'ok', 0, 0, '' FROM (VALUES (1), "
			"(2))",
			NULL, NULL, NULL),
		SQLITE_OK);
	for (int process = 1; process <= 3; process++) { /* they became larger */
		add_life(db, 1, 1, process, 300);
		add_life(db, 2, 1, process, 2000);
	}
	add_life(db, 2, 1, 4, 350); /* one process on two cards, and another */
	add_life(db, 2, 2, 4, 351);
	add_life(db, 2, 1, 5, 352);
	assert_int_equal(audit_read_floors(&floors, db, &e), 0);
	assert_int_equal(floors.n, 0);
	add_life(db, 3, 2, 6, 360);
	assert_int_equal(audit_read_floors(&floors, db, &e), 0);
	assert_int_equal(context_floor(&floors, "A"), INT64_C(351) << 20);
	sqlite3_close(db);
	context_finish(&floors);
}

int main(void)
{
#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		IN_A_WORLD(test_contexts_are_learned_from_lives),
		IN_A_WORLD(test_no_memory),
		IN_A_WORLD(test_a_clock_that_is_set),
		IN_A_WORLD(test_samples_of_before_the_clock_was_set),
		IN_A_WORLD(test_what_was_read_while_opening_is_not_lost),
		IN_A_WORLD(test_metrics_that_rest_keep_their_values),
		IN_A_WORLD(test_a_host_that_slept),
		IN_A_WORLD(test_a_card_is_free_from_the_first_look_on),
		IN_A_WORLD(test_a_store_that_is_replaced),
		IN_A_WORLD(test_a_store_that_breaks),
		IN_A_WORLD(test_a_recorder_that_comes_later),
		IN_A_WORLD(test_what_the_recorder_writes_later),
		IN_A_WORLD(test_a_card_whose_use_is_unknown),
		IN_A_WORLD(test_a_card_that_is_not_believed),
		IN_A_WORLD(test_contexts_are_asked_for_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

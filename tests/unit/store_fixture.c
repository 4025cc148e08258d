/* What the store's tests share. */
#include "store_fixture.h"

#include "base/file.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

#include <sqlite3.h>

#include "test.h"

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

void world_forget(struct world *w)
{
	for (int i = 0; i < WORLD_CARDS; i++) {
		w->cards[i].store_id = 0;
		w->cards[i].dirty = true;
	}
	for (int i = 0; i < WORLD_PROCESSES; i++) {
		w->processes[i].store_id = 0;
		w->processes[i].dirty = true;
	}
}

static void make_card(struct card_entry *c, int index)
{
	*c = (struct card_entry){ .first_seen_ms = WORLD_START_MS,
		.last_seen_ms = WORLD_START_MS };
	c->id = (struct card_id){ .index = index,
		.mig_index = -1,
		.gpu_instance = -1,
		.compute_instance = -1,
		.mem_total_bytes = UNKNOWN_BYTES };
	snprintf(c->id.uuid, sizeof(c->id.uuid), "GPU-%d", index);
	snprintf(c->id.name, sizeof(c->id.name), "Test Card");
}

static void make_process(struct process_entry *p, int index, const char *user)
{
	*p = (struct process_entry){ .first_seen_ms = WORLD_START_MS,
		.last_seen_ms = WORLD_START_MS,
		.last_active_ms = -1,
		.ended_ms = -1 };
	p->id = (struct process_id){ .pid = (uint32_t)(100 + index),
		.start_ticks = (uint64_t)(5000 + index),
		.started_ms = WORLD_START_MS - 60000,
		.uid = 1000 + index };
	snprintf(p->id.user, sizeof(p->id.user), "%s", user);
	snprintf(p->id.command, sizeof(p->id.command), "python3 train.py");
}

int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	if (!w)
		return -1;
	/* In memory where that is possible: these tests are not about the disk's speed. */
	snprintf(w->dir, sizeof(w->dir), "%s/gua-test-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(w->dir))
		return -1;
	snprintf(w->path, sizeof(w->path), "%s/gua.db", w->dir);
	w->info = (struct run_info){ .hostname = "lab01",
		.environment = "bare",
		.driver = "550.54.15",
		.boot_id = "boot-1",
		.source = "sim",
		.started_ms = WORLD_START_MS,
		.interval_ms = 30000,
		.drain_ms = 5000,
		.rules = RULES_DEFAULT };
	for (int i = 0; i < WORLD_CARDS; i++)
		make_card(&w->cards[i], i);
	make_process(&w->processes[0], 0, "alice");
	make_process(&w->processes[1], 1, "bob");
	make_process(&w->processes[2], 2, "bob");
	world_forget(w);
	w->tick = (struct tick){ .at_ms = WORLD_START_MS,
		.cards = w->cards,
		.n_cards = WORLD_CARDS,
		.processes = w->processes,
		.n_processes = WORLD_PROCESSES,
		.usage = w->usage,
		.holding = w->holding,
		.events = w->events,
		.holders = w->holders };
	*state = w;
	return 0;
}

int world_teardown(void **state)
{
	struct world *w = *state;
	nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(w);
	return 0;
}

void world_fill(struct world *w, int64_t slot, int64_t ms, int64_t energy_mj)
{
	static const uint32_t card_of[WORLD_PROCESSES] = { 0, 1, 1 };
	for (uint32_t i = 0; i < WORLD_CARDS; i++)
		w->usage[i] = (struct usage_sum){ .slot = slot,
			.card = i,
			.state = CARD_ACTIVE,
			.ms = ms,
			.util_pct_ms = 50 * ms,
			.energy_mj = energy_mj < 0 ? 0 : energy_mj,
			.energy_ms = energy_mj < 0 ? 0 : ms };
	for (uint32_t i = 0; i < WORLD_PROCESSES; i++) {
		w->holding[i] = (struct holding_sum){ .slot = slot,
			.card = card_of[i],
			.process = i,
			.ms[HOLDER_ACTIVE] = ms,
			.presence_ms[HOLDER_ACTIVE] = i == 2 ? 0 : ms,
			.active_share_ms = i == 0 ? ms : ms / 2,
			.sm_pct_ms = 20 * ms,
			.engine_ms = i == 1 ? ms / 3 : 0,
			.mem_peak_kib = 1000 * (i + 1) };
		w->holders[i] = (struct holder_now){ card_of[i], i, PROCESS_COMPUTE,
			1000000 * (i + 1), WORLD_START_MS, -1 };
	}
	w->tick.n_usage = WORLD_CARDS;
	w->tick.n_holding = w->tick.n_holders = WORLD_PROCESSES;
	w->tick.n_events = 0;
	w->tick.at_ms = (slot + 60) * 1000;
	for (uint32_t i = 0; i < WORLD_CARDS; i++)
		w->cards[i].last_seen_ms = w->tick.at_ms;
}

struct store *world_open(struct world *w)
{
	struct err e = { 0 };
	struct store *s = NULL;
	if (store_open(&s, w->path, &e) != 0 || store_begin_run(s, &w->info, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

void world_write(struct world *w, struct store *s)
{
	struct err e = { 0 };
	if (write_tick(s, &w->tick, &e) != 0)
		fail_msg("%s", e.text);
}

/* Makes the views for people, if the statement needs them. */
static int make_views(sqlite3 *db, const char *sql)
{
	const char *root = getenv("GUA_SOURCE_ROOT");
	char name[512], *views = NULL;
	size_t len = 0;
	struct err e = { 0 };
	if (!strstr(sql, "idle_spells") && !strstr(sql, "now_holders"))
		return SQLITE_OK;
	snprintf(name, sizeof(name), "%s/dist/views.sql", root ? root : "..");
	assert_int_equal(file_read_all(name, 1 << 20, &views, &len, &e), 0);
	int rc = sqlite3_exec(db, views, NULL, NULL, NULL);
	free(views);
	return rc;
}

/* Opens, steps once and hands the row over. */
static void query(const char *path, const char *sql, int64_t *number, char *text, int cap)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *q = NULL;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ||
		make_views(db, sql) || sqlite3_prepare_v2(db, sql, -1, &q, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	int rc = sqlite3_step(q);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	*number = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
	const unsigned char *value = rc == SQLITE_ROW ? sqlite3_column_text(q, 0) : NULL;
	snprintf(text, (size_t)cap, "%s", value ? (const char *)value : "NULL");
	sqlite3_finalize(q);
	sqlite3_close(db);
}

int64_t ask(const char *path, const char *sql)
{
	int64_t number;
	char text[256];
	query(path, sql, &number, text, sizeof(text));
	return number;
}

const char *ask_text(const char *path, const char *sql)
{
	static char text[512];
	int64_t number;
	query(path, sql, &number, text, sizeof(text));
	return text;
}

void tell(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	char *why = NULL;
	if (sqlite3_open(path, &db) || sqlite3_exec(db, sql, NULL, NULL, &why))
		fail_msg("%s: %s", sql, why ? why : sqlite3_errmsg(db));
	sqlite3_close(db);
}

void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

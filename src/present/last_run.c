/* Reads the newest run, its holders, and the slots backwards. */
#include "present/last_run.h"

#include "store/sql.h"
#include "driver/ring.h"
#include "store/statusfile.h"
#include "store/store.h"

/* Limit of rows that a walk reads; takes ten milliseconds. If the cards never change their
 * state, this is 20 hours for 16 cards and some days for 8. */
#define ROWS_MAX 20000
/* The last slots of a recorder that ended start within this time before its last tick. */
enum { LAST_SLOTS_S = 120 };

void last_run_close(struct last_run *n)
{
	sqlite3_close(n->db);
	free(n->holders);
	*n = (struct last_run){ .last_tick_ms = -1 };
}

/* Columns of a run, as read_runs() asks for them. */
enum {
	RUN_WHERE,
	RUN_STARTED,
	RUN_LAST,
	RUN_INTERVAL,
	RUN_OPEN,
	RUN_LOOKS,
	RUN_UTIL,
	RUN_HELD,
	RUN_GRAPHICS,
	RUN_SOURCE,
	RUN_SPELL
};
enum { WHERE_CAP = BOOT_ID_CAP + 32 };

static struct rules rules_of(sqlite3_stmt *row)
{
	return (struct rules){ .active_util_pct = sqlite3_column_double(row, RUN_UTIL),
		.held_mem_bytes = sql_int(row, RUN_HELD, 0),
		.count_graphics = sqlite3_column_int(row, RUN_GRAPHICS) != 0,
		.spell_ms = sql_int(row, RUN_SPELL, 0) };
}

static void take_newest(struct last_run *n, sqlite3_stmt *row)
{
	n->any_run = true;
	n->running = sql_int(row, RUN_OPEN, 0);
	n->started_ms = sql_int(row, RUN_STARTED, 0);
	n->last_tick_ms = sql_int(row, RUN_LAST, -1);
	n->interval_ms = sql_int(row, RUN_INTERVAL, 0);
	n->rules = rules_of(row);
	sql_text(row, RUN_SOURCE, n->source, sizeof(n->source));
	n->watched_since_ms = sql_int(row, RUN_LOOKS, 0) ? n->last_tick_ms : n->started_ms;
}

/* Reads the newest run, and earlier runs as long as each continued where the previous one had
 * ended: the driver's ring covers a short pause. Runs that finished by themselves are single
 * looks from a timer: nothing was recorded between them. Runs with other rules are not joined,
 * because their states have other meanings. */
static int read_runs(struct last_run *n, struct err *e)
{
	sqlite3_stmt *stmt;
	char where[WHERE_CAP] = "", before[WHERE_CAP];
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT host || ' ' || boot_id, started_ms, last_tick_ms, interval_ms, "
		"ended_ms IS NULL, how_ended IS 'finished', active_util_pct, held_mem_bytes, "
		"count_graphics, source, spell_ms FROM run "
		"WHERE source <> 'import' ORDER BY id DESC");
	while (sql_next(&stmt, &rc, e)) {
		sql_text(stmt, RUN_WHERE, before, sizeof(before));
		if (!n->any_run) {
			take_newest(n, stmt);
			str_copy(where, sizeof(where), before);
			continue;
		}
		struct rules rules = rules_of(stmt);
		if (sql_int(stmt, RUN_LOOKS, 0) || strcmp(before, where) != 0 ||
			!state_rules_equal(&rules, &n->rules) ||
			n->watched_since_ms - sql_int(stmt, RUN_LAST, -1) > RING_MS)
			break;
		n->watched_since_ms = sql_int(stmt, RUN_STARTED, 0);
	}
	n->recorded_since_ms = n->watched_since_ms;
	sqlite3_finalize(stmt);
	return rc;
}

/* A single look that is running shares the row of earlier looks, but its holders are new:
 * watched_since_ms is then the time of its oldest holder. */
static int check_since(struct last_run *n, struct err *e)
{
	int64_t first_ms = -1;
	int rc = n->running
			 ? sql_number(n->db, &first_ms, e, "SELECT min(since_ms) FROM holder")
			 : 0;
	if (first_ms > n->started_ms + n->interval_ms)
		n->watched_since_ms = first_ms;
	return rc;
}

/* What the store knows about a process; -1: unknown. */
struct holder_past {
	int64_t active_ms;    /* last active, on this card */
	int64_t elsewhere_ms; /* the same on any card, also in earlier runs */
	int64_t seen_ms;      /* first seen on any card */
	int64_t started_ms;
	int64_t break_ms; /* the recorder could not see the card just before this */
};

/* Whether it may have been there when recording began: seen before that, or first seen within a
 * tick of it and started earlier. */
static bool is_older(
	const struct last_run *n, int64_t seen_ms, int64_t began_ms, int64_t started_ms)
{
	return seen_ms < began_ms ||
	       (seen_ms < began_ms + n->interval_ms && started_ms < began_ms);
}

static void judge_idle(
	const struct last_run *n, struct last_run_holder *h, const struct holder_past *past)
{
	int64_t began_ms = clock_later(n->watched_since_ms, past->break_ms);
	bool here = past->active_ms >= 0;
	bool before = h->since_ms < 0 || past->elsewhere_ms < h->since_ms;
	/* Activity from before a restart of the recorder counts, on any card. */
	h->last_active_ms = here ? past->active_ms : before ? past->elsewhere_ms : -1;
	h->idle_longer = false;
	h->idle_since_ms = h->last_active_ms;
	if (h->last_active_ms >= began_ms)
		return;
	/* Not active on any card since recording began, or only on other cards. */
	bool nowhere = past->elsewhere_ms < began_ms;
	int64_t seen_ms = nowhere ? past->seen_ms : h->since_ms;
	int64_t from_ms = nowhere ? began_ms : clock_later(n->started_ms, past->break_ms);
	h->idle_since_ms = clock_later(seen_ms, from_ms);
	h->idle_longer = is_older(n, seen_ms, from_ms, past->started_ms);
}

/* Columns of a holder, as ask_holders() asks for them. */
enum {
	ROW_UUID,
	ROW_PID,
	ROW_TICKS,
	ROW_BOOT,
	ROW_SINCE,
	ROW_LAST,
	ROW_LIFE_LAST,
	ROW_SEEN,
	ROW_STARTED,
	ROW_BREAK,
	ROW_BREAKS,
	ROW_BEGIN,
	ROW_END,
	ROW_IDLE,
	ROW_SQUAT,
	ROW_MEM,
	ROW_ENERGY,
	ROW_CARD,
	ROW_PROCESS
};

static struct spell stretch_of(sqlite3_stmt *row)
{
	return (struct spell){ .begin_ms = sql_int(row, ROW_BEGIN, -1),
		.end_ms = sql_int(row, ROW_END, -1),
		.idle_held_ms = sql_int(row, ROW_IDLE, 0),
		.squatting_ms = sql_int(row, ROW_SQUAT, 0),
		.mem_peak_kib = sql_int(row, ROW_MEM, -1),
		.energy_mj = sql_int(row, ROW_ENERGY, -1),
		.how = SPELL_OPEN,
		.stored_end_ms = -1 };
}

static int add_holder(struct last_run *n, sqlite3_stmt *row, struct err *e)
{
	if (!array_one_more(&n->holders, n->n_holders))
		return err_memory(e);
	struct last_run_holder *h = &n->holders[n->n_holders++];
	*h = (struct last_run_holder){ .card_row = sql_int(row, ROW_CARD, -1),
		.process_row = sql_int(row, ROW_PROCESS, -1),
		.pid = (uint32_t)sql_int(row, ROW_PID, 0),
		.start_ticks = (uint64_t)sql_int(row, ROW_TICKS, 0),
		.since_ms = sql_int(row, ROW_SINCE, -1),
		.idle = stretch_of(row) };
	sql_text(row, ROW_UUID, h->uuid, sizeof(h->uuid));
	sql_text(row, ROW_BOOT, h->boot_id, sizeof(h->boot_id));
	const struct holder_past past = { .active_ms = sql_int(row, ROW_LAST, -1),
		.elsewhere_ms = sql_int(row, ROW_LIFE_LAST, -1),
		.seen_ms = sql_int(row, ROW_SEEN, 0),
		.started_ms = sql_int(row, ROW_STARTED, -1),
		.break_ms = clock_later(
			sql_int(row, ROW_BREAK, -1), sql_int(row, ROW_BREAKS, -1)) };
	judge_idle(n, h, &past);
	/* A process that was idle and held little before is idle since it holds more. */
	if (h->idle.begin_ms > h->idle_since_ms + n->interval_ms) {
		h->idle_since_ms = h->idle.begin_ms;
		h->idle_longer = false;
	}
	/* A recorder that starts again finds holders that an earlier one has seen: they hold
	 * since then, as far as the store knows. */
	bool found_at_start = h->since_ms >= 0 && h->since_ms < n->started_ms + n->interval_ms;
	if (found_at_start && past.seen_ms > 0 && past.seen_ms < n->started_ms)
		h->since_ms = past.seen_ms;
	return 0;
}

/* The last time when each card became readable again, from the newest events. Gaps and changes
 * of the clock count only if they are longer than the driver keeps its samples (%d). An event
 * whose gpu is NULL concerns all cards. */
#define BREAKS                                                                                 \
	"WITH breaks AS MATERIALIZED (SELECT gpu, max(at_ms) AS ms FROM "                      \
	"(SELECT gpu, at_ms, kind, value FROM event ORDER BY id DESC LIMIT 2000) "             \
	"WHERE kind IN ('card-back', 'card-awake', 'driver-up') "                              \
	"OR (kind IN ('gap', 'clock-step') AND abs(value) > %d) GROUP BY gpu) "

#define LIFE                                                                                   \
	"process.last_active_ms, process.first_seen_ms, process.started_ms, "                  \
	"(SELECT ms FROM breaks WHERE gpu = at.gpu), "                                         \
	"(SELECT ms FROM breaks WHERE gpu IS NULL), "                                          \
	"idle.begin_ms, idle.end_ms, idle.idle_held_ms, idle.squatting_ms, "                   \
	"idle.mem_peak_kib, idle.energy_mj, at.gpu, at.process "                               \
	"FROM %s AS at JOIN process ON process.id = at.process "                               \
	"JOIN run ON run.id = process.run JOIN gpu ON gpu.id = at.gpu "                        \
	"LEFT JOIN open_spell AS idle ON idle.gpu = at.gpu AND idle.process = at.process "

/* Starts the query for the holders. A recorder that ends removes its holders from the table:
 * then the query takes the processes in its last slots that were seen until its last tick. */
static int ask_holders(struct last_run *n, sqlite3_stmt **stmt, struct err *e)
{
	if (n->running)
		return sql_prepare(n->db, stmt, e,
			BREAKS "SELECT gpu.uuid, pid, start_ticks, boot_id, at.since_ms, "
			       "at.last_active_ms, " LIFE,
			RING_MS, "holder");
	return sql_prepare(n->db, stmt, e,
		BREAKS "SELECT DISTINCT gpu.uuid, pid, start_ticks, boot_id, NULL, NULL, " LIFE
		       "WHERE slot > %lld AND process.last_seen_ms >= %lld",
		RING_MS, "holding_1m", (long long)n->last_tick_ms / 1000 - LAST_SLOTS_S,
		(long long)n->last_tick_ms);
}

static int read_holders(struct last_run *n, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	int rc = ask_holders(n, &stmt, e);
	while (sql_next(&stmt, &rc, e))
		rc = add_holder(n, stmt, e);
	return rc;
}

/* Reads everything in one transaction: a recorder that ends meanwhile removes its holders. */
int last_run_read(
	struct last_run *n, const char *path, int wait_ms, bool holders, struct err *e)
{
	*n = (struct last_run){ .last_tick_ms = -1 };
	/* Check for the recorder first: its status file exists before its run begins and
	 * until after its end. */
	int alive = statusfile_is_running(path);
	int rc = store_open_read_within(&n->db, path, wait_ms, e);
	if (rc)
		return rc;
	sqlite3_exec(n->db, "BEGIN", NULL, NULL, NULL);
	rc = read_runs(n, e);
	n->killed = n->running && alive == 0;
	if (rc == 0 && n->any_run)
		rc = check_since(n, e);
	if (rc == 0 && n->any_run && holders)
		rc = read_holders(n, e);
	sqlite3_exec(n->db, "COMMIT", NULL, NULL, NULL);
	return rc;
}

const struct last_run_holder *last_run_find(const struct last_run *n, const char *uuid,
	const struct process_id *id, const char *boot_id)
{
	for (size_t i = 0; id->start_ticks && i < n->n_holders; i++) {
		const struct last_run_holder *h = &n->holders[i];
		if (h->pid == id->pid && h->start_ticks == id->start_ticks &&
			strcmp(h->boot_id, boot_id) == 0 && strcmp(h->uuid, uuid) == 0)
			return h;
	}
	return NULL;
}

void last_run_identity(sqlite3_stmt *row, int first, struct process_id *id)
{
	enum { USER, UID, SESSION, TEXTS };
	sql_text(row, first + USER, id->user, sizeof(id->user));
	id->uid = sql_int(row, first + UID, -1);
	id->owner_uid = -1;
	id->posix_session = sql_int(row, first + SESSION, 0);
	for (int i = 0; i < PROCESS_TEXTS; i++)
		sql_text(row, first + TEXTS + i, (char *)id + process_fields[i].offset,
			process_fields[i].cap);
}

/* A walk back through the slots of one card. */
struct walk {
	int64_t card;
	unsigned states;
	int64_t until_s;  /* the newest slot must end here or later */
	int64_t since_s;  /* start of the unbroken time, as far as read; INT64_MAX: none */
	int64_t slot;	  /* the current slot; -1: none yet */
	int64_t slot_ms;  /* time in the requested states in this slot */
	bool broken;	  /* the card was in another state in this slot */
	bool blind;	  /* a part of its state in this slot is not known */
	bool ended;	  /* the walk is over: the start was found, or slots are missing */
	bool changed;	  /* it started with a change from a different, known state */
	int64_t first_ms; /* the card was not recorded without a pause before this */
	int64_t hour_ms;  /* the same as slot_ms in the current hour ... */
	bool mixed;	  /* ... and whether it was also in another state then */
	bool by_slots;	  /* the walk reads the slots that are read now */
};

/* All rows of the slot have been read: the unbroken time continues through it, or ends in
 * it. */
static void finish_slot(struct walk *w)
{
	if (w->slot < 0 || w->ended)
		return;
	if (w->broken || w->blind) {
		w->ended = true;
		w->changed = !w->blind;
	} else if (w->slot_ms > 0) {
		w->since_s = w->slot;
		w->ended = w->since_s * 1000 < w->first_ms;
	}
	w->slot_ms = 0;
	w->broken = w->blind = false;
}

static bool is_in(const struct walk *w, int64_t state)
{
	return state >= 0 && state < CARD_STATES && (w->states & 1U << state);
}

/* Takes one row; the newest slot comes first. */
static void take_row(struct walk *w, const struct slot_table *t, sqlite3_stmt *row)
{
	int64_t slot = sql_int(row, 0, 0), ms = sql_int(row, 2, 0);
	if (slot != w->slot) {
		finish_slot(w);
		/* Missing slots were not observed. If the newest ones are missing, an instance
		 * was destroyed; when it is created again, its time starts again. */
		if (slot + t->seconds < (w->slot >= 0 ? w->since_s : w->until_s))
			w->ended = true;
		w->slot = slot;
	}
	int64_t state = sql_int(row, 1, -1);
	if (ms <= 0)
		return;
	/* The card may really have been in one of the states. With unknown use it was held, so
	 * it was not free. */
	bool blind = state == CARD_UNOBSERVED ||
		     (state == CARD_USE_UNKNOWN && w->states != 1U << CARD_TRULY_IDLE);
	if (is_in(w, state))
		w->slot_ms += ms;
	else if (blind)
		w->blind = true;
	else
		w->broken = true;
}

/* The walks of one question, which read the same rows. */
struct walks {
	struct walk *items;
	size_t n;
	int64_t rows_left; /* how many more rows may be read */
};

static bool all_ended(const struct walks *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (!w->items[i].ended)
			return false;
	return true;
}

/* Reads the slots of a table between two moments, for the walks that go by slots. */
static int walk_table(struct last_run *n, struct walks *w, const struct slot_table *t,
	const int64_t range[2], struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT slot, state, ms, gpu FROM %s WHERE slot >= %lld AND slot < %lld "
		"ORDER BY slot DESC, gpu DESC",
		t->usage, (long long)range[0], (long long)range[1]);
	while (--w->rows_left > 0 && sql_next(&stmt, &rc, e)) {
		int64_t card = sqlite3_column_int64(stmt, 3);
		bool ended = false;
		for (size_t i = 0; i < w->n; i++) {
			struct walk *one = &w->items[i];
			if (one->card != card || one->ended || !one->by_slots)
				continue;
			take_row(one, t, stmt);
			ended |= one->ended;
		}
		if (ended && all_ended(w))
			break;
	}
	sqlite3_finalize(stmt);
	return rc;
}

/* Reads the minutes and five minutes between two moments. The slot where the rows ran out may
 * not be whole. */
static int walk_slots(
	struct last_run *n, struct walks *w, const int64_t range[2], struct err *e)
{
	int rc = 0;
	for (int i = SLOT_TABLES; i-- > 1 && rc == 0 && !all_ended(w);)
		rc = walk_table(n, w, &slot_tables[i], range, e);
	for (size_t i = 0; i < w->n && w->rows_left > 0; i++)
		if (w->items[i].by_slots)
			finish_slot(&w->items[i]);
	return rc;
}

/* Passes over an hour in which the card was in the requested states all the time. */
static bool pass_hour(struct walk *w, int64_t hour)
{
	bool joined = hour + 3600 >= (w->slot >= 0 ? w->since_s : w->until_s);
	bool whole = w->hour_ms == 3600 * 1000 && !w->mixed;
	w->hour_ms = 0;
	w->mixed = false;
	if (w->ended)
		return true;
	if (!whole || !joined || hour * 1000 < w->first_ms)
		return false;
	w->slot = w->since_s = hour;
	return true;
}

/* All rows of an hour have been read. The other walks read its slots. */
static int finish_hour(struct last_run *n, struct walks *w, int64_t hour, struct err *e)
{
	bool any = false;
	for (size_t i = 0; i < w->n; i++) {
		w->items[i].by_slots = !pass_hour(&w->items[i], hour);
		any |= w->items[i].by_slots;
	}
	return any ? walk_slots(n, w, (const int64_t[]){ hour, hour + 3600 }, e) : 0;
}

/* Walks back through the complete hours, whose sums are in usage_hour as long as their slots
 * are fine. */
static int walk_hours(struct last_run *n, struct walks *w, struct err *e)
{
	sqlite3_stmt *stmt;
	int64_t hour = -1;
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT slot, state, ms, gpu FROM usage_hour ORDER BY slot DESC");
	while (!all_ended(w) && --w->rows_left > 0 && sql_next(&stmt, &rc, e)) {
		int64_t slot = sql_int(stmt, 0, 0), state = sql_int(stmt, 1, -1);
		int64_t ms = sql_int(stmt, 2, 0), card = sqlite3_column_int64(stmt, 3);
		if (slot != hour && hour >= 0)
			rc = finish_hour(n, w, hour, e);
		hour = slot;
		for (size_t i = 0; i < w->n && ms > 0; i++) {
			if (w->items[i].card != card)
				continue;
			w->items[i].mixed |= !is_in(&w->items[i], state);
			w->items[i].hour_ms += ms;
		}
	}
	sqlite3_finalize(stmt);
	return rc || hour < 0 || w->rows_left <= 0 ? rc : finish_hour(n, w, hour, e);
}

/* Walks from the newest slot back: the slots after the last complete hour, the complete hours,
 * then those that have no finer slots. */
static int walk_back(struct last_run *n, struct walks *w, struct err *e)
{
	int64_t after_s = INT64_MIN, all[2] = { INT64_MIN, INT64_MAX };
	int rc = sql_number(n->db, &after_s, e, "SELECT max(slot) + 3600 FROM usage_hour");
	if (rc == 0)
		rc = walk_slots(n, w, (const int64_t[]){ after_s, INT64_MAX }, e);
	if (rc == 0)
		rc = walk_hours(n, w, e);
	for (size_t i = 0; i < w->n; i++)
		w->items[i].by_slots = true;
	if (rc == 0 && !all_ended(w))
		rc = walk_table(n, w, &slot_tables[0], all, e);
	return rc;
}

/* Starts a walk with the card that the store has under this identity, if any. */
static void begin_walk(const struct last_run *n, struct walk *w, const struct last_run_ask *ask,
	sqlite3_stmt *stmt, struct err *e)
{
	*w = (struct walk){ .card = -1,
		.states = ask->states,
		.until_s = (n->last_tick_ms - RING_MS) / 1000,
		.since_s = INT64_MAX,
		.slot = -1,
		.by_slots = true };
	sqlite3_bind_text(stmt, 1, ask->uuid, -1, SQLITE_STATIC);
	if (sql_step(stmt, e) == 1) {
		w->card = sql_int(stmt, 0, -1);
		w->first_ms = clock_later(sql_int(stmt, 1, 0), n->recorded_since_ms);
	}
	sqlite3_reset(stmt);
	w->ended = w->card < 0;
}

/* Sets the answer. A slot counts as a whole, but may start before recording began. */
static void answer(const struct walk *w, struct last_run_ask *ask)
{
	ask->since_ms = w->since_s == INT64_MAX ? -1 : w->since_s * 1000;
	ask->longer = !w->changed;
	if (ask->since_ms >= 0 && ask->since_ms < w->first_ms) {
		ask->since_ms = w->first_ms;
		ask->longer = true;
	}
}

int last_run_states_since(
	struct last_run *n, struct last_run_ask *asks, size_t n_asks, struct err *e)
{
	struct walks w = { calloc(n_asks + 1, sizeof(*w.items)), n_asks, ROWS_MAX };
	if (!w.items)
		return err_memory(e);
	sqlite3_stmt *stmt;
	int rc = sql_prepare(n->db, &stmt, e,
		"SELECT id, first_seen_ms FROM gpu WHERE uuid = ?1 "
		"ORDER BY " SQL_CARD_SEEN " DESC LIMIT 1");
	for (size_t i = 0; rc == 0 && i < n_asks; i++)
		begin_walk(n, &w.items[i], &asks[i], stmt, e);
	sqlite3_finalize(stmt);
	if (rc == 0)
		rc = walk_back(n, &w, e);
	for (size_t i = 0; i < n_asks; i++) {
		/* The slot where the rows ran out may not be whole. */
		if (!w.items[i].ended && w.rows_left > 0)
			finish_slot(&w.items[i]);
		if (rc == 0)
			answer(&w.items[i], &asks[i]);
	}
	free(w.items);
	return rc;
}

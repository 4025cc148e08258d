/* Reads the newest run, the cards with their totals and readings, and the counters. */
#include "export/scrape.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/str.h"
#include "present/cards_now.h"
#include "audit/spells.h"
#include "store/sql.h"
#include "store/policy/policy_more.h"
#include "store/statusfile.h"
#include "store/store.h"

enum {
	WAIT_MS = 1000,	  /* for a locked store: a scrape has a deadline */
	TICKS_MISSED = 3, /* this many may be missing before the recorder counts as silent */
	LATE_MS = 5000,
	BEFORE_ALL = -1, /* at this moment nobody is new, and nobody is gone for long */
};

void scrape_finish(struct scrape *s)
{
	free(s->cards);
	free(s->identities);
	free(s->actions);
	*s = (struct scrape){ .faults = -1 };
}

/* Whether the recorder is there and does its work. */
static bool is_up(const struct scrape *s, const char *path, bool open, int64_t now_ms)
{
	int64_t allowed_ms = TICKS_MISSED * s->interval_ms + LATE_MS;
	return open && published_is_running(path) != 0 &&
	       now_ms - s->last_tick_ms <= allowed_ms;
}

static int read_run(
	struct scrape *s, sqlite3 *db, const char *path, int64_t now_ms, struct err *e)
{
	sqlite3_stmt *row = NULL;
	bool open = false;
	int rc = sql_prepare(db, &row, e,
		"SELECT last_tick_ms, started_ms, interval_ms, ended_ms IS NULL, version, "
		"source, (SELECT driver FROM host WHERE host.id = run.host) FROM run "
		"WHERE source <> 'import' ORDER BY id DESC LIMIT 1");
	if (rc == 0 && (rc = sql_step(row, e)) == 1) {
		s->any_run = true;
		s->last_tick_ms = sql_int(row, 0, 0);
		s->started_ms = sql_int(row, 1, 0);
		s->interval_ms = sql_int(row, 2, 0);
		open = sql_int(row, 3, 0) != 0;
		sql_text(row, 4, s->version, sizeof(s->version));
		sql_text(row, 5, s->source, sizeof(s->source));
		sql_text(row, 6, s->driver, sizeof(s->driver));
		rc = 0;
	}
	sqlite3_finalize(row);
	s->up = s->any_run && is_up(s, path, open, now_ms);
	return rc;
}

static int add_card(
	struct scrape *s, const struct card_reported *c, int64_t now_ms, struct err *e)
{
	if (!c->current && now_ms - c->last_seen_ms > SCRAPE_KEEP_MS)
		return 0;
	if (!array_one_more(&s->cards, s->n_cards))
		return err_memory(e);
	struct scrape_card *to = &s->cards[s->n_cards++];
	*to = (struct scrape_card){ .gpu = c->gpu, .id = c->id, .now = c->now };
	text_copy(to->source, sizeof(to->source), c->source);
	to->live = s->up && c->current;
	return 0;
}

/* Whether a card that is not there is missing: not an instance that was destroyed, nor a card
 * that has been divided into instances. */
static bool is_missed(const struct cards_now *all, const struct card_reported *c)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->cards[i].current && all->cards[i].status == CARD_STATUS_OK &&
			strcmp(all->cards[i].id.parent_uuid, c->id.uuid) == 0)
			return false;
	return c->id.mig_index < 0;
}

static int64_t count_present(const struct cards_now *all)
{
	int64_t n = 0;
	for (size_t i = 0; i < all->n; i++) {
		const struct card_reported *c = &all->cards[i];
		n += c->current && (c->status != CARD_STATUS_LOST || is_missed(all, c));
	}
	return n;
}

static struct scrape_card *find_card(struct scrape *s, int64_t gpu)
{
	for (size_t i = 0; i < s->n_cards; i++)
		if (s->cards[i].gpu == gpu)
			return &s->cards[i];
	return NULL;
}

static int read_totals(struct scrape *s, sqlite3 *db, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(db, &row, e, "SELECT gpu, state, ms, energy_mj FROM total_gpu");
	while (rc == 0 && (rc = sql_step(row, e)) == 1) {
		struct scrape_card *c = find_card(s, sql_int(row, 0, -1));
		int64_t state = sql_int(row, 1, -1);
		rc = 0;
		if (!c || state < 0 || state >= CARD_STATES)
			continue;
		c->ms[state] = sql_int(row, 2, 0);
		c->energy_mj[state] = sql_int(row, 3, 0);
		c->has_energy |= c->energy_mj[state] > 0;
	}
	sqlite3_finalize(row);
	return rc;
}

/* Sets a count of each card that has one; `place` is its place in struct scrape_card. */
static int read_counts(
	struct scrape *s, sqlite3 *db, const char *sql, size_t place, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(db, &row, e, "%s", sql);
	while (rc == 0 && (rc = sql_step(row, e)) == 1) {
		struct scrape_card *c = find_card(s, sql_int(row, 0, -1));
		rc = 0;
		if (c)
			*(int64_t *)((char *)c + place) = sql_int(row, 1, 0);
	}
	sqlite3_finalize(row);
	return rc;
}

static int read_cards(struct scrape *s, sqlite3 *db, int64_t now_ms, struct err *e)
{
	struct cards_now all;
	int rc = cards_now_read(&all, db, e);
	for (size_t i = 0; rc == 0 && i < all.n; i++)
		rc = add_card(s, &all.cards[i], now_ms, e);
	s->present = count_present(&all);
	cards_now_free(&all);
	if (rc == 0)
		rc = read_totals(s, db, e);
	if (rc == 0)
		rc = read_counts(s, db, "SELECT gpu, count(*) FROM holder GROUP BY gpu",
			offsetof(struct scrape_card, processes), e);
	if (rc == 0)
		rc = read_counts(s, db,
			"SELECT gpu, count(*) FROM open_spell AS o WHERE " OPEN_IS_SPELL
			" GROUP BY gpu",
			offsetof(struct scrape_card, spells), e);
	return rc;
}

/* Spells that ended because the recorder stopped may still go on: they are not counted. */
static int read_spells(struct scrape *s, sqlite3 *db, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(db, &row, e,
		"SELECT sum(how_ended = 0), sum(how_ended = 1), sum(how_ended = 2) FROM spell");
	if (rc == 0 && (rc = sql_step(row, e)) == 1) {
		for (int i = 0; i < SPELL_STOPPED; i++)
			s->spells_ended[i] = sql_int(row, i, 0);
		rc = 0;
	}
	sqlite3_finalize(row);
	return rc;
}

static int take_count(void *context, const struct policy_count *c)
{
	struct scrape *s = context;
	if (!array_one_more(&s->actions, s->n_actions))
		return err_memory(NULL);
	struct scrape_action *a = &s->actions[s->n_actions++];
	text_copy(a->step, sizeof(a->step), c->step);
	text_copy(a->mode, sizeof(a->mode), c->mode);
	a->count = c->n;
	return 0;
}

/* What gua enforce did, if it runs here and its file can be read. */
static void read_actions(struct scrape *s, const char *path)
{
	char file[PATH_MAX];
	struct policy_file *f = NULL;
	policy_file_path(file, sizeof(file), path);
	if (policy_file_open(&f, file, false, NULL) != 0)
		return;
	if (policy_file_counts(f, take_count, s, NULL) != 0)
		s->n_actions = 0;
	policy_file_close(f);
}

/* The size of the store and its log, and the faults that the recorder reports. */
static void read_files(struct scrape *s, const char *path)
{
	static const char *const ends[] = { "", "-wal" };
	struct err ignored = { 0 };
	struct published p;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char full[4096 + 8];
		struct stat st;
		snprintf(full, sizeof(full), "%s%s", path, ends[i]);
		s->db_bytes += stat(full, &st) == 0 ? (int64_t)st.st_size : 0;
	}
	if (s->up && published_read(&p, path, &ignored) == 0 && p.told)
		s->faults = (int64_t)p.n_faults;
}

int scrape_totals(struct scrape *s, struct sqlite3 *db, const char *path,
	const struct identity_names *names, struct err *e)
{
	*s = (struct scrape){ .faults = -1 };
	int rc = read_run(s, db, path, BEFORE_ALL, e);
	if (rc == 0)
		rc = read_cards(s, db, BEFORE_ALL, e);
	return rc ? rc : scrape_identities(s, db, names, BEFORE_ALL, e);
}

int scrape_read(struct scrape *s, const char *path, const struct identity_names *names,
	int64_t now_ms, struct err *e)
{
	sqlite3 *db = NULL;
	*s = (struct scrape){ .faults = -1 };
	int rc = store_open_read_within(&db, path, WAIT_MS, e);
	int64_t ignored = 0;
	/* Everything is of one tick. */
	if (rc == 0)
		rc = sql_number(db, &ignored, e, "BEGIN");
	if (rc == 0)
		rc = read_run(s, db, path, now_ms, e);
	if (rc == 0)
		rc = read_cards(s, db, now_ms, e);
	if (rc == 0)
		rc = scrape_identities(s, db, names, now_ms, e);
	if (rc == 0)
		rc = read_spells(s, db, e);
	if (rc == 0)
		rc = sql_number(db, &s->events, e, "SELECT max(id) FROM event");
	sqlite3_close(db);
	read_files(s, path);
	if (rc == 0)
		read_actions(s, path);
	return rc;
}

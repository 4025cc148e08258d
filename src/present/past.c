/* Reads the store at intervals, and answers questions about the past from it. */
#include "present/past.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "base/timetext.h"
#include "present/recent.h"
#include "driver/kind.h"

/* The store is read again this often. */
#define PAST_US (10 * 1000000LL)
/* How late a running recorder may be, besides its ticks. */
#define PAST_SLACK_MS 15000
/* How long to wait for a locked store: at the first reading, and while a screen is shown. */
enum { FIRST_WAIT_MS = 5000, WAIT_MS = 200 };

/* Invented and measured data never meet, except that a user may name a simulated store. Sets
 * the note. */
static bool is_foreign(struct past *p, const struct now *now)
{
	bool simulated = source_is_invented(now->source);
	if (!now->any_run || simulated == p->invented || (simulated && p->named))
		return false;
	snprintf(p->note, sizeof(p->note),
		simulated ? "the store %.120s has simulated data and the cards are real: it is "
			    "not used. Name it with --db to use it"
			  : "the store %.120s has measured data and the cards are simulated: "
			    "it is not used",
		p->db);
	return true;
}

/* Reads the store. It is opened again each time: the file may have been replaced, and a store
 * without a writer is opened in a way that shows no later change. If this fails, what was read
 * before stays. */
static void read_store(struct past *p, int wait_ms)
{
	struct err e = { 0 };
	struct now now = { 0 };
	p->note[0] = '\0';
	if (access(p->db, F_OK) != 0 && errno == ENOENT) {
		snprintf(p->note, sizeof(p->note),
			"no store at %s: nothing is known about the past", p->db);
		return;
	}
	if (now_read(&now, p->db, wait_ms, &e) != 0) {
		text_copy(p->note, sizeof(p->note), e.text);
		now_close(&now);
		return;
	}
	now_close(&p->now);
	p->foreign = is_foreign(p, &now);
	if (p->foreign)
		now_close(&now);
	p->now = now;
	p->floors_due = !p->foreign;
	if (!now.any_run && !p->note[0])
		text_copy(
			p->note, sizeof(p->note), "nothing has been recorded in the store yet");
}

/* Whether the recorder is running; if not, sets the note. */
static bool is_fresh(struct past *p, int64_t now_ms)
{
	const struct now *now = &p->now;
	int64_t age_ms = now_ms - now->last_tick_ms;
	char age[40];
	if (!now->any_run)
		return false;
	if (now->running && !now->killed && age_ms <= 2 * now->interval_ms + PAST_SLACK_MS)
		return true;
	duration_text(age, sizeof(age), age_ms > 0 ? age_ms : 0);
	if (!p->note[0])
		snprintf(p->note, sizeof(p->note),
			!now->running
				? "the recorder stopped %s ago: nothing has been recorded since"
			: now->killed ? "the recorder was killed, its last tick was %s ago: "
					"nothing has been recorded since"
				      : "the recorder has written nothing for %s",
			age);
	return false;
}

void past_read(struct past *p, const struct moment *now)
{
	bool was_fresh = p->fresh;
	if (!p->db || (p->was_read && now->boot_us - p->read_us < PAST_US))
		return;
	p->read_us = now->boot_us;
	read_store(p, p->was_read ? WAIT_MS : FIRST_WAIT_MS);
	p->was_read = true;
	p->fresh = is_fresh(p, now->wall_us / 1000);
	p->came = p->fresh && !was_fresh;
}

void past_finish(struct past *p)
{
	now_close(&p->now);
	context_finish(&p->floors);
}

const struct rules *past_rules(const struct past *p)
{
	return p->now.any_run ? &p->now.rules : NULL;
}

const struct now_holder *past_holder(const struct past *p, const char *uuid,
	const struct process_id *id, const char *boot_id)
{
	return now_find(&p->now, uuid, id, boot_id);
}

void past_states_since(struct past *p, struct now_ask *asks, size_t n)
{
	struct err unread = { 0 };
	if (n)
		now_states_since(&p->now, asks, n, &unread);
}

int64_t past_floor(struct past *p, const char *model)
{
	struct err unread = { 0 };
	if (p->floors_due && !p->floors_known)
		p->floors_known = floors_read(&p->floors, p->now.db, &unread) == 0;
	p->floors_due = false;
	return context_floor(&p->floors, model);
}

int64_t past_ended_ms(const struct past *p)
{
	return p->now.any_run && !p->fresh ? p->now.last_tick_ms : -1;
}

struct sqlite3 *past_open(const struct past *p)
{
	struct sqlite3 *db = NULL;
	struct err unread = { 0 };
	if (!p->db || p->foreign || access(p->db, R_OK) != 0 ||
		recent_open(&db, p->db, &unread) != 0)
		return NULL;
	return db;
}

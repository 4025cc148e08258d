/* What the store adds to a live view: since when a card is as it is, since when a process is
 * idle, and was; what a bare context takes; and the rules of what is active and held. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/timetext.h"
#include "live/live_private.h"

/* The store is asked again this often. */
#define PAST_US (10 * 1000000LL)
/* How far behind a recorder at work may be, besides its ticks. */
#define PAST_SLACK_MS 15000
/* A store that is locked is waited for: at the first look, and while a screen is shown. */
enum { FIRST_WAIT_MS = 5000, WAIT_MS = 200 };

/* Reads the store, opened anew each time: the file may be another one by now, and one that
 * nobody wrote to is opened so that no change is seen. What was read before stands when that
 * fails. */
static void read_store(struct live *l)
{
	struct err e = { 0 };
	struct now now = { 0 };
	l->note[0] = '\0';
	if (access(l->db, F_OK) != 0 && errno == ENOENT) {
		snprintf(l->note, sizeof(l->note),
			"no store at %s: times before now are not known", l->db);
		return;
	}
	if (now_read(&now, l->db, l->refreshed ? WAIT_MS : FIRST_WAIT_MS, &e) != 0) {
		text_copy(l->note, sizeof(l->note), e.text);
		now_close(&now);
		return;
	}
	now_close(&l->past);
	l->past = now;
	l->ask_contexts = true;
	if (!now.any_run)
		text_copy(l->note, sizeof(l->note), "nothing was recorded in the store yet");
}

/* Whether the recorder is at work; says so when it is not. */
static bool is_fresh(struct live *l)
{
	const struct now *past = &l->past;
	int64_t age_ms = l->now_ms - past->last_tick_ms;
	char age[40];
	if (!past->any_run)
		return false;
	if (past->running && !past->killed && age_ms <= 2 * past->interval_ms + PAST_SLACK_MS)
		return true;
	duration_text(age, sizeof(age), age_ms > 0 ? age_ms : 0);
	if (!l->note[0])
		snprintf(l->note, sizeof(l->note),
			!past->running ? "the recorder stopped %s ago: nobody has watched since"
			: past->killed ? "the recorder was killed, its last tick was %s ago: "
					 "nobody has watched since"
				       : "the recorder has written nothing for %s: nobody "
					 "watched since",
			age);
	return false;
}

/* What the recorder calls active and held is so here. Other rules than before: what was seen of
 * states was another question. */
static void take_rules(struct live *l)
{
	struct rules rules = l->past.any_run ? l->past.rules : l->usual_rules;
	bool same = rules_equal(&rules, &l->rules);
	l->rules = rules;
	for (size_t i = 0; !same && i < l->n_memory; i++) {
		l->memory[i].seen = false;
		l->memory[i].idle_ms = -1;
	}
}

void live_read_past(struct live *l)
{
	int64_t boot_us = clock_now(l->clock).boot_us;
	bool was_fresh = l->past_fresh;
	l->past_came = false;
	if (!l->db || (l->refreshed && boot_us - l->past_us < PAST_US))
		return;
	l->past_us = boot_us;
	read_store(l);
	take_rules(l);
	l->past_fresh = is_fresh(l);
	l->past_came = l->past_fresh && !was_fresh;
}

/* What the store answered of the state, and of being idle when that was asked. Between its last
 * tick and what was seen here there may be some seconds: it is asked again when it has them. */
static void take_past(struct live_memory *m, const struct now_ask *state, int64_t idle_ms,
	int64_t last_tick_ms)
{
	if (m->lent) {
		m->since_ms = m->own_ms;
		m->idle_ms = m->own_idle_ms;
		m->longer = true;
	}
	m->own_ms = m->since_ms;
	m->own_idle_ms = m->idle_ms;
	m->lent = last_tick_ms < m->own_ms;
	if (state->since_ms >= 0 && (m->since_ms < 0 || state->since_ms < m->since_ms)) {
		m->since_ms = state->since_ms;
		m->longer = state->longer;
	}
	if (idle_ms >= 0 && (m->idle_ms < 0 || idle_ms < m->idle_ms))
		m->idle_ms = idle_ms;
}

/* Each question twice where somebody wants to know of being idle. Without an answer what was
 * seen here stands. */
void live_ask_past(struct live *l)
{
	struct err unread = { 0 };
	size_t n = 0, at = 0, each = l->wanted[METRIC_GUA_IDLE_SINCE] ? 2 : 1;
	struct now_ask *asks = calloc(2 * l->n_cards + 1, sizeof(*asks));
	size_t *whose = calloc(l->n_cards + 1, sizeof(*whose));
	for (size_t i = 0; asks && whose && i < l->n_cards; i++) {
		const char *uuid = l->cards[i].id.uuid;
		unsigned state = 1U << l->cards[i].state;
		if (!l->memory[i].ask)
			continue;
		whose[n++] = i;
		asks[at++] = (struct now_ask){ uuid, state, -1, true };
		if (each == 2)
			asks[at++] = (struct now_ask){ uuid,
				IDLE_STATES & state ? IDLE_STATES : 0, -1, true };
	}
	if (n)
		now_states_since(&l->past, asks, at, &unread);
	for (size_t i = 0; i < n; i++)
		take_past(&l->memory[whose[i]], &asks[i * each],
			each == 2 ? asks[i * each + 1].since_ms : -1, l->past.last_tick_ms);
	free(asks);
	free(whose);
}

/* The floors are learned once somebody may have but a context. */
enum context live_judge_context(struct live *l, const struct live_process *p)
{
	struct err unread = { 0 };
	if (!p->holder || !context_may_be(p->mem_bytes))
		return CONTEXT_MORE;
	if (l->ask_contexts && !l->contexts_learned)
		l->contexts_learned = floors_read(&l->contexts, l->past.db, &unread) == 0;
	l->ask_contexts = false;
	return context_judge(
		p->kind, p->mem_bytes, context_floor(&l->contexts, l->cards[p->card].id.name));
}

/* The recorder may not have noticed yet that the clock was set back. */
static int64_t until_now(const struct live *l, int64_t at_ms)
{
	return at_ms < l->now_ms ? at_ms : l->now_ms;
}

void live_join_past(struct live *l, struct live_process *p, struct live_mark *m)
{
	const struct now_holder *h = now_find(
		&l->past, l->cards[p->card].id.uuid, &p->id, owners_boot_id(l->owners));
	m->recorded = h && l->past_fresh;
	if (!h)
		return;
	int64_t since_ms = until_now(l, h->since_ms);
	if (since_ms >= 0 && (p->held_since_ms < 0 || since_ms < p->held_since_ms))
		p->held_since_ms = since_ms;
	if (until_now(l, h->last_active_ms) > p->last_active_ms)
		p->last_active_ms = until_now(l, h->last_active_ms);
	m->recorded_idle_ms = until_now(l, h->idle_since_ms);
	m->recorded_longer = h->idle_longer;
	/* Less than a tick is not idle; without utilisation nobody knows. */
	if (isnan(l->memory[p->card].util_pct))
		return;
	if (!l->past_fresh && l->past.last_tick_ms - h->idle_since_ms >= l->past.interval_ms) {
		p->was_idle_since_ms = h->idle_since_ms;
		p->was_idle_longer = h->idle_longer;
	}
}

/* As the recorder at work has it, else as long as this view has looked; since it was seen
 * active, and never before it began to live. */
void live_idle_since(const struct live *l, struct live_process *p, const struct live_mark *m)
{
	int64_t covered_ms = l->memory[p->card].covered_ms, started_ms = p->id.started_ms;
	int64_t since_ms = m->recorded ? m->recorded_idle_ms : m->watched_ms;
	p->idle_longer = m->recorded ? m->recorded_longer
				     : p->held_since_ms < 0 || since_ms > p->held_since_ms;
	if (m->active_ms >= since_ms) {
		since_ms = m->active_ms;
		p->idle_longer = false;
	}
	if (!m->recorded && since_ms < covered_ms) {
		since_ms = covered_ms;
		p->idle_longer = true;
	}
	p->idle_since_ms = since_ms;
	if (since_ms > started_ms)
		return;
	p->idle_since_ms = until_now(l, started_ms);
	p->idle_longer = false;
}

/* Opening a live view, and what is made of the driver's answers: cards, boards, states. */
#include "view/live.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timetext.h"
#include "view/live_private.h"

/* The store is asked again this often. */
#define PAST_US (10 * 1000000LL)
/* Samples come at least once a second. */
#define HOLE_MS 2500
/* How far behind a recorder at work may be, besides its ticks. */
#define PAST_SLACK_MS 15000

const unsigned char live_usual_metrics[METRIC_COUNT] = {
	[METRIC_TEMPERATURE_GPU] = 1,
	[METRIC_FAN_SPEED] = 1,
	[METRIC_UTILIZATION_GPU] = 1,
	[METRIC_UTILIZATION_MEMORY] = 1,
	[METRIC_UTILIZATION_ENCODER] = 1,
	[METRIC_UTILIZATION_DECODER] = 1,
	[METRIC_MEMORY_TOTAL] = 1,
	[METRIC_MEMORY_USED] = 1,
	[METRIC_MEMORY_FREE] = 1,
	[METRIC_POWER_DRAW] = 1,
	[METRIC_POWER_ENFORCED] = 1,
	[METRIC_CLOCK_SM] = 1,
	[METRIC_CLOCK_MEMORY] = 1,
	[METRIC_PSTATE] = 1,
};

static const struct live_memory nothing_seen = { .util_pct = NAN,
	.since_ms = -1,
	.idle_ms = -1,
	.newest_ms = -1,
	.covered_ms = -1,
	.unheld_ms = -1 };

#define IDLE_STATES (1U << CARD_IDLE_HELD | 1U << CARD_TRULY_IDLE)

/* The store is a help: without it the view goes on and says so. */
static void open_past(struct live *l)
{
	struct err e = { 0 };
	if (!l->db)
		return;
	if (access(l->db, F_OK) != 0 && errno == ENOENT) {
		snprintf(l->note, sizeof(l->note),
			"no store at %s: times before now are not known", l->db);
		return;
	}
	l->has_past = now_open(&l->past, l->db, &e) == 0;
	if (!l->has_past)
		text_copy(l->note, sizeof(l->note), e.text);
}

/* Reads the store again when it is time; one that was not there may have come. */
static void read_past(struct live *l)
{
	struct err e = { 0 };
	int64_t boot_us = clock_now(l->clock).boot_us;
	if (l->refreshed && boot_us - l->past_us < PAST_US)
		return;
	l->past_us = boot_us;
	if (!l->has_past)
		open_past(l);
	if (!l->has_past)
		return;
	l->past_fresh = false;
	l->note[0] = '\0';
	if (now_read(&l->past, &e)) {
		text_copy(l->note, sizeof(l->note), e.text);
		l->past.n_holders = 0;
		return;
	}
	int64_t age_ms = l->now_ms - l->past.last_tick_ms;
	l->past_fresh = l->past.any_run && l->past.running &&
			age_ms <= 2 * l->past.interval_ms + PAST_SLACK_MS;
	if (!l->past.any_run) {
		text_copy(l->note, sizeof(l->note), "nothing was recorded in the store yet");
	} else if (!l->past_fresh) {
		char age[40];
		duration_text(age, sizeof(age), age_ms);
		snprintf(l->note, sizeof(l->note),
			l->past.running
				? "the recorder has written nothing for %s: nobody watched "
				  "since"
				: "the recorder stopped %s ago: nobody has watched since",
			age);
	}
}

static void name_host(struct live *l)
{
	char raw[128] = "";
	text_copy(raw, sizeof(raw), l->source->hostname);
	if (!raw[0] && gethostname(raw, sizeof(raw) - 1) != 0)
		text_copy(raw, sizeof(raw), "localhost");
	text_escape(l->hostname, sizeof(l->hostname), raw, strlen(raw));
}

int live_open(struct live **out, const struct live_options *o, struct err *e)
{
	struct live *l = calloc(1, sizeof(*l));
	if (!l)
		return err_set(e, ERR_WORLD, "out of memory");
	const char *root = o->source.root ? o->source.root : "";
	text_copy(l->root, sizeof(l->root), root);
	l->clock = o->source.clock;
	l->rules = o->rules;
	l->db = o->db;
	l->ticks_per_s = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
	l->page_bytes = sysconf(_SC_PAGESIZE);
	memcpy(l->wanted, o->metrics ? o->metrics : live_usual_metrics, METRIC_COUNT);
	metric_complete(l->wanted);
	*out = l;
	int rc = live_open_driver(l, o, e);
	bool own_host = root[0] == '\0' && rc == 0 && !l->source->ops->describe;
	if (rc == 0)
		rc = owners_open(&l->owners, root, e);
	if (rc == 0)
		rc = lives_init(&l->lives, l->owners, own_host, e);
	if (rc)
		return rc;
	name_host(l);
	return 0;
}

bool live_close(struct live *l)
{
	if (!l)
		return true;
	bool closed = live_close_driver(l);
	if (l->has_past)
		now_close(&l->past);
	context_finish(&l->contexts);
	lives_finish(&l->lives);
	owners_close(l->owners);
	live_finish_list(&l->now);
	live_finish_list(&l->before);
	free(l->cards);
	free(l->memory);
	free(l->boards);
	free(l->holders);
	free(l);
	return closed;
}

/* Room to remember the cards that there are now; none ever goes. */
static int follow_cards(struct live *l, struct err *e)
{
	if (l->n_cards <= l->n_memory)
		return 0;
	struct live_memory *memory = reallocarray(l->memory, l->n_cards, sizeof(*memory));
	if (!memory)
		return err_set(e, ERR_WORLD, "out of memory");
	l->memory = memory;
	while (l->n_memory < l->n_cards)
		memory[l->n_memory++] = nothing_seen;
	return 0;
}

static enum card_state state_of(const struct live *l, double util_pct, struct held held)
{
	return isnan(util_pct) ? CARD_UNOBSERVED : classify_card(util_pct, held, &l->rules);
}

/* Since when, by the samples that were just read, the card has been in one of the states: the
 * oldest one behind which none says otherwise. *whole: none of them does. */
static int64_t since_by_samples(
	const struct live *l, size_t card, unsigned states, struct held held, bool *whole)
{
	const struct card_reading *r = &l->source->cards[card];
	int64_t since_ms = -1;
	*whole = true;
	for (size_t i = r->n_samples; i-- > 0;) {
		if (!(states & 1U << state_of(l, r->samples[i].util_pct, held))) {
			*whole = false;
			break;
		}
		since_ms = r->samples[i].wall_us / 1000;
	}
	return since_ms;
}

/* The same for being idle: who held it, and whether, does not matter. Comes before the state is
 * brought forward. */
static void follow_idle(struct live *l, size_t card, enum card_state state, struct held held)
{
	struct live_memory *m = &l->memory[card];
	bool whole = true;
	int64_t since_ms = since_by_samples(l, card, IDLE_STATES, held, &whole);
	if (!(IDLE_STATES & 1U << state))
		m->idle_ms = -1;
	else if (!whole || m->gap || m->idle_ms < 0)
		m->idle_ms = since_ms >= 0 || !m->seen ? since_ms : l->now_ms;
}

/* Brings what is remembered of the card's state forward. */
static void follow_state(struct live *l, size_t card, enum card_state state, struct held held)
{
	struct live_memory *m = &l->memory[card];
	bool whole = true, goes_on = m->seen && m->state == state && !m->gap;
	int64_t since_ms = since_by_samples(l, card, 1U << state, held, &whole);
	bool first = !m->seen || m->gap;
	/* Samples tell of use. When a holder came or went between two looks nobody knows. */
	unsigned both = 1U << m->state | 1U << state;
	bool handed = whole && !first && (both & IDLE_STATES) == both;
	if (m->seen && !goes_on && (since_ms < 0 || handed))
		since_ms = l->now_ms;
	if (!whole || !goes_on) {
		m->since_ms = since_ms;
		m->longer = whole && first;
	}
	m->ask = whole && first && l->past_fresh && state != CARD_UNOBSERVED;
	m->state = state;
	m->seen = true;
}

/* The newest sample that was active, unix milliseconds; -1: none. */
static int64_t last_active_sample(const struct live *l, size_t card)
{
	const struct card_reading *r = &l->source->cards[card];
	for (size_t i = r->n_samples; i-- > 0;)
		if (r->samples[i].util_pct >= l->rules.active_util_pct)
			return r->samples[i].wall_us / 1000;
	return -1;
}

/* What we compute ourselves. */
static void compute_own(struct live *l, struct live_card *c, struct held held)
{
	double listed = 0, *v = c->values;
	bool known = c->processes_known;
	for (size_t k = 0; k < c->n_processes; k++) {
		int64_t mem = l->now.items[c->first_process + k].mem_bytes;
		known = known && mem >= 0;
		listed += mem >= 0 ? (double)mem : 0;
	}
	if (c->status != CARD_STATUS_OK)
		return;
	double used = v[METRIC_MEMORY_USED];
	v[METRIC_GUA_ORPHAN_MEMORY] = known ? fmax(used - listed, 0) : NAN;
	v[METRIC_GUA_HOLDERS] = c->processes_known ? (double)held.n : NAN;
	v[METRIC_GUA_HELD_MEMORY] =
		c->processes_known && !held.unknown ? (double)held.bytes : NAN;
	v[METRIC_GUA_STATE_SINCE] = c->state_since_ms < 0 ? NAN : (double)c->state_since_ms;
	int64_t idle_ms = l->memory[c - l->cards].idle_ms;
	v[METRIC_GUA_IDLE_SINCE] = idle_ms < 0 ? NAN : (double)idle_ms;
	if (c->state == CARD_ACTIVE || c->state == CARD_IDLE_HELD)
		v[METRIC_GUA_FREE_FOR] = 0;
	else if (c->free_since_ms >= 0)
		v[METRIC_GUA_FREE_FOR] = (double)(l->now_ms - c->free_since_ms) / 1000;
}

/* The state of a card, by its newest sample and its holders. */
static void classify(struct live *l, size_t card)
{
	struct live_card *c = &l->cards[card];
	struct live_memory *m = &l->memory[card];
	struct held held = { 0 };
	for (size_t k = 0; k < c->n_processes; k++) {
		const struct live_process *p = &l->now.items[c->first_process + k];
		if (!p->holder)
			continue;
		held.n++;
		held.unknown |= p->mem_bytes < 0;
		held.bytes += p->mem_bytes > 0 ? p->mem_bytes : 0;
	}
	if (c->status != CARD_STATUS_OK)
		*m = nothing_seen;
	c->state = state_of(l, m->util_pct, held);
	m->held = held;
	bool unheld =
		c->processes_known && classify_card(0, held, &l->rules) == CARD_TRULY_IDLE;
	bool first =
		m->unheld_ms < 0 || l->failed; /* nobody looked while the driver was gone */
	m->unheld_ms = !unheld ? -1 : first ? l->now_ms : m->unheld_ms;
	if (c->status != CARD_STATUS_OK)
		return;
	follow_idle(l, card, c->state, held);
	follow_state(l, card, c->state, held);
}

/* What the store answered of the state, and of being idle when that was asked. */
static void take_past(struct live_memory *m, const struct now_ask *state, int64_t idle_ms)
{
	m->ask = false;
	if (state->since_ms >= 0 && (m->since_ms < 0 || state->since_ms < m->since_ms)) {
		m->since_ms = state->since_ms;
		m->longer = state->longer;
	}
	if (idle_ms >= 0 && (m->idle_ms < 0 || idle_ms < m->idle_ms))
		m->idle_ms = idle_ms;
}

/* Asks the store since when, of all cards that are seen for the first time: each question twice
 * where somebody wants to know of being idle. */
static int ask_past(struct live *l, struct err *e)
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
			each == 2 ? asks[i * each + 1].since_ms : -1);
	bool failed = !asks || !whose;
	free(asks);
	free(whose);
	return failed ? err_set(e, ERR_WORLD, "out of memory") : 0;
}

static void finish_card(struct live *l, size_t card)
{
	struct live_card *c = &l->cards[card];
	const struct live_memory *m = &l->memory[card];
	c->state_since_ms = m->since_ms;
	c->state_longer = m->longer;
	c->free_since_ms = c->state == CARD_TRULY_IDLE ? m->since_ms : -1;
	c->unheld_since_ms = m->unheld_ms;
	if (c->status != CARD_STATUS_OK)
		return;
	live_judge_processes(l, card, last_active_sample(l, card));
	compute_own(l, c, m->held);
}

/* Whether samples were lost between the last drain and this one: the driver keeps ten seconds,
 * and hands out each but once. */
static void take_coverage(struct live_memory *m, const struct card_reading *r)
{
	int64_t oldest_ms = r->samples[0].wall_us / 1000;
	m->gap = m->newest_ms >= 0 && (m->missed || oldest_ms - m->newest_ms > HOLE_MS);
	m->missed = false;
	if (m->gap || m->covered_ms < 0)
		m->covered_ms = oldest_ms;
	m->newest_ms = r->samples[r->n_samples - 1].wall_us / 1000;
}

/* The newest utilisation; a drain that brought no sample leaves the one before. */
static void take_util(struct live *l)
{
	for (size_t i = 0; i < l->n_cards; i++) {
		const struct card_reading *r = &l->source->cards[i];
		l->memory[i].gap = false;
		l->memory[i].missed |= l->failed;
		if (r->status != CARD_STATUS_OK || r->util_kind == UTIL_NONE) {
			l->memory[i].util_pct = NAN;
		} else if (r->n_samples) {
			take_coverage(&l->memory[i], r);
			l->memory[i].util_pct = r->samples[r->n_samples - 1].util_pct;
		}
	}
}

int live_digest(struct live *l, struct err *e)
{
	int rc = follow_cards(l, e);
	if (rc)
		return rc;
	l->now_ms = clock_wall_ms(l->clock);
	text_copy(l->driver, sizeof(l->driver), l->source->driver_version);
	read_past(l);
	take_util(l);
	live_finish_boards(l);
	rc = live_list_processes(l, e);
	for (size_t i = 0; rc == 0 && i < l->n_cards; i++)
		classify(l, i);
	if (rc == 0)
		rc = ask_past(l, e);
	for (size_t i = 0; rc == 0 && i < l->n_cards; i++)
		finish_card(l, i);
	/* Of a board that is not divided we know what we know of its card. */
	for (size_t i = 0; rc == 0 && i < l->n_boards; i++)
		if (!l->boards[i].mig)
			memcpy(l->boards[i].values, l->cards[l->boards[i].first_card].values,
				sizeof(l->boards[i].values));
	return rc;
}

const struct live_card *live_cards(const struct live *l, size_t *n)
{
	*n = l->n_cards;
	return l->cards;
}

const struct live_process *live_processes(const struct live *l, size_t *n)
{
	*n = l->now.n;
	return l->now.items;
}

const struct live_board *live_boards(const struct live *l, size_t *n)
{
	*n = l->n_boards;
	return l->boards;
}

int64_t live_now_ms(const struct live *l)
{
	return l->now_ms;
}

const char *live_driver(const struct live *l)
{
	return l->driver;
}

const char *live_hostname(const struct live *l)
{
	return l->hostname;
}

int64_t live_recorded_until(const struct live *l)
{
	return l->has_past && l->past.any_run && !l->past_fresh ? l->past.last_tick_ms : -1;
}

const char *live_note(const struct live *l)
{
	return l->note;
}

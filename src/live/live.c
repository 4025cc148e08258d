/* Opening a live view, and what is made of the driver's answers: cards, boards, states. */
#include "live/live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/live_private.h"
#include "source/kind.h"

/* Samples come at least once a second. */
#define HOLE_MS 2500
/* Wall and boot clock move together; a difference above this is a step. */
#define STEP_US 50000
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
	.from_ms = -1,
	.newest_ms = -1,
	.covered_ms = -1,
	.empty = true,
	.own_ms = -1,
	.own_idle_ms = -1 };

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
	l->rules = l->usual_rules = o->rules;
	l->db = o->db;
	l->ticks_per_s = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
	l->page_bytes = sysconf(_SC_PAGESIZE);
	memcpy(l->wanted, o->metrics ? o->metrics : live_usual_metrics, METRIC_COUNT);
	metric_complete(l->wanted);
	*out = l;
	int rc = live_open_driver(l, o, e);
	bool own_host = root[0] == '\0' && source_is_measured(o->source.name);
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

void live_move(int64_t *at_ms, int64_t step_ms)
{
	if (*at_ms >= 0)
		*at_ms = *at_ms + step_ms > 0 ? *at_ms + step_ms : 0;
}

/* The wall clock was set: what was seen was as long ago as before. */
static void follow_clock(struct live *l)
{
	struct moment m = clock_now(l->clock);
	int64_t step_us = m.wall_us - m.boot_us - l->wall_less_us;
	int64_t step_ms = step_us / 1000;
	l->now_ms = m.wall_us / 1000;
	if (l->refreshed && step_us < STEP_US && step_us > -STEP_US)
		return;
	l->wall_less_us += step_us;
	if (!l->refreshed)
		return;
	for (size_t i = 0; i < l->n_memory; i++) {
		struct live_memory *memory = &l->memory[i];
		int64_t *const times[] = { &memory->since_ms, &memory->idle_ms,
			&memory->newest_ms, &memory->covered_ms, &memory->own_ms,
			&memory->own_idle_ms };
		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++)
			live_move(times[k], step_ms);
	}
	live_move_processes(l, step_ms);
}

/* Without utilisation the processes decide, where they are known. */
static enum card_state state_of(
	const struct live *l, size_t card, double util_pct, struct held held)
{
	if (l->memory[card].latched)
		return CARD_SUSPECT;
	if (isnan(util_pct) && !l->cards[card].processes_known)
		return CARD_UNOBSERVED;
	return classify_card(util_pct, held, &l->rules);
}

int64_t live_sample_ms(const struct live *l, size_t card, size_t sample)
{
	int64_t ms = l->source->cards[card].samples[sample].wall_us / 1000;
	if (ms < l->memory[card].from_ms)
		ms = l->memory[card].from_ms;
	return ms < l->now_ms ? ms : l->now_ms;
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
		if (!(states & 1U << state_of(l, card, r->samples[i].util_pct, held))) {
			*whole = false;
			break;
		}
		since_ms = live_sample_ms(l, card, i);
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

/* Whether nobody knows since when a card that was `before` is in another state: it may have
 * been so all the while. That a card was held by somebody is known. */
static bool was_blind(enum card_state before, enum card_state state)
{
	return before != state &&
	       (before == CARD_UNOBSERVED ||
		       (before == CARD_USE_UNKNOWN && state != CARD_TRULY_IDLE));
}

/* Brings what is remembered of the card's state forward. */
static void follow_state(struct live *l, size_t card, enum card_state state, struct held held)
{
	struct live_memory *m = &l->memory[card];
	bool whole = true, goes_on = m->seen && m->state == state && !m->gap;
	int64_t since_ms = since_by_samples(l, card, 1U << state, held, &whole);
	bool first = !m->seen || m->gap || was_blind(m->state, state);
	/* Samples tell of use. When a holder came or went between two looks nobody knows. */
	unsigned both = 1U << m->state | 1U << state;
	bool handed = whole && !first && (both & IDLE_STATES) == both;
	/* Nor who may have been there before the first one: a card is free from then on. */
	bool freed = state == CARD_TRULY_IDLE;
	if (freed || (m->seen && !goes_on && (since_ms < 0 || handed)))
		since_ms = l->now_ms;
	if (!whole || !goes_on) {
		m->since_ms = since_ms;
		m->longer = first && (whole || freed);
		m->lent = false;
	}
	first |= m->longer && l->past_came;
	bool told = m->lent && l->past.last_tick_ms >= m->own_ms;
	bool stored = state != CARD_UNOBSERVED && state != CARD_SUSPECT;
	m->ask = whole && (first || told) && l->past_fresh && stored;
	m->state = state;
	m->seen = true;
}

/* The newest sample that was active, unix milliseconds; -1: none. */
static int64_t last_active_sample(const struct live *l, size_t card)
{
	const struct card_reading *r = &l->source->cards[card];
	for (size_t i = r->n_samples; i-- > 0;)
		if (r->samples[i].util_pct >= l->rules.active_util_pct)
			return live_sample_ms(l, card, i);
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
	known = known && !isnan(used) && !l->source->cards[c - l->cards].mem_is_sum;
	v[METRIC_GUA_ORPHAN_MEMORY] = known ? fmax(used - listed, 0) : NAN;
	v[METRIC_GUA_HOLDERS] = c->processes_known ? (double)held.n : NAN;
	v[METRIC_GUA_HELD_MEMORY] =
		c->processes_known && !held.unknown ? (double)held.bytes : NAN;
	v[METRIC_GUA_STATE_SINCE] = c->state_since_ms < 0 ? NAN : (double)c->state_since_ms;
	int64_t idle_ms = l->memory[c - l->cards].idle_ms;
	v[METRIC_GUA_IDLE_SINCE] = idle_ms < 0 ? NAN : (double)idle_ms;
	if (c->state == CARD_ACTIVE || c->state == CARD_IDLE_HELD ||
		c->state == CARD_USE_UNKNOWN)
		v[METRIC_GUA_FREE_FOR] = 0;
	else if (c->free_since_ms >= 0)
		v[METRIC_GUA_FREE_FOR] = (double)(l->now_ms - c->free_since_ms) / 1000;
}

/* Whether the card's utilisation is believed. While samples are read that were taken before the
 * last process left, they are: nobody may have been there at the look before either. A drain
 * without samples changes nothing but that somebody may have come. */
static void judge_samples(struct live *l, size_t card)
{
	struct live_memory *m = &l->memory[card];
	const struct card_reading *r = &l->source->cards[card];
	bool known = l->cards[card].processes_known && r->mem_used_bytes >= 0;
	bool empty = known && r->n_processes == 0;
	int64_t used_bytes = empty ? r->mem_used_bytes - reserve_bytes(r) : -1;
	if (r->n_samples || !empty || !util_is_known(r->util_kind))
		m->latched = empty && m->empty && util_is_known(r->util_kind) &&
			     is_latched(r->samples, r->n_samples, used_bytes, &l->rules);
	m->empty = empty;
}

static struct held sum_held(const struct live *l, const struct live_card *c)
{
	struct held held = { 0 };
	for (size_t k = 0; k < c->n_processes; k++) {
		const struct live_process *p = &l->now.items[c->first_process + k];
		if (!p->holder)
			continue;
		held.n++;
		held.unknown |= p->mem_bytes < 0;
		held.bytes += p->mem_bytes > 0 ? p->mem_bytes : 0;
	}
	return held;
}

/* The state of a card, by its newest sample and its holders. */
static void classify(struct live *l, size_t card)
{
	struct live_card *c = &l->cards[card];
	struct live_memory *m = &l->memory[card];
	struct held held = sum_held(l, c);
	if (c->status == CARD_STATUS_OK)
		judge_samples(l, card);
	else
		*m = nothing_seen;
	c->state = state_of(l, card, m->util_pct, held);
	m->held = held;
	if (c->status != CARD_STATUS_OK)
		return;
	follow_idle(l, card, c->state, held);
	follow_state(l, card, c->state, held);
}

static void finish_card(struct live *l, size_t card)
{
	struct live_card *c = &l->cards[card];
	const struct live_memory *m = &l->memory[card];
	c->state_since_ms = m->since_ms;
	c->state_longer = m->longer;
	c->free_since_ms = c->state == CARD_TRULY_IDLE ? m->since_ms : -1;
	if (c->status != CARD_STATUS_OK)
		return;
	live_judge_processes(l, card, last_active_sample(l, card));
	compute_own(l, c, m->held);
}

/* Whether samples were lost between the last drain and this one: the driver keeps ten seconds,
 * and hands out each but once. A mean leaves nothing out. */
static void take_coverage(struct live *l, size_t card)
{
	struct live_memory *m = &l->memory[card];
	m->from_ms = m->newest_ms;
	int64_t oldest_ms = live_sample_ms(l, card, 0);
	bool hole = oldest_ms - m->from_ms > HOLE_MS &&
		    l->source->cards[card].util_kind != UTIL_MEAN;
	m->gap = m->from_ms >= 0 && (m->missed || hole);
	m->missed = false;
	if (m->gap || m->covered_ms < 0)
		m->covered_ms = oldest_ms;
	m->newest_ms = live_sample_ms(l, card, l->source->cards[card].n_samples - 1);
}

/* The newest utilisation; a drain that brought no sample leaves the one before. Without any,
 * what is known comes from looks: there were none while the driver was gone. */
static void take_util(struct live *l)
{
	for (size_t i = 0; i < l->n_cards; i++) {
		const struct card_reading *r = &l->source->cards[i];
		l->memory[i].gap = false;
		l->memory[i].missed |= l->failed;
		if (r->status != CARD_STATUS_OK || !util_is_known(r->util_kind)) {
			l->memory[i].util_pct = NAN;
			l->memory[i].gap = l->memory[i].missed;
			l->memory[i].missed = false;
		} else if (r->n_samples) {
			take_coverage(l, i);
			l->memory[i].util_pct = r->samples[r->n_samples - 1].util_pct;
		}
	}
}

int live_digest(struct live *l, struct err *e)
{
	int rc = follow_cards(l, e);
	if (rc == 0)
		rc = live_make_room(l, e);
	/* From here on nothing fails: what was shown stands, or all of the answer is. */
	if (rc)
		return rc;
	follow_clock(l);
	text_copy(l->driver, sizeof(l->driver), l->source->driver_version);
	live_read_past(l);
	take_util(l);
	live_finish_boards(l);
	live_list_processes(l);
	for (size_t i = 0; i < l->n_cards; i++)
		classify(l, i);
	live_ask_past(l);
	for (size_t i = 0; i < l->n_cards; i++)
		finish_card(l, i);
	/* Of a board that is not divided we know what we know of its card. */
	for (size_t i = 0; i < l->n_boards; i++)
		if (!l->boards[i].mig)
			memcpy(l->boards[i].values, l->cards[l->boards[i].first_card].values,
				sizeof(l->boards[i].values));
	return 0;
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

const struct rules *live_rules(const struct live *l)
{
	return &l->rules;
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
	return l->past.any_run && !l->past_fresh ? l->past.last_tick_ms : -1;
}

void live_suspect_text(char *dst, size_t cap, const struct live_card *card)
{
	char instance[16] = "";
	if (card->id.mig_index >= 0)
		snprintf(instance, sizeof(instance), ":%d", card->id.mig_index);
	snprintf(dst, cap,
		"card %d%s reports %.0f %% use with no process and no memory: not believed; "
		"opening and closing a CUDA context clears it",
		card->id.index, instance, card->values[METRIC_UTILIZATION_GPU]);
}

const char *live_note(const struct live *l)
{
	return l->note;
}

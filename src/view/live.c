/* Opening and refreshing a live view: cards, boards, states. */
#include "view/live.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timetext.h"
#include "view/live_private.h"

/* A lost card is looked for this often, new ones seldom. */
#define RETRY_US (30 * 1000000LL)
#define RESCAN_US (600 * 1000000LL)
/* The store is asked again this often. */
#define PAST_US (10 * 1000000LL)
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

/* Reads the store again when it is time. */
static void read_past(struct live *l)
{
	struct err e = { 0 };
	int64_t boot_us = clock_now(l->clock).boot_us;
	if (!l->has_past || (l->refreshed && boot_us - l->past_us < PAST_US))
		return;
	l->past_us = boot_us;
	l->past_fresh = false;
	l->note[0] = '\0';
	if (now_read(&l->past, &e)) {
		text_copy(l->note, sizeof(l->note), e.text);
		l->past.n_holders = 0;
		return;
	}
	int64_t age_ms = l->now_ms - l->past.last_tick_ms;
	l->past_fresh = l->past.any_run && age_ms <= 2 * l->past.interval_ms + PAST_SLACK_MS;
	if (!l->past.any_run) {
		text_copy(l->note, sizeof(l->note), "nothing was recorded in the store yet");
	} else if (!l->past_fresh) {
		char age[40];
		duration_text(age, sizeof(age), age_ms);
		snprintf(l->note, sizeof(l->note),
			"the recorder has written nothing for %s: times before now are not "
			"known",
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
	memcpy(l->wanted, o->metrics ? o->metrics : live_usual_metrics, METRIC_COUNT);
	metric_complete(l->wanted);
	int rc = source_open(&l->source, &o->source, e);
	bool own_host = root[0] == '\0' && rc == 0 && !l->source->ops->describe;
	if (rc == 0)
		rc = owners_open(&l->owners, root, e);
	if (rc == 0)
		rc = lives_init(&l->lives, l->owners, own_host, e);
	if (rc) {
		live_close(l);
		return rc;
	}
	l->scanned_us = clock_now(l->clock).boot_us;
	name_host(l);
	open_past(l);
	*out = l;
	return 0;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	if (l->has_past)
		now_close(&l->past);
	lives_finish(&l->lives);
	owners_close(l->owners);
	source_close(l->source);
	live_finish_list(&l->now);
	live_finish_list(&l->before);
	free(l->cards);
	free(l->memory);
	free(l->boards);
	free(l->holders);
	free(l);
}

static bool has_lost_card(const struct live *l)
{
	for (size_t i = 0; i < l->source->n_cards; i++)
		if (l->source->cards[i].status == CARD_STATUS_LOST)
			return true;
	return false;
}

/* Looks for cards when it is time. */
static int rescan(struct live *l, struct err *e)
{
	int64_t boot_us = clock_now(l->clock).boot_us;
	int64_t every_us = has_lost_card(l) ? RETRY_US : RESCAN_US;
	if (!l->failed && boot_us - l->scanned_us < every_us)
		return 0;
	l->scanned_us = boot_us;
	return source_scan(l->source, e);
}

/* Room for the cards that the source has now; none ever goes. */
static int follow_cards(struct live *l, struct err *e)
{
	size_t n = l->source->n_cards;
	if (n > l->n_cards) {
		struct live_card *cards = reallocarray(l->cards, n, sizeof(*cards));
		if (cards)
			l->cards = cards;
		struct live_memory *memory = reallocarray(l->memory, n, sizeof(*memory));
		if (memory)
			l->memory = memory;
		struct live_board *boards = reallocarray(l->boards, n, sizeof(*boards));
		if (boards)
			l->boards = boards;
		if (!cards || !memory || !boards)
			return err_set(e, ERR_WORLD, "out of memory");
		for (size_t i = l->n_cards; i < n; i++)
			memory[i] = (struct live_memory){ .util_pct = NAN, .since_ms = -1 };
	}
	l->n_cards = n;
	return 0;
}

/* The board of a card, made when the card is the first of it. */
static size_t find_board(struct live *l, size_t card)
{
	const struct card_reading *r = &l->source->cards[card];
	bool instance = r->id.mig_index >= 0;
	const char *uuid = instance ? r->id.parent_uuid : r->id.uuid;
	for (size_t i = 0; i < l->n_boards; i++)
		if (strcmp(l->boards[i].id.uuid, uuid) == 0)
			return i;
	struct live_board *b = &l->boards[l->n_boards];
	*b = (struct live_board){ .id = r->id, .first_card = card, .mig = instance };
	b->status = CARD_STATUS_LOST;
	b->code = r->code;
	if (instance) {
		text_copy(b->id.uuid, sizeof(b->id.uuid), r->id.parent_uuid);
		b->id.parent_uuid[0] = '\0';
		b->id.mig_index = b->id.gpu_instance = b->id.compute_instance = -1;
		if (l->source->ops->board)
			l->source->ops->board(l->source, card, &b->id);
	}
	metric_clear(b->values, b->texts);
	return l->n_boards++;
}

/* A board is as well as the best of its cards. */
static void make_boards(struct live *l)
{
	l->n_boards = 0;
	for (size_t i = 0; i < l->n_cards; i++) {
		const struct card_reading *r = &l->source->cards[i];
		size_t at = find_board(l, i);
		struct live_board *b = &l->boards[at];
		l->cards[i].board = at;
		if (b->status == CARD_STATUS_OK ||
			(b->status == CARD_STATUS_LOST && b->first_card != i &&
				r->status == CARD_STATUS_LOST))
			continue;
		b->status = r->status;
		b->code = r->code;
		b->first_card = i;
	}
}

static void read_metrics(
	struct live *l, size_t card, bool board, double *values, metric_texts texts)
{
	struct source *s = l->source;
	if (s->ops->metrics && s->cards[card].status == CARD_STATUS_OK)
		s->ops->metrics(s, card, board, l->wanted, values, texts);
}

/* What is known without asking the driver again. */
static void fill_known(struct live *l, const struct card_id *id, int64_t used_bytes,
	double util_pct, double *values)
{
	unsigned domain, bus, device;
	values[METRIC_INDEX] = id->index;
	values[METRIC_CARDS] = (double)l->n_boards;
	if (id->mem_total_bytes >= 0)
		values[METRIC_MEMORY_TOTAL] = (double)id->mem_total_bytes;
	if (used_bytes >= 0)
		values[METRIC_MEMORY_USED] = (double)used_bytes;
	if (isnan(values[METRIC_MEMORY_FREE]))
		values[METRIC_MEMORY_FREE] =
			values[METRIC_MEMORY_TOTAL] - values[METRIC_MEMORY_USED];
	if (isnan(values[METRIC_UTILIZATION_GPU]))
		values[METRIC_UTILIZATION_GPU] = util_pct;
	if (sscanf(id->pci, "%x:%x:%x", &domain, &bus, &device) == 3) {
		values[METRIC_PCI_DOMAIN] = domain;
		values[METRIC_PCI_BUS] = bus;
		values[METRIC_PCI_DEVICE] = device;
	}
}

static void read_board(struct live *l, struct live_board *b)
{
	const struct live_memory *m = &l->memory[b->first_card];
	if (b->status == CARD_STATUS_OK)
		read_metrics(l, b->first_card, true, b->values, b->texts);
	if (b->mig && !isnan(b->values[METRIC_MEMORY_TOTAL]))
		b->id.mem_total_bytes = (int64_t)b->values[METRIC_MEMORY_TOTAL];
	else if (b->mig)
		b->id.mem_total_bytes = -1;
	int64_t used = b->mig ? -1 : l->source->cards[b->first_card].mem_used_bytes;
	fill_known(l, &b->id, used, b->mig ? NAN : m->util_pct, b->values);
	metric_derive(b->values);
}

/* What belongs to an instance itself, not to the board that it is a part of. */
static const enum metric divided[] = { METRIC_MEMORY_TOTAL, METRIC_MEMORY_RESERVED,
	METRIC_MEMORY_USED, METRIC_MEMORY_FREE, METRIC_UTILIZATION_GPU,
	METRIC_UTILIZATION_MEMORY, METRIC_UTILIZATION_ENCODER, METRIC_UTILIZATION_DECODER,
	METRIC_UTILIZATION_JPEG, METRIC_UTILIZATION_OFA, METRIC_BAR1_TOTAL, METRIC_BAR1_USED };

static void read_card(struct live *l, size_t i)
{
	struct live_card *c = &l->cards[i];
	const struct card_reading *r = &l->source->cards[i];
	const struct live_board *b = &l->boards[c->board];
	memcpy(c->values, b->values, sizeof(c->values));
	memcpy(c->texts, b->texts, sizeof(c->texts));
	if (r->id.mig_index >= 0) {
		for (size_t k = 0; k < sizeof(divided) / sizeof(divided[0]); k++)
			c->values[divided[k]] = NAN;
		read_metrics(l, i, false, c->values, c->texts);
		fill_known(l, &r->id, r->mem_used_bytes, l->memory[i].util_pct, c->values);
	}
	c->id = r->id;
	c->status = r->status;
	c->code = r->code;
	if (r->status == CARD_STATUS_OK)
		return;
	metric_clear(c->values, c->texts);
	c->values[METRIC_INDEX] = c->id.index;
	c->values[METRIC_CARDS] = (double)l->n_boards;
}

static enum card_state state_of(const struct live *l, double util_pct, struct held held)
{
	return isnan(util_pct) ? CARD_UNOBSERVED : classify_card(util_pct, held, &l->rules);
}

/* Since when, by the samples that were just read, the card has been in the state: the oldest
 * one behind which none says otherwise. *whole: none of them does. */
static int64_t since_by_samples(
	const struct live *l, size_t card, enum card_state state, struct held held, bool *whole)
{
	const struct card_reading *r = &l->source->cards[card];
	int64_t since_ms = -1;
	*whole = true;
	for (size_t i = r->n_samples; i-- > 0;) {
		if (state_of(l, r->samples[i].util_pct, held) != state) {
			*whole = false;
			break;
		}
		since_ms = r->samples[i].wall_us / 1000;
	}
	return since_ms;
}

/* Brings what is remembered of the card's state forward. */
static void follow_state(struct live *l, size_t card, enum card_state state, struct held held)
{
	struct live_memory *m = &l->memory[card];
	struct err e = { 0 };
	bool whole = true, goes_on = m->seen && m->state == state;
	int64_t since_ms = since_by_samples(l, card, state, held, &whole);
	if (since_ms < 0 && m->seen && !goes_on)
		since_ms = l->now_ms;
	if (!whole || !goes_on)
		m->since_ms = since_ms;
	if (whole && !m->seen && l->past_fresh && state != CARD_UNOBSERVED) {
		const char *uuid = l->cards[card].id.uuid;
		int64_t stored_ms = now_state_since(&l->past, uuid, state, &e);
		if (stored_ms >= 0 && (since_ms < 0 || stored_ms < since_ms))
			m->since_ms = stored_ms;
	}
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
	bool idle = c->state == CARD_IDLE_HELD || c->state == CARD_TRULY_IDLE;
	v[METRIC_GUA_IDLE_SINCE] = idle ? v[METRIC_GUA_STATE_SINCE] : NAN;
	if (c->state == CARD_ACTIVE || c->state == CARD_IDLE_HELD)
		v[METRIC_GUA_FREE_FOR] = 0;
	else if (c->free_since_ms >= 0)
		v[METRIC_GUA_FREE_FOR] = (double)(l->now_ms - c->free_since_ms) / 1000;
}

static void judge_card(struct live *l, size_t card)
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
	if (c->status != CARD_STATUS_OK) {
		*m = (struct live_memory){ .util_pct = NAN, .since_ms = -1 };
		c->state = CARD_UNOBSERVED;
		c->state_since_ms = c->free_since_ms = -1;
		return;
	}
	c->state = state_of(l, m->util_pct, held);
	follow_state(l, card, c->state, held);
	c->state_since_ms = m->since_ms;
	c->free_since_ms = c->state == CARD_TRULY_IDLE ? m->since_ms : -1;
	live_judge_processes(l, card, last_active_sample(l, card));
	compute_own(l, c, held);
}

/* The newest utilisation; a drain that brought no sample leaves the one before. */
static void take_util(struct live *l)
{
	for (size_t i = 0; i < l->n_cards; i++) {
		const struct card_reading *r = &l->source->cards[i];
		if (r->status != CARD_STATUS_OK || r->util_kind == UTIL_NONE)
			l->memory[i].util_pct = NAN;
		else if (r->n_samples)
			l->memory[i].util_pct = r->samples[r->n_samples - 1].util_pct;
	}
}

static int refresh(struct live *l, struct err *e)
{
	int rc = rescan(l, e);
	if (rc == 0)
		rc = source_drain(l->source, e);
	if (rc == 0)
		rc = source_look(l->source, e);
	if (rc == 0)
		rc = follow_cards(l, e);
	if (rc)
		return rc;
	l->now_ms = clock_wall_ms(l->clock);
	read_past(l);
	take_util(l);
	make_boards(l);
	for (size_t i = 0; i < l->n_boards; i++)
		read_board(l, &l->boards[i]);
	for (size_t i = 0; i < l->n_cards; i++)
		read_card(l, i);
	rc = live_list_processes(l, e);
	for (size_t i = 0; rc == 0 && i < l->n_cards; i++)
		judge_card(l, i);
	/* Of a board that is not divided we know what we know of its card. */
	for (size_t i = 0; rc == 0 && i < l->n_boards; i++)
		if (!l->boards[i].mig)
			memcpy(l->boards[i].values, l->cards[l->boards[i].first_card].values,
				sizeof(l->boards[i].values));
	return rc;
}

int live_refresh(struct live *l, struct err *e)
{
	int rc = refresh(l, e);
	l->failed = rc != 0;
	l->refreshed |= rc == 0;
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
	return l->source->driver_version;
}

const char *live_hostname(const struct live *l)
{
	return l->hostname;
}

const char *live_note(const struct live *l)
{
	return l->note;
}

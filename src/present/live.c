/* Opens a live view; turns the driver's answers into cards and boards; joins them with what the
 * store says of the past. */
#include "present/live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "driver/source.h"
#include "present/live_private.h"
#include "present/past.h"

/* A longer time between two samples is a gap: samples come at least once a second. */
#define HOLE_MS 2500

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

const struct live_memory live_nothing_seen = { .util_pct = NAN,
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
	str_copy(raw, sizeof(raw), l->source->hostname);
	if (!raw[0] && gethostname(raw, sizeof(raw) - 1) != 0)
		str_copy(raw, sizeof(raw), "localhost");
	str_escape(l->host.hostname, sizeof(l->host.hostname), raw, strlen(raw));
}

/* Publishes the current arrays as the present. */
static void publish(struct live *l)
{
	l->host.rules = l->rules;
	l->host.last_tick_ms = -1;
	l->host.recorded_until_ms = past_ended_ms(&l->past);
	str_copy(l->host.note, sizeof(l->host.note), l->past.note);
	l->present = (struct present){ .now_ms = l->now_ms,
		.hosts = &l->host,
		.n_hosts = 1,
		.cards = l->cards,
		.n_cards = l->n_cards,
		.boards = l->boards,
		.n_boards = l->n_boards,
		.processes = l->now.items,
		.n_processes = l->now.n };
	live_publish_accounts(l);
}

/* Opens the reader that describes processes. It starts its own process here, so that it is
 * ready when the driver has listed the processes; simulated processes need none. */
static int open_processes(struct live *l, const struct live_options *o, struct err *e)
{
	const char *root = o->source.root ? o->source.root : "";
	bool measured = source_is_measured(o->source.name);
	int rc = reader_open(&l->reader, root, e);
	bool watched = measured && !root[0] && !o->once && !o->cards_only;
	if (rc == 0)
		rc = lives_init(&l->lives, o->cards_only ? NULL : l->reader, watched, e);
	if (rc == 0 && measured && !o->cards_only)
		reader_start(l->reader);
	return rc;
}

int live_open(struct live **out, const struct live_options *o, struct err *e)
{
	struct live *l = calloc(1, sizeof(*l));
	if (!l)
		return err_memory(e);
	struct moment opened = clock_now(o->source.clock);
	l->clock = o->source.clock;
	l->present = (struct present){ .hosts = &l->host, .n_hosts = 1 };
	l->rules = l->usual_rules = o->rules;
	l->past.db = o->db;
	l->past.named = o->db_named;
	l->past.invented = source_is_invented(o->source.name);
	l->ticks_per_s = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
	l->page_bytes = sysconf(_SC_PAGESIZE);
	l->viewer_uid = geteuid();
	memcpy(l->wanted, o->metrics ? o->metrics : live_usual_metrics, METRIC_COUNT);
	metric_complete(l->wanted);
	*out = l;
	int rc = open_processes(l, o, e);
	if (rc == 0)
		rc = live_open_driver(l, o, e);
	if (rc)
		return rc;
	/* The store is read while the driver opens. */
	past_read(&l->past, &opened);
	rc = live_await_driver(l, e);
	if (rc)
		return rc;
	name_host(l);
	publish(l);
	return 0;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	reader_dismiss(l->reader);
	live_close_driver(l);
	past_finish(&l->past);
	lives_finish(&l->lives);
	reader_close(l->reader);
	live_process_finish_list(&l->now);
	live_process_finish_list(&l->before);
	free(l->cards);
	free(l->memory);
	free(l->boards);
	free(l->holders);
	free(l);
}

/* Allocates memory for the cards that exist now; cards are never removed. */
static int follow_cards(struct live *l, struct err *e)
{
	if (l->n_cards <= l->n_memory)
		return 0;
	if (!array_resize(&l->memory, l->n_cards))
		return err_memory(e);
	while (l->n_memory < l->n_cards)
		l->memory[l->n_memory++] = live_nothing_seen;
	return 0;
}

void live_move(int64_t *at_ms, int64_t step_ms)
{
	if (*at_ms >= 0)
		*at_ms = *at_ms + step_ms > 0 ? *at_ms + step_ms : 0;
}

/* Moves the remembered times when the wall clock was set, so that their age stays the same. */
static void follow_clock(struct live *l)
{
	struct moment m = clock_now(l->clock);
	l->now_ms = m.wall_us / 1000;
	if (!l->refreshed)
		clock_watch_start(&l->clock_watch, &m);
	int64_t step_ms = clock_watch_step_us(&l->clock_watch, &m) / 1000;
	if (!step_ms)
		return;
	for (size_t i = 0; i < l->n_memory; i++) {
		struct live_memory *memory = &l->memory[i];
		int64_t *const times[] = { &memory->since_ms, &memory->idle_ms,
			&memory->newest_ms, &memory->covered_ms, &memory->own_ms,
			&memory->own_idle_ms };
		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++)
			live_move(times[k], step_ms);
	}
	live_process_move(l, step_ms);
}

int64_t live_sample_ms(const struct live *l, size_t card, size_t sample)
{
	int64_t ms = l->source->cards[card].samples[sample].wall_us / 1000;
	if (ms < l->memory[card].from_ms)
		ms = l->memory[card].from_ms;
	return live_until_now(l, ms);
}

int64_t live_until_now(const struct live *l, int64_t at_ms)
{
	return at_ms < l->now_ms ? at_ms : l->now_ms;
}

/* Finds out whether samples were lost between the last drain and this one. The driver keeps ten
 * seconds, and returns each sample only once. A reading that is the mean over the whole time
 * misses nothing. */
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

/* Takes the newest utilisation. A drain without samples leaves the previous value. Without
 * utilisation, a failed refresh before this one is a gap. */
static void take_util(struct live *l)
{
	for (size_t i = 0; i < l->n_cards; i++) {
		const struct card_reading *r = &l->source->cards[i];
		l->memory[i].gap = false;
		l->memory[i].missed |= l->failed;
		if (r->status != CARD_STATUS_OK || !reading_util_is_known(r->util_kind)) {
			l->memory[i].util_pct = NAN;
			l->memory[i].gap = l->memory[i].missed;
			l->memory[i].missed = false;
		} else if (r->n_samples) {
			take_coverage(l, i);
			l->memory[i].util_pct = r->samples[r->n_samples - 1].util_pct;
		}
	}
}

/* Fills in values that are known without asking the driver again. */
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

static void finish_board(struct live *l, struct present_board *b)
{
	const struct live_memory *m = &l->memory[b->first_card];
	if (b->mig && !isnan(b->values[METRIC_MEMORY_TOTAL]))
		b->id.mem_total_bytes = (int64_t)b->values[METRIC_MEMORY_TOTAL];
	else if (b->mig)
		b->id.mem_total_bytes = -1;
	int64_t used = b->mig ? -1 : l->source->cards[b->first_card].mem_used_bytes;
	fill_known(l, &b->id, used, b->mig ? NAN : m->util_pct, b->values);
	metric_derive(b->values);
}

static void finish_card(struct live *l, size_t i)
{
	struct present_card *c = &l->cards[i];
	const struct card_reading *r = &l->source->cards[i];
	const struct present_board *b = &l->boards[c->board];
	if (r->id.mig_index >= 0) {
		metric_derive(c->values);
		fill_known(l, &r->id, r->mem_used_bytes, l->memory[i].util_pct, c->values);
	} else {
		memcpy(c->values, b->values, sizeof(c->values));
		memcpy(c->texts, b->texts, sizeof(c->texts));
	}
	c->host = 0;
	c->last_seen_ms = -1;
	c->id = r->id;
	str_copy(c->source, sizeof(c->source), r->source);
	c->status = r->status;
	c->code = r->code;
	c->gone = r->gone;
	if (r->status == CARD_STATUS_OK)
		return;
	metric_clear(c->values, c->texts);
	c->values[METRIC_INDEX] = c->id.index;
	c->values[METRIC_CARDS] = (double)l->n_boards;
}

static void finish_boards(struct live *l)
{
	for (size_t i = 0; i < l->n_boards; i++)
		finish_board(l, &l->boards[i]);
	for (size_t i = 0; i < l->n_cards; i++)
		finish_card(l, i);
}

/* Takes over the recorder's rules of active and held. If the rules have changed, the states
 * that were seen so far are forgotten: they were found by the old rules. */
static void join_rules(struct live *l)
{
	const struct rules *recorded = past_rules(&l->past);
	struct rules rules = recorded ? *recorded : l->usual_rules;
	bool same = state_rules_equal(&rules, &l->rules);
	l->rules = rules;
	for (size_t i = 0; !same && i < l->n_memory; i++) {
		l->memory[i].seen = false;
		l->memory[i].idle_ms = -1;
	}
}

static void join_process(struct live *l, struct present_process *p, struct live_mark *m)
{
	const struct last_run_holder *h = past_holder(
		&l->past, l->cards[p->card].id.uuid, &p->id, reader_boot_id(l->reader));
	m->recorded = h && l->past.fresh;
	if (!h)
		return;
	int64_t since_ms = live_until_now(l, h->since_ms);
	if (since_ms >= 0 && (p->held_since_ms < 0 || since_ms < p->held_since_ms))
		p->held_since_ms = since_ms;
	if (live_until_now(l, h->last_active_ms) > p->last_active_ms)
		p->last_active_ms = live_until_now(l, h->last_active_ms);
	m->recorded_idle_ms = live_until_now(l, h->idle_since_ms);
	m->recorded_longer = h->idle_longer;
	/* Idle for less than a tick does not count. Without utilisation it is not known. */
	if (isnan(l->memory[p->card].util_pct))
		return;
	if (!l->past.fresh &&
		l->past.now.last_tick_ms - h->idle_since_ms >= l->past.now.interval_ms) {
		p->was_idle_since_ms = h->idle_since_ms;
		p->was_idle_longer = h->idle_longer;
	}
}

static void join(struct live *l)
{
	join_rules(l);
	for (size_t i = 0; i < l->now.n; i++)
		join_process(l, &l->now.items[i], &l->now.marks[i]);
}

/* Takes the store's answer: since when the card has been in its state and, if that was asked,
 * idle. The store knows nothing after its last tick, so some seconds before own_ms may be
 * missing. The store is then asked again (`lent`) when it has written them. */
static void take_past(struct live_memory *m, const struct last_run_ask *state, int64_t idle_ms,
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

/* Asks the store since when each card has been in its state. If METRIC_GUA_IDLE_SINCE is
 * wanted, a second question for each card asks since when it has been idle. Without an answer,
 * the values that this view has seen itself stay. */
static void join_states(struct live *l)
{
	size_t n = 0, at = 0, each = l->wanted[METRIC_GUA_IDLE_SINCE] ? 2 : 1;
	struct last_run_ask *asks = calloc(2 * l->n_cards + 1, sizeof(*asks));
	size_t *whose = calloc(l->n_cards + 1, sizeof(*whose));
	for (size_t i = 0; asks && whose && i < l->n_cards; i++) {
		const char *uuid = l->cards[i].id.uuid;
		unsigned state = 1U << l->cards[i].state;
		if (!l->memory[i].ask)
			continue;
		whose[n++] = i;
		asks[at++] = (struct last_run_ask){ uuid, state, -1, true };
		if (each == 2)
			asks[at++] = (struct last_run_ask){ uuid,
				IDLE_STATES & state ? IDLE_STATES : 0, -1, true };
	}
	past_states_since(&l->past, asks, at);
	for (size_t i = 0; i < n; i++)
		take_past(&l->memory[whose[i]], &asks[i * each],
			each == 2 ? asks[i * each + 1].since_ms : -1, l->past.now.last_tick_ms);
	free(asks);
	free(whose);
}

int live_digest(struct live *l, struct err *e)
{
	int rc = follow_cards(l, e);
	if (rc == 0)
		rc = live_process_make_room(l, e);
	/* Nothing fails after this point: the view shows either all of the old or all of the
	 * new answer. */
	if (rc)
		return rc;
	/* Take the driver's answer, */
	follow_clock(l);
	str_copy(l->host.driver, sizeof(l->host.driver), l->source->driver_version);
	take_util(l);
	finish_boards(l);
	live_process_list(l);
	/* join it with the past, which is asked about states that are known now, */
	struct moment now = clock_now(l->clock);
	past_read(&l->past, &now);
	join(l);
	live_judge_states(l);
	join_states(l);
	/* and judge by both. */
	live_judge(l);
	l->past.came = false;
	publish(l);
	return 0;
}

const struct present *live_present(const struct live *l)
{
	return &l->present;
}

struct reader *live_reader(struct live *l)
{
	return l->reader;
}

void live_recent_cards(const struct live *l, size_t first, const struct past_minutes *minutes)
{
	struct sqlite3 *db = past_open(&l->past);
	struct past_minutes own = *minutes;
	for (size_t i = 0; i < (l->n_cards - first) * own.n; i++)
		minutes->pct[i] = NAN;
	for (size_t i = first; db && i < l->n_cards; i++, own.pct += own.n)
		if (past_card_minutes(db, l->cards[i].id.uuid, &own, NULL) != 0)
			break;
	past_close(db);
}

bool live_recent_process(const struct live *l, size_t card, const struct process_id *id,
	const struct past_minutes *minutes)
{
	struct sqlite3 *db = card < l->n_cards ? past_open(&l->past) : NULL;
	int rc = db ? past_process_minutes(db, l->cards[card].id.uuid, id, minutes, NULL) : 0;
	past_close(db);
	return rc == 1;
}

/* Handles cards and their status, events, and the data that a tick writes to the store. */
#include "record/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "record/watch_now.h"
#include "record/watch_private.h"
#include "record/watch_spells.h"
#include "driver/ring.h"

/* Shorter gaps get no event. */
#define GAP_EVENT_MS 2000

int watch_init(struct watch *w, const struct watch_options *o, struct err *e)
{
	*w = (struct watch){ .rules = *o->rules, .pace = o->pace };
	int rc = ledger_init(&w->ledger, e);
	if (!rc)
		rc = lives_init(&w->lives, o->reader, o->pidfds, e);
	w->lives.privacy = o->privacy;
	return rc;
}

void watch_finish(struct watch *w)
{
	for (size_t i = 0; i < w->n_cards; i++) {
		holders_finish(&w->cards[i].holders);
		idle_spells_finish(&w->cards[i].spells);
	}
	free(w->cards);
	free(w->entries);
	free(w->now);
	free(w->spells);
	free(w->past);
	free(w->list);
	free(w->sm_pct);
	free(w->uses_engine);
	free(w->part_pct);
	free(w->suspect);
	ledger_finish(&w->ledger);
	lives_finish(&w->lives);
	*w = (struct watch){ 0 };
}

struct account_scene watch_scene(struct watch *w, size_t i)
{
	struct holders *h = &w->cards[i].holders;
	return (struct account_scene){ h->items, h->n, &w->rules, &w->ledger,
		&w->cards[i].spells };
}

void watch_event(struct watch *w, const struct occurrence *what, const char *format, ...)
{
	if (w->n_events == WATCH_MAX_EVENTS)
		return;
	struct event *event = &w->events[w->n_events++];
	*event = (struct event){ .at_ms = what->at_ms,
		.kind = what->kind,
		.card = what->card,
		.value = what->value };
	va_list args;
	va_start(args, format);
	vsnprintf(event->text, sizeof(event->text), format, args);
	va_end(args);
}

static int add_card(struct watch *w, const struct card_reading *r, int64_t now_ms,
	const struct card_past *past, struct err *e)
{
	/* What was not read, or comes from before the clock was set back, ends now, so that
	 * no time in the driver's ring is accounted twice. */
	int64_t seen_ms = past->seen_ms < now_ms ? past->seen_ms : now_ms;
	if (w->n_cards == w->cap_cards) {
		size_t cap = array_next_cap(w->cap_cards, w->n_cards + 1);
		if (!array_resize(&w->cards, cap) || !array_resize(&w->entries, cap))
			return err_memory(e);
		w->cap_cards = cap;
	}
	size_t i = w->n_cards++;
	w->entries[i] = (struct card_entry){
		.id = r->id,
		.status = CARD_STATUS_OK,
		.first_seen_ms = now_ms,
		.last_seen_ms = now_ms,
		.dirty = true,
	};
	str_copy(w->entries[i].source, SOURCE_CAP, r->source);
	w->cards[i] = (struct watched){ .glance_ms = -1,
		.look_ms = -1,
		.mem_bytes = -1,
		.floor_bytes = -1,
		.empty_ms = -1 };
	watch_now_start(&w->cards[i]);
	idle_spells_init(&w->cards[i].spells, (uint32_t)i, w->rules.spell_ms);
	bool recent = seen_ms >= 0 && now_ms - seen_ms <= RING_MS;
	account_start(&w->cards[i].account, (uint32_t)i, recent ? seen_ms : -1);
	if (recent && past->seen_ms == seen_ms)
		w->cards[i].account.idle_held_since_ms = past->idle_held_since_ms;
	if (!recent)
		account_not_before(&w->cards[i].account, seen_ms);
	if (seen_ms < 0)
		watch_event(w, &(struct occurrence){ now_ms, EVENT_CARD_NEW, (int)i, 0 }, "%s",
			r->id.name);
	return 0;
}

/* Returns the event for a card that changed from one status to another. */
static enum event_kind status_event(enum card_status from, enum card_status to)
{
	if (to == CARD_STATUS_ASLEEP)
		return EVENT_CARD_ASLEEP;
	if (to != CARD_STATUS_OK)
		return EVENT_CARD_LOST;
	return from == CARD_STATUS_ASLEEP ? EVENT_CARD_AWAKE : EVENT_CARD_BACK;
}

/* The account of a destroyed instance stays as it is. If an instance of that name appears
 * again, its account starts again. */
static void take_gone(struct watch *w, size_t i, bool gone, int64_t now_ms)
{
	struct watched *card = &w->cards[i];
	struct account_scene on = watch_scene(w, i);
	if (gone && !card->gone) {
		account_blind(&card->account, now_ms, &on);
		holders_end(&card->holders, now_ms);
		idle_spells_end_all(&card->spells, SPELL_GONE);
	} else if (!gone && card->gone) {
		account_start(&card->account, (uint32_t)i, now_ms);
		card->glance_ms = card->look_ms = card->empty_ms = -1;
	}
	card->gone = gone;
}

/* The reason for a status: "(code 15)". */
static void explain_status(char *dst, size_t cap, const struct card_reading *r)
{
	if (r->code == CARD_CODE_STUCK)
		str_copy(dst, cap, "(a call to it has not come back: it is left alone)");
	else
		snprintf(dst, cap, "(driver code %d)", r->code);
}

void watch_status(struct watch *w, size_t i, const struct card_reading *r, int64_t now_ms)
{
	struct card_entry *entry = &w->entries[i];
	const struct card_id *id = &r->id;
	if (memcmp(&entry->id, id, sizeof(*id)) != 0) {
		entry->id = *id;
		entry->dirty = true;
	}
	take_gone(w, i, r->gone, now_ms);
	w->cards[i].stuck = r->status != CARD_STATUS_OK && r->code == CARD_CODE_STUCK;
	if (entry->status == r->status)
		return;
	char why[64];
	explain_status(why, sizeof(why), r);
	watch_event(w,
		&(struct occurrence){
			now_ms, status_event(entry->status, r->status), (int)i, r->code },
		"card %d is %s %s", id->index, card_status_names[r->status], why);
	if (entry->status != CARD_STATUS_OK)
		fault_clear(&w->cards[i].fault, now_ms);
	if (r->status != CARD_STATUS_OK && !r->gone)
		fault_raise(&w->cards[i].fault, now_ms, "card %d (%s) is %s %s", id->index,
			id->uuid, card_status_names[r->status], why);
	entry->status = r->status;
	entry->dirty = true;
}

int watch_cards(struct watch *w, const struct source *s, int64_t now_ms,
	const struct watch_past *past, struct err *e)
{
	for (size_t i = 0; i < s->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		if (i == w->n_cards) {
			struct card_past own = past->card(past->context, r->id.uuid);
			int rc = add_card(w, r, now_ms, &own, e);
			if (rc)
				return rc;
		}
		watch_status(w, i, r, now_ms);
	}
	return 0;
}

/* Notes a gap: the card answers, but had no readings for a while. */
static void note_gap(struct watch *w, size_t i, int64_t now_ms)
{
	struct watched *card = &w->cards[i];
	int64_t grown = card->account.unobserved_ms - card->unobserved_ms;
	card->unobserved_ms = card->account.unobserved_ms;
	bool told = w->entries[i].status != CARD_STATUS_OK || card->util_kind == UTIL_NONE ||
		    card->suspect.on || card->unlisted.on;
	bool ends_told = card->gap_told;
	card->gap_told = told;
	if (grown < GAP_EVENT_MS || told || ends_told)
		return;
	watch_event(w, &(struct occurrence){ now_ms, EVENT_GAP, (int)i, grown },
		"card %d: no readings for %.1f s", w->entries[i].id.index,
		(double)grown / 1000);
}

static void tick_cards(struct watch *w, int64_t now_ms)
{
	for (size_t i = 0; i < w->n_cards; i++) {
		note_gap(w, i, now_ms);
		w->entries[i].last_seen_ms =
			w->cards[i].account.started ? w->cards[i].account.covered_ms : now_ms;
		w->entries[i].dirty = true;
	}
}

/* Fills in all holders of all cards. */
static int tick_holders(struct watch *w, struct tick *t, struct err *e)
{
	size_t need = 0, n = 0;
	for (size_t i = 0; i < w->n_cards; i++)
		need += w->cards[i].holders.n;
	if (!array_reserve(&w->now, &w->cap_now, need))
		return err_memory(e);
	for (size_t i = 0; i < w->n_cards; i++) {
		const struct holders *holders = &w->cards[i].holders;
		bool there = w->entries[i].status == CARD_STATUS_OK;
		for (size_t k = 0; there && k < holders->n; k++) {
			const struct holder *h = &holders->items[k];
			if (!holders_is_open(h) || w->lives.entries[h->process].ended_ms >= 0)
				continue;
			w->now[n++] = (struct holder_now){ (uint32_t)i, h->process, h->kind,
				h->mem_bytes, h->since_ms, h->last_active_ms };
		}
	}
	t->holders = w->now;
	t->n_holders = n;
	return 0;
}

int watch_tick(struct watch *w, struct tick *t, int64_t now_ms, struct err *e)
{
	*t = (struct tick){ .at_ms = now_ms, .slot_ms = w->ledger.slot_seconds * 1000 };
	watch_note_activity(w);
	tick_cards(w, now_ms);
	int rc = tick_holders(w, t, e);
	if (rc == 0)
		rc = watch_spells_tick(w, t, e);
	t->cards = w->entries;
	t->n_cards = w->n_cards;
	t->processes = w->lives.entries;
	t->n_processes = w->lives.n;
	t->usage = ledger_usage_rows(&w->ledger, &t->n_usage);
	t->holding = ledger_holding_rows(&w->ledger, &t->n_holding);
	t->events = w->events;
	t->n_events = w->n_events;
	watch_now_tick(w, t);
	return rc;
}

/* Keeps the lives of stretches that are not accounted yet, which refer to them by index. */
static void keep_held(struct watch *w)
{
	for (size_t i = 0; i < w->n_cards; i++)
		for (size_t k = 0; k < w->cards[i].holders.n; k++)
			w->lives.lives[w->cards[i].holders.items[k].process].kept = true;
	watch_spells_keep(w);
}

void watch_stored(struct watch *w)
{
	ledger_clear(&w->ledger);
	w->n_events = 0;
	for (size_t i = 0; i < w->n_cards; i++)
		idle_spells_stored(&w->cards[i].spells);
	keep_held(w);
	lives_forget_ended(&w->lives);
}

void watch_unstored(struct watch *w)
{
	size_t n;
	const struct holding_sum *sums = ledger_holding_rows(&w->ledger, &n);
	if (w->lives.n <= LEDGER_MAX_ROWS)
		return;
	for (size_t i = 0; i < n; i++)
		w->lives.lives[sums[i].process].kept = true;
	keep_held(w);
	lives_forget_ended(&w->lives);
}

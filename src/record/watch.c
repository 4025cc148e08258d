/* Readings to accounts, process lists to holders, changes to events. */
#include "record/watch.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The driver samples at least once a second; a sample never accounts for more than this. */
#define RING_HOLD_MS 2000
/* The driver's ring: a card accounted until less than this ago goes on without a gap. */
#define RING_MS 10000
/* Shorter gaps are not worth an event. */
#define GAP_EVENT_MS 2000

int watch_init(struct watch *w, const struct rules *rules, int64_t drain_ms,
	struct owners *owners, bool pidfds, struct err *e)
{
	*w = (struct watch){ .rules = *rules, .drain_ms = drain_ms };
	int rc = ledger_init(&w->ledger, e);
	if (!rc)
		rc = lives_init(&w->lives, owners, pidfds, e);
	return rc;
}

void watch_finish(struct watch *w)
{
	for (size_t i = 0; i < w->n_cards; i++)
		free(w->cards[i].holders);
	free(w->cards);
	free(w->entries);
	free(w->now);
	ledger_finish(&w->ledger);
	lives_finish(&w->lives);
	*w = (struct watch){ 0 };
}

void watch_event(struct watch *w, int64_t at_ms, enum event_kind kind, int card, int64_t value,
	const char *format, ...)
{
	if (w->n_events == WATCH_MAX_EVENTS)
		return;
	struct event *event = &w->events[w->n_events++];
	*event = (struct event){ .at_ms = at_ms, .kind = kind, .card = card, .value = value };
	va_list args;
	va_start(args, format);
	vsnprintf(event->text, sizeof(event->text), format, args);
	va_end(args);
}

static int add_card(struct watch *w, const struct card_reading *r, int64_t now_ms,
	int64_t seen_ms, struct err *e)
{
	if (w->n_cards == w->cap_cards) {
		size_t cap = w->cap_cards ? 2 * w->cap_cards : 8;
		struct watched *cards = realloc(w->cards, cap * sizeof(*cards));
		if (cards)
			w->cards = cards;
		struct card_entry *entries = realloc(w->entries, cap * sizeof(*entries));
		if (entries)
			w->entries = entries;
		if (!cards || !entries)
			return err_set(e, ERR_WORLD, "out of memory");
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
	w->cards[i] = (struct watched){ 0 };
	bool recent = seen_ms >= 0 && seen_ms <= now_ms && now_ms - seen_ms <= RING_MS;
	account_start(&w->cards[i].account, (uint32_t)i, recent ? seen_ms : -1);
	if (seen_ms < 0)
		watch_event(w, now_ms, EVENT_CARD_NEW, (int)i, 0, "%s", r->id.name);
	return 0;
}

/* The event that says that a card went from one status to another. */
static enum event_kind status_event(enum card_status from, enum card_status to)
{
	if (to == CARD_STATUS_ASLEEP)
		return EVENT_CARD_ASLEEP;
	if (to != CARD_STATUS_OK)
		return EVENT_CARD_LOST;
	return from == CARD_STATUS_ASLEEP ? EVENT_CARD_AWAKE : EVENT_CARD_BACK;
}

/* An instance that is destroyed leaves its account as it is; when there is one of that name
 * again, that begins anew. */
static void take_gone(struct watch *w, size_t i, bool gone, int64_t now_ms)
{
	struct watched *card = &w->cards[i];
	if (gone && !card->gone)
		account_blind(&card->account, now_ms, &w->ledger);
	else if (!gone && card->gone)
		account_start(&card->account, (uint32_t)i, now_ms);
	card->gone = gone;
}

static void take_status(struct watch *w, size_t i, const struct card_reading *r, int64_t now_ms)
{
	struct card_entry *entry = &w->entries[i];
	const struct card_id *id = &r->id;
	if (memcmp(&entry->id, id, sizeof(*id)) != 0) {
		entry->id = *id;
		entry->dirty = true;
	}
	take_gone(w, i, r->gone, now_ms);
	if (entry->status == r->status)
		return;
	watch_event(w, now_ms, status_event(entry->status, r->status), (int)i, r->code,
		"card %d is %s (code %d)", id->index, card_status_names[r->status], r->code);
	if (entry->status != CARD_STATUS_OK)
		fault_clear(&w->cards[i].fault, now_ms);
	if (r->status != CARD_STATUS_OK && !r->gone)
		fault_raise(&w->cards[i].fault, now_ms, "card %d (%s) is %s (driver code %d)",
			id->index, id->uuid, card_status_names[r->status], r->code);
	entry->status = r->status;
	entry->dirty = true;
}

int watch_cards(struct watch *w, const struct source *s, int64_t now_ms, watch_seen seen,
	void *context, struct err *e)
{
	for (size_t i = 0; i < s->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		if (i == w->n_cards) {
			int rc = add_card(w, r, now_ms, seen(context, r->id.uuid), e);
			if (rc)
				return rc;
		}
		take_status(w, i, r, now_ms);
	}
	return 0;
}

/* Gives each holder its use since the last drain; a process that the driver did not name had
 * none. */
static void take_use(
	struct watched *card, const struct lives *lives, const struct card_reading *r)
{
	for (size_t i = 0; i < card->n_holders; i++) {
		struct holder *h = &card->holders[i];
		h->sm_pct = r->process_util_known ? 0 : NAN;
		uint32_t pid = lives->entries[h->process].id.pid;
		for (size_t k = 0; k < r->n_process_utils; k++)
			if (r->process_utils[k].pid == pid)
				h->sm_pct = r->process_utils[k].sm_pct;
	}
}

static int64_t hold_ms(const struct watch *w, enum util_kind kind, int64_t period_us)
{
	if (kind == UTIL_POLLED)
		return w->drain_ms * 3 / 2 + 1000;
	int64_t two_periods_ms = 2 * period_us / 1000;
	return two_periods_ms > RING_HOLD_MS ? two_periods_ms : RING_HOLD_MS;
}

static void drain_card(struct watch *w, size_t i, const struct card_reading *r,
	int64_t period_us, int64_t now_ms)
{
	struct watched *card = &w->cards[i];
	card->util_kind = r->util_kind;
	if (card->gone)
		return;
	if (r->status != CARD_STATUS_OK || r->util_kind == UTIL_NONE) {
		account_blind(&card->account, now_ms, &w->ledger);
		return;
	}
	take_use(card, &w->lives, r);
	struct account_drain drain = {
		.samples = r->samples,
		.n_samples = r->n_samples,
		.hold_ms = hold_ms(w, r->util_kind, period_us),
		.use_known = r->process_util_known,
		.energy_mj = r->energy_mj,
	};
	account_drain(
		&card->account, &drain, card->holders, card->n_holders, &w->rules, &w->ledger);
}

void watch_drain(struct watch *w, const struct source *s, int64_t now_ms)
{
	for (size_t i = 0; i < w->n_cards && i < s->n_cards; i++) {
		take_status(w, i, &s->cards[i], now_ms);
		drain_card(w, i, &s->cards[i], s->sample_period_us, now_ms);
	}
	for (size_t i = 0; i < s->n_xids; i++)
		if (s->xids[i].card < w->n_cards)
			watch_event(w, now_ms, EVENT_XID, (int)s->xids[i].card,
				s->xids[i].number, "the driver reports XID %lld",
				(long long)s->xids[i].number);
}

void watch_flush(struct watch *w, int64_t now_ms)
{
	for (size_t i = 0; i < w->n_cards; i++) {
		struct watched *card = &w->cards[i];
		account_flush(&card->account, now_ms, card->holders, card->n_holders, &w->rules,
			&w->ledger);
	}
}

void watch_blind(struct watch *w, int64_t now_ms)
{
	for (size_t i = 0; i < w->n_cards; i++)
		if (!w->cards[i].gone)
			account_blind(&w->cards[i].account, now_ms, &w->ledger);
}

void watch_clock_step(struct watch *w, int64_t old_now_ms, int64_t new_now_ms)
{
	watch_blind(w, old_now_ms);
	for (size_t i = 0; i < w->n_cards; i++) {
		struct watched *card = &w->cards[i];
		if (card->gone)
			continue;
		account_start(&card->account, (uint32_t)i, new_now_ms);
		card->unobserved_ms = 0;
		for (size_t k = 0; k < card->n_holders; k++) {
			card->holders[k].from_ms = INT64_MIN;
			if (card->holders[k].to_ms != INT64_MAX)
				card->holders[k].to_ms = INT64_MIN;
		}
	}
}

static const struct holder *holder_before(const struct watched *card, uint32_t process)
{
	for (size_t i = 0; i < card->n_holders; i++)
		if (card->holders[i].process == process && card->holders[i].to_ms == INT64_MAX)
			return &card->holders[i];
	return NULL;
}

/* From when a holder that was not there at the last look counts: from now, but at the first
 * look from its start, because the ring then reaches back. */
static int64_t counts_from(
	const struct watched *card, const struct process_id *id, int64_t now_ms)
{
	if (card->account.started &&
		card->account.observed_ms + card->account.unobserved_ms > 0)
		return now_ms;
	return id->started_ms >= 0 && id->started_ms < now_ms ? id->started_ms : INT64_MIN;
}

static struct holder make_holder(struct watch *w, struct watched *card, uint32_t life,
	const struct card_process *p, int64_t now_ms)
{
	const struct holder *before = holder_before(card, life);
	const struct process_entry *entry = &w->lives.entries[life];
	struct holder h = {
		.process = life,
		.user = w->lives.lives[life].user,
		.kind = p->kind,
		.mem_bytes = p->mem_bytes,
		.sm_pct = before ? before->sm_pct : NAN,
		.since_ms = before ? before->since_ms : now_ms,
		.from_ms = before ? before->from_ms : counts_from(card, &entry->id, now_ms),
		.to_ms = INT64_MAX,
		.last_active_ms = before ? before->last_active_ms : -1,
		.when_active = before ? before->when_active : HOLDER_ACTIVE,
	};
	return h;
}

/* Replaces a card's holders by the new list. The new ones are built behind the old ones, which
 * are still needed for what they know, and then moved to the front. */
static int look_card(struct watch *w, struct watched *card, struct source *s,
	const struct card_reading *r, int64_t now_ms, struct err *e)
{
	size_t old = card->n_holders, need = old + r->n_processes;
	if (need > card->cap_holders) {
		struct holder *holders = realloc(card->holders, 2 * need * sizeof(*holders));
		if (!holders)
			return err_set(e, ERR_WORLD, "out of memory");
		card->holders = holders;
		card->cap_holders = 2 * need;
	}
	size_t n = old;
	for (size_t k = 0; k < r->n_processes; k++) {
		const struct card_process *p = &r->processes[k];
		uint32_t life = is_holder(p->kind, &w->rules)
					? lives_find(&w->lives, s, p->pid, now_ms)
					: LIFE_NONE;
		if (life != LIFE_NONE)
			card->holders[n++] = make_holder(w, card, life, p, now_ms);
	}
	card->n_holders = n - old;
	if (card->n_holders)
		memmove(card->holders, card->holders + old,
			card->n_holders * sizeof(*card->holders));
	return 0;
}

/* Brings the lives' last activity forward to that of their holders. */
static void note_activity(struct watch *w)
{
	for (size_t i = 0; i < w->n_cards; i++) {
		for (size_t k = 0; k < w->cards[i].n_holders; k++) {
			const struct holder *h = &w->cards[i].holders[k];
			struct process_entry *entry = &w->lives.entries[h->process];
			if (h->last_active_ms > entry->last_active_ms)
				entry->last_active_ms = h->last_active_ms;
		}
	}
}

int watch_look(struct watch *w, struct source *s, int64_t now_ms, struct err *e)
{
	watch_flush(w, now_ms);
	note_activity(w);
	lives_check(&w->lives, now_ms);
	/* Without room for all, nothing is seen: a holder must not be missing. */
	size_t listed = 0;
	for (size_t i = 0; i < s->n_cards; i++)
		listed += s->cards[i].n_processes;
	int rc = lives_reserve(&w->lives, listed, e);
	for (size_t i = 0; rc == 0 && i < w->n_cards && i < s->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		take_status(w, i, r, now_ms);
		if (r->status != CARD_STATUS_OK)
			w->cards[i].n_holders = 0;
		/* Lists that cannot be read leave the holders as they were. */
		if (r->status != CARD_STATUS_OK || !r->processes_known)
			continue;
		rc = look_card(w, &w->cards[i], s, r, now_ms, e);
	}
	if (rc == 0)
		lives_sweep(&w->lives, s, now_ms);
	return rc;
}

void watch_exits(struct watch *w, int64_t now_ms)
{
	uint32_t i;
	while ((i = lives_next_exited(&w->lives, now_ms)) != LIFE_NONE)
		for (size_t c = 0; c < w->n_cards; c++)
			for (size_t k = 0; k < w->cards[c].n_holders; k++)
				if (w->cards[c].holders[k].process == i)
					w->cards[c].holders[k].to_ms = now_ms;
}

/* A card that answers and yet had no readings for a while. */
static void note_gap(struct watch *w, size_t i, int64_t now_ms)
{
	struct watched *card = &w->cards[i];
	int64_t grown = card->account.unobserved_ms - card->unobserved_ms;
	card->unobserved_ms = card->account.unobserved_ms;
	bool told = w->entries[i].status != CARD_STATUS_OK || card->util_kind == UTIL_NONE;
	bool ends_told = card->gap_told;
	card->gap_told = told;
	if (grown < GAP_EVENT_MS || told || ends_told)
		return;
	watch_event(w, now_ms, EVENT_GAP, (int)i, grown, "card %d: no readings for %.1f s",
		w->entries[i].id.index, (double)grown / 1000);
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

/* All holders of all cards. */
static int tick_holders(struct watch *w, struct tick *t, struct err *e)
{
	size_t need = 0, n = 0;
	for (size_t i = 0; i < w->n_cards; i++)
		need += w->cards[i].n_holders;
	if (need > w->cap_now) {
		struct holder_now *now = realloc(w->now, 2 * need * sizeof(*now));
		if (!now)
			return err_set(e, ERR_WORLD, "out of memory");
		w->now = now;
		w->cap_now = 2 * need;
	}
	for (size_t i = 0; i < w->n_cards; i++) {
		for (size_t k = 0; k < w->cards[i].n_holders; k++) {
			const struct holder *h = &w->cards[i].holders[k];
			if (w->lives.entries[h->process].ended_ms >= 0)
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
	*t = (struct tick){ .at_ms = now_ms };
	note_activity(w);
	tick_cards(w, now_ms);
	int rc = tick_holders(w, t, e);
	t->cards = w->entries;
	t->n_cards = w->n_cards;
	t->processes = w->lives.entries;
	t->n_processes = w->lives.n;
	t->usage = ledger_usage_rows(&w->ledger, &t->n_usage);
	t->holding = ledger_holding_rows(&w->ledger, &t->n_holding);
	t->events = w->events;
	t->n_events = w->n_events;
	return rc;
}

void watch_stored(struct watch *w)
{
	ledger_clear(&w->ledger);
	w->n_events = 0;
	lives_forget_ended(&w->lives);
}

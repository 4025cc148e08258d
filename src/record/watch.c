/* Handles cards and their status, events and rounds (which processes came and went on each
 * card, what the card did, and which readings are not trusted), and what a tick writes to the
 * store. */
#include "record/watch.h"

#include "model/session.h"
#include "record/watch_leases.h"
#include "record/watch_now.h"
#include "record/watch_spells.h"
#include "driver/ring.h"

/* Shorter gaps get no event. */
#define GAP_EVENT_MS 2000

int watch_init(struct watch *w, const struct watch_options *o, struct err *e)
{
	*w = (struct watch){ .rules = *o->rules, .pace = o->pace, .leases_ms = -1 };
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
		free(w->cards[i].leases);
	}
	free(w->leases);
	free(w->lease_at);
	free(w->cards);
	free(w->entries);
	free(w->events);
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
	return (struct account_scene){ .holders = h->items,
		.n = h->n,
		.rules = &w->rules,
		.ledger = &w->ledger,
		.spells = &w->cards[i].spells,
		.leases = w->cards[i].leases,
		.n_leases = w->cards[i].n_leases,
		.leases_version = w->cards[i].leases_version,
		.is_used_by = watch_leases_is_used_by,
		.context = w };
}

void watch_event(struct watch *w, const struct occurrence *what, const char *format, ...)
{
	if (w->n_events == WATCH_MAX_EVENTS ||
		!array_reserve(&w->events, &w->cap_events, w->n_events + 1))
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
		/* A card that was lost and answers now is back. */
		.status = r->status == CARD_STATUS_OK ? past->status : CARD_STATUS_OK,
		.first_seen_ms = now_ms,
		.last_seen_ms = now_ms,
		.dirty = true,
	};
	str_copy(w->entries[i].source, SOURCE_CAP, r->source);
	w->cards[i] = (struct watched){ .glance_ms = -1,
		.look_ms = -1,
		.mem_bytes = -1,
		.floor_bytes = -1,
		.empty_ms = -1,
		.leases_version = 1 };
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

/* Takes the status of the card: lost, answering again, gone ... */
static void take_status(struct watch *w, size_t i, const struct card_reading *r, int64_t now_ms)
{
	struct card_entry *entry = &w->entries[i];
	/* A card that does not answer yet keeps the name that the store has for it. */
	bool unnamed = !card_has_uuid(&r->id) && card_has_uuid(&entry->id);
	if (!unnamed && memcmp(&entry->id, &r->id, sizeof(r->id)) != 0) {
		entry->id = r->id;
		entry->dirty = true;
	}
	const struct card_id *id = &entry->id;
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

/* Whether another card of the source has this UUID. */
static bool has_other(const struct source *s, size_t i, const char *uuid)
{
	for (size_t k = 0; k < s->n_cards; k++)
		if (k != i && strcmp(s->cards[k].id.uuid, uuid) == 0)
			return true;
	return false;
}

int watch_cards(struct watch *w, const struct source *s, int64_t now_ms,
	const struct watch_past *past, struct err *e)
{
	for (size_t i = 0; i < s->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		if (i == w->n_cards) {
			struct card_id id = r->id;
			struct card_past own = past->card(past->context, &id);
			if (has_other(s, i, id.uuid)) {
				own = (struct card_past){ .seen_ms = -1,
					.idle_held_since_ms = -1 };
				id = r->id;
			}
			int rc = add_card(w, r, now_ms, &own, e);
			if (rc)
				return rc;
			w->entries[i].id = id;
		}
		take_status(w, i, r, now_ms);
	}
	return 0;
}

static int reserve_scratch(
	struct watch *w, size_t listed, size_t holders, size_t samples, struct err *e)
{
	if (!array_reserve(&w->list, &w->cap_list, listed) ||
		!array_reserve(&w->sm_pct, &w->cap_sm_pct, holders) ||
		!array_reserve(&w->uses_engine, &w->cap_uses_engine, holders) ||
		!array_reserve(&w->part_pct, &w->cap_part_pct, holders) ||
		!array_reserve(&w->suspect, &w->cap_suspect, samples))
		return err_memory(e);
	return 0;
}

/* Makes room for everything that the round lists. If that fails, the round is not taken at all,
 * because no holder and no sample may be missing. */
static int reserve(struct watch *w, const struct source *s, struct err *e)
{
	size_t listed = 0, most = 0, holders = 0, samples = 0;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < w->n_cards && i < s->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		size_t n = r->n_processes + 1;
		listed += n + r->n_ended;
		most = n > most ? n : most;
		samples = r->n_samples > samples ? r->n_samples : samples;
		rc = holders_reserve(&w->cards[i].holders, 2 * n + r->n_ended, e);
		if (w->cards[i].holders.cap > holders)
			holders = w->cards[i].holders.cap;
	}
	if (rc == 0)
		rc = reserve_scratch(w, most, holders, samples, e);
	return rc ? rc : lives_reserve(&w->lives, listed, e);
}

/* How much of the memory in use on a card without processes belongs to the driver. */
static int64_t floor_bytes(struct watched *card, const struct card_reading *r)
{
	int64_t now = classify_reserve_bytes(r);
	if (!r->mem_includes_reserved)
		return 0;
	if (card->floor_bytes < 0 || now < card->floor_bytes)
		card->floor_bytes = now;
	return card->floor_bytes;
}

/* Returns the memory in use on a card without listed processes, if it is more than the
 * threshold; else -1. Memory of a process that has just ended may not be freed yet: it does not
 * count, and *again asks for another look. */
static int64_t unexplained_bytes(const struct watch *w, struct watched *card,
	const struct card_reading *r, int64_t since_ms, bool *again)
{
	if (r->n_processes > 0 || r->mem_used_bytes < 0 || r->mem_is_sum)
		return -1;
	int64_t bytes = r->mem_used_bytes - floor_bytes(card, r);
	if (bytes <= w->rules.held_mem_bytes)
		return -1;
	for (size_t i = 0; i < card->holders.n; i++) {
		const struct holder *h = &card->holders.items[i];
		*again |= !holders_is_open(h) && h->to.hi >= since_ms;
	}
	return *again ? -1 : bytes;
}

/* Lists the holders among a card's processes, and _unknown for memory without a process. */
static size_t make_list(struct watch *w, const struct source *s, size_t i, int64_t since_ms,
	struct round *round)
{
	int64_t now_ms = round->ended_ms;
	bool again = false;
	const struct card_reading *r = &s->cards[i];
	size_t n = 0;
	for (size_t k = 0; k < r->n_processes; k++) {
		const struct card_process *p = &r->processes[k];
		uint32_t life =
			classify_is_holder(p->kind, &w->rules)
				? lives_find(&w->lives, p->pid, r->own_processes, now_ms)
				: LIFE_NONE;
		if (life != LIFE_NONE)
			w->list[n++] = (struct listed){ life, p->kind, p->mem_bytes };
	}
	int64_t bytes = unexplained_bytes(w, &w->cards[i], r, since_ms, &again);
	if (again)
		round_want(round, i);
	uint32_t life = bytes >= 0 ? lives_unknown(&w->lives, now_ms) : LIFE_NONE;
	if (life != LIFE_NONE)
		w->list[n++] = (struct listed){ life, PROCESS_COMPUTE, bytes };
	return n;
}

/* Takes a new process list: which processes came and went since the last reading. */
static void take_list(struct watch *w, const struct source *s, size_t i, struct round *round)
{
	int64_t now_ms = round->ended_ms;
	struct watched *card = &w->cards[i];
	const struct card_reading *r = &s->cards[i];
	/* If used memory changed, the change came after the last glance; otherwise only the
	 * last list is known to be without the change. */
	bool known = card->mem_bytes >= 0 && r->mem_used_bytes >= 0;
	bool same = known && card->mem_bytes == r->mem_used_bytes;
	bool told = known && (!same || card->exits);
	struct look_window window = {
		.lo_ms = told ? card->glance_ms : card->look_ms,
		.hi_ms = now_ms,
		.first = card->look_ms < 0,
	};
	if (window.first)
		window.lo_ms =
			card->account.started ? card->account.covered_ms : now_ms - RING_MS;
	/* It is unknown which processes came and went before the first list. */
	window.stalled = window.first || now_ms - card->glance_ms > w->pace.stall_ms;
	card->exits = false;
	if (window.stalled)
		account_stall(
			&card->account, window.first ? INT64_MIN : card->glance_ms, now_ms);
	if (window.stalled && !window.first)
		account_torn(&card->account, now_ms);
	/* Processes came and went while used memory stayed the same: one replaced another. */
	bool steady = same && !window.stalled;
	window.steady = steady;
	if (steady)
		account_steady(&card->account, window.lo_ms, now_ms,
			holders_since(&card->holders, window.lo_ms));
	size_t n = make_list(w, s, i, window.lo_ms, round);
	int64_t since_ms = holders_take(&card->holders, &w->lives, w->list, n, &window);
	/* Time that was accounted before this list is less certain now. */
	struct account_scene on = watch_scene(w, i);
	if (!window.first && !steady)
		account_doubt(&card->account, since_ms, &on);
	if (window.first)
		watch_spells_resume(w, i, n);
	if (r->n_processes > 0)
		card->empty_ms = -1;
	else if (card->empty_ms < 0)
		card->empty_ms = now_ms;
	card->mem_bytes = r->mem_used_bytes;
}

/* Takes the driver's records of processes that came and went between two lists. */
static void take_ended(struct watch *w, size_t i, const struct card_reading *r)
{
	struct watched *card = &w->cards[i];
	for (size_t k = 0; k < r->n_ended; k++) {
		const struct ended_process *p = &r->ended[k];
		if (!card->account.started || p->ended_ms <= card->account.covered_ms ||
			holders_had(
				&card->holders, &w->lives, p->pid, p->started_ms, p->ended_ms))
			continue;
		uint32_t life = lives_add_ended(&w->lives, p->pid, p->started_ms, p->ended_ms);
		if (life != LIFE_NONE)
			holders_add_ended(&card->holders, &w->lives,
				&(struct listed){ life, PROCESS_COMPUTE, p->mem_peak_bytes },
				p->started_ms, p->ended_ms);
	}
}

/* Whether there is no sign that a process came or went since the last list. */
static bool is_as_listed(const struct watched *card, const struct card_reading *r)
{
	return card->look_ms >= 0 && !card->exits && r->mem_used_bytes >= 0 &&
	       r->mem_used_bytes == card->mem_bytes;
}

/* Notes that time without a process list is not observed, and logs it. */
static void note_unlisted(
	struct watched *card, const struct card_reading *r, bool known, int64_t now_ms)
{
	if (known) {
		account_unlisted(&card->account, INT64_MAX);
		fault_clear(&card->unlisted, now_ms);
		return;
	}
	account_unlisted(&card->account, card->glance_ms);
	fault_raise(&card->unlisted, now_ms,
		"card %d: its processes cannot be listed; its idle time counts as unobserved",
		r->id.index);
}

/* Describes all new processes of this round at once. */
static void describe_new(struct watch *w, const struct source *s, const struct round *round)
{
	for (size_t i = 0; i < w->n_cards && i < s->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		bool listed = r->status == CARD_STATUS_OK && round->cards[i].looked &&
			      r->processes_known && !r->own_processes;
		for (size_t k = 0; listed && k < r->n_processes; k++)
			if (classify_is_holder(r->processes[k].kind, &w->rules))
				lives_expect(&w->lives, r->processes[k].pid);
	}
	lives_ask(&w->lives);
}

/* Takes what this round says about the holders of the card. */
static void take_holders(struct watch *w, const struct source *s, size_t i, struct round *round)
{
	struct watched *card = &w->cards[i];
	const struct card_reading *r = &s->cards[i];
	if (r->status != CARD_STATUS_OK || card->gone)
		return;
	bool listed = round->cards[i].looked && r->processes_known;
	bool same = round->glanced && (!round->cards[i].want || is_as_listed(card, r));
	if (listed)
		take_list(w, s, i, round);
	if (listed) {
		card->look_ms = round->begun_ms;
		w->entries[i].listed = true;
	}
	if (listed || same)
		card->glance_ms = round->begun_ms;
	note_unlisted(card, r, listed || same || !round->cards[i].looked, round->ended_ms);
	round->cards[i].shared = holders_are_several(&card->holders);
	if (round->cards[i].drained)
		take_ended(w, i, r);
}

/* Finds each holder's use since the last drain. */
static void find_use(struct watch *w, const struct watched *card, const struct card_reading *r)
{
	for (size_t i = 0; i < card->holders.n; i++) {
		uint32_t pid = w->lives.entries[card->holders.items[i].process].id.pid;
		w->sm_pct[i] = reading_process_pct(r, pid);
		w->uses_engine[i] = reading_engine_pct(r, pid) > 0;
	}
}

/* Finds each holder's use in the parts of the drain. False: it is not known. */
static bool find_parts(struct watch *w, const struct watched *card,
	const struct card_reading *r, struct turn_parts *parts)
{
	*parts = (struct turn_parts){ .pct = w->part_pct };
	if (r->n_parts == 0 || r->n_samples < 2)
		return false;
	const struct util_sample *samples = r->samples;
	parts->from_us = 2 * samples[0].wall_us - samples[1].wall_us;
	for (size_t i = 0; i < r->n_parts; i++)
		if (r->parts[i].pid == 0 && parts->n + 1 < PROCESS_PARTS)
			parts->to_us[parts->n++] = r->parts[i].since_us;
	parts->to_us[parts->n++] = samples[r->n_samples - 1].wall_us;
	for (size_t k = 0; k < card->holders.n; k++) {
		uint32_t pid = w->lives.entries[card->holders.items[k].process].id.pid;
		double since_pct[PROCESS_PARTS] = { w->sm_pct[k] };
		for (size_t i = 0, part = 0; i < r->n_parts; i++) {
			part += r->parts[i].pid == 0;
			if (r->parts[i].pid == pid && part < PROCESS_PARTS)
				since_pct[part] = r->parts[i].sm_pct;
		}
		turns_divide(parts, since_pct, w->part_pct[k]);
	}
	return true;
}

/* Whether all processes that held the card since the last drain belong to one session. */
static bool is_one_session(const struct watch *w, const struct watched *card)
{
	char first[SESSION_KEY_CAP] = "", other[SESSION_KEY_CAP] = "";
	for (size_t i = 0; i < card->holders.n; i++) {
		const struct process_id *id =
			&w->lives.entries[card->holders.items[i].process].id;
		session_key_of(i == 0 ? first : other, id, "");
		if (i > 0 && strcmp(first, other) != 0)
			return false;
	}
	return true;
}

/* Whether a process was or may have been on the card for a part of this time. */
static bool may_be_held(const struct watched *card, int64_t from_ms, int64_t to_ms)
{
	bool held = card->empty_ms < 0 || from_ms < card->empty_ms;
	for (size_t i = 0; !held && i < card->holders.n; i++) {
		const struct holder *h = &card->holders.items[i];
		held = h->from.lo < to_ms && from_ms < h->to.hi;
	}
	return held;
}

/* Returns the memory in use on a card without a process, without the driver's own; -1:
 * unknown. */
static int64_t bytes_without_process(struct watched *card, const struct card_reading *r)
{
	if (card->empty_ms < 0 || card->mem_bytes < 0)
		return -1;
	int64_t bytes = card->mem_bytes - floor_bytes(card, r);
	return bytes > 0 ? bytes : 0;
}

/* Finds the samples that are not trusted, because the card is latched. They are high, no
 * process was there, and they either continue the use of a process that is gone or are the
 * only samples of the drain; otherwise an unlisted process may have used the card. Returns
 * the newest of them; NULL: there is none. */
static const struct util_sample *find_suspects(
	struct watch *w, struct watched *card, const struct card_reading *r)
{
	const struct account *a = &card->account;
	const struct util_sample *newest = NULL;
	int64_t used_bytes = bytes_without_process(card, r);
	bool empty = used_bytes >= 0 && used_bytes <= w->rules.held_mem_bytes;
	bool all = classify_is_latched(r->samples, r->n_samples, used_bytes, &w->rules);
	int64_t from_ms = a->holds ? a->held.at_ms : a->stamp_ms;
	for (size_t i = 0; i < r->n_samples; i++) {
		int64_t at_ms = r->samples[i].wall_us / 1000;
		bool high = classify_may_be_latched(r->samples[i].util_pct);
		bool held = may_be_held(card, from_ms >= 0 ? from_ms : at_ms, at_ms);
		w->suspect[i] = empty && high && !held && (all || card->high_known);
		card->high_known = high && (held || w->suspect[i]);
		newest = w->suspect[i] ? &r->samples[i] : newest;
		from_ms = at_ms;
	}
	return newest;
}

static void note_suspects(
	struct watch *w, size_t i, const struct card_reading *r, int64_t now_ms)
{
	struct watched *card = &w->cards[i];
	const struct util_sample *suspect = find_suspects(w, card, r);
	if (suspect && fault_raise(&card->suspect, now_ms,
			       "card %d reports %.0f%% use with no process and no memory on "
			       "it; this time counts as unobserved",
			       r->id.index, suspect->util_pct))
		watch_event(w, &(struct occurrence){ now_ms, EVENT_SUSPECT, (int)i, 0 }, "%s",
			card->suspect.text);
	if (!suspect && r->n_samples)
		fault_clear(&card->suspect, now_ms);
}

/* Whether the card was in use while no holder is known. */
static bool is_used_unseen(const struct watch *w, size_t i, const struct card_reading *r)
{
	bool active = false;
	for (size_t k = 0; k < r->n_samples; k++)
		active |= r->samples[k].util_pct >= w->rules.active_util_pct;
	for (size_t k = 0; active && k < w->cards[i].holders.n; k++)
		active = !holders_is_open(&w->cards[i].holders.items[k]);
	return active;
}

/* Counts the samples from the future: they were taken before the clock was set back, and come
 * first. */
static size_t from_the_future(const struct card_reading *r, int64_t now_ms)
{
	size_t n = 0;
	while (n < r->n_samples && r->samples[n].wall_us / 1000 > now_ms)
		n++;
	return n;
}

/* The driver's ring has samples from before the card was first seen: accounting begins
 * there. */
static void note_begin(struct card_entry *entry, const struct account *a,
	const struct account_drain *drain, const struct account_scene *on)
{
	if (a->started || drain->n_samples == 0)
		return;
	int64_t begin_ms = account_begin_ms(a, drain, on);
	if (begin_ms < entry->first_seen_ms) {
		entry->first_seen_ms = begin_ms;
		entry->dirty = true;
	}
}

static void take_drain(
	struct watch *w, const struct source *s, size_t i, struct round *round, int64_t now_ms)
{
	struct watched *card = &w->cards[i];
	const struct card_reading *r = &s->cards[i];
	struct account_scene on = watch_scene(w, i);
	size_t skipped = from_the_future(r, now_ms);
	card->util_kind = r->util_kind;
	if (card->gone)
		return;
	if (!card->account.started && r->n_samples == 0)
		account_begin(&card->account, now_ms);
	if (r->n_lost > 0)
		account_torn(&card->account, now_ms);
	if (r->status != CARD_STATUS_OK || r->util_kind == UTIL_NONE) {
		account_blind(&card->account, now_ms - RING_MS, &on);
		return;
	}
	note_suspects(w, i, r, now_ms);
	find_use(w, card, r);
	struct account_drain drain = {
		.samples = r->samples + skipped,
		.n_samples = r->n_samples - skipped,
		.hold = ring_hold_of(r->util_kind, s->sample_period_us, w->pace.drain_ms),
		.polled = r->util_kind == UTIL_POLLED,
		.suspect = w->suspect + skipped,
		.use_known = r->process_util_known,
		.sm_pct = w->sm_pct,
		.uses_engine = w->uses_engine,
		.one_session = !r->process_util_known && is_one_session(w, card),
		.sm_active_pct = r->sm_active_pct,
	};
	struct turn_parts parts;
	if (skipped == 0 && find_parts(w, card, r, &parts))
		drain.parts = &parts;
	note_begin(&w->entries[i], &card->account, &drain, &on);
	account_drain(&card->account, &drain, &on);
	if (is_used_unseen(w, i, r))
		round_want(round, i);
}

/* Updates last_active_ms of the lives from their stretches. */
static void note_activity(struct watch *w)
{
	for (size_t i = 0; i < w->n_cards; i++) {
		const struct holders *holders = &w->cards[i].holders;
		for (size_t k = 0; k < holders->n; k++) {
			const struct holder *h = &holders->items[k];
			struct process_entry *entry = &w->lives.entries[h->process];
			if (h->last_active_ms > entry->last_active_ms)
				entry->last_active_ms = h->last_active_ms;
		}
	}
}

static void take_xids(struct watch *w, const struct source *s, int64_t now_ms)
{
	for (size_t i = 0; i < s->n_xids; i++)
		if (s->xids[i].card < w->n_cards)
			watch_event(w,
				&(struct occurrence){ now_ms, EVENT_XID, (int)s->xids[i].card,
					s->xids[i].number },
				"the driver reports XID %lld", (long long)s->xids[i].number);
}

/* Ends the lives that are gone. If the list of a card could not be read, its processes may
 * still be there. */
static void sweep(struct watch *w, const struct source *s, const struct round *round)
{
	for (size_t i = 0; i < w->n_cards && i < round->n_cards; i++) {
		const struct holders *holders = &w->cards[i].holders;
		bool seen = round->cards[i].looked && s->cards[i].processes_known;
		for (size_t k = 0; !seen && k < holders->n; k++)
			if (holders_is_open(&holders->items[k]))
				w->lives.entries[holders->items[k].process].last_seen_ms =
					round->ended_ms;
	}
	lives_sweep(&w->lives, round->ended_ms);
}

int watch_round(struct watch *w, struct source *s, struct round *round, struct err *e)
{
	int64_t now_ms = round->ended_ms;
	int64_t energy_ms = round->energy_ms ? round->energy_ms : now_ms;
	int rc = reserve(w, s, e);
	w->lives.source = s;
	w->lives.describe = s->ops->describe;
	if (rc == 0)
		describe_new(w, s, round);
	for (size_t i = 0; rc == 0 && i < w->n_cards && i < s->n_cards; i++) {
		struct watched *card = &w->cards[i];
		take_status(w, i, &s->cards[i], now_ms);
		if (s->cards[i].status != CARD_STATUS_OK)
			account_torn(&card->account, now_ms);
		take_holders(w, s, i, round);
		bool drained = round->cards[i].drained;
		if (s->cards[i].status == CARD_STATUS_OK && (drained || round->energy)) {
			account_energy(&card->account, energy_ms, s->cards[i].energy_mj);
			watch_now_energy(card, energy_ms, s->cards[i].energy_mj);
		}
		watch_now_take(card, &s->cards[i], round, i);
		if (drained)
			take_drain(w, s, i, round, now_ms);
	}
	if (rc)
		return rc;
	note_activity(w);
	for (size_t i = 0; i < w->n_cards; i++)
		holders_drop(&w->cards[i].holders, w->cards[i].account.covered_ms);
	if (round->drained)
		take_xids(w, s, now_ms);
	if (round->look_all && round->glanced)
		sweep(w, s, round);
	return 0;
}

void watch_flush(struct watch *w, int64_t now_ms)
{
	for (size_t i = 0; i < w->n_cards; i++) {
		struct account_scene on = watch_scene(w, i);
		if (w->cards[i].gone)
			continue;
		if (w->entries[i].status == CARD_STATUS_OK &&
			w->cards[i].util_kind != UTIL_NONE)
			account_flush(&w->cards[i].account, now_ms, &on);
		else
			account_blind(&w->cards[i].account, now_ms, &on);
	}
	note_activity(w);
}

void watch_blind(struct watch *w, int64_t until_ms)
{
	for (size_t i = 0; i < w->n_cards; i++) {
		struct account_scene on = watch_scene(w, i);
		if (!w->cards[i].gone && w->cards[i].account.started)
			account_blind(&w->cards[i].account, until_ms, &on);
	}
}

void watch_clock_step(
	struct watch *w, struct round *round, int64_t old_now_ms, int64_t new_now_ms)
{
	watch_blind(w, old_now_ms);
	watch_leases_step(w, new_now_ms);
	for (size_t i = 0; i < w->n_cards; i++) {
		struct watched *card = &w->cards[i];
		round_want(round, i);
		if (card->gone)
			continue;
		int64_t since_ms = card->account.idle_held_since_ms;
		account_start(&card->account, (uint32_t)i, new_now_ms);
		if (since_ms >= 0)
			card->account.idle_held_since_ms = since_ms + new_now_ms - old_now_ms;
		watch_now_start(card);
		idle_spells_shift(&card->spells, new_now_ms - old_now_ms);
		card->unobserved_ms = 0;
		holders_restart(&card->holders);
		if (card->look_ms >= 0)
			card->look_ms = card->glance_ms = new_now_ms;
		if (card->empty_ms >= 0)
			card->empty_ms = new_now_ms;
	}
}

bool watch_exits(struct watch *w, struct round *round, int64_t lo_ms, int64_t now_ms)
{
	struct look_window window = {
		.lo_ms = lo_ms, .hi_ms = now_ms, .stalled = now_ms - lo_ms > w->pace.stall_ms
	};
	bool any = false;
	uint32_t life;
	while ((life = lives_next_exited(&w->lives, now_ms)) != LIFE_NONE) {
		for (size_t c = 0; c < w->n_cards; c++) {
			if (!holders_exit(&w->cards[c].holders, life, &window))
				continue;
			w->cards[c].exits = true;
			round_want(round, c);
			any = true;
		}
	}
	return any;
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
	note_activity(w);
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
	watch_leases_tick(w);
	t->leased = ledger_leased_rows(&w->ledger, &t->n_leased);
	t->leases = w->leases;
	t->n_leases = w->n_leases;
	t->has_leases = w->has_leases;
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
	watch_leases_stored(w);
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

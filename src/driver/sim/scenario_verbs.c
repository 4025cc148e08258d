/* Reads what happens in a scenario: the lines that begin with `at`, but for faults. */
#include "base/array.h"
#include "driver/sim/scenario_parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct scenario_event *scenario_add_event(
	struct scenario *s, struct words *w, int64_t at_us, enum scenario_verb verb)
{
	if (s->n_events >= SCENARIO_EVENTS_MAX) {
		words_fail(w, "there are more than %d events", SCENARIO_EVENTS_MAX);
		return NULL;
	}
	if (!array_reserve(&s->events, &s->cap_events, s->n_events + 1)) {
		words_fail(w, ERR_MEMORY_TEXT);
		return NULL;
	}
	struct scenario_event *event = &s->events[s->n_events];
	*event = (struct scenario_event){ .at_us = at_us,
		.verb = verb,
		.card = -1,
		.process = -1,
		.seat = SEAT_NONE,
		.order = (uint32_t)s->n_events,
		.line = w->line };
	s->n_events++;
	return event;
}

int scenario_until(struct words *w, int64_t at_us, int64_t *until_us)
{
	*until_us = INT64_MAX;
	if (!words_take(w, "until"))
		return 0;
	if (words_duration(w, "until", until_us) != 0)
		return ERR_USAGE;
	*until_us += w->day_us;
	return *until_us > at_us
		       ? 0
		       : words_fail(w,
				 "the time after until must be later than the time after at");
}

int scenario_card_ref(struct scenario *s, struct words *w, int *card)
{
	int64_t index = 0, instance = 0;
	bool mig = words_take(w, "mig");
	if (!mig && !words_take(w, "card"))
		return words_fail(w, "card N or mig N/I is missing");
	char text[32];
	if (words_copy(w, "the card's index", text, sizeof(text)) != 0)
		return ERR_USAGE;
	char *rest = text;
	index = text[0] >= '0' && text[0] <= '9' ? strtol(text, &rest, 10) : -1;
	if (mig && *rest == '/' && rest[1] >= '0' && rest[1] <= '9')
		instance = strtol(rest + 1, &rest, 10);
	else if (mig)
		index = -1;
	for (size_t i = 0; i < s->n_cards && index >= 0 && !*rest; i++) {
		const struct scenario_card *c = &s->cards[i];
		if (c->id.index != index || c->id.mig_index != (mig ? instance : -1))
			continue;
		*card = (int)i;
		return 0;
	}
	return words_fail(w, "there is no %s %s", mig ? "mig" : "card", text);
}

static int parse_process_ref(struct scenario *s, struct words *w, int *process)
{
	const char *name = NULL;
	if (words_text(w, "the process' name", &name) != 0)
		return ERR_USAGE;
	*process = scenario_find_process(s, name);
	return *process >= 0 ? 0 : words_fail(w, "there is no process '%s'", name);
}

int scenario_add_span(struct scenario *s, struct words *w, struct scenario_event event)
{
	int64_t until_us = 0;
	if (scenario_until(w, event.at_us, &until_us) != 0)
		return ERR_USAGE;
	struct scenario_event *added = scenario_add_event(s, w, event.at_us, event.verb);
	if (!added)
		return ERR_USAGE;
	event.order = added->order;
	*added = event;
	if (until_us == INT64_MAX)
		return 0;
	struct scenario_event *end = scenario_add_event(s, w, until_us, event.verb);
	if (!end)
		return ERR_USAGE;
	end->card = event.card;
	end->fault = event.fault;
	return 0;
}

struct scenario_event scenario_span(
	struct words *w, int64_t at_us, enum scenario_verb verb, int card)
{
	return (struct scenario_event){ .at_us = at_us,
		.verb = verb,
		.card = card,
		.value = 1,
		.process = -1,
		.seat = SEAT_NONE,
		.line = w->line };
}

static int parse_hold(struct scenario *s, struct words *w, int64_t at_us)
{
	int process = -1, card = -1;
	int64_t bytes = -1;
	if (parse_process_ref(s, w, &process) != 0 || scenario_card_ref(s, w, &card) != 0)
		return ERR_USAGE;
	if (!words_take(w, "memory"))
		return words_fail(w, "write hold PROCESS card N memory SIZE");
	if (!words_take(w, "unknown") && words_size(w, "the memory", &bytes) != 0)
		return ERR_USAGE;
	if (s->cards[card].has_mig)
		return words_fail(w, "card %d has MIG on: a process is on an instance", card);
	struct scenario_event *event = scenario_add_event(s, w, at_us, EVENT_VERB_HOLD);
	if (!event)
		return ERR_USAGE;
	event->process = process;
	event->card = card;
	event->value = bytes;
	return 0;
}

/* [on D off D] */
static int parse_duty(struct words *w, struct scenario_event *event)
{
	if (!words_take(w, "on"))
		return 0;
	if (words_duration(w, "on", &event->on_us) != 0)
		return ERR_USAGE;
	if (!words_take(w, "off") || words_duration(w, "off", &event->off_us) != 0)
		return words_fail(w, "on needs off: write on 400ms off 600ms");
	if (event->on_us == 0 || event->off_us == 0)
		return words_fail(w, "on and off must be longer than 0s");
	return 0;
}

static int parse_load(struct scenario *s, struct words *w, int64_t at_us)
{
	const char *next = words_peek(w);
	bool own = next && (strcmp(next, "card") == 0 || strcmp(next, "mig") == 0);
	struct scenario_event event =
		scenario_span(w, at_us, own ? EVENT_VERB_CARD_LOAD : EVENT_VERB_LOAD, -1);
	if (!own && parse_process_ref(s, w, &event.process) != 0)
		return ERR_USAGE;
	if (scenario_card_ref(s, w, &event.card) != 0)
		return ERR_USAGE;
	if (!words_take(w, own ? "util" : "sm"))
		return words_fail(
			w, "write load %s N", own ? "card N util" : "PROCESS card N sm");
	if (words_count(w, "the percentage", 0, 100, &event.value) != 0 ||
		parse_duty(w, &event) != 0)
		return ERR_USAGE;
	if (s->cards[event.card].has_mig)
		return words_fail(w, "card %d has MIG on: load an instance", event.card);
	struct scenario_event *added = scenario_add_event(s, w, at_us, event.verb);
	if (!added)
		return ERR_USAGE;
	event.order = added->order;
	*added = event;
	return 0;
}

/* PROCESS, and a card for `release`. */
static int parse_process_event(
	struct scenario *s, struct words *w, int64_t at_us, enum scenario_verb verb)
{
	int process = -1, card = -1;
	if (parse_process_ref(s, w, &process) != 0)
		return ERR_USAGE;
	if (verb == EVENT_VERB_RELEASE && scenario_card_ref(s, w, &card) != 0)
		return ERR_USAGE;
	struct scenario_event *event = scenario_add_event(s, w, at_us, verb);
	if (!event)
		return ERR_USAGE;
	event->process = process;
	event->card = card;
	return 0;
}

static int parse_release(struct scenario *s, struct words *w, int64_t at_us)
{
	return parse_process_event(s, w, at_us, EVENT_VERB_RELEASE);
}

static int parse_exit(struct scenario *s, struct words *w, int64_t at_us)
{
	return parse_process_event(s, w, at_us, EVENT_VERB_EXIT);
}

static int parse_process_start(struct scenario *s, struct words *w, int64_t at_us)
{
	return parse_process_event(s, w, at_us, EVENT_VERB_START);
}

static int parse_orphan(struct scenario *s, struct words *w, int64_t at_us)
{
	int card = -1;
	int64_t bytes = 0;
	if (scenario_card_ref(s, w, &card) != 0)
		return ERR_USAGE;
	if (!words_take(w, "memory") || words_size(w, "the memory", &bytes) != 0)
		return words_fail(w, "write orphan card N memory SIZE");
	struct scenario_event *event = scenario_add_event(s, w, at_us, EVENT_VERB_ORPHAN);
	if (!event)
		return ERR_USAGE;
	event->card = card;
	event->value = bytes;
	return 0;
}

int scenario_card_span(struct scenario *s, struct words *w, int64_t at_us,
	enum scenario_verb verb, int64_t value)
{
	int card = -1;
	int64_t code = 15;
	if (scenario_card_ref(s, w, &card) != 0)
		return ERR_USAGE;
	if (s->cards[card].parent >= 0)
		return words_fail(w, "this happens to whole cards, not to MIG instances");
	bool lost = verb == EVENT_VERB_STATUS && value == CARD_STATUS_LOST;
	if (lost && words_take(w, "code") && words_count(w, "the code", 1, 999, &code) != 0)
		return ERR_USAGE;
	struct scenario_event event = scenario_span(w, at_us, verb, card);
	event.value = value;
	event.code = lost ? (int)code : 0;
	return scenario_add_span(s, w, event);
}

static int parse_lost(struct scenario *s, struct words *w, int64_t at_us)
{
	return scenario_card_span(s, w, at_us, EVENT_VERB_STATUS, CARD_STATUS_LOST);
}

static int parse_asleep(struct scenario *s, struct words *w, int64_t at_us)
{
	return scenario_card_span(s, w, at_us, EVENT_VERB_STATUS, CARD_STATUS_ASLEEP);
}

static int parse_vanish(struct scenario *s, struct words *w, int64_t at_us)
{
	return scenario_card_span(s, w, at_us, EVENT_VERB_VANISH, 1);
}

static int parse_energy_reset(struct scenario *s, struct words *w, int64_t at_us)
{
	int card = -1;
	if (scenario_card_ref(s, w, &card) != 0)
		return ERR_USAGE;
	struct scenario_event *event = scenario_add_event(s, w, at_us, EVENT_VERB_ENERGY_RESET);
	if (!event)
		return ERR_USAGE;
	event->card = card;
	return 0;
}

static int parse_xid(struct scenario *s, struct words *w, int64_t at_us)
{
	int card = -1;
	int64_t xid = 0;
	if (words_count(w, "the XID", 1, 999, &xid) != 0 || scenario_card_ref(s, w, &card) != 0)
		return ERR_USAGE;
	struct scenario_event *event = scenario_add_event(s, w, at_us, EVENT_VERB_XID);
	if (!event)
		return ERR_USAGE;
	event->card = card;
	event->value = xid;
	return 0;
}

static int parse_step(struct scenario *s, struct words *w, int64_t at_us)
{
	int64_t us = 0;
	if (words_signed_duration(w, "the step", &us) != 0)
		return ERR_USAGE;
	struct scenario_event *event = scenario_add_event(s, w, at_us, EVENT_VERB_STEP);
	if (!event)
		return ERR_USAGE;
	event->value = us;
	return 0;
}

static int parse_suspend(struct scenario *s, struct words *w, int64_t at_us)
{
	int64_t us = 0;
	if (words_duration(w, "how long", &us) != 0)
		return ERR_USAGE;
	if (us == 0)
		return words_fail(w, "a suspend must be longer than 0s");
	struct scenario_event *event = scenario_add_event(s, w, at_us, EVENT_VERB_SUSPEND);
	if (!event)
		return ERR_USAGE;
	event->value = us;
	return scenario_add_event(s, w, at_us + us, EVENT_VERB_SUSPEND) ? 0 : ERR_USAGE;
}

static const struct {
	const char *name;
	int (*parse)(struct scenario *s, struct words *w, int64_t at_us);
} verbs[] = {
	{ "hold", parse_hold },
	{ "load", parse_load },
	{ "release", parse_release },
	{ "exit", parse_exit },
	{ "start", parse_process_start },
	{ "orphan", parse_orphan },
	{ "lost", parse_lost },
	{ "vanish", parse_vanish },
	{ "asleep", parse_asleep },
	{ "energy-reset", parse_energy_reset },
	{ "xid", parse_xid },
	{ "step", parse_step },
	{ "suspend", parse_suspend },
};

int scenario_parse_verb(struct scenario *s, struct words *w, int64_t at_us)
{
	const char *verb = words_peek(w);
	if (!verb)
		return words_fail(w, "the event after the time is missing");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (words_take(w, verbs[i].name))
			return verbs[i].parse(s, w, at_us);
	return scenario_parse_fault(s, w, at_us);
}

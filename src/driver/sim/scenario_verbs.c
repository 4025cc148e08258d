/* Reads the events of a scenario: the lines that begin with `at T`, faults among them. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "driver/sim/scenario_parse.h"

/* The largest power of a card is 100 kW, and the driver has 32 bits for it in milliwatts. */
enum { POWER_FACTOR_MAX = 40 };

/* Adds an event at `at_us` of kind `verb` with nothing else set; NULL: failed. The pointer is
 * valid until the next event. */
static struct scenario_event *scenario_add_event(
	struct scenario *s, struct words *w, int64_t at_us, enum scenario_verb verb)
{
	if (s->n_events >= SCENARIO_EVENTS_MAX) {
		line_fail(w, "there are more than %d events", SCENARIO_EVENTS_MAX);
		return NULL;
	}
	if (!array_reserve(&s->events, &s->cap_events, s->n_events + 1)) {
		line_fail(w, ERR_MEMORY_TEXT);
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

/* An event of a card with value 1; it is not added. */
static struct scenario_event scenario_span(
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

int scenario_add_fault(
	struct scenario *s, struct words *w, int64_t at_us, const struct scenario_fault *fault)
{
	if (!array_reserve(&s->faults, &s->cap_faults, s->n_faults + 1))
		return line_fail(w, ERR_MEMORY_TEXT);
	struct scenario_event event = scenario_span(w, at_us, EVENT_VERB_FAULT, fault->card);
	event.fault = (uint32_t)s->n_faults;
	s->faults[s->n_faults++] = *fault;
	struct scenario_event *added = scenario_add_event(s, w, at_us, EVENT_VERB_FAULT);
	if (!added)
		return ERR_USAGE;
	event.order = added->order;
	*added = event;
	if (fault->until_us == INT64_MAX)
		return 0;
	struct scenario_event *end =
		scenario_add_event(s, w, fault->until_us, EVENT_VERB_FAULT);
	if (!end)
		return ERR_USAGE;
	end->card = fault->card;
	end->fault = event.fault;
	return 0;
}

/* [until T], later than `at_us`; INT64_MAX when it is not there. */
static int scenario_until(struct words *w, int64_t at_us, int64_t *until_us)
{
	*until_us = INT64_MAX;
	if (!line_take(w, "until"))
		return 0;
	if (line_duration(w, "until", until_us) != 0)
		return ERR_USAGE;
	*until_us += w->day_us;
	return *until_us > at_us
		       ? 0
		       : line_fail(w,
				 "the time after until must be later than the time after at");
}

/* "card N" or "mig N/I" -> index into cards[]. */
static int scenario_card_ref(struct scenario *s, struct words *w, int *card)
{
	int64_t index = 0, instance = 0;
	bool mig = line_take(w, "mig");
	if (!mig && !line_take(w, "card"))
		return line_fail(w, "card N or mig N/I is missing");
	char text[32];
	if (line_copy(w, "the card's index", text, sizeof(text)) != 0)
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
	return line_fail(w, "there is no %s %s", mig ? "mig" : "card", text);
}

/* CALL [D] [card ...] [code C] [until T] */
static int parse_call_fault(
	struct scenario *s, struct words *w, int64_t at_us, enum scenario_fault_kind kind)
{
	struct scenario_fault fault = { .kind = kind, .card = -1 };
	if (line_copy(w, "the call", fault.call, sizeof(fault.call)) != 0)
		return ERR_USAGE;
	size_t len = strlen(fault.call);
	if (fault.call[len - 1] == '*') {
		fault.prefix = true;
		fault.call[len - 1] = '\0';
	}
	if (kind == FAULT_SLOW && line_duration(w, "how slow", &fault.slow_us) != 0)
		return ERR_USAGE;
	const char *next = line_peek(w);
	if (next && (strcmp(next, "card") == 0 || strcmp(next, "mig") == 0) &&
		scenario_card_ref(s, w, &fault.card) != 0)
		return ERR_USAGE;
	int64_t code = 0;
	if (kind == FAULT_FAIL &&
		(!line_take(w, "code") || line_count(w, "the code", 1, 999, &code) != 0))
		return line_fail(w, "write fail CALL [card N] code C [until T]");
	fault.code = (int)code;
	if (scenario_until(w, at_us, &fault.until_us) != 0)
		return ERR_USAGE;
	return scenario_add_fault(s, w, at_us, &fault);
}

static int parse_fail(struct scenario *s, struct words *w, int64_t at_us)
{
	return parse_call_fault(s, w, at_us, FAULT_FAIL);
}

static int parse_slow(struct scenario *s, struct words *w, int64_t at_us)
{
	return parse_call_fault(s, w, at_us, FAULT_SLOW);
}

static int parse_hang(struct scenario *s, struct words *w, int64_t at_us)
{
	return parse_call_fault(s, w, at_us, FAULT_HANG);
}

/* Adds an event of a card that ends at [until T] with its opposite: value 0, or status ok. */
static int scenario_add_span(struct scenario *s, struct words *w, struct scenario_event event)
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

/* card N [until T], for a physical card. */
static int scenario_card_span(struct scenario *s, struct words *w, int64_t at_us,
	enum scenario_verb verb, int64_t value)
{
	int card = -1;
	int64_t code = 15;
	if (scenario_card_ref(s, w, &card) != 0)
		return ERR_USAGE;
	if (s->cards[card].parent >= 0)
		return line_fail(w, "this happens to whole cards, not to MIG instances");
	bool lost = verb == EVENT_VERB_STATUS && value == CARD_STATUS_LOST;
	if (lost && line_take(w, "code") && line_count(w, "the code", 1, 999, &code) != 0)
		return ERR_USAGE;
	struct scenario_event event = scenario_span(w, at_us, verb, card);
	event.value = value;
	event.code = lost ? (int)code : 0;
	return scenario_add_span(s, w, event);
}

static int parse_garbage(struct scenario *s, struct words *w, int64_t at_us)
{
	return scenario_card_span(s, w, at_us, EVENT_VERB_GARBAGE, 1);
}

/* card N by N to N [until T] */
static int parse_grow(struct scenario *s, struct words *w, int64_t at_us)
{
	struct scenario_event event = scenario_span(w, at_us, EVENT_VERB_GROW, -1);
	if (scenario_card_ref(s, w, &event.card) != 0)
		return ERR_USAGE;
	if (!line_take(w, "by") || line_count(w, "by", 1, 4096, &event.value) != 0 ||
		!line_take(w, "to") || line_count(w, "to", 1, 4096, &event.on_us) != 0)
		return line_fail(w, "write grow card N by N to N [until T]");
	return scenario_add_span(s, w, event);
}

/* [call CALL] is one of the two calls for the use of processes. */
static int parse_zero_use(struct scenario *s, struct words *w, int64_t at_us)
{
	struct scenario_event event = scenario_span(w, at_us, EVENT_VERB_ZERO_USE, -1);
	const char *call = NULL;
	if (scenario_card_ref(s, w, &event.card) != 0)
		return ERR_USAGE;
	if (s->cards[event.card].parent >= 0)
		return line_fail(w, "this happens to whole cards, not to MIG instances");
	event.value = ZERO_USE_OLDER | ZERO_USE_NEWER;
	if (line_take(w, "call")) {
		if (line_text(w, "the call", &call) != 0)
			return ERR_USAGE;
		bool older = strcmp(call, "nvmlDeviceGetProcessUtilization") == 0;
		bool newer = strcmp(call, "nvmlDeviceGetProcessesUtilizationInfo") == 0;
		if (!older && !newer)
			return line_fail(w, "%s does not report the use of processes", call);
		event.value = older ? ZERO_USE_OLDER : ZERO_USE_NEWER;
	}
	return scenario_add_span(s, w, event);
}

/* card N F [until T] */
static int parse_power_factor(struct scenario *s, struct words *w, int64_t at_us)
{
	struct scenario_event event = scenario_span(w, at_us, EVENT_VERB_POWER_FACTOR, -1);
	if (scenario_card_ref(s, w, &event.card) != 0 ||
		line_count(w, "the factor", 2, POWER_FACTOR_MAX, &event.value) != 0)
		return ERR_USAGE;
	if (s->cards[event.card].parent >= 0)
		return line_fail(w, "this happens to whole cards, not to MIG instances");
	return scenario_add_span(s, w, event);
}

static const struct {
	const char *name;
	int (*parse)(struct scenario *s, struct words *w, int64_t at_us);
} faults[] = {
	{ "fail", parse_fail },
	{ "slow", parse_slow },
	{ "hang", parse_hang },
	{ "garbage", parse_garbage },
	{ "grow", parse_grow },
	{ "zero-use", parse_zero_use },
	{ "power-factor", parse_power_factor },
};

static int scenario_parse_fault(struct scenario *s, struct words *w, int64_t at_us)
{
	const char *verb = line_peek(w);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (line_take(w, faults[i].name))
			return faults[i].parse(s, w, at_us);
	return line_fail(w, "there is no event or fault '%s'", verb);
}

static int parse_process_ref(struct scenario *s, struct words *w, int *process)
{
	const char *name = NULL;
	if (line_text(w, "the process' name", &name) != 0)
		return ERR_USAGE;
	*process = scenario_find_process(s, name);
	return *process >= 0 ? 0 : line_fail(w, "there is no process '%s'", name);
}

static int parse_hold(struct scenario *s, struct words *w, int64_t at_us)
{
	int process = -1, card = -1;
	int64_t bytes = -1;
	if (parse_process_ref(s, w, &process) != 0 || scenario_card_ref(s, w, &card) != 0)
		return ERR_USAGE;
	if (!line_take(w, "memory"))
		return line_fail(w, "write hold PROCESS card N memory SIZE");
	if (!line_take(w, "unknown") && line_size(w, "the memory", &bytes) != 0)
		return ERR_USAGE;
	if (s->cards[card].has_mig)
		return line_fail(w, "card %d has MIG on: a process is on an instance", card);
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
	if (!line_take(w, "on"))
		return 0;
	if (line_duration(w, "on", &event->on_us) != 0)
		return ERR_USAGE;
	if (!line_take(w, "off") || line_duration(w, "off", &event->off_us) != 0)
		return line_fail(w, "on needs off: write on 400ms off 600ms");
	if (event->on_us == 0 || event->off_us == 0)
		return line_fail(w, "on and off must be longer than 0s");
	return 0;
}

static int parse_load(struct scenario *s, struct words *w, int64_t at_us)
{
	const char *next = line_peek(w);
	bool own = next && (strcmp(next, "card") == 0 || strcmp(next, "mig") == 0);
	struct scenario_event event =
		scenario_span(w, at_us, own ? EVENT_VERB_CARD_LOAD : EVENT_VERB_LOAD, -1);
	if (!own && parse_process_ref(s, w, &event.process) != 0)
		return ERR_USAGE;
	if (scenario_card_ref(s, w, &event.card) != 0)
		return ERR_USAGE;
	if (!line_take(w, own ? "util" : "sm"))
		return line_fail(
			w, "write load %s N", own ? "card N util" : "PROCESS card N sm");
	if (line_count(w, "the percentage", 0, 100, &event.value) != 0 ||
		parse_duty(w, &event) != 0)
		return ERR_USAGE;
	if (s->cards[event.card].has_mig)
		return line_fail(w, "card %d has MIG on: load an instance", event.card);
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
	if (!line_take(w, "memory") || line_size(w, "the memory", &bytes) != 0)
		return line_fail(w, "write orphan card N memory SIZE");
	struct scenario_event *event = scenario_add_event(s, w, at_us, EVENT_VERB_ORPHAN);
	if (!event)
		return ERR_USAGE;
	event->card = card;
	event->value = bytes;
	return 0;
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
	if (line_count(w, "the XID", 1, 999, &xid) != 0 || scenario_card_ref(s, w, &card) != 0)
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
	if (line_signed_duration(w, "the step", &us) != 0)
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
	if (line_duration(w, "how long", &us) != 0)
		return ERR_USAGE;
	if (us == 0)
		return line_fail(w, "a suspend must be longer than 0s");
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
	const char *verb = line_peek(w);
	if (!verb)
		return line_fail(w, "the event after the time is missing");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (line_take(w, verbs[i].name))
			return verbs[i].parse(s, w, at_us);
	return scenario_parse_fault(s, w, at_us);
}

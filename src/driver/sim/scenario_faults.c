/* Reads what goes wrong with a scenario's driver: calls that fail, and odd answers. */
#include "base/array.h"
#include "driver/sim/scenario_parse.h"

#include <stdlib.h>
#include <string.h>

/* The largest power of a card is 100 kW, and the driver has 32 bits for it in milliwatts. */
enum { POWER_FACTOR_MAX = 40 };

int scenario_add_fault(
	struct scenario *s, struct words *w, int64_t at_us, const struct scenario_fault *fault)
{
	if (!array_reserve(&s->faults, &s->cap_faults, s->n_faults + 1))
		return words_fail(w, ERR_MEMORY_TEXT);
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

/* CALL [D] [card ...] [code C] [until T] */
static int parse_call_fault(
	struct scenario *s, struct words *w, int64_t at_us, enum scenario_fault_kind kind)
{
	struct scenario_fault fault = { .kind = kind, .card = -1 };
	if (words_copy(w, "the call", fault.call, sizeof(fault.call)) != 0)
		return ERR_USAGE;
	size_t len = strlen(fault.call);
	if (fault.call[len - 1] == '*') {
		fault.prefix = true;
		fault.call[len - 1] = '\0';
	}
	if (kind == FAULT_SLOW && words_duration(w, "how slow", &fault.slow_us) != 0)
		return ERR_USAGE;
	const char *next = words_peek(w);
	if (next && (strcmp(next, "card") == 0 || strcmp(next, "mig") == 0) &&
		scenario_card_ref(s, w, &fault.card) != 0)
		return ERR_USAGE;
	int64_t code = 0;
	if (kind == FAULT_FAIL &&
		(!words_take(w, "code") || words_count(w, "the code", 1, 999, &code) != 0))
		return words_fail(w, "write fail CALL [card N] code C [until T]");
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
	if (!words_take(w, "by") || words_count(w, "by", 1, 4096, &event.value) != 0 ||
		!words_take(w, "to") || words_count(w, "to", 1, 4096, &event.on_us) != 0)
		return words_fail(w, "write grow card N by N to N [until T]");
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
		return words_fail(w, "this happens to whole cards, not to MIG instances");
	event.value = ZERO_USE_OLDER | ZERO_USE_NEWER;
	if (words_take(w, "call")) {
		if (words_text(w, "the call", &call) != 0)
			return ERR_USAGE;
		bool older = strcmp(call, "nvmlDeviceGetProcessUtilization") == 0;
		bool newer = strcmp(call, "nvmlDeviceGetProcessesUtilizationInfo") == 0;
		if (!older && !newer)
			return words_fail(w, "%s does not report the use of processes", call);
		event.value = older ? ZERO_USE_OLDER : ZERO_USE_NEWER;
	}
	return scenario_add_span(s, w, event);
}

/* card N F [until T] */
static int parse_power_factor(struct scenario *s, struct words *w, int64_t at_us)
{
	struct scenario_event event = scenario_span(w, at_us, EVENT_VERB_POWER_FACTOR, -1);
	if (scenario_card_ref(s, w, &event.card) != 0 ||
		words_count(w, "the factor", 2, POWER_FACTOR_MAX, &event.value) != 0)
		return ERR_USAGE;
	if (s->cards[event.card].parent >= 0)
		return words_fail(w, "this happens to whole cards, not to MIG instances");
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

int scenario_parse_fault(struct scenario *s, struct words *w, int64_t at_us)
{
	const char *verb = words_peek(w);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (words_take(w, faults[i].name))
			return faults[i].parse(s, w, at_us);
	return words_fail(w, "there is no event or fault '%s'", verb);
}

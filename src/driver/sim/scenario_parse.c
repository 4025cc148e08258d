/* Reads the lines of a scenario that describe cards, MIG instances, processes and events. */
#include "driver/sim/scenario_parse.h"

/* The largest power of a card is 100 kW, and the driver has 32 bits for it in milliwatts. */
enum { POWER_FACTOR_MAX = 40 };

static struct scenario_event new_event(
	const struct line *l, int64_t at_us, enum scenario_verb verb)
{
	return (struct scenario_event){ .at_us = at_us,
		.verb = verb,
		.card = -1,
		.process = -1,
		.seat = SEAT_NONE,
		.line = l->number };
}

/* Adds a copy of the event. */
static int add_event(struct scenario *s, struct line *l, const struct scenario_event *event)
{
	if (s->n_events >= SCENARIO_EVENTS_MAX)
		return line_fail(l, "there are more than %d events", SCENARIO_EVENTS_MAX);
	if (!array_reserve(&s->events, &s->cap_events, s->n_events + 1))
		return line_fail(l, ERR_MEMORY_TEXT);
	s->events[s->n_events] = *event;
	s->events[s->n_events].order = (uint32_t)s->n_events;
	s->n_events++;
	return 0;
}

/* Adds a copy of the fault; `event` turns it on. */
static int add_fault(struct scenario *s, struct line *l, const struct scenario_fault *fault,
	struct scenario_event *event)
{
	if (!array_reserve(&s->faults, &s->cap_faults, s->n_faults + 1))
		return line_fail(l, ERR_MEMORY_TEXT);
	event->card = fault->card;
	event->value = 1;
	event->fault = (uint32_t)s->n_faults;
	s->faults[s->n_faults++] = *fault;
	return 0;
}

/* Handles `energy no` and `memory-info v1`, short for calls that fail from the start. */
static int never_works(struct scenario *s, struct line *l, int card, const char *call)
{
	struct scenario_event event = new_event(l, 0, EVENT_VERB_FAULT);
	struct scenario_fault fault = {
		.kind = FAULT_FAIL, .card = card, .code = 3, .until_us = INT64_MAX
	};
	str_copy(fault.call, sizeof(fault.call), call);
	return add_fault(s, l, &fault, &event) != 0 ? ERR_USAGE : add_event(s, l, &event);
}

static int parse_memory_info(struct scenario *s, struct line *l, int card)
{
	const char *which = NULL;
	if (line_text(l, "memory-info", &which) != 0)
		return ERR_USAGE;
	bool v1 = strcmp(which, "v1") == 0, none = strcmp(which, "none") == 0;
	if (!v1 && !none && strcmp(which, "v2") != 0)
		return line_fail(l, "memory-info must be v1, v2 or none");
	if ((v1 || none) && never_works(s, l, card, "nvmlDeviceGetMemoryInfo_v2") != 0)
		return ERR_USAGE;
	return none ? never_works(s, l, card, "nvmlDeviceGetMemoryInfo") : 0;
}

static int parse_uuid(struct scenario *s, struct line *l, struct scenario_card *card)
{
	char uuid[UUID_CAP];
	if (line_copy(l, "the uuid", uuid, sizeof(uuid)) != 0)
		return ERR_USAGE;
	for (size_t i = 0; i < s->n_cards; i++)
		if (strcmp(s->cards[i].id.uuid, uuid) == 0)
			return line_fail(l, "another card has the uuid '%s'", uuid);
	str_copy(card->id.uuid, sizeof(card->id.uuid), uuid);
	return 0;
}

static int parse_pci(struct line *l, struct card_id *id)
{
	static const char shape[] = "xxxx:xx:xx.x";
	if (line_copy(l, "the PCI address", id->pci, sizeof(id->pci)) != 0)
		return ERR_USAGE;
	bool good = strlen(id->pci) == sizeof(shape) - 1;
	for (size_t i = 0; good && shape[i]; i++)
		good = shape[i] == 'x' ? strchr("0123456789abcdef", id->pci[i]) != NULL
				       : id->pci[i] == shape[i];
	return good ? 0
		    : line_fail(l, "the PCI address is '%s'; write it like 0000:17:00.0",
			      id->pci);
}

static int parse_gpm(struct line *l, struct scenario_card *card)
{
	card->gpm_breaks = card->parent < 0 && line_take(l, "breaks");
	card->gpm = card->gpm_breaks || line_take(l, "yes");
	if (card->gpm || line_take(l, "no"))
		return 0;
	return line_fail(l,
		card->parent < 0 ? "gpm must be yes, no or breaks" : "gpm must be yes or no");
}

/* One `key value` of a card or MIG line. */
static int parse_card_key(struct scenario *s, struct line *l, struct scenario_card *card)
{
	struct card_id *id = &card->id;
	int at = (int)(card - s->cards);
	if (line_take(l, "uuid"))
		return parse_uuid(s, l, card);
	if (line_take(l, "name"))
		return line_copy(l, "the name", id->name, sizeof(id->name));
	if (line_take(l, "memory"))
		return line_size(l, "the memory", &id->mem_total_bytes);
	if (line_take(l, "reserved"))
		return line_size(l, "the reserved memory", &card->reserved_bytes);
	if (line_take(l, "pci"))
		return parse_pci(l, id);
	if (line_take(l, "idle-power"))
		return line_power(l, "the idle power", &card->idle_mw);
	if (line_take(l, "max-power"))
		return line_power(l, "the largest power", &card->max_mw);
	if (line_take(l, "held-power"))
		return line_power(l, "the power with processes", &card->held_mw);
	if (line_take(l, "cool-down"))
		return line_duration(l, "the time to cool down", &card->cool_us);
	if (line_take(l, "memory-info"))
		return parse_memory_info(s, l, at);
	if (line_take(l, "gpm"))
		return parse_gpm(l, card);
	if (line_take(l, "sm-active"))
		return line_count(l, "sm-active", 0, 100, &card->sm_active_pct);
	if (line_take(l, "energy"))
		return line_take(l, "no")
			       ? never_works(s, l, at, "nvmlDeviceGetTotalEnergyConsumption")
			       : line_fail(l, "write energy no, or leave it out");
	return line_fail(l, "'%s' is not a key of a card", line_peek(l));
}

/* Reads the keys of a card or MIG line, and checks what every such line must have. */
static int parse_card_keys(struct scenario *s, struct line *l, struct scenario_card *card)
{
	while (line_peek(l))
		if (parse_card_key(s, l, card) != 0)
			return ERR_USAGE;
	if (!card->id.pci[0])
		snprintf(card->id.pci, sizeof(card->id.pci), "0000:%02x:00.0",
			(unsigned)(16 + card->id.index) & 0xff);
	if (!card->id.uuid[0] || !card->id.name[0] || card->id.mem_total_bytes <= 0)
		return line_fail(l, "uuid, name and memory are needed");
	if (card->reserved_bytes > card->id.mem_total_bytes)
		return line_fail(l, "more memory is reserved than there is");
	if (card->held_mw < 0)
		card->held_mw = card->idle_mw;
	if (card->max_mw < card->idle_mw)
		return line_fail(l, "max-power is below idle-power");
	if (card->max_mw < card->held_mw)
		return line_fail(l, "max-power is below held-power");
	return 0;
}

int scenario_parse_card(struct scenario *s, struct line *l)
{
	int64_t index = 0;
	if (line_count(l, "the card's index", 0, SCENARIO_CARDS_MAX - 1, &index) != 0)
		return ERR_USAGE;
	if (s->n_cards != s->n_physical)
		return line_fail(l, "cards come before MIG instances");
	if ((size_t)index != s->n_cards)
		return line_fail(l, "cards are numbered in order: the next is %zu", s->n_cards);
	struct scenario_card *card = &s->cards[s->n_cards];
	*card = (struct scenario_card){ .parent = -1,
		.idle_mw = 60000,
		.held_mw = -1,
		.max_mw = 400000,
		.sm_active_pct = 50 };
	card->id = (struct card_id){
		.index = (int)index, .mig_index = -1, .gpu_instance = -1, .compute_instance = -1
	};
	s->n_physical = ++s->n_cards;
	return parse_card_keys(s, l, card);
}

/* Reads `index I gi G ci C`, and checks that the index is free. */
static int parse_mig_place(struct scenario *s, struct line *l, struct scenario_card *card)
{
	int64_t index = 0, gi = 0, ci = 0;
	if (!line_take(l, "index") ||
		line_count(l, "the index", 0, SCENARIO_MIG_MAX - 1, &index) != 0 ||
		!line_take(l, "gi") || line_count(l, "gi", 0, 100, &gi) != 0 ||
		!line_take(l, "ci") || line_count(l, "ci", 0, 100, &ci) != 0)
		return line_fail(l, "write mig CARD index I gi G ci C uuid ...");
	for (size_t i = s->n_physical; i < s->n_cards; i++)
		if (s->cards[i].parent == card->parent && s->cards[i].id.mig_index == index)
			return line_fail(l, "card %d has an instance %d already", card->parent,
				(int)index);
	card->id.mig_index = (int)index;
	card->id.gpu_instance = (int)gi;
	card->id.compute_instance = (int)ci;
	return 0;
}

int scenario_parse_mig(struct scenario *s, struct line *l)
{
	int64_t parent = 0;
	if (line_count(l, "the card's index", 0, SCENARIO_CARDS_MAX - 1, &parent) != 0)
		return ERR_USAGE;
	if ((size_t)parent >= s->n_physical)
		return line_fail(l, "there is no card %d", (int)parent);
	struct scenario_card *card = &s->cards[s->n_cards];
	*card = (struct scenario_card){ .parent = (int)parent,
		.gpm = s->cards[parent].gpm,
		.sm_active_pct = s->cards[parent].sm_active_pct };
	card->id.index = (int)parent;
	str_copy(card->id.parent_uuid, UUID_CAP, s->cards[parent].id.uuid);
	str_copy(card->id.pci, PCI_CAP, s->cards[parent].id.pci);
	if (parse_mig_place(s, l, card) != 0)
		return ERR_USAGE;
	s->n_cards++;
	s->cards[parent].has_mig = true;
	return parse_card_keys(s, l, card);
}

static int parse_kind(struct line *l, unsigned *kind)
{
	if (line_take(l, "compute"))
		*kind = PROCESS_COMPUTE;
	else if (line_take(l, "graphics"))
		*kind = PROCESS_GRAPHICS;
	else if (line_take(l, "both"))
		*kind = PROCESS_COMPUTE | PROCESS_GRAPHICS;
	else if (line_take(l, "mps"))
		*kind = PROCESS_MPS;
	else
		return line_fail(l, "the kind must be compute, graphics, both or mps");
	return 0;
}

static int parse_pid(struct line *l, struct scenario_process *p)
{
	int64_t pid = 0;
	if (line_take(l, "env"))
		return line_copy(l, "the variable", p->pid_env, sizeof(p->pid_env));
	if (line_take(l, "file")) {
		if (line_copy(l, "the file", p->pid_file, sizeof(p->pid_file)) != 0)
			return ERR_USAGE;
		if (p->pid_file[0] != '.' && !strchr(p->pid_file, '/'))
			return 0;
		return line_fail(l,
			"the file is '%s' and must be a name without / and not begin with .",
			p->pid_file);
	}
	if (line_count(l, "the pid", 1, 4194304, &pid) != 0)
		return ERR_USAGE;
	p->pid = (uint32_t)pid;
	return 0;
}

static int parse_process_key(struct scenario *s, struct line *l, struct scenario_process *p)
{
	if (line_take(l, "pid"))
		return parse_pid(l, p);
	if (line_take(l, "user"))
		return line_copy(l, "the user", p->user, sizeof(p->user));
	if (line_take(l, "uid"))
		return line_count(l, "the uid", 0, UINT32_MAX - 1, &p->uid);
	if (line_take(l, "command"))
		return line_copy(l, "the command", p->command, sizeof(p->command));
	if (line_take(l, "kind"))
		return parse_kind(l, &p->kind);
	if (line_take(l, "dead")) {
		p->dead = true;
		return 0;
	}
	if (line_take(l, "started")) {
		p->has_started = true;
		return line_signed_duration(l, "started", &p->started_us);
	}
	size_t which = 0;
	while (which < PROCESS_TEXTS && !line_take(l, process_fields[which].name))
		which++;
	if (which == PROCESS_TEXTS)
		return line_fail(l, "'%s' is not a key of a process", line_peek(l));
	if (!array_one_more(&s->texts, s->n_texts))
		return line_fail(l, ERR_MEMORY_TEXT);
	struct scenario_text *text = &s->texts[s->n_texts++];
	*text = (struct scenario_text){ .process = (uint32_t)s->n_processes - 1,
		.which = (enum process_text)which };
	return line_copy(l, process_fields[which].name, text->text, process_fields[which].cap);
}

int scenario_parse_process(struct scenario *s, struct line *l)
{
	if (s->n_processes == SCENARIO_PROCESSES_MAX)
		return line_fail(l, "there are more than %d processes", SCENARIO_PROCESSES_MAX);
	struct scenario_process *p = &s->processes[s->n_processes];
	*p = (struct scenario_process){
		.uid = -1, .kind = PROCESS_COMPUTE, .first_seat = SEAT_NONE
	};
	if (line_copy(l, "the process' name", p->name, sizeof(p->name)) != 0)
		return ERR_USAGE;
	if (strcmp(p->name, "card") == 0 || strcmp(p->name, "mig") == 0)
		return line_fail(l, "a process cannot be called '%s'", p->name);
	if (names_get(&s->names, 0, p->name) != IDMAP_NONE)
		return line_fail(l, "there is a process '%s' already", p->name);
	if (names_find(&s->names, 0, p->name, NULL) == IDMAP_NONE)
		return line_fail(l, ERR_MEMORY_TEXT);
	s->n_processes++;
	str_copy(p->user, sizeof(p->user), p->name);
	str_copy(p->command, sizeof(p->command), p->name);
	while (line_peek(l))
		if (parse_process_key(s, l, p) != 0)
			return ERR_USAGE;
	if (p->pid == 0 && !p->pid_env[0] && !p->pid_file[0])
		return line_fail(l, "the process '%s' needs a pid", p->name);
	if (p->started_us > 0 || p->started_us < -90LL * 86400 * 1000000)
		return line_fail(l, "a process can have started up to 90d before the scenario");
	return 0;
}

/* Events. */

static int parse_process_ref(struct scenario *s, struct line *l, struct scenario_event *event)
{
	const char *name = NULL;
	if (line_text(l, "the process' name", &name) != 0)
		return ERR_USAGE;
	uint32_t process = names_get(&s->names, 0, name);
	if (process == IDMAP_NONE)
		return line_fail(l, "there is no process '%s'", name);
	event->process = (int)process;
	return 0;
}

/* Whether "card" or "mig" is next. */
static bool is_at_card(const struct line *l)
{
	const char *next = line_peek(l);
	return next && (strcmp(next, "card") == 0 || strcmp(next, "mig") == 0);
}

/* "card N" or "mig N/I". */
static int parse_card_ref(struct scenario *s, struct line *l, struct scenario_event *event)
{
	int64_t index = 0, instance = 0;
	bool mig = line_take(l, "mig");
	if (!mig && !line_take(l, "card"))
		return line_fail(l, "card N or mig N/I is missing");
	char text[32];
	if (line_copy(l, "the card's index", text, sizeof(text)) != 0)
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
		event->card = (int)i;
		return 0;
	}
	return line_fail(l, "there is no %s %s", mig ? "mig" : "card", text);
}

/* What an event is about; its verb is followed by these, in this order. */
enum subject { OF_PROCESS = 1, OF_CARD = 2, OF_WHOLE = 4 /* a card, not a MIG instance */ };

static int parse_subject(
	struct scenario *s, struct line *l, unsigned subject, struct scenario_event *event)
{
	if (subject & OF_PROCESS && parse_process_ref(s, l, event) != 0)
		return ERR_USAGE;
	if (subject & (OF_CARD | OF_WHOLE) && parse_card_ref(s, l, event) != 0)
		return ERR_USAGE;
	if (subject & OF_WHOLE && s->cards[event->card].parent >= 0)
		return line_fail(l, "this happens to whole cards, not to MIG instances");
	return 0;
}

/* Each of these functions reads what follows the verb and its subject into the event. */

/* [code C] */
static int parse_lost(struct scenario *s, struct line *l, struct scenario_event *event)
{
	int64_t code = 15;
	(void)s;
	if (line_take(l, "code") && line_count(l, "the code", 1, 999, &code) != 0)
		return ERR_USAGE;
	event->code = (int)code;
	return 0;
}

/* CALL [D] [card ...] [code C]; the event's value is the kind of fault. */
static int parse_call_fault(struct scenario *s, struct line *l, struct scenario_event *event)
{
	struct scenario_fault fault = { .kind = (enum scenario_fault_kind)event->value };
	if (line_copy(l, "the call", fault.call, sizeof(fault.call)) != 0)
		return ERR_USAGE;
	size_t len = strlen(fault.call);
	if (fault.call[len - 1] == '*') {
		fault.prefix = true;
		fault.call[len - 1] = '\0';
	}
	if (fault.kind == FAULT_SLOW && line_duration(l, "how slow", &fault.slow_us) != 0)
		return ERR_USAGE;
	if (is_at_card(l) && parse_card_ref(s, l, event) != 0)
		return ERR_USAGE;
	fault.card = event->card;
	int64_t code = 0;
	if (fault.kind == FAULT_FAIL &&
		(!line_take(l, "code") || line_count(l, "the code", 1, 999, &code) != 0))
		return line_fail(l, "write fail CALL [card N] code C [until T]");
	fault.code = (int)code;
	return add_fault(s, l, &fault, event);
}

/* by N to N */
static int parse_grow(struct scenario *s, struct line *l, struct scenario_event *event)
{
	(void)s;
	if (!line_take(l, "by") || line_count(l, "by", 1, 4096, &event->value) != 0 ||
		!line_take(l, "to") || line_count(l, "to", 1, 4096, &event->on_us) != 0)
		return line_fail(l, "write grow card N by N to N [until T]");
	return 0;
}

/* [call CALL], where CALL is one of the two calls for the use of processes. */
static int parse_zero_use(struct scenario *s, struct line *l, struct scenario_event *event)
{
	const char *call = NULL;
	(void)s;
	event->value = ZERO_USE_OLDER | ZERO_USE_NEWER;
	if (!line_take(l, "call"))
		return 0;
	if (line_text(l, "the call", &call) != 0)
		return ERR_USAGE;
	bool older = strcmp(call, "nvmlDeviceGetProcessUtilization") == 0;
	bool newer = strcmp(call, "nvmlDeviceGetProcessesUtilizationInfo") == 0;
	if (!older && !newer)
		return line_fail(l, "%s does not report the use of processes", call);
	event->value = older ? ZERO_USE_OLDER : ZERO_USE_NEWER;
	return 0;
}

static int parse_power_factor(struct scenario *s, struct line *l, struct scenario_event *event)
{
	(void)s;
	return line_count(l, "the factor", 2, POWER_FACTOR_MAX, &event->value);
}

static int parse_hold(struct scenario *s, struct line *l, struct scenario_event *event)
{
	if (!line_take(l, "memory"))
		return line_fail(l, "write hold PROCESS card N memory SIZE");
	event->value = -1;
	if (!line_take(l, "unknown") && line_size(l, "the memory", &event->value) != 0)
		return ERR_USAGE;
	if (s->cards[event->card].has_mig)
		return line_fail(
			l, "card %d has MIG on: a process is on an instance", event->card);
	return 0;
}

/* [on D off D] */
static int parse_duty(struct line *l, struct scenario_event *event)
{
	if (!line_take(l, "on"))
		return 0;
	if (line_duration(l, "on", &event->on_us) != 0)
		return ERR_USAGE;
	if (!line_take(l, "off") || line_duration(l, "off", &event->off_us) != 0)
		return line_fail(l, "on needs off: write on 400ms off 600ms");
	if (event->on_us == 0 || event->off_us == 0)
		return line_fail(l, "on and off must be longer than 0s");
	return 0;
}

static int parse_load(struct scenario *s, struct line *l, struct scenario_event *event)
{
	bool own = is_at_card(l);
	event->verb = own ? EVENT_VERB_CARD_LOAD : EVENT_VERB_LOAD;
	if (parse_subject(s, l, own ? OF_CARD : OF_PROCESS | OF_CARD, event) != 0)
		return ERR_USAGE;
	if (!line_take(l, own ? "util" : "sm"))
		return line_fail(
			l, "write load %s N", own ? "card N util" : "PROCESS card N sm");
	if (line_count(l, "the percentage", 0, 100, &event->value) != 0 ||
		parse_duty(l, event) != 0)
		return ERR_USAGE;
	if (s->cards[event->card].has_mig)
		return line_fail(l, "card %d has MIG on: load an instance", event->card);
	return 0;
}

static int parse_orphan(struct scenario *s, struct line *l, struct scenario_event *event)
{
	(void)s;
	if (!line_take(l, "memory") || line_size(l, "the memory", &event->value) != 0)
		return line_fail(l, "write orphan card N memory SIZE");
	return 0;
}

static int parse_xid(struct scenario *s, struct line *l, struct scenario_event *event)
{
	if (line_count(l, "the XID", 1, 999, &event->value) != 0)
		return ERR_USAGE;
	return parse_card_ref(s, l, event);
}

static int parse_step(struct scenario *s, struct line *l, struct scenario_event *event)
{
	(void)s;
	return line_signed_duration(l, "the step", &event->value);
}

static int parse_suspend(struct scenario *s, struct line *l, struct scenario_event *event)
{
	(void)s;
	if (line_duration(l, "how long", &event->value) != 0)
		return ERR_USAGE;
	return event->value ? 0 : line_fail(l, "a suspend must be longer than 0s");
}

static const struct verb {
	const char *name;
	unsigned subject; /* enum subject bits; 0: none, or `parse` reads it */
	int (*parse)(struct scenario *s, struct line *l, struct scenario_event *event);
	enum scenario_verb verb;
	int64_t value;
	bool lasts; /* [until T] may follow: then it ends with the same verb and value 0 */
} verbs[] = {
	{ "hold", OF_PROCESS | OF_CARD, parse_hold, EVENT_VERB_HOLD, 0, false },
	{ "load", 0, parse_load, EVENT_VERB_LOAD, 0, false },
	{ "release", OF_PROCESS | OF_CARD, NULL, EVENT_VERB_RELEASE, 0, false },
	{ "exit", OF_PROCESS, NULL, EVENT_VERB_EXIT, 0, false },
	{ "start", OF_PROCESS, NULL, EVENT_VERB_START, 0, false },
	{ "orphan", OF_CARD, parse_orphan, EVENT_VERB_ORPHAN, 0, false },
	{ "lost", OF_WHOLE, parse_lost, EVENT_VERB_STATUS, CARD_STATUS_LOST, true },
	{ "vanish", OF_WHOLE, NULL, EVENT_VERB_VANISH, 1, true },
	{ "asleep", OF_WHOLE, NULL, EVENT_VERB_STATUS, CARD_STATUS_ASLEEP, true },
	{ "energy-reset", OF_CARD, NULL, EVENT_VERB_ENERGY_RESET, 0, false },
	{ "xid", 0, parse_xid, EVENT_VERB_XID, 0, false },
	{ "step", 0, parse_step, EVENT_VERB_STEP, 0, false },
	{ "suspend", 0, parse_suspend, EVENT_VERB_SUSPEND, 0, false },
	{ "fail", 0, parse_call_fault, EVENT_VERB_FAULT, FAULT_FAIL, true },
	{ "slow", 0, parse_call_fault, EVENT_VERB_FAULT, FAULT_SLOW, true },
	{ "hang", 0, parse_call_fault, EVENT_VERB_FAULT, FAULT_HANG, true },
	{ "garbage", OF_WHOLE, NULL, EVENT_VERB_GARBAGE, 1, true },
	{ "grow", OF_CARD, parse_grow, EVENT_VERB_GROW, 0, true },
	{ "zero-use", OF_WHOLE, parse_zero_use, EVENT_VERB_ZERO_USE, 0, true },
	{ "power-factor", OF_WHOLE, parse_power_factor, EVENT_VERB_POWER_FACTOR, 0, true },
};

/* [until T], later than `at_us`; without it *until_us stays. */
static int parse_until(struct line *l, int64_t at_us, int64_t *until_us)
{
	if (!line_take(l, "until"))
		return 0;
	if (line_duration(l, "until", until_us) != 0)
		return ERR_USAGE;
	*until_us += l->day_us;
	if (*until_us > at_us)
		return 0;
	return line_fail(l, "the time after until must be later than the time after at");
}

int scenario_parse_verb(struct scenario *s, struct line *l, int64_t at_us)
{
	const char *name = line_peek(l);
	const struct verb *v = verbs, *end = verbs + sizeof(verbs) / sizeof(verbs[0]);
	if (!name)
		return line_fail(l, "the event after the time is missing");
	while (v < end && !line_take(l, v->name))
		v++;
	if (v == end)
		return line_fail(l, "there is no event or fault '%s'", name);
	struct scenario_event event = new_event(l, at_us, v->verb);
	int64_t until_us = INT64_MAX;
	event.value = v->value;
	if (parse_subject(s, l, v->subject, &event) != 0 ||
		(v->parse && v->parse(s, l, &event) != 0) ||
		(v->lasts && parse_until(l, at_us, &until_us) != 0))
		return ERR_USAGE;
	if (v->verb == EVENT_VERB_SUSPEND)
		until_us = at_us + event.value;
	if (v->verb == EVENT_VERB_FAULT)
		s->faults[event.fault].until_us = until_us;
	if (add_event(s, l, &event) != 0)
		return ERR_USAGE;
	if (until_us == INT64_MAX)
		return 0;
	struct scenario_event last = new_event(l, until_us, v->verb);
	last.card = event.card;
	last.fault = event.fault;
	return add_event(s, l, &last);
}

/* Reads the cards and the processes of a scenario. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "driver/sim/scenario_parse.h"

/* `energy no` and `memory-info v1`: short for calls that fail from the start. */
static int never_works(struct scenario *s, struct words *w, int card, const char *call)
{
	struct scenario_fault fault = {
		.kind = FAULT_FAIL, .card = card, .code = 3, .until_us = INT64_MAX
	};
	str_copy(fault.call, sizeof(fault.call), call);
	return scenario_add_fault(s, w, 0, &fault);
}

static int parse_memory_info(struct scenario *s, struct words *w, int card)
{
	const char *which = NULL;
	if (line_text(w, "memory-info", &which) != 0)
		return ERR_USAGE;
	bool v1 = strcmp(which, "v1") == 0, none = strcmp(which, "none") == 0;
	if (!v1 && !none && strcmp(which, "v2") != 0)
		return line_fail(w, "memory-info must be v1, v2 or none");
	if ((v1 || none) && never_works(s, w, card, "nvmlDeviceGetMemoryInfo_v2") != 0)
		return ERR_USAGE;
	return none ? never_works(s, w, card, "nvmlDeviceGetMemoryInfo") : 0;
}

static int parse_uuid(struct scenario *s, struct words *w, struct scenario_card *card)
{
	char uuid[UUID_CAP];
	if (line_copy(w, "the uuid", uuid, sizeof(uuid)) != 0)
		return ERR_USAGE;
	for (size_t i = 0; i < s->n_cards; i++)
		if (strcmp(s->cards[i].id.uuid, uuid) == 0)
			return line_fail(w, "another card has the uuid '%s'", uuid);
	str_copy(card->id.uuid, sizeof(card->id.uuid), uuid);
	return 0;
}

static int parse_pci(struct words *w, struct card_id *id)
{
	static const char shape[] = "xxxx:xx:xx.x";
	if (line_copy(w, "the PCI address", id->pci, sizeof(id->pci)) != 0)
		return ERR_USAGE;
	bool good = strlen(id->pci) == sizeof(shape) - 1;
	for (size_t i = 0; good && shape[i]; i++)
		good = shape[i] == 'x' ? strchr("0123456789abcdef", id->pci[i]) != NULL
				       : id->pci[i] == shape[i];
	if (!good)
		return line_fail(
			w, "the PCI address is '%s'; write it like 0000:17:00.0", id->pci);
	return 0;
}

static int parse_gpm(struct words *w, struct scenario_card *card)
{
	card->gpm_breaks = card->parent < 0 && line_take(w, "breaks");
	card->gpm = card->gpm_breaks || line_take(w, "yes");
	if (card->gpm || line_take(w, "no"))
		return 0;
	return line_fail(w,
		card->parent < 0 ? "gpm must be yes, no or breaks" : "gpm must be yes or no");
}

static int parse_sm_active(struct words *w, struct scenario_card *card)
{
	int64_t pct = 0;
	if (line_count(w, "sm-active", 0, 100, &pct) != 0)
		return ERR_USAGE;
	card->sm_active_pct = (int)pct;
	return 0;
}

/* One `key value` of a card or MIG line. */
static int parse_card_key(struct scenario *s, struct words *w, struct scenario_card *card)
{
	struct card_id *id = &card->id;
	int at = (int)(card - s->cards);
	if (line_take(w, "uuid"))
		return parse_uuid(s, w, card);
	if (line_take(w, "name"))
		return line_copy(w, "the name", id->name, sizeof(id->name));
	if (line_take(w, "memory"))
		return line_size(w, "the memory", &id->mem_total_bytes);
	if (line_take(w, "reserved"))
		return line_size(w, "the reserved memory", &card->reserved_bytes);
	if (line_take(w, "pci"))
		return parse_pci(w, id);
	if (line_take(w, "idle-power"))
		return line_power(w, "the idle power", &card->idle_mw);
	if (line_take(w, "max-power"))
		return line_power(w, "the largest power", &card->max_mw);
	if (line_take(w, "held-power"))
		return line_power(w, "the power with processes", &card->held_mw);
	if (line_take(w, "cool-down"))
		return line_duration(w, "the time to cool down", &card->cool_us);
	if (line_take(w, "memory-info"))
		return parse_memory_info(s, w, at);
	if (line_take(w, "gpm"))
		return parse_gpm(w, card);
	if (line_take(w, "sm-active"))
		return parse_sm_active(w, card);
	if (line_take(w, "energy"))
		return line_take(w, "no")
			       ? never_works(s, w, at, "nvmlDeviceGetTotalEnergyConsumption")
			       : line_fail(w, "write energy no, or leave it out");
	return line_fail(w, "'%s' is not a key of a card", line_peek(w));
}

/* What every card line must have. */
static int check_card(struct words *w, struct scenario_card *card)
{
	if (!card->id.pci[0])
		snprintf(card->id.pci, sizeof(card->id.pci), "0000:%02x:00.0",
			(unsigned)(16 + card->id.index) & 0xff);
	if (!card->id.uuid[0] || !card->id.name[0] || card->id.mem_total_bytes <= 0)
		return line_fail(w, "uuid, name and memory are needed");
	if (card->reserved_bytes > card->id.mem_total_bytes)
		return line_fail(w, "more memory is reserved than there is");
	if (card->held_mw < 0)
		card->held_mw = card->idle_mw;
	if (card->max_mw < card->idle_mw)
		return line_fail(w, "max-power is below idle-power");
	if (card->max_mw < card->held_mw)
		return line_fail(w, "max-power is below held-power");
	return 0;
}

int scenario_parse_card(struct scenario *s, struct words *w)
{
	int64_t index = 0;
	if (line_count(w, "the card's index", 0, SCENARIO_CARDS_MAX - 1, &index) != 0)
		return ERR_USAGE;
	if (s->n_cards != s->n_physical)
		return line_fail(w, "cards come before MIG instances");
	if ((size_t)index != s->n_cards)
		return line_fail(w, "cards are numbered in order: the next is %zu", s->n_cards);
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
	while (line_peek(w))
		if (parse_card_key(s, w, card) != 0)
			return ERR_USAGE;
	return check_card(w, card);
}

/* `index I gi G ci C`, and that the index is free. */
static int parse_mig_place(struct scenario *s, struct words *w, struct scenario_card *card)
{
	int64_t index = 0, gi = 0, ci = 0;
	if (!line_take(w, "index") ||
		line_count(w, "the index", 0, SCENARIO_MIG_MAX - 1, &index) != 0 ||
		!line_take(w, "gi") || line_count(w, "gi", 0, 100, &gi) != 0 ||
		!line_take(w, "ci") || line_count(w, "ci", 0, 100, &ci) != 0)
		return line_fail(w, "write mig CARD index I gi G ci C uuid ...");
	for (size_t i = s->n_physical; i < s->n_cards; i++)
		if (s->cards[i].parent == card->parent && s->cards[i].id.mig_index == index)
			return line_fail(w, "card %d has an instance %d already", card->parent,
				(int)index);
	card->id.mig_index = (int)index;
	card->id.gpu_instance = (int)gi;
	card->id.compute_instance = (int)ci;
	return 0;
}

int scenario_parse_mig(struct scenario *s, struct words *w)
{
	int64_t parent = 0;
	if (line_count(w, "the card's index", 0, SCENARIO_CARDS_MAX - 1, &parent) != 0)
		return ERR_USAGE;
	if ((size_t)parent >= s->n_physical)
		return line_fail(w, "there is no card %d", (int)parent);
	struct scenario_card *card = &s->cards[s->n_cards];
	*card = (struct scenario_card){ .parent = (int)parent,
		.gpm = s->cards[parent].gpm,
		.sm_active_pct = s->cards[parent].sm_active_pct };
	card->id.index = (int)parent;
	str_copy(card->id.parent_uuid, UUID_CAP, s->cards[parent].id.uuid);
	str_copy(card->id.pci, PCI_CAP, s->cards[parent].id.pci);
	if (parse_mig_place(s, w, card) != 0)
		return ERR_USAGE;
	s->n_cards++;
	s->cards[parent].has_mig = true;
	while (line_peek(w))
		if (parse_card_key(s, w, card) != 0)
			return ERR_USAGE;
	return check_card(w, card);
}

/* The slot of a name in the hash table: the one that has it, or the free one for it. */
static size_t name_slot(const struct scenario *s, const char *name)
{
	uint32_t hash = 2166136261u;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	size_t slot = hash % SCENARIO_NAMES;
	while (s->by_name[slot] >= 0 && strcmp(s->processes[s->by_name[slot]].name, name) != 0)
		slot = (slot + 1) % SCENARIO_NAMES;
	return slot;
}

int scenario_find_process(const struct scenario *s, const char *name)
{
	return s->by_name[name_slot(s, name)];
}

static int parse_kind(struct words *w, unsigned *kind)
{
	static const struct {
		const char *name;
		unsigned kind;
	} kinds[] = {
		{ "compute", PROCESS_COMPUTE },
		{ "graphics", PROCESS_GRAPHICS },
		{ "both", PROCESS_COMPUTE | PROCESS_GRAPHICS },
		{ "mps", PROCESS_MPS },
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!line_take(w, kinds[i].name))
			continue;
		*kind = kinds[i].kind;
		return 0;
	}
	return line_fail(w, "the kind must be compute, graphics, both or mps");
}

static int parse_pid_file(struct words *w, struct scenario_process *p)
{
	if (line_copy(w, "the file", p->pid_file, sizeof(p->pid_file)) != 0)
		return ERR_USAGE;
	if (p->pid_file[0] == '.' || strchr(p->pid_file, '/'))
		return line_fail(w,
			"the file is '%s' and must be a name without / and not begin with .",
			p->pid_file);
	return 0;
}

static int parse_pid(struct words *w, struct scenario_process *p)
{
	int64_t pid = 0;
	if (line_take(w, "env"))
		return line_copy(w, "the variable", p->pid_env, sizeof(p->pid_env));
	if (line_take(w, "file"))
		return parse_pid_file(w, p);
	if (line_count(w, "the pid", 1, 4194304, &pid) != 0)
		return ERR_USAGE;
	p->pid = (uint32_t)pid;
	return 0;
}

/* A key that has the name of a text; *found: it is one. */
static int parse_text(struct scenario *s, struct words *w, bool *found)
{
	size_t which = 0;
	while (which < PROCESS_TEXTS && !line_take(w, process_fields[which].name))
		which++;
	*found = which < PROCESS_TEXTS;
	if (!*found)
		return 0;
	if (!array_one_more(&s->texts, s->n_texts))
		return line_fail(w, ERR_MEMORY_TEXT);
	struct scenario_text *text = &s->texts[s->n_texts++];
	*text = (struct scenario_text){ .process = (uint32_t)s->n_processes - 1,
		.which = (enum process_text)which };
	return line_copy(w, process_fields[which].name, text->text, process_fields[which].cap);
}

static int parse_process_key(struct scenario *s, struct words *w, struct scenario_process *p)
{
	bool found = false;
	if (line_take(w, "pid"))
		return parse_pid(w, p);
	if (line_take(w, "user"))
		return line_copy(w, "the user", p->user, sizeof(p->user));
	if (line_take(w, "uid"))
		return line_count(w, "the uid", 0, UINT32_MAX - 1, &p->uid);
	if (line_take(w, "command"))
		return line_copy(w, "the command", p->command, sizeof(p->command));
	if (line_take(w, "kind"))
		return parse_kind(w, &p->kind);
	if (line_take(w, "dead")) {
		p->dead = true;
		return 0;
	}
	int failed = parse_text(s, w, &found);
	if (failed || found)
		return failed;
	if (!line_take(w, "started"))
		return line_fail(w, "'%s' is not a key of a process", line_peek(w));
	p->has_started = true;
	return line_signed_duration(w, "started", &p->started_us);
}

int scenario_parse_process(struct scenario *s, struct words *w)
{
	if (s->n_processes == SCENARIO_PROCESSES_MAX)
		return line_fail(w, "there are more than %d processes", SCENARIO_PROCESSES_MAX);
	struct scenario_process *p = &s->processes[s->n_processes];
	*p = (struct scenario_process){
		.uid = -1, .kind = PROCESS_COMPUTE, .first_seat = SEAT_NONE
	};
	if (line_copy(w, "the process' name", p->name, sizeof(p->name)) != 0)
		return ERR_USAGE;
	if (strcmp(p->name, "card") == 0 || strcmp(p->name, "mig") == 0)
		return line_fail(w, "a process cannot be called '%s'", p->name);
	size_t slot = name_slot(s, p->name);
	if (s->by_name[slot] >= 0)
		return line_fail(w, "there is a process '%s' already", p->name);
	s->by_name[slot] = (int)s->n_processes++;
	str_copy(p->user, sizeof(p->user), p->name);
	str_copy(p->command, sizeof(p->command), p->name);
	while (line_peek(w))
		if (parse_process_key(s, w, p) != 0)
			return ERR_USAGE;
	if (p->pid == 0 && !p->pid_env[0] && !p->pid_file[0])
		return line_fail(w, "the process '%s' needs a pid", p->name);
	if (p->started_us > 0 || p->started_us < -90LL * 86400 * 1000000)
		return line_fail(w, "a process can have started up to 90d before the scenario");
	return 0;
}

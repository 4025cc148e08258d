/* Reads a scenario: every line that is not an event. */
#include "source/scenario_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/timetext.h"

enum { NAME_TABLE = 2 * SCENARIO_PROCESSES_MAX, MISSING_MAX = 128 };

/* The slot of a name in the hash table: the one that has it, or the free one for it. */
static size_t name_slot(const struct scenario *s, const char *name)
{
	uint32_t hash = 2166136261u;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	size_t slot = hash % NAME_TABLE;
	while (s->by_name[slot] >= 0 && strcmp(s->processes[s->by_name[slot]].name, name) != 0)
		slot = (slot + 1) % NAME_TABLE;
	return slot;
}

int scenario_find_process(const struct scenario *s, const char *name)
{
	return s->by_name[name_slot(s, name)];
}

static int parse_host(struct scenario *s, struct words *w)
{
	return words_copy(w, "the host's name", s->host, sizeof(s->host));
}

static int parse_start(struct scenario *s, struct words *w)
{
	const char *text = NULL;
	int64_t ms = 0;
	if (words_text(w, "the start", &text) != 0)
		return ERR_USAGE;
	size_t len = strlen(text);
	if (!isdigit((unsigned char)*text) || text[len - 1] != 'Z' ||
		moment_parse(text, 0, true, &ms, NULL) != 0)
		return words_fail(
			w, "the start is '%s'; write it like 2026-11-02T08:00:00Z", text);
	s->has_start = true;
	s->start_wall_us = ms * 1000;
	return 0;
}

static int parse_cuda(struct scenario *s, struct words *w)
{
	char text[16];
	if (words_copy(w, "the CUDA version", text, sizeof(text)) != 0)
		return ERR_USAGE;
	char *rest = NULL;
	long major = strtol(text, &rest, 10), minor = -1;
	if (*rest == '.' && isdigit((unsigned char)rest[1]))
		minor = strtol(rest + 1, &rest, 10);
	if (!isdigit((unsigned char)*text) || *rest || major > 99 || minor < 0 || minor > 99)
		return words_fail(w, "the CUDA version is '%s'; write it like 12.6", text);
	s->cuda = (int)(major * 1000 + minor * 10);
	return 0;
}

static int parse_driver(struct scenario *s, struct words *w)
{
	s->nvml[0] = '\0';
	if (words_copy(w, "the driver's version", s->driver, sizeof(s->driver)) != 0)
		return ERR_USAGE;
	while (words_peek(w)) {
		int failed = 0;
		if (words_take(w, "nvml"))
			failed = words_copy(w, "the NVML version", s->nvml, sizeof(s->nvml));
		else if (words_take(w, "cuda"))
			failed = parse_cuda(s, w);
		else
			break;
		if (failed)
			return failed;
	}
	return 0;
}

static int parse_samples(struct scenario *s, struct words *w)
{
	int64_t n = 0;
	if (words_count(w, "samples-per-second", 1, 50, &n) != 0)
		return ERR_USAGE;
	s->samples_per_second = (int)n;
	return 0;
}

static int parse_ring(struct scenario *s, struct words *w)
{
	if (words_duration(w, "the ring", &s->ring_us) != 0)
		return ERR_USAGE;
	if (s->ring_us < 1000000 || s->ring_us > 60000000)
		return words_fail(w, "the ring must be from 1s to 60s");
	return 0;
}

static int parse_repeat(struct scenario *s, struct words *w)
{
	if (words_duration(w, "repeat", &s->repeat_us) != 0)
		return ERR_USAGE;
	if (s->repeat_us < 1000000 || s->repeat_us % 1000000 != 0)
		return words_fail(w, "repeat must be whole seconds");
	return 0;
}

static int parse_layout(struct scenario *s, struct words *w)
{
	static const char *const names[] = { "v1", "v2", "v3" };
	const char *which = NULL;
	int64_t bytes = 0;
	if (words_text(w, "v1, v2 or v3", &which) != 0 ||
		words_count(w, "the layout", 16, 32, &bytes) != 0)
		return ERR_USAGE;
	for (size_t i = 0; i < 3; i++) {
		if (strcmp(which, names[i]) != 0 || bytes % 8 != 0)
			continue;
		s->layout[i] = (int)bytes;
		return 0;
	}
	return words_fail(w, "write layout v1|v2|v3 16|24|32");
}

static int parse_missing(struct scenario *s, struct words *w)
{
	while (words_peek(w)) {
		if (s->n_missing == MISSING_MAX)
			return words_fail(w, "more than %d symbols are missing", MISSING_MAX);
		if (words_copy(w, "the symbol", s->missing[s->n_missing],
			    sizeof(s->missing[0])) != 0)
			return ERR_USAGE;
		s->n_missing++;
	}
	return 0;
}

/* `energy no` and `memory-info v1`: short for calls that fail from the start. */
static int never_works(struct scenario *s, struct words *w, int card, const char *call)
{
	struct scenario_fault fault = {
		.kind = FAULT_FAIL, .card = card, .code = 3, .until_us = INT64_MAX
	};
	text_copy(fault.call, sizeof(fault.call), call);
	return scenario_add_fault(s, w, 0, &fault);
}

static int parse_memory_info(struct scenario *s, struct words *w, int card)
{
	const char *which = NULL;
	if (words_text(w, "memory-info", &which) != 0)
		return ERR_USAGE;
	bool v1 = strcmp(which, "v1") == 0, none = strcmp(which, "none") == 0;
	if (!v1 && !none && strcmp(which, "v2") != 0)
		return words_fail(w, "memory-info is v1, v2 or none");
	if ((v1 || none) && never_works(s, w, card, "nvmlDeviceGetMemoryInfo_v2") != 0)
		return ERR_USAGE;
	return none ? never_works(s, w, card, "nvmlDeviceGetMemoryInfo") : 0;
}

static int parse_uuid(struct scenario *s, struct words *w, struct scenario_card *card)
{
	char uuid[UUID_CAP];
	if (words_copy(w, "the uuid", uuid, sizeof(uuid)) != 0)
		return ERR_USAGE;
	for (size_t i = 0; i < s->n_cards; i++)
		if (strcmp(s->cards[i].id.uuid, uuid) == 0)
			return words_fail(w, "another card has the uuid '%s'", uuid);
	text_copy(card->id.uuid, sizeof(card->id.uuid), uuid);
	return 0;
}

static int parse_pci(struct words *w, struct card_id *id)
{
	static const char shape[] = "xxxx:xx:xx.x";
	if (words_copy(w, "the PCI address", id->pci, sizeof(id->pci)) != 0)
		return ERR_USAGE;
	bool good = strlen(id->pci) == sizeof(shape) - 1;
	for (size_t i = 0; good && shape[i]; i++)
		good = shape[i] == 'x' ? strchr("0123456789abcdef", id->pci[i]) != NULL
				       : id->pci[i] == shape[i];
	if (!good)
		return words_fail(
			w, "the PCI address is '%s'; write it like 0000:17:00.0", id->pci);
	return 0;
}

/* One `key value` of a card or MIG line. */
static int parse_card_key(struct scenario *s, struct words *w, struct scenario_card *card)
{
	struct card_id *id = &card->id;
	int at = (int)(card - s->cards);
	if (words_take(w, "uuid"))
		return parse_uuid(s, w, card);
	if (words_take(w, "name"))
		return words_copy(w, "the name", id->name, sizeof(id->name));
	if (words_take(w, "memory"))
		return words_size(w, "the memory", &id->mem_total_bytes);
	if (words_take(w, "reserved"))
		return words_size(w, "the reserved memory", &card->reserved_bytes);
	if (words_take(w, "pci"))
		return parse_pci(w, id);
	if (words_take(w, "idle-power"))
		return words_power(w, "the idle power", &card->idle_mw);
	if (words_take(w, "max-power"))
		return words_power(w, "the largest power", &card->max_mw);
	if (words_take(w, "memory-info"))
		return parse_memory_info(s, w, at);
	if (words_take(w, "energy"))
		return words_take(w, "no")
			       ? never_works(s, w, at, "nvmlDeviceGetTotalEnergyConsumption")
			       : words_fail(w, "write energy no, or leave it out");
	return words_fail(w, "a card has no '%s'", words_peek(w));
}

/* What every card line must have. */
static int check_card(struct words *w, struct scenario_card *card)
{
	if (!card->id.pci[0])
		snprintf(card->id.pci, sizeof(card->id.pci), "0000:%02x:00.0",
			(unsigned)(16 + card->id.index) & 0xff);
	if (!card->id.uuid[0] || !card->id.name[0] || card->id.mem_total_bytes <= 0)
		return words_fail(w, "uuid, name and memory are needed");
	if (card->reserved_bytes > card->id.mem_total_bytes)
		return words_fail(w, "more memory is reserved than there is");
	if (card->max_mw < card->idle_mw)
		return words_fail(w, "max-power is below idle-power");
	return 0;
}

static int parse_card(struct scenario *s, struct words *w)
{
	int64_t index = 0;
	if (words_count(w, "the card's index", 0, SCENARIO_CARDS_MAX - 1, &index) != 0)
		return ERR_USAGE;
	if (s->n_cards != s->n_physical)
		return words_fail(w, "cards come before MIG instances");
	if ((size_t)index != s->n_cards)
		return words_fail(
			w, "cards are numbered in order: the next is %zu", s->n_cards);
	struct scenario_card *card = &s->cards[s->n_cards];
	*card = (struct scenario_card){ .parent = -1, .idle_mw = 60000, .max_mw = 400000 };
	card->id = (struct card_id){
		.index = (int)index, .mig_index = -1, .gpu_instance = -1, .compute_instance = -1
	};
	s->n_physical = ++s->n_cards;
	while (words_peek(w))
		if (parse_card_key(s, w, card) != 0)
			return ERR_USAGE;
	return check_card(w, card);
}

/* `index I gi G ci C`, and that the index is free. */
static int parse_mig_place(struct scenario *s, struct words *w, struct scenario_card *card)
{
	int64_t index = 0, gi = 0, ci = 0;
	if (!words_take(w, "index") ||
		words_count(w, "the index", 0, SCENARIO_MIG_MAX - 1, &index) != 0 ||
		!words_take(w, "gi") || words_count(w, "gi", 0, 100, &gi) != 0 ||
		!words_take(w, "ci") || words_count(w, "ci", 0, 100, &ci) != 0)
		return words_fail(w, "write mig CARD index I gi G ci C uuid ...");
	for (size_t i = s->n_physical; i < s->n_cards; i++)
		if (s->cards[i].parent == card->parent && s->cards[i].id.mig_index == index)
			return words_fail(w, "card %d has an instance %d already", card->parent,
				(int)index);
	card->id.mig_index = (int)index;
	card->id.gpu_instance = (int)gi;
	card->id.compute_instance = (int)ci;
	return 0;
}

static int parse_mig(struct scenario *s, struct words *w)
{
	int64_t parent = 0;
	if (words_count(w, "the card's index", 0, SCENARIO_CARDS_MAX - 1, &parent) != 0)
		return ERR_USAGE;
	if ((size_t)parent >= s->n_physical)
		return words_fail(w, "there is no card %d", (int)parent);
	struct scenario_card *card = &s->cards[s->n_cards];
	*card = (struct scenario_card){ .parent = (int)parent };
	card->id.index = (int)parent;
	text_copy(card->id.parent_uuid, UUID_CAP, s->cards[parent].id.uuid);
	text_copy(card->id.pci, PCI_CAP, s->cards[parent].id.pci);
	if (parse_mig_place(s, w, card) != 0)
		return ERR_USAGE;
	s->n_cards++;
	s->cards[parent].has_mig = true;
	while (words_peek(w))
		if (parse_card_key(s, w, card) != 0)
			return ERR_USAGE;
	return check_card(w, card);
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
		if (!words_take(w, kinds[i].name))
			continue;
		*kind = kinds[i].kind;
		return 0;
	}
	return words_fail(w, "the kind is compute, graphics, both or mps");
}

static int parse_pid(struct words *w, struct scenario_process *p)
{
	int64_t pid = 0;
	if (words_take(w, "env"))
		return words_copy(w, "the variable", p->pid_env, sizeof(p->pid_env));
	if (words_count(w, "the pid", 1, 4194304, &pid) != 0)
		return ERR_USAGE;
	p->pid = (uint32_t)pid;
	return 0;
}

static int parse_process_key(struct words *w, struct scenario_process *p)
{
	if (words_take(w, "pid"))
		return parse_pid(w, p);
	if (words_take(w, "user"))
		return words_copy(w, "the user", p->user, sizeof(p->user));
	if (words_take(w, "uid"))
		return words_count(w, "the uid", 0, UINT32_MAX - 1, &p->uid);
	if (words_take(w, "command"))
		return words_copy(w, "the command", p->command, sizeof(p->command));
	if (words_take(w, "kind"))
		return parse_kind(w, &p->kind);
	if (words_take(w, "dead")) {
		p->dead = true;
		return 0;
	}
	if (!words_take(w, "started"))
		return words_fail(w, "a process has no '%s'", words_peek(w));
	p->has_started = true;
	return words_signed_duration(w, "started", &p->started_us);
}

static int parse_process(struct scenario *s, struct words *w)
{
	if (s->n_processes == SCENARIO_PROCESSES_MAX)
		return words_fail(
			w, "there are more than %d processes", SCENARIO_PROCESSES_MAX);
	struct scenario_process *p = &s->processes[s->n_processes];
	*p = (struct scenario_process){
		.uid = -1, .kind = PROCESS_COMPUTE, .first_seat = SEAT_NONE
	};
	if (words_copy(w, "the process' name", p->name, sizeof(p->name)) != 0)
		return ERR_USAGE;
	if (strcmp(p->name, "card") == 0 || strcmp(p->name, "mig") == 0)
		return words_fail(w, "a process cannot be called '%s'", p->name);
	size_t slot = name_slot(s, p->name);
	if (s->by_name[slot] >= 0)
		return words_fail(w, "there is a process '%s' already", p->name);
	s->by_name[slot] = (int)s->n_processes++;
	text_copy(p->user, sizeof(p->user), p->name);
	text_copy(p->command, sizeof(p->command), p->name);
	while (words_peek(w))
		if (parse_process_key(w, p) != 0)
			return ERR_USAGE;
	if (p->pid == 0 && !p->pid_env[0])
		return words_fail(w, "the process '%s' needs a pid", p->name);
	if (p->started_us > 0 || p->started_us < -90LL * 86400 * 1000000)
		return words_fail(
			w, "a process can have started up to 90d before the scenario");
	return 0;
}

static int parse_at(struct scenario *s, struct words *w)
{
	int64_t at_us = 0;
	if (words_duration(w, "the time", &at_us) != 0)
		return ERR_USAGE;
	return scenario_parse_verb(s, w, at_us);
}

static const struct {
	const char *name;
	int (*parse)(struct scenario *s, struct words *w);
} statements[] = {
	{ "at", parse_at },
	{ "host", parse_host },
	{ "start", parse_start },
	{ "driver", parse_driver },
	{ "samples-per-second", parse_samples },
	{ "ring", parse_ring },
	{ "repeat", parse_repeat },
	{ "layout", parse_layout },
	{ "missing", parse_missing },
	{ "card", parse_card },
	{ "mig", parse_mig },
	{ "process", parse_process },
};

static int parse_line(struct scenario *s, struct words *w, const char *bytes, size_t len)
{
	if (words_cut(w, bytes, len) != 0)
		return ERR_USAGE;
	if (!words_peek(w))
		return 0;
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		if (!words_take(w, statements[i].name))
			continue;
		int failed = statements[i].parse(s, w);
		return failed ? failed : words_end(w);
	}
	return words_fail(w, "no line begins with '%s'", words_peek(w));
}

static struct scenario *scenario_new(void)
{
	struct scenario *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct scenario){ .driver = "560.35.05",
		.cuda = 12060,
		.samples_per_second = 6,
		.second_us = 1000000,
		.ring_us = 10000000,
		.layout = { 16, 24, 24 } };
	s->cards = calloc(SCENARIO_UNITS_MAX, sizeof(*s->cards));
	s->processes = calloc(SCENARIO_PROCESSES_MAX, sizeof(*s->processes));
	s->missing = calloc(MISSING_MAX, sizeof(*s->missing));
	s->by_name = malloc(NAME_TABLE * sizeof(*s->by_name));
	if (!s->cards || !s->processes || !s->missing || !s->by_name) {
		scenario_free(s);
		return NULL;
	}
	memset(s->by_name, 0xff, NAME_TABLE * sizeof(*s->by_name));
	return s;
}

int scenario_parse(
	struct scenario **out, const char *name, const char *bytes, size_t len, struct err *e)
{
	*out = NULL;
	if (len > SCENARIO_BYTES_MAX)
		return err_set(
			e, ERR_USAGE, "%s is larger than %d bytes", name, SCENARIO_BYTES_MAX);
	struct scenario *s = scenario_new();
	if (!s)
		return err_set(e, ERR_WORLD, "out of memory");
	struct words w = { .where = name, .e = e };
	int failed = 0;
	for (size_t at = 0; at < len && !failed;) {
		const char *newline = memchr(bytes + at, '\n', len - at);
		size_t line = newline ? (size_t)(newline - bytes) - at : len - at;
		w.line++;
		failed = parse_line(s, &w, bytes + at, line);
		at += line + 1;
	}
	failed = failed ? failed : scenario_finish(s, name, e);
	if (failed) {
		scenario_free(s);
		return failed;
	}
	*out = s;
	return 0;
}

int scenario_read(struct scenario **out, const char *path, struct err *e)
{
	char *bytes = NULL;
	size_t len = 0;
	if (file_read_all(path, SCENARIO_BYTES_MAX, &bytes, &len, e) != 0)
		return e ? e->code : ERR_WORLD;
	int failed = scenario_parse(out, path, bytes, len, e);
	free(bytes);
	return failed;
}

/* Reads the lines of a scenario that are a process. */
#include "driver/sim/scenario_parse.h"

#include <string.h>

#include "base/array.h"
#include "base/str.h"

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
		if (!words_take(w, kinds[i].name))
			continue;
		*kind = kinds[i].kind;
		return 0;
	}
	return words_fail(w, "the kind must be compute, graphics, both or mps");
}

static int parse_pid_file(struct words *w, struct scenario_process *p)
{
	if (words_copy(w, "the file", p->pid_file, sizeof(p->pid_file)) != 0)
		return ERR_USAGE;
	if (p->pid_file[0] == '.' || strchr(p->pid_file, '/'))
		return words_fail(w,
			"the file is '%s' and must be a name without / and not begin with .",
			p->pid_file);
	return 0;
}

static int parse_pid(struct words *w, struct scenario_process *p)
{
	int64_t pid = 0;
	if (words_take(w, "env"))
		return words_copy(w, "the variable", p->pid_env, sizeof(p->pid_env));
	if (words_take(w, "file"))
		return parse_pid_file(w, p);
	if (words_count(w, "the pid", 1, 4194304, &pid) != 0)
		return ERR_USAGE;
	p->pid = (uint32_t)pid;
	return 0;
}

/* A key that has the name of a text; *found: it is one. */
static int parse_text(struct scenario *s, struct words *w, bool *found)
{
	size_t which = 0;
	while (which < PROCESS_TEXTS && !words_take(w, process_fields[which].name))
		which++;
	*found = which < PROCESS_TEXTS;
	if (!*found)
		return 0;
	if (!array_one_more(&s->texts, s->n_texts))
		return words_fail(w, ERR_MEMORY_TEXT);
	struct scenario_text *text = &s->texts[s->n_texts++];
	*text = (struct scenario_text){ .process = (uint32_t)s->n_processes - 1,
		.which = (enum process_text)which };
	return words_copy(w, process_fields[which].name, text->text, process_fields[which].cap);
}

static int parse_process_key(struct scenario *s, struct words *w, struct scenario_process *p)
{
	bool found = false;
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
	int failed = parse_text(s, w, &found);
	if (failed || found)
		return failed;
	if (!words_take(w, "started"))
		return words_fail(w, "'%s' is not a key of a process", words_peek(w));
	p->has_started = true;
	return words_signed_duration(w, "started", &p->started_us);
}

int scenario_parse_process(struct scenario *s, struct words *w)
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
		if (parse_process_key(s, w, p) != 0)
			return ERR_USAGE;
	if (p->pid == 0 && !p->pid_env[0] && !p->pid_file[0])
		return words_fail(w, "the process '%s' needs a pid", p->name);
	if (p->started_us > 0 || p->started_us < -90LL * 86400 * 1000000)
		return words_fail(
			w, "a process can have started up to 90d before the scenario");
	return 0;
}

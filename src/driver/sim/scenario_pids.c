/* The pids of a scenario: from the file itself, from the environment, or from files of their
 * own while it is played. */
#include "driver/sim/scenario_quirk.h"
#include "driver/sim/scenario_state.h"

#include <stdlib.h>

static int take_pids(struct scenario *s, const char *(*lookup)(const char *), struct err *e)
{
	for (size_t i = 0; i < s->n_processes; i++) {
		struct scenario_process *p = &s->processes[i];
		const char *variable = p->pid_file[0] ? SCENARIO_PIDS : p->pid_env;
		if (!*variable)
			continue;
		const char *text = lookup ? lookup(variable) : NULL;
		if (!text)
			return err_set(e, ERR_USAGE,
				"the scenario's process '%s' needs the variable %s", p->name,
				variable);
		if (p->pid_file[0])
			continue;
		char *rest = NULL;
		long pid = strtol(text, &rest, 10);
		if (pid < 1 || pid > INT32_MAX || *rest)
			return err_set(
				e, ERR_USAGE, "%s is '%s' and must be a pid", p->pid_env, text);
		p->pid = (uint32_t)pid;
	}
	return 0;
}

static int compare_pids(const void *a, const void *b, void *context)
{
	const struct scenario *s = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t p = s->processes[x].pid, q = s->processes[y].pid;
	if (p != q)
		return p < q ? -1 : 1;
	return (x > y) - (x < y);
}

size_t scenario_find_pid(const struct scenario *s, uint32_t pid)
{
	size_t low = 0, high = s->n_processes;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (s->processes[s->by_pid[middle]].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	bool found = low < s->n_processes && s->processes[s->by_pid[low]].pid == pid;
	return found ? low : s->n_processes;
}

/* Whether another process with the pid of `process` lives at the moment. */
static bool pid_taken(const struct scenario *s, const bool *alive, uint32_t process)
{
	uint32_t pid = s->processes[process].pid;
	if (pid == 0)
		return false; /* not known yet */
	for (size_t i = scenario_find_pid(s, pid);
		i < s->n_processes && s->processes[s->by_pid[i]].pid == pid; i++)
		if (s->by_pid[i] != process && alive[s->by_pid[i]])
			return true;
	return false;
}

/* Checks pids over the whole timeline, twice when it repeats. */
static int check_lives(const struct scenario *s, bool *alive, struct err *e)
{
	for (size_t i = 0; i < s->n_events * (s->repeat_us ? 2 : 1); i++) {
		const struct scenario_event *event = &s->events[i % s->n_events];
		bool begins = event->verb == EVENT_VERB_HOLD ||
			      event->verb == EVENT_VERB_LOAD || event->verb == EVENT_VERB_START;
		if (event->process < 0)
			continue;
		if (begins && pid_taken(s, alive, (uint32_t)event->process))
			return err_set(e, ERR_USAGE,
				"line %d of the scenario: pid %u already belongs to a running "
				"process",
				event->line, s->processes[event->process].pid);
		if (begins || event->verb == EVENT_VERB_EXIT)
			alive[event->process] = begins;
	}
	return 0;
}

int scenario_resolve(struct scenario *s, const char *(*lookup)(const char *name), struct err *e)
{
	if (take_pids(s, lookup, e) != 0)
		return ERR_USAGE;
	free(s->by_pid);
	s->by_pid = calloc(s->n_processes + 1, sizeof(*s->by_pid));
	bool *alive = calloc(s->n_processes + 1, sizeof(*alive));
	if (!s->by_pid || !alive) {
		free(alive);
		return err_memory(e);
	}
	for (size_t i = 0; i < s->n_processes; i++)
		s->by_pid[i] = (uint32_t)i;
	qsort_r(s->by_pid, s->n_processes, sizeof(*s->by_pid), compare_pids, s);
	int failed = check_lives(s, alive, e);
	free(alive);
	return failed;
}

void play_read_pids(struct play *p, uint32_t (*read)(const char *file))
{
	for (size_t i = 0; i < p->scenario->n_processes; i++) {
		struct played_life *life = &p->lives[i];
		const char *file = p->scenario->processes[i].pid_file;
		if (*file && life->seated && life->pid == 0)
			life->pid = read(file);
		else
			continue;
		if (life->pid != 0)
			account_name(p, (uint32_t)i);
	}
}

void play_drop_pids(struct play *p, bool (*ended)(uint32_t pid))
{
	for (size_t i = 0; i < p->scenario->n_processes; i++)
		if (p->scenario->processes[i].pid_file[0] && p->lives[i].pid != 0 &&
			ended(p->lives[i].pid))
			p->lives[i].pid = 0;
}

uint32_t play_pid(const struct play *p, uint32_t process)
{
	const struct scenario_process *fixed = &p->scenario->processes[process];
	return fixed->pid_file[0] ? p->lives[process].pid : fixed->pid;
}

/* Makes a scenario whole once its lines are read: order, seats, pids, and what only the whole
 * can be wrong about. */
#include "source/scenario_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ring entries that say who used a card; a bound on what playing may allocate. */
#define PARTS_MAX (4 * 1000 * 1000)

static int compare_events(const void *a, const void *b)
{
	const struct scenario_event *x = a, *y = b;
	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static int compare_seats(const void *a, const void *b)
{
	const struct scenario_seat *x = a, *y = b;
	if (x->card != y->card)
		return x->card < y->card ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}

/* One seat for each pair of card and process that an event names; `seats` has room for all
 * events. */
static size_t collect_seats(const struct scenario *s, struct scenario_seat *seats)
{
	size_t n = 0, kept = 0;
	for (size_t i = 0; i < s->n_events; i++) {
		const struct scenario_event *event = &s->events[i];
		if (event->process >= 0 && event->card >= 0)
			seats[n++] = (struct scenario_seat){ .card = (uint32_t)event->card,
				.process = (uint32_t)event->process,
				.next = SEAT_NONE };
	}
	qsort(seats, n, sizeof(*seats), compare_seats);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || compare_seats(&seats[kept - 1], &seats[i]) != 0)
			seats[kept++] = seats[i];
	return kept;
}

/* Tells every event its seat, every seat whether it loads. */
static void seat_events(struct scenario *s)
{
	for (size_t i = 0; i < s->n_events; i++) {
		struct scenario_event *event = &s->events[i];
		if (event->process < 0 || event->card < 0)
			continue;
		struct scenario_seat key = { .card = (uint32_t)event->card,
			.process = (uint32_t)event->process };
		struct scenario_seat *seat =
			bsearch(&key, s->seats, s->n_seats, sizeof(key), compare_seats);
		event->seat = (uint32_t)(seat - s->seats);
		seat->loads = seat->loads || event->verb == EVENT_VERB_LOAD;
	}
}

/* Chains a process' seats and counts a card's. */
static void link_seats(struct scenario *s)
{
	for (size_t i = s->n_seats; i-- > 0;) {
		struct scenario_seat *seat = &s->seats[i];
		struct scenario_process *process = &s->processes[seat->process];
		struct scenario_card *card = &s->cards[seat->card];
		seat->next = process->first_seat;
		process->first_seat = (uint32_t)i;
		card->first_seat = i;
		card->n_seats++;
		card->n_load_seats += seat->loads ? 1 : 0;
		if (card->parent >= 0)
			s->cards[card->parent].n_load_seats += seat->loads ? 1 : 0;
	}
}

static int make_seats(struct scenario *s, struct err *e)
{
	s->seats = calloc(s->n_events + 1, sizeof(*s->seats));
	if (!s->seats)
		return err_set(e, ERR_WORLD, "out of memory");
	s->n_seats = collect_seats(s, s->seats);
	seat_events(s);
	link_seats(s);
	return 0;
}

static int check_events(const struct scenario *s, const char *name, struct err *e)
{
	for (size_t i = 0; i < s->n_events; i++) {
		const struct scenario_event *event = &s->events[i];
		if (event->verb == EVENT_VERB_STEP && !s->has_start)
			return err_set(e, ERR_USAGE, "%s:%d: step needs a start line", name,
				event->line);
		/* The end of something may coincide with the end of the round. */
		bool end = event->value == 0;
		if (s->repeat_us && event->at_us >= s->repeat_us + (end ? 1 : 0))
			return err_set(e, ERR_USAGE, "%s:%d: this is later than repeat", name,
				event->line);
	}
	return 0;
}

/* Suspends follow each other, and leave some time of a round awake: otherwise a clock that is
 * moved by them would never arrive. */
static int check_suspends(const struct scenario *s, const char *name, struct err *e)
{
	int64_t end_us = 0, sum_us = 0;
	for (size_t i = 0; i < s->n_events; i++) {
		const struct scenario_event *event = &s->events[i];
		if (event->verb != EVENT_VERB_SUSPEND || event->value == 0)
			continue;
		sum_us += event->value;
		if (event->at_us < end_us || (s->repeat_us && sum_us >= s->repeat_us))
			return err_set(e, ERR_USAGE, "%s:%d: the host sleeps already", name,
				event->line);
		end_us = event->at_us + event->value;
	}
	return 0;
}

static int check_size(const struct scenario *s, const char *name, struct err *e)
{
	if (s->n_physical == 0)
		return 0;
	size_t ring = (size_t)(s->ring_us / 1000000 + 1) * (size_t)s->samples_per_second;
	size_t parts = 0;
	for (size_t i = 0; i < s->n_cards; i++)
		parts += s->cards[i].n_load_seats * ring;
	if (parts > PARTS_MAX)
		return err_set(e, ERR_USAGE,
			"%s: too many processes use too many cards for so large a ring", name);
	return 0;
}

int scenario_finish(struct scenario *s, const char *name, struct err *e)
{
	if (!s->nvml[0])
		snprintf(s->nvml, sizeof(s->nvml), "%d.%.70s", s->cuda / 1000, s->driver);
	free(s->by_name);
	s->by_name = NULL;
	if (s->n_events > 1)
		qsort(s->events, s->n_events, sizeof(*s->events), compare_events);
	int failed = check_events(s, name, e);
	failed = failed ? failed : check_suspends(s, name, e);
	failed = failed ? failed : make_seats(s, e);
	return failed ? failed : check_size(s, name, e);
}

void scenario_free(struct scenario *s)
{
	if (!s)
		return;
	free(s->cards);
	free(s->processes);
	free(s->events);
	free(s->faults);
	free(s->seats);
	free(s->by_pid);
	free(s->by_name);
	free(s->missing);
	free(s);
}

static int take_pids(struct scenario *s, const char *(*lookup)(const char *), struct err *e)
{
	for (size_t i = 0; i < s->n_processes; i++) {
		struct scenario_process *p = &s->processes[i];
		if (!p->pid_env[0])
			continue;
		const char *text = lookup ? lookup(p->pid_env) : NULL;
		if (!text)
			return err_set(e, ERR_USAGE,
				"the scenario's process '%s' needs the variable %s", p->name,
				p->pid_env);
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
	for (size_t i = scenario_find_pid(s, pid);
		i < s->n_processes && s->processes[s->by_pid[i]].pid == pid; i++)
		if (s->by_pid[i] != process && alive[s->by_pid[i]])
			return true;
	return false;
}

/* Plays who lives, twice round when the timeline repeats. */
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
				"line %d of the scenario: pid %u belongs to another process "
				"that lives",
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
		return err_set(e, ERR_WORLD, "out of memory");
	}
	for (size_t i = 0; i < s->n_processes; i++)
		s->by_pid[i] = (uint32_t)i;
	qsort_r(s->by_pid, s->n_processes, sizeof(*s->by_pid), compare_pids, s);
	int failed = check_lives(s, alive, e);
	free(alive);
	return failed;
}

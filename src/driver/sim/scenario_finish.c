/* Completes a scenario after its lines are read: puts events in order, assigns seats, and makes
 * the checks that need all lines. */
#include "driver/sim/scenario_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest number of ring entries with the processes that used a card: it limits what
 * playing may allocate. */
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

/* Gives every event its seat, and marks the seats that load their card. */
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
		return err_memory(e);
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
			return err_set(e, ERR_USAGE,
				"%s:%d: this event is later than the interval of repeat", name,
				event->line);
	}
	return 0;
}

/* Suspends follow each other, and leave some time of a round awake: otherwise a clock that
 * they move would never reach the next event. */
static int check_suspends(const struct scenario *s, const char *name, struct err *e)
{
	int64_t end_us = 0, sum_us = 0;
	for (size_t i = 0; i < s->n_events; i++) {
		const struct scenario_event *event = &s->events[i];
		if (event->verb != EVENT_VERB_SUSPEND || event->value == 0)
			continue;
		sum_us += event->value;
		if (event->at_us < end_us || (s->repeat_us && sum_us >= s->repeat_us))
			return err_set(e, ERR_USAGE, "%s:%d: the host is already suspended",
				name, event->line);
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
			"%s: too many processes use too many cards for such a large ring",
			name);
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
	free(s->texts);
	free(s->events);
	free(s->faults);
	free(s->seats);
	free(s->by_pid);
	free(s->by_name);
	free(s->missing);
	free(s);
}

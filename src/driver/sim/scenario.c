/* Reads a scenario: the lines about the host; the others by their first word; then checks the
 * whole, and gives its processes their pids. */
#include "driver/sim/scenario.h"

#include <ctype.h>

#include "driver/sim/scenario_parse.h"

/* The most ring entries for processes that used a card: it limits what playing may allocate. */
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

/* Makes the seats, sets the seat of every event, chains the seats of each process, and counts
 * those of each card. */
static int make_seats(struct scenario *s, struct err *e)
{
	s->seats = calloc(s->n_events + 1, sizeof(*s->seats));
	if (!s->seats)
		return err_memory(e);
	/* One seat for each pair of card and process that an event names. */
	size_t n = 0, kept = 0;
	for (size_t i = 0; i < s->n_events; i++) {
		const struct scenario_event *event = &s->events[i];
		if (event->process >= 0 && event->card >= 0)
			s->seats[n++] = (struct scenario_seat){ .card = (uint32_t)event->card,
				.process = (uint32_t)event->process,
				.next = SEAT_NONE };
	}
	qsort(s->seats, n, sizeof(*s->seats), compare_seats);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || compare_seats(&s->seats[kept - 1], &s->seats[i]) != 0)
			s->seats[kept++] = s->seats[i];
	s->n_seats = kept;
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
	for (size_t i = s->n_seats; i-- > 0;) {
		struct scenario_seat *seat = &s->seats[i];
		struct scenario_process *process = &s->processes[seat->process];
		struct scenario_card *card = &s->cards[seat->card];
		seat->next = process->first_seat;
		process->first_seat = (uint32_t)i;
		card->first_seat = i;
		card->n_seats++;
		card->n_load_seats += seat->loads;
		if (card->parent >= 0)
			s->cards[card->parent].n_load_seats += seat->loads;
	}
	return 0;
}

/* Checks the events, which are in order. Suspends must not overlap, and must leave some time of
 * a round awake: otherwise a clock that they move would never reach the next event. */
static int check_events(const struct scenario *s, const char *name, struct err *e)
{
	int64_t suspended_until_us = 0, suspended_us = 0;
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
	for (size_t i = 0; i < s->n_events; i++) {
		const struct scenario_event *event = &s->events[i];
		if (event->verb != EVENT_VERB_SUSPEND || event->value == 0)
			continue;
		suspended_us += event->value;
		if (event->at_us < suspended_until_us ||
			(s->repeat_us && suspended_us >= s->repeat_us))
			return err_set(e, ERR_USAGE, "%s:%d: the host is already suspended",
				name, event->line);
		suspended_until_us = event->at_us + event->value;
	}
	return 0;
}

/* Completes a scenario after its lines are read: puts events in order, assigns seats, and makes
 * the checks that need all lines. */
static int finish(struct scenario *s, const char *name, struct err *e)
{
	if (!s->nvml[0])
		snprintf(s->nvml, sizeof(s->nvml), "%d.%.70s", s->cuda / 1000, s->driver);
	names_finish(&s->names);
	array_sort(s->events, s->n_events, compare_events);
	int failed = check_events(s, name, e);
	if (!failed)
		failed = make_seats(s, e);
	if (failed)
		return failed;
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
	idmap_finish(&s->by_pid);
	names_finish(&s->names);
	free(s->missing);
	free(s);
}

enum { MISSING_MAX = 128, DAYS_MAX = 366 };
#define DAY_US (86400 * INT64_C(1000000))

static int parse_host(struct scenario *s, struct line *l)
{
	return line_copy(l, "the host's name", s->host, sizeof(s->host));
}

static int parse_start(struct scenario *s, struct line *l)
{
	const char *text = NULL;
	int64_t ms = 0;
	if (line_text(l, "the start", &text) != 0)
		return ERR_USAGE;
	size_t len = strlen(text);
	if (!isdigit((unsigned char)*text) || text[len - 1] != 'Z' ||
		moment_parse(text, 0, true, &ms, NULL) != 0)
		return line_fail(
			l, "the start is '%s'; write it like 2026-11-02T08:00:00Z", text);
	s->has_start = true;
	s->start_wall_us = ms * 1000;
	return 0;
}

static int parse_cuda(struct scenario *s, struct line *l)
{
	char text[16];
	if (line_copy(l, "the CUDA version", text, sizeof(text)) != 0)
		return ERR_USAGE;
	char *rest = NULL;
	long major = strtol(text, &rest, 10), minor = -1;
	if (*rest == '.' && isdigit((unsigned char)rest[1]))
		minor = strtol(rest + 1, &rest, 10);
	if (!isdigit((unsigned char)*text) || *rest || major > 99 || minor < 0 || minor > 99)
		return line_fail(l, "the CUDA version is '%s'; write it like 12.6", text);
	s->cuda = (int)(major * 1000 + minor * 10);
	return 0;
}

static int parse_driver(struct scenario *s, struct line *l)
{
	s->nvml[0] = '\0';
	if (line_copy(l, "the driver's version", s->driver, sizeof(s->driver)) != 0)
		return ERR_USAGE;
	while (line_peek(l)) {
		int failed = 0;
		if (line_take(l, "nvml"))
			failed = line_copy(l, "the NVML version", s->nvml, sizeof(s->nvml));
		else if (line_take(l, "cuda"))
			failed = parse_cuda(s, l);
		else
			break;
		if (failed)
			return failed;
	}
	return 0;
}

static int parse_samples(struct scenario *s, struct line *l)
{
	return line_count(l, "samples-per-second", 1, 50, &s->samples_per_second);
}

static int parse_ring(struct scenario *s, struct line *l)
{
	if (line_duration(l, "the ring", &s->ring_us) != 0)
		return ERR_USAGE;
	if (s->ring_us < 1000000 || s->ring_us > 60000000)
		return line_fail(l, "the ring must be from 1s to 60s");
	return 0;
}

static int parse_repeat(struct scenario *s, struct line *l)
{
	if (line_duration(l, "repeat", &s->repeat_us) != 0)
		return ERR_USAGE;
	if (s->repeat_us < 1000000 || s->repeat_us % 1000000 != 0)
		return line_fail(l, "repeat must be whole seconds");
	return 0;
}

static int parse_accounting(struct scenario *s, struct line *l)
{
	s->accounting = line_take(l, "on");
	return s->accounting ? 0 : line_fail(l, "write accounting on, or leave it out");
}

static int parse_stamps(struct scenario *s, struct line *l)
{
	s->boot_stamps = line_take(l, "boot");
	return s->boot_stamps ? 0 : line_fail(l, "write stamps boot, or leave it out");
}

static int parse_layout(struct scenario *s, struct line *l)
{
	static const char *const names[] = { "v1", "v2", "v3" };
	const char *which = NULL;
	int64_t bytes = 0;
	if (line_text(l, "v1, v2 or v3", &which) != 0 ||
		line_count(l, "the layout", 16, 32, &bytes) != 0)
		return ERR_USAGE;
	int at = str_place(names, 3, which);
	if (at == 3 || bytes % 8 != 0)
		return line_fail(l, "write layout v1|v2|v3 16|24|32");
	s->layout[at] = (int)bytes;
	return 0;
}

static int parse_missing(struct scenario *s, struct line *l)
{
	while (line_peek(l)) {
		if (s->n_missing == MISSING_MAX)
			return line_fail(l, "more than %d symbols are missing", MISSING_MAX);
		if (line_copy(l, "the symbol", s->missing[s->n_missing],
			    sizeof(s->missing[0])) != 0)
			return ERR_USAGE;
		s->n_missing++;
	}
	return 0;
}

static int parse_at(struct scenario *s, struct line *l)
{
	int64_t at_us = 0;
	if (line_duration(l, "the time", &at_us) != 0)
		return ERR_USAGE;
	return scenario_parse_verb(s, l, l->day_us + at_us);
}

/* Reads "N" or "N-N" of a list of days, and moves *text after it. */
static int parse_days(struct line *l, const char **text, long *first, long *last)
{
	char *rest = NULL;
	bool digit = isdigit((unsigned char)**text);
	*first = *last = digit ? strtol(*text, &rest, 10) : -1;
	if (digit && *rest == '-' && isdigit((unsigned char)rest[1]))
		*last = strtol(rest + 1, &rest, 10);
	if (!digit || (*rest && (*rest != ',' || !rest[1])) || *last < *first ||
		*last > DAYS_MAX)
		return line_fail(l, "the days must be numbers up to %d, like 0-4,7", DAYS_MAX);
	*text = *rest ? rest + 1 : rest;
	return 0;
}

/* Reads the rest of the line once for each day. */
static int parse_on(struct scenario *s, struct line *l)
{
	const char *days = NULL;
	if (line_text(l, "the list of days", &days) != 0)
		return ERR_USAGE;
	if (!line_take(l, "at"))
		return line_fail(l, "write on DAYS at T EVENT");
	size_t event = l->next;
	int failed = 0;
	do {
		long first, last;
		failed = parse_days(l, &days, &first, &last);
		for (long day = first; !failed && day <= last; day++) {
			l->next = event;
			l->day_us = day * DAY_US;
			failed = parse_at(s, l);
		}
	} while (!failed && *days);
	l->day_us = 0;
	return failed;
}

static const struct {
	const char *name;
	int (*parse)(struct scenario *s, struct line *l);
} statements[] = {
	{ "at", parse_at },
	{ "on", parse_on },
	{ "host", parse_host },
	{ "start", parse_start },
	{ "driver", parse_driver },
	{ "samples-per-second", parse_samples },
	{ "ring", parse_ring },
	{ "repeat", parse_repeat },
	{ "accounting", parse_accounting },
	{ "stamps", parse_stamps },
	{ "layout", parse_layout },
	{ "missing", parse_missing },
	{ "card", scenario_parse_card },
	{ "mig", scenario_parse_mig },
	{ "process", scenario_parse_process },
};

static int parse_line(struct scenario *s, struct line *l, const char *bytes, size_t len)
{
	if (line_cut(l, bytes, len) != 0)
		return ERR_USAGE;
	if (!line_peek(l))
		return 0;
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		if (!line_take(l, statements[i].name))
			continue;
		int failed = statements[i].parse(s, l);
		return failed ? failed : line_end(l);
	}
	return line_fail(l, "a line cannot begin with '%s'", line_peek(l));
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
	if (!s->cards || !s->processes || !s->missing) {
		scenario_free(s);
		return NULL;
	}
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
		return err_memory(e);
	struct line l = { .where = name, .e = e };
	int failed = 0;
	for (size_t at = 0; at < len && !failed;) {
		const char *newline = memchr(bytes + at, '\n', len - at);
		size_t line = newline ? (size_t)(newline - bytes) - at : len - at;
		l.number++;
		failed = parse_line(s, &l, bytes + at, line);
		at += line + 1;
	}
	failed = failed ? failed : finish(s, name, e);
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

/* Whether another process with the pid of `process` lives at the moment. */
static bool pid_taken(const struct scenario *s, const bool *alive, uint32_t process)
{
	uint32_t other;
	size_t step = 0;
	while ((other = idmap_next(&s->by_pid, s->processes[process].pid, &step)) != IDMAP_NONE)
		if (other != process && alive[other])
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
	bool *alive = calloc(s->n_processes + 1, sizeof(*alive));
	bool ok = alive != NULL;
	for (uint32_t i = 0; ok && i < s->n_processes; i++)
		ok = s->processes[i].pid == 0 || idmap_add(&s->by_pid, s->processes[i].pid, i);
	if (!ok) {
		free(alive);
		return err_memory(e);
	}
	int failed = check_lives(s, alive, e);
	free(alive);
	return failed;
}

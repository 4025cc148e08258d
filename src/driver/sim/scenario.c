/* Reads a scenario: the lines of the host, and the rest by their first word. */
#include "driver/sim/scenario_parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/moment.h"

int line_fail(const struct words *w, const char *format, ...)
{
	char text[400];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err_set(w->e, ERR_USAGE, "%s:%d: %s", w->where, w->line, text);
}

/* Copies one quoted word; *at is behind the opening quote and ends behind the closing one. */
static int cut_quoted(struct words *w, const char *bytes, size_t len, size_t *at, char **out)
{
	for (; *at < len && bytes[*at] != '"'; (*at)++) {
		bool escape = bytes[*at] == '\\' && *at + 1 < len &&
			      (bytes[*at + 1] == '"' || bytes[*at + 1] == '\\');
		*at += escape ? 1 : 0;
		*(*out)++ = bytes[*at];
	}
	if (*at == len)
		return line_fail(w, "a quote is not closed");
	(*at)++;
	if (*at < len && bytes[*at] != ' ' && bytes[*at] != '\t')
		return line_fail(w, "a blank is missing behind a closing quote");
	return 0;
}

/* Cuts bytes[0..len) into words: blanks separate, "..." quotes (with \" and \\), # at the start
 * of a word begins a comment. */
static int words_cut(struct words *w, const char *bytes, size_t len)
{
	w->n = w->next = 0;
	if (len >= LINE_CAP)
		return line_fail(w, "the line is longer than %d bytes", LINE_CAP - 1);
	if (memchr(bytes, '\0', len))
		return line_fail(w, "there is a NUL in the line");
	/* A word needs at most its own bytes and a NUL for the blank behind it. */
	char *out = w->text;
	for (size_t at = 0; at < len;) {
		if (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r') {
			at++;
			continue;
		}
		if (bytes[at] == '#')
			break;
		if (w->n == WORDS_MAX)
			return line_fail(w, "there are more than %d words", WORDS_MAX);
		w->items[w->n++] = out;
		if (bytes[at] == '"') {
			at++;
			if (cut_quoted(w, bytes, len, &at, &out) != 0)
				return ERR_USAGE;
		} else {
			while (at < len && !strchr(" \t\r", bytes[at]))
				*out++ = bytes[at++];
		}
		*out++ = '\0';
	}
	return 0;
}

const char *line_peek(const struct words *w)
{
	return w->next < w->n ? w->items[w->next] : NULL;
}

bool line_take(struct words *w, const char *word)
{
	const char *next = line_peek(w);
	if (!next || strcmp(next, word) != 0)
		return false;
	w->next++;
	return true;
}

int line_text(struct words *w, const char *what, const char **text)
{
	*text = line_peek(w);
	if (!*text)
		return line_fail(w, "%s is missing", what);
	w->next++;
	return 0;
}

int line_copy(struct words *w, const char *what, char *dst, size_t cap)
{
	const char *text = NULL;
	if (line_text(w, what, &text) != 0)
		return ERR_USAGE;
	if (!*text)
		return line_fail(w, "%s is empty", what);
	if (!str_copy(dst, cap, text))
		return line_fail(w, "%s is longer than %zu bytes", what, cap - 1);
	return 0;
}

/* Digits with at most six behind a point, in millionths. Returns the rest, or NULL. */
static const char *millionths(const char *text, int64_t *value)
{
	int64_t whole = 0, scale = 1000000;
	bool digits = false, point = false;
	for (; *text; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (*text < '0' || *text > '9')
			break;
		digits = true;
		if (whole > 100000000000 || (point && scale == 1))
			return NULL;
		scale = point ? scale / 10 : scale;
		whole = whole * 10 + (*text - '0');
	}
	*value = whole * scale;
	return digits ? text : NULL;
}

int line_count(struct words *w, const char *what, int64_t min, int64_t max, int64_t *value)
{
	const char *text = NULL;
	if (line_text(w, what, &text) != 0)
		return ERR_USAGE;
	int64_t number = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9' && at - text < 15; at++)
		number = number * 10 + (*at - '0');
	if (at == text || *at || number < min || number > max)
		return line_fail(w, "%s is '%s' and must be a number from %lld to %lld", what,
			text, (long long)min, (long long)max);
	*value = number;
	return 0;
}

/* A duration without a sign; `text` is what the user wrote. */
static int duration_us(struct words *w, const char *what, const char *text, int64_t *us)
{
	int64_t ms = 0;
	struct err inner = { 0 };
	if (duration_parse(text, &ms, &inner) != 0)
		return line_fail(w, "%s: %s", what, inner.text);
	if (ms > 3660LL * 86400 * 1000)
		return line_fail(w, "%s is longer than ten years", what);
	*us = ms * 1000;
	return 0;
}

int line_duration(struct words *w, const char *what, int64_t *us)
{
	const char *text = NULL;
	if (line_text(w, what, &text) != 0)
		return ERR_USAGE;
	return duration_us(w, what, text, us);
}

int line_signed_duration(struct words *w, const char *what, int64_t *us)
{
	const char *text = NULL;
	if (line_text(w, what, &text) != 0)
		return ERR_USAGE;
	bool minus = *text == '-', sign = minus || *text == '+';
	if (duration_us(w, what, text + (sign ? 1 : 0), us) != 0)
		return ERR_USAGE;
	*us = minus ? -*us : *us;
	return 0;
}

struct scenario_unit {
	const char *name;
	int64_t factor;
};

/* A kind of number with a unit. */
struct quantity {
	const struct scenario_unit *units; /* ends with a unit without a name */
	int64_t max;
	const char *example; /* for the message when a word is none */
};

static const struct scenario_unit size_units[] = { { "B", 1 }, { "KB", 1000 }, { "KiB", 1024 },
	{ "MB", 1000000 }, { "MiB", 1 << 20 }, { "GB", 1000000000 }, { "GiB", 1 << 30 },
	{ NULL, 0 } };
static const struct scenario_unit power_units[] = { { "mW", 1 }, { "W", 1000 }, { NULL, 0 } };
static const struct quantity size_bytes = { size_units, 1LL << 46, "80GiB, 8GB, 512MiB or 0B" };
static const struct quantity power_mw = { power_units, 100000000, "60W or 500mW" };

/* Takes a number with a unit; fractions of the smallest unit are cut. */
static int take_quantity(
	struct words *w, const char *what, const struct quantity *q, int64_t *value)
{
	const char *text = NULL;
	if (line_text(w, what, &text) != 0)
		return ERR_USAGE;
	int64_t number = 0;
	const char *rest = millionths(text, &number);
	for (const struct scenario_unit *u = q->units; rest && u->name; u++) {
		if (strcmp(rest, u->name) != 0)
			continue;
		__int128 product = (__int128)number * u->factor / 1000000;
		if (product > q->max)
			return line_fail(w, "%s is too large: '%s'", what, text);
		*value = (int64_t)product;
		return 0;
	}
	return line_fail(w, "%s is '%s'; write it like %s", what, text, q->example);
}

int line_size(struct words *w, const char *what, int64_t *bytes)
{
	return take_quantity(w, what, &size_bytes, bytes);
}

int line_power(struct words *w, const char *what, int64_t *mw)
{
	return take_quantity(w, what, &power_mw, mw);
}

/* Fails when words are left. */
static int words_end(struct words *w)
{
	const char *left = line_peek(w);
	return left ? line_fail(w, "'%s' is not expected here", left) : 0;
}

/* Completes a scenario after its lines are read: puts events in order, assigns seats, and makes
 * the checks that need all lines. */

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

/* Checks the whole, sorts the events and makes the seats. */
static int scenario_finish(struct scenario *s, const char *name, struct err *e)
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

enum { MISSING_MAX = 128, DAYS_MAX = 366 };
#define DAY_US (86400 * INT64_C(1000000))

static int parse_host(struct scenario *s, struct words *w)
{
	return line_copy(w, "the host's name", s->host, sizeof(s->host));
}

static int parse_start(struct scenario *s, struct words *w)
{
	const char *text = NULL;
	int64_t ms = 0;
	if (line_text(w, "the start", &text) != 0)
		return ERR_USAGE;
	size_t len = strlen(text);
	if (!isdigit((unsigned char)*text) || text[len - 1] != 'Z' ||
		moment_parse(text, 0, true, &ms, NULL) != 0)
		return line_fail(
			w, "the start is '%s'; write it like 2026-11-02T08:00:00Z", text);
	s->has_start = true;
	s->start_wall_us = ms * 1000;
	return 0;
}

static int parse_cuda(struct scenario *s, struct words *w)
{
	char text[16];
	if (line_copy(w, "the CUDA version", text, sizeof(text)) != 0)
		return ERR_USAGE;
	char *rest = NULL;
	long major = strtol(text, &rest, 10), minor = -1;
	if (*rest == '.' && isdigit((unsigned char)rest[1]))
		minor = strtol(rest + 1, &rest, 10);
	if (!isdigit((unsigned char)*text) || *rest || major > 99 || minor < 0 || minor > 99)
		return line_fail(w, "the CUDA version is '%s'; write it like 12.6", text);
	s->cuda = (int)(major * 1000 + minor * 10);
	return 0;
}

static int parse_driver(struct scenario *s, struct words *w)
{
	s->nvml[0] = '\0';
	if (line_copy(w, "the driver's version", s->driver, sizeof(s->driver)) != 0)
		return ERR_USAGE;
	while (line_peek(w)) {
		int failed = 0;
		if (line_take(w, "nvml"))
			failed = line_copy(w, "the NVML version", s->nvml, sizeof(s->nvml));
		else if (line_take(w, "cuda"))
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
	if (line_count(w, "samples-per-second", 1, 50, &n) != 0)
		return ERR_USAGE;
	s->samples_per_second = (int)n;
	return 0;
}

static int parse_ring(struct scenario *s, struct words *w)
{
	if (line_duration(w, "the ring", &s->ring_us) != 0)
		return ERR_USAGE;
	if (s->ring_us < 1000000 || s->ring_us > 60000000)
		return line_fail(w, "the ring must be from 1s to 60s");
	return 0;
}

static int parse_repeat(struct scenario *s, struct words *w)
{
	if (line_duration(w, "repeat", &s->repeat_us) != 0)
		return ERR_USAGE;
	if (s->repeat_us < 1000000 || s->repeat_us % 1000000 != 0)
		return line_fail(w, "repeat must be whole seconds");
	return 0;
}

static int parse_accounting(struct scenario *s, struct words *w)
{
	s->accounting = line_take(w, "on");
	return s->accounting ? 0 : line_fail(w, "write accounting on, or leave it out");
}

static int parse_stamps(struct scenario *s, struct words *w)
{
	s->boot_stamps = line_take(w, "boot");
	return s->boot_stamps ? 0 : line_fail(w, "write stamps boot, or leave it out");
}

static int parse_layout(struct scenario *s, struct words *w)
{
	static const char *const names[] = { "v1", "v2", "v3" };
	const char *which = NULL;
	int64_t bytes = 0;
	if (line_text(w, "v1, v2 or v3", &which) != 0 ||
		line_count(w, "the layout", 16, 32, &bytes) != 0)
		return ERR_USAGE;
	for (size_t i = 0; i < 3; i++) {
		if (strcmp(which, names[i]) != 0 || bytes % 8 != 0)
			continue;
		s->layout[i] = (int)bytes;
		return 0;
	}
	return line_fail(w, "write layout v1|v2|v3 16|24|32");
}

static int parse_missing(struct scenario *s, struct words *w)
{
	while (line_peek(w)) {
		if (s->n_missing == MISSING_MAX)
			return line_fail(w, "more than %d symbols are missing", MISSING_MAX);
		if (line_copy(w, "the symbol", s->missing[s->n_missing],
			    sizeof(s->missing[0])) != 0)
			return ERR_USAGE;
		s->n_missing++;
	}
	return 0;
}

static int parse_at(struct scenario *s, struct words *w)
{
	int64_t at_us = 0;
	if (line_duration(w, "the time", &at_us) != 0)
		return ERR_USAGE;
	return scenario_parse_verb(s, w, w->day_us + at_us);
}

/* Reads "N" or "N-N" of a list of days, and moves *text behind it. */
static int parse_days(struct words *w, const char **text, long *first, long *last)
{
	char *rest = NULL;
	bool digit = isdigit((unsigned char)**text);
	*first = *last = digit ? strtol(*text, &rest, 10) : -1;
	if (digit && *rest == '-' && isdigit((unsigned char)rest[1]))
		*last = strtol(rest + 1, &rest, 10);
	if (!digit || (*rest && (*rest != ',' || !rest[1])) || *last < *first ||
		*last > DAYS_MAX)
		return line_fail(w, "the days must be numbers up to %d, like 0-4,7", DAYS_MAX);
	*text = *rest ? rest + 1 : rest;
	return 0;
}

/* Reads the rest of the line once for each day. */
static int parse_on(struct scenario *s, struct words *w)
{
	const char *days = NULL;
	if (line_text(w, "the list of days", &days) != 0)
		return ERR_USAGE;
	if (!line_take(w, "at"))
		return line_fail(w, "write on DAYS at T EVENT");
	size_t event = w->next;
	int failed = 0;
	do {
		long first, last;
		failed = parse_days(w, &days, &first, &last);
		for (long day = first; !failed && day <= last; day++) {
			w->next = event;
			w->day_us = day * DAY_US;
			failed = parse_at(s, w);
		}
	} while (!failed && *days);
	w->day_us = 0;
	return failed;
}

static const struct {
	const char *name;
	int (*parse)(struct scenario *s, struct words *w);
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

static int parse_line(struct scenario *s, struct words *w, const char *bytes, size_t len)
{
	if (words_cut(w, bytes, len) != 0)
		return ERR_USAGE;
	if (!line_peek(w))
		return 0;
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		if (!line_take(w, statements[i].name))
			continue;
		int failed = statements[i].parse(s, w);
		return failed ? failed : words_end(w);
	}
	return line_fail(w, "a line cannot begin with '%s'", line_peek(w));
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
	s->by_name = malloc(SCENARIO_NAMES * sizeof(*s->by_name));
	if (!s->cards || !s->processes || !s->missing || !s->by_name) {
		scenario_free(s);
		return NULL;
	}
	memset(s->by_name, 0xff, SCENARIO_NAMES * sizeof(*s->by_name));
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

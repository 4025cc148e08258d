/* Reads a scenario: the lines of the host, and the rest by their first word. */
#include "driver/sim/scenario_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/timetext.h"

enum { MISSING_MAX = 128, DAYS_MAX = 366 };
#define DAY_US (86400 * INT64_C(1000000))

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

static int parse_accounting(struct scenario *s, struct words *w)
{
	s->accounting = words_take(w, "on");
	return s->accounting ? 0 : words_fail(w, "write accounting on, or leave it out");
}

static int parse_stamps(struct scenario *s, struct words *w)
{
	s->boot_stamps = words_take(w, "boot");
	return s->boot_stamps ? 0 : words_fail(w, "write stamps boot, or leave it out");
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

static int parse_at(struct scenario *s, struct words *w)
{
	int64_t at_us = 0;
	if (words_duration(w, "the time", &at_us) != 0)
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
		return words_fail(w, "the days must be numbers up to %d, like 0-4,7", DAYS_MAX);
	*text = *rest ? rest + 1 : rest;
	return 0;
}

/* Reads the rest of the line once for each day. */
static int parse_on(struct scenario *s, struct words *w)
{
	const char *days = NULL;
	if (words_text(w, "the list of days", &days) != 0)
		return ERR_USAGE;
	if (!words_take(w, "at"))
		return words_fail(w, "write on DAYS at T EVENT");
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
	if (!words_peek(w))
		return 0;
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		if (!words_take(w, statements[i].name))
			continue;
		int failed = statements[i].parse(s, w);
		return failed ? failed : words_end(w);
	}
	return words_fail(w, "a line cannot begin with '%s'", words_peek(w));
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

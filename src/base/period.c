/* Parses names of periods, and the windows that options describe. */
#include "base/period.h"

#include "base/nearest.h"

const char *const period_unit_names[] = { "", "day", "week", "month", "year" };

/* Returns the first day of the period `shift` periods after the one that contains this day. */
static struct tm first_day(enum period_unit unit, struct tm day, int shift)
{
	switch (unit) {
	case PERIOD_WEEK:
		day.tm_mday += 7 * shift - (day.tm_wday + 6) % 7;
		break;
	case PERIOD_MONTH:
		day.tm_mon += shift;
		day.tm_mday = 1;
		break;
	case PERIOD_YEAR:
		day.tm_year += shift;
		day.tm_mon = 0;
		day.tm_mday = 1;
		break;
	default:
		day.tm_mday += shift;
	}
	return day;
}

struct period period_at(enum period_unit unit, int64_t ms, int shift, bool utc)
{
	struct tm day = moment_fields(ms, utc);
	return (struct period){ unit, moment_day_start(first_day(unit, day, shift), utc),
		moment_day_start(first_day(unit, day, shift + 1), utc) };
}

static const struct period_name {
	const char *name;
	enum period_unit unit;
	int shift;
} names[] = {
	{ "today", PERIOD_DAY, 0 },
	{ "yesterday", PERIOD_DAY, -1 },
	{ "thisweek", PERIOD_WEEK, 0 },
	{ "lastweek", PERIOD_WEEK, -1 },
	{ "thismonth", PERIOD_MONTH, 0 },
	{ "lastmonth", PERIOD_MONTH, -1 },
	{ "thisyear", PERIOD_YEAR, 0 },
	{ "lastyear", PERIOD_YEAR, -1 },
};

/* Whether `text` is the name; "last-week" and "last week" are accepted for "lastweek". */
static bool is_name(const char *text, const char *name)
{
	static const char *const firsts[] = { "this", "last" };
	for (int i = 0; i < 2; i++)
		if (strncasecmp(text, firsts[i], 4) == 0 && strncmp(name, firsts[i], 4) == 0 &&
			(text[4] == '-' || text[4] == ' '))
			return strcasecmp(text + 5, name + 4) == 0;
	return strcasecmp(text, name) == 0;
}

static int two_digits(const char *text)
{
	return 10 * (text[0] - '0') + text[1] - '0';
}

bool period_parse(struct period *p, const char *text, int64_t now_ms, bool utc)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!is_name(text, names[i].name))
			continue;
		*p = period_at(names[i].unit, now_ms, names[i].shift, utc);
		return true;
	}
	/* "2026" and "2026-10". */
	size_t len = strlen(text);
	if ((len != 4 && len != 7) || strspn(text, "0123456789") != 4 ||
		(len == 7 && (text[4] != '-' || strspn(text + 5, "0123456789") != 2)))
		return false;
	int year = 100 * two_digits(text) + two_digits(text + 2);
	int month = len == 7 ? two_digits(text + 5) : 1;
	if (year < 1970 || month < 1 || month > 12)
		return false;
	struct tm day = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = 1 };
	enum period_unit unit = len == 7 ? PERIOD_MONTH : PERIOD_YEAR;
	*p = (struct period){ unit, moment_day_start(day, utc),
		moment_day_start(first_day(unit, day, 1), utc) };
	return true;
}

static int not_a_time(const char *option, const char *text, struct err *e)
{
	/* The name of a period or a weekday that is like the text; NULL: none is. */
	enum { PERIODS = sizeof(names) / sizeof(names[0]), DAYS = 7 };
	struct nearest near = nearest_to(text, strlen(text));
	for (size_t i = 0; i < PERIODS + DAYS; i++)
		nearest_try(&near, i < PERIODS ? names[i].name : moment_days[i - PERIODS]);
	const char *like = 4 * near.distance <= near.len ? near.name : NULL;
	if (like)
		return err_set(e, ERR_USAGE, "%s: '%s' is not a time; did you mean '%s'?",
			option, text, like);
	return err_set(e, ERR_USAGE,
		"%s: '%s' is not a time; write a length (1h, 7d), a period (today, yesterday, "
		"thisweek, lastweek, thismonth, lastmonth, 2026-10), " MOMENT_FORMS,
		option, text);
}

static int parse_until(
	struct window *w, const char *text, int64_t now_ms, bool utc, struct err *e)
{
	struct period p;
	if (period_parse(&p, text, now_ms, utc))
		w->until_ms = clock_earlier(p.to_ms, now_ms);
	else if (moment_parse(text, now_ms, utc, &w->until_ms, NULL) != 0)
		return not_a_time("--until", text, e);
	return 0;
}

/* Sets the period too, if the text names one. */
static int parse_since(
	struct window *w, const char *text, int64_t now_ms, bool utc, struct err *e)
{
	if (period_parse(&w->period, text, now_ms, utc))
		w->since_ms = w->period.from_ms;
	else if (moment_parse(text, now_ms, utc, &w->since_ms, NULL) != 0)
		return not_a_time("--since", text, e);
	return 0;
}

/* The start must be before the end. */
static int check_order(
	const struct window *w, const struct window_words *words, bool utc, struct err *e)
{
	if (w->since_ms < w->until_ms)
		return 0;
	struct brief since = moment_text(w->since_ms, utc);
	struct brief until = moment_text(w->until_ms, utc);
	return err_set(e, ERR_USAGE, "the window starts at %s, which is not before %s, %s%s",
		since.text, words->until ? "--until" : "now", until.text,
		words->until && !words->since ? "; give --since too" : "");
}

int period_parse_window(struct window *w, const struct window_words *words, int64_t now_ms,
	bool utc, struct err *e)
{
	int64_t last_ms = 0;
	w->period = (struct period){ 0 };
	if (words->since && words->last)
		return err_set(e, ERR_USAGE, "--since and --last exclude each other");
	if (words->since && parse_since(w, words->since, now_ms, utc, e) != 0)
		return ERR_USAGE;
	if (words->until && parse_until(w, words->until, now_ms, utc, e) != 0)
		return ERR_USAGE;
	if (words->last && duration_parse(words->last, &last_ms, e) != 0)
		return err_prefix(e, "--last");
	if (words->until)
		w->period.unit = PERIOD_NONE;
	else if (w->period.unit != PERIOD_NONE)
		w->until_ms = clock_earlier(w->period.to_ms, now_ms);
	if (words->last)
		w->since_ms = w->until_ms - last_ms;
	return check_order(w, words, utc, e);
}

/* Returns the moment at the same place in the period before: for months, the same time of the
 * same day of the month, or the end of a month that is too short. */
static int64_t same_place(const struct period *before, int64_t ms, bool utc)
{
	struct tm at = moment_fields(ms, utc);
	at.tm_mday -= before->unit == PERIOD_DAY ? 1 : before->unit == PERIOD_WEEK ? 7 : 0;
	at.tm_mon -= before->unit == PERIOD_MONTH;
	at.tm_year -= before->unit == PERIOD_YEAR;
	at.tm_isdst = -1;
	int64_t s = (int64_t)(utc ? timegm(&at) : mktime(&at));
	return clock_earlier(s * 1000 + ms % 1000, before->to_ms);
}

struct window period_window_before(const struct window *w, bool utc)
{
	struct window before = { .since_ms = w->since_ms - (w->until_ms - w->since_ms),
		.until_ms = w->since_ms };
	if (w->period.unit == PERIOD_NONE)
		return before;
	before.period = period_at(w->period.unit, w->period.from_ms, -1, utc);
	before.since_ms = before.period.from_ms;
	before.until_ms = w->until_ms == w->period.to_ms
				  ? before.period.to_ms
				  : same_place(&before.period, w->until_ms, utc);
	return before;
}

int period_window_other(
	struct window *w, const char *text, int64_t now_ms, bool utc, struct err *e)
{
	int64_t length_ms = w->until_ms - w->since_ms;
	struct window other = period_window_before(w, utc);
	if (*text) {
		struct window_words words = { .since = text };
		int rc = parse_since(&other, text, now_ms, utc, NULL);
		if (rc)
			return not_a_time("--compare", text, e);
		other.until_ms = clock_earlier(period_parse(&other.period, text, now_ms, utc)
						       ? other.period.to_ms
						       : other.since_ms + length_ms,
			now_ms);
		if (check_order(&other, &words, utc, e) != 0)
			return err_prefix(e, "--compare");
	}
	*w = other;
	return 0;
}

/* Parses and prints moments: days and times of the calendar. */
#include "base/moment.h"

#include "base/base.h"

static int64_t tm_to_ms(struct tm *tm, bool utc)
{
	tm->tm_isdst = -1;
	return (int64_t)(utc ? timegm(tm) : mktime(tm)) * 1000;
}

struct tm moment_fields(int64_t ms, bool utc)
{
	time_t t = (time_t)(ms / 1000 - (ms % 1000 < 0));
	struct tm tm = { 0 };
	if (utc)
		gmtime_r(&t, &tm);
	else
		localtime_r(&t, &tm);
	return tm;
}

int64_t moment_day_start(struct tm day, bool utc)
{
	day.tm_hour = utc ? 0 : 12;
	day.tm_min = day.tm_sec = 0;
	int64_t ms = tm_to_ms(&day, utc);
	if (utc)
		return ms;
	/* Every zone has one noon a day, and midnight is at most 16 hours before it. */
	int64_t before_s = ms / 1000 - 16 * 3600, in_s = ms / 1000;
	while (in_s - before_s > 1) {
		int64_t middle_s = before_s + (in_s - before_s) / 2;
		if (moment_fields(middle_s * 1000, false).tm_mday == day.tm_mday)
			in_s = middle_s;
		else
			before_s = middle_s;
	}
	return in_s * 1000;
}

/* Reads exactly `digits` digits. */
static const char *fixed_digits(const char *text, int digits, int *value)
{
	*value = 0;
	for (int i = 0; i < digits; i++, text++) {
		if (*text < '0' || *text > '9')
			return NULL;
		*value = *value * 10 + (*text - '0');
	}
	return text;
}

/* HH:MM[:SS] */
static const char *parse_clock(const char *text, struct tm *tm)
{
	text = fixed_digits(text, 2, &tm->tm_hour);
	if (!text || *text != ':')
		return NULL;
	text = fixed_digits(text + 1, 2, &tm->tm_min);
	if (text && *text == ':')
		text = fixed_digits(text + 1, 2, &tm->tm_sec);
	return text && tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60 ? text : NULL;
}

/* YYYY-MM-DD, which must exist: mktime() would turn 31 April into 1 May. */
static const char *parse_date(const char *text, struct tm *tm)
{
	int year = 0, month = 0, day = 0;
	text = fixed_digits(text, 4, &year);
	if (!text || *text != '-')
		return NULL;
	text = fixed_digits(text + 1, 2, &month);
	if (!text || *text != '-')
		return NULL;
	text = fixed_digits(text + 1, 2, &day);
	struct tm date = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
	struct tm real = date;
	timegm(&real);
	if (!text || year < 1970 || real.tm_mon != month - 1 || real.tm_mday != day)
		return NULL;
	*tm = date;
	return text;
}

const char *const moment_days[7] = { "sunday", "monday", "tuesday", "wednesday", "thursday",
	"friday", "saturday" };

/* "today", "yesterday", "monday", "mon": a word that ends at a blank, a digit or the end. `*tm`
 * is today, and becomes that day. `*repeats` is set to the days between two days of that name,
 * if there are several. */
static const char *parse_day_name(const char *text, struct tm *tm, int *repeats)
{
	size_t len = strcspn(text, " 0123456789");
	const char *rest = text + len;
	if (len == 5 && strncasecmp(text, "today", len) == 0)
		return rest;
	if (len == 9 && strncasecmp(text, "yesterday", len) == 0) {
		tm->tm_mday--;
		return rest;
	}
	for (int day = 0; day < 7; day++) {
		if ((len != 3 && len != strlen(moment_days[day])) ||
			strncasecmp(text, moment_days[day], len) != 0)
			continue;
		tm->tm_mday -= (tm->tm_wday - day + 7) % 7;
		*repeats = 7;
		return rest;
	}
	return NULL;
}

/* Returns that time of that day in unix milliseconds. A time that a daylight-saving change
 * skips is moved, which is accepted. */
static int64_t at_clock(struct tm day, const struct tm *clock, bool utc)
{
	day.tm_hour = clock->tm_hour;
	day.tm_min = clock->tm_min;
	day.tm_sec = clock->tm_sec;
	return tm_to_ms(&day, utc);
}

static bool parse_calendar(const char *text, int64_t now_ms, bool utc, int64_t *ms)
{
	size_t len = strlen(text);
	bool zulu =
		len > 1 && text[len - 1] == 'Z' && text[len - 2] >= '0' && text[len - 2] <= '9';
	struct tm day = moment_fields(now_ms, utc || zulu), clock = { 0 };
	const char *end = text + len - zulu, *rest = parse_date(text, &day);
	int repeats = 0; /* days */
	if (!rest)
		rest = parse_day_name(text, &day, &repeats);
	if (rest && rest == end) {
		*ms = moment_day_start(day, utc || zulu);
		return true;
	}
	if (rest && *rest != 'T' && *rest != ' ')
		return false;
	if (!rest)
		repeats = 1;
	if (parse_clock(rest ? rest + 1 : text, &clock) != end)
		return false;
	*ms = at_clock(day, &clock, utc || zulu);
	if (*ms > now_ms && repeats) {
		day.tm_mday -= repeats;
		*ms = at_clock(day, &clock, utc || zulu);
	}
	return true;
}

int moment_parse(const char *text, int64_t now_ms, bool utc, int64_t *ms, struct err *e)
{
	int64_t ago_ms = 0;
	if (strcmp(text, "now") == 0) {
		*ms = now_ms;
	} else if (text[0] == '@') {
		double seconds = 0;
		const char *rest = duration_number(text + 1, &seconds);
		if (!rest || *rest || seconds > 1e11)
			goto wrong;
		*ms = (int64_t)llround(seconds * 1000);
	} else if (!parse_calendar(text, now_ms, utc, ms)) {
		struct err inner = { 0 };
		if (duration_parse(text, &ago_ms, &inner) != 0)
			goto wrong;
		*ms = now_ms - ago_ms;
	}
	return 0;
wrong:
	return err_set(e, ERR_USAGE,
		"'%s' is not a time; write a length (1h, 7d), " MOMENT_FORMS, text);
}

struct brief moment_format(const char *format, int64_t ms, bool utc)
{
	struct brief b = { "" };
	struct tm tm = moment_fields(ms, utc);
	strftime(b.text, sizeof(b.text), format, &tm);
	return b;
}

struct brief moment_iso(int64_t ms)
{
	int rest = (int)((ms % 1000 + 1000) % 1000);
	return rest ? str_brief("%.30s.%03dZ",
			      moment_format("%Y-%m-%dT%H:%M:%S", ms, true).text, rest)
		    : moment_format("%Y-%m-%dT%H:%M:%SZ", ms, true);
}

const char *const moment_weekdays[7] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

struct brief moment_text(int64_t ms, bool utc)
{
	struct tm tm = moment_fields(ms, utc);
	return str_brief("%s %04d-%02d-%02d %02d:%02d%s", moment_weekdays[tm.tm_wday % 7],
		tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
		utc ? " UTC" : "");
}

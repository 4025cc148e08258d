/* Parses ISO 8601 time stamps as Python's datetime writes them. */
#include "import/pytime.h"

#include <string.h>
#include <time.h>

/* Reads exactly `digits` decimal digits; moves *at after them. */
static bool take_number(const char **at, int digits, int *value)
{
	*value = 0;
	for (int i = 0; i < digits; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		*value = *value * 10 + (**at - '0');
	}
	return true;
}

static bool take_char(const char **at, const char *any_of)
{
	if (**at == '\0' || !strchr(any_of, **at))
		return false;
	(*at)++;
	return true;
}

static bool take_date_and_time(const char **at, struct tm *tm)
{
	bool good = take_number(at, 4, &tm->tm_year) && take_char(at, "-") &&
		    take_number(at, 2, &tm->tm_mon) && take_char(at, "-") &&
		    take_number(at, 2, &tm->tm_mday) && take_char(at, "T ") &&
		    take_number(at, 2, &tm->tm_hour) && take_char(at, ":") &&
		    take_number(at, 2, &tm->tm_min) && take_char(at, ":") &&
		    take_number(at, 2, &tm->tm_sec);
	tm->tm_year -= 1900;
	tm->tm_mon -= 1;
	return good && tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60;
}

/* Reads ".123456" as milliseconds; 0 when it is missing. */
static bool take_fraction(const char **at, int *ms)
{
	int digits = 0;
	*ms = 0;
	if (!take_char(at, "."))
		return true;
	for (; **at >= '0' && **at <= '9'; (*at)++, digits++)
		if (digits < 3)
			*ms = *ms * 10 + (**at - '0');
	for (int i = digits; i < 3; i++)
		*ms *= 10;
	return digits > 0;
}

/* Reads "Z", "+00:00" or nothing, as seconds east of UTC. */
static bool take_offset(const char **at, int *seconds)
{
	int hours = 0, minutes = 0, sign = **at == '-' ? -1 : 1;
	*seconds = 0;
	if (**at == '\0' || take_char(at, "Zz"))
		return true;
	if (!take_char(at, "+-") || !take_number(at, 2, &hours) || !take_char(at, ":") ||
		!take_number(at, 2, &minutes))
		return false;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return hours < 24 && minutes < 60;
}

bool pytime_parse(const char *text, int64_t *ms)
{
	struct tm tm = { 0 };
	int fraction_ms, offset_s;
	if (!take_date_and_time(&text, &tm) || !take_fraction(&text, &fraction_ms) ||
		!take_offset(&text, &offset_s) || *text)
		return false;
	int day = tm.tm_mday, month = tm.tm_mon;
	int64_t seconds = timegm(&tm); /* turns 31 February into a day of March */
	if (tm.tm_mday != day || tm.tm_mon != month || seconds - offset_s < 0)
		return false;
	*ms = (seconds - offset_s) * 1000 + fraction_ms;
	return true;
}

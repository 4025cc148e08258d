/* Parses and prints durations. */
#include "base/duration.h"

#include "base/base.h"

#define MAX_MS (366000LL * 86400 * 1000)

static const struct time_unit {
	const char *name;
	double ms;
} units[] = {
	{ "ms", 1 },
	{ "s", 1000 },
	{ "m", 60e3 },
	{ "min", 60e3 },
	{ "h", 3600e3 },
	{ "d", 86400e3 },
	{ "w", 7 * 86400e3 },
};

const char *duration_number(const char *text, double *number)
{
	double value = 0, scale = 1;
	bool point = false, digits = false;
	for (; *text; text++) {
		if (*text == '.' && !point) {
			point = true;
		} else if (*text >= '0' && *text <= '9') {
			digits = true;
			scale = point ? scale / 10 : scale;
			value = point ? value + scale * (*text - '0')
				      : value * 10 + (*text - '0');
		} else {
			break;
		}
	}
	*number = value;
	return digits ? text : NULL;
}

int duration_parse(const char *text, int64_t *ms, struct err *e)
{
	double number = 0;
	const char *rest = duration_number(text, &number);
	if (!rest)
		goto wrong;
	if (*rest == '\0' && number == 0) {
		*ms = 0;
		return 0;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(rest, units[i].name) != 0)
			continue;
		double value = number * units[i].ms;
		if (value > (double)MAX_MS)
			return err_set(
				e, ERR_USAGE, "'%s' is longer than a thousand years", text);
		*ms = (int64_t)llround(value);
		return 0;
	}
	if (*rest == '\0')
		return err_set(e, ERR_USAGE, "'%s' has no unit; write %ss, %sm, %sh or %sd",
			text, text, text, text, text);
wrong:
	return err_set(e, ERR_USAGE,
		"'%s' is not a duration; write one like 200ms 30s 5m 1h 7d 4w", text);
}

struct brief duration_clock(int64_t ms)
{
	int64_t s = (ms + 500) / 1000;
	long long days = s / 86400, hours = s / 3600 % 24;
	int minutes = (int)(s / 60 % 60), seconds = (int)(s % 60);
	if (days)
		return str_brief("%lld d %02lld:%02d:%02d", days, hours, minutes, seconds);
	return str_brief("%lld:%02d:%02d", hours, minutes, seconds);
}

struct brief duration_text(int64_t ms)
{
	long long s = ms / 1000, m = s / 60, h = m / 60, d = h / 24;
	if (d)
		return str_brief("%lld d %lld h", d, h % 24);
	if (h)
		return str_brief("%lld h %lld min", h, m % 60);
	return m ? str_brief("%lld min", m) : str_brief("%lld s", s);
}

struct brief duration_option(int64_t ms)
{
	const struct time_unit *best = &units[0];
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (ms && ms % (int64_t)units[i].ms == 0 && units[i].ms > best->ms)
			best = &units[i];
	return str_brief("%lld%s", (long long)(ms / (int64_t)best->ms), best->name);
}

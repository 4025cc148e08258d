/* Reads one line of a scenario, word by word. */
#include "driver/sim/line.h"

int line_fail(const struct line *l, const char *format, ...)
{
	char text[400];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err_set(l->e, ERR_USAGE, "%s:%d: %s", l->where, l->number, text);
}

/* Copies one quoted word; *at is after the opening quote and ends after the closing one. */
static int cut_quoted(struct line *l, const char *bytes, size_t len, size_t *at, char **out)
{
	for (; *at < len && bytes[*at] != '"'; (*at)++) {
		bool escape = bytes[*at] == '\\' && *at + 1 < len &&
			      (bytes[*at + 1] == '"' || bytes[*at + 1] == '\\');
		*at += escape ? 1 : 0;
		*(*out)++ = bytes[*at];
	}
	if (*at == len)
		return line_fail(l, "a quote is not closed");
	(*at)++;
	if (*at < len && bytes[*at] != ' ' && bytes[*at] != '\t')
		return line_fail(l, "a blank is missing behind a closing quote");
	return 0;
}

int line_cut(struct line *l, const char *bytes, size_t len)
{
	l->n = l->next = 0;
	if (len >= LINE_CAP)
		return line_fail(l, "the line is longer than %d bytes", LINE_CAP - 1);
	if (memchr(bytes, '\0', len))
		return line_fail(l, "there is a NUL in the line");
	/* A word needs at most its own bytes and a NUL for the blank after it. */
	char *out = l->text;
	for (size_t at = 0; at < len;) {
		if (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r') {
			at++;
			continue;
		}
		if (bytes[at] == '#')
			break;
		if (l->n == LINE_WORDS_MAX)
			return line_fail(l, "there are more than %d words", LINE_WORDS_MAX);
		l->items[l->n++] = out;
		if (bytes[at] == '"') {
			at++;
			if (cut_quoted(l, bytes, len, &at, &out) != 0)
				return ERR_USAGE;
		} else {
			while (at < len && !strchr(" \t\r", bytes[at]))
				*out++ = bytes[at++];
		}
		*out++ = '\0';
	}
	return 0;
}

const char *line_peek(const struct line *l)
{
	return l->next < l->n ? l->items[l->next] : NULL;
}

bool line_take(struct line *l, const char *word)
{
	const char *next = line_peek(l);
	if (!next || strcmp(next, word) != 0)
		return false;
	l->next++;
	return true;
}

int line_text(struct line *l, const char *what, const char **text)
{
	*text = line_peek(l);
	if (!*text)
		return line_fail(l, "%s is missing", what);
	l->next++;
	return 0;
}

int line_copy(struct line *l, const char *what, char *dst, size_t cap)
{
	const char *text = NULL;
	if (line_text(l, what, &text) != 0)
		return ERR_USAGE;
	if (!*text)
		return line_fail(l, "%s is empty", what);
	if (!str_copy(dst, cap, text))
		return line_fail(l, "%s is longer than %zu bytes", what, cap - 1);
	return 0;
}

int line_count(struct line *l, const char *what, int64_t min, int64_t max, int64_t *value)
{
	const char *text = NULL;
	if (line_text(l, what, &text) != 0)
		return ERR_USAGE;
	int64_t number = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9' && at - text < 15; at++)
		number = number * 10 + (*at - '0');
	if (at == text || *at || number < min || number > max)
		return line_fail(l, "%s is '%s' and must be a number from %lld to %lld", what,
			text, (long long)min, (long long)max);
	*value = number;
	return 0;
}

/* Reads a duration without a sign; `text` is what the user wrote. */
static int duration_us(struct line *l, const char *what, const char *text, int64_t *us)
{
	int64_t ms = 0;
	struct err inner = { 0 };
	if (duration_parse(text, &ms, &inner) != 0)
		return line_fail(l, "%s: %s", what, inner.text);
	if (ms > 3660LL * 86400 * 1000)
		return line_fail(l, "%s is longer than ten years", what);
	*us = ms * 1000;
	return 0;
}

int line_duration(struct line *l, const char *what, int64_t *us)
{
	const char *text = NULL;
	int rc = line_text(l, what, &text);
	return rc ? rc : duration_us(l, what, text, us);
}

int line_signed_duration(struct line *l, const char *what, int64_t *us)
{
	const char *text = NULL;
	if (line_text(l, what, &text) != 0)
		return ERR_USAGE;
	bool minus = *text == '-', sign = minus || *text == '+';
	if (duration_us(l, what, text + (sign ? 1 : 0), us) != 0)
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
	const char *example; /* for the message about a wrong word */
};

static const struct scenario_unit size_units[] = { { "B", 1 }, { "KB", 1000 }, { "KiB", 1024 },
	{ "MB", 1000000 }, { "MiB", 1 << 20 }, { "GB", 1000000000 }, { "GiB", 1 << 30 },
	{ NULL, 0 } };
static const struct scenario_unit power_units[] = { { "mW", 1 }, { "W", 1000 }, { NULL, 0 } };
static const struct quantity size_bytes = { size_units, 1LL << 46, "80GiB, 8GB, 512MiB or 0B" };
static const struct quantity power_mw = { power_units, 100000000, "60W or 500mW" };

/* Takes a number with a unit, and rounds it to the smallest unit. */
static int take_quantity(
	struct line *l, const char *what, const struct quantity *q, int64_t *value)
{
	const char *text = NULL;
	if (line_text(l, what, &text) != 0)
		return ERR_USAGE;
	double number = 0;
	const char *rest = duration_number(text, &number);
	for (const struct scenario_unit *u = q->units; rest && u->name; u++) {
		if (strcmp(rest, u->name) != 0)
			continue;
		number *= (double)u->factor;
		if (number > (double)q->max)
			return line_fail(l, "%s is too large: '%s'", what, text);
		*value = llround(number);
		return 0;
	}
	return line_fail(l, "%s is '%s'; write it like %s", what, text, q->example);
}

int line_size(struct line *l, const char *what, int64_t *bytes)
{
	return take_quantity(l, what, &size_bytes, bytes);
}

int line_power(struct line *l, const char *what, int64_t *mw)
{
	return take_quantity(l, what, &power_mw, mw);
}

int line_end(struct line *l)
{
	const char *left = line_peek(l);
	return left ? line_fail(l, "'%s' is not expected here", left) : 0;
}

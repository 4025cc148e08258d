/* Reads the answers of an engine: status, warnings, and the samples of a vector or a matrix. */
#include "fleet/engine_answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Depths of {"data":{"result":[{"metric":{...},"value":[t,"v"],"values":[[t,"v"]]}]}}. */
enum { TOP = 1, DATA = 2, RESULT = 3, SERIES = 4, METRIC = 5, PAIR = 5, PAIRS = 6 };

const char *engine_answer_label(const struct labels *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(str_text(&l->text) + l->names[i], name) == 0)
			return str_text(&l->text) + l->values[i];
	return "";
}

/* The keys that are read. */
enum key {
	KEY_OTHER,
	KEY_STATUS,
	KEY_ERROR,
	KEY_ERROR_TYPE,
	KEY_WARNINGS,
	KEY_INFOS,
	KEY_DATA,
	KEY_VERSION,
	KEY_APPLICATION,
	KEY_RESULT,
	KEY_METRIC,
	KEY_VALUE,
	KEY_VALUES,
	KEYS,
};
static const char *const key_names[KEYS] = { [KEY_STATUS] = "status",
	[KEY_ERROR] = "error",
	[KEY_ERROR_TYPE] = "errorType",
	[KEY_WARNINGS] = "warnings",
	[KEY_INFOS] = "infos",
	[KEY_DATA] = "data",
	[KEY_VERSION] = "version",
	[KEY_APPLICATION] = "application",
	[KEY_RESULT] = "result",
	[KEY_METRIC] = "metric",
	[KEY_VALUE] = "value",
	[KEY_VALUES] = "values" };

static enum key key_of(const char *text)
{
	int key = KEYS - 1;
	while (key > KEY_OTHER && strcmp(key_names[key], text) != 0)
		key--;
	return (enum key)key;
}

/* Whether the object that is open at `depth` is at this key. */
static bool is_at(const struct engine_answer *a, unsigned depth, enum key key)
{
	return depth <= STREAM_DEPTH && a->keys[depth - 1] == key;
}

static bool in_result(const struct engine_answer *a)
{
	return a->depth >= RESULT && is_at(a, TOP, KEY_DATA) && is_at(a, DATA, KEY_RESULT);
}

static int refuse(const char *what, struct err *e)
{
	return err_set(e, ERR_WORLD, "%s is not what such an engine answers", what);
}

static int take_key(struct engine_answer *a, const char *text, size_t len, struct err *e)
{
	struct labels *l = &a->labels;
	if (strlen(text) != len)
		return refuse("a key with a NUL byte", e);
	bool label = in_result(a) && a->depth == METRIC && is_at(a, SERIES, KEY_METRIC);
	a->keys[a->depth - 1] = label ? KEY_OTHER : (unsigned char)key_of(text);
	if (!label)
		return 0;
	if (l->n == ANSWER_LABELS)
		return refuse("a series with more than 64 labels", e);
	l->names[l->n] = l->text.len;
	str_add_bytes(&l->text, text, len + 1);
	return 0;
}

/* Reads a number. Nearly all samples have only digits and a point: up to 15 digits are
 * exact, and so is their division by a power of ten, rounded once. The rest is left to
 * strtod(). */
static double number_of(const char *text, const char **end)
{
	enum { EXACT_DIGITS = 15 };
	static const double powers[] = { 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
		1e11, 1e12, 1e13, 1e14, 1e15 };
	const char *at = text, *point = NULL;
	int64_t digits = 0;
	for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point && at > text); at++) {
		if (*at == '.')
			point = at;
		else if (at - text <= EXACT_DIGITS)
			digits = 10 * digits + (*at - '0');
	}
	size_t places = point ? (size_t)(at - point - 1) : 0;
	if (at > text && !*at && at - text - (point != NULL) <= EXACT_DIGITS &&
		(!point || places)) {
		*end = at;
		return (double)digits / powers[places];
	}
	char *stop;
	double value = strtod(text, &stop);
	*end = stop;
	return value;
}

static int take_value(struct engine_answer *a, const char *text, struct err *e)
{
	const char *end;
	double value = number_of(text, &end);
	if (!*text || *end || *text == ' ')
		return refuse("a value that is not a number", e);
	if (!isfinite(value)) {
		a->n_not_finite++;
		return 0;
	}
	const struct sample sample = { &a->labels, a->time_s, value, &a->note };
	a->n_samples++;
	return a->take ? a->take(a->context, &sample, e) : 0;
}

/* A number or a string in [time, "value"]. */
static int take_in_pair(
	struct engine_answer *a, enum stream_token token, const char *text, struct err *e)
{
	unsigned place = a->place++;
	if (!a->saw_labels)
		return refuse("a value before the labels of its series", e);
	if (place == 0 && token == STREAM_NUMBER) {
		const char *end;
		a->time_s = number_of(text, &end);
		return isfinite(a->time_s) ? 0 : refuse("an endless time", e);
	}
	if (place == 1 && token == STREAM_STRING)
		return take_value(a, text, e);
	return refuse("a sample that is not [time, \"value\"]", e);
}

static bool in_pair(const struct engine_answer *a)
{
	return (a->depth == PAIR && is_at(a, SERIES, KEY_VALUE)) ||
	       (a->depth == PAIRS && is_at(a, SERIES, KEY_VALUES));
}

/* Takes a string, number or word outside of the results. */
static void take_fact(struct engine_answer *a, const char *text)
{
	bool top = a->depth == TOP, data = a->depth == DATA && is_at(a, TOP, KEY_DATA);
	const struct {
		bool here;
		char *dst;
		size_t cap;
	} places[] = {
		{ top && is_at(a, TOP, KEY_ERROR), a->error, sizeof(a->error) },
		{ top && is_at(a, TOP, KEY_ERROR_TYPE), a->error_type, sizeof(a->error_type) },
		{ data && is_at(a, DATA, KEY_VERSION), a->version, sizeof(a->version) },
		{ data && is_at(a, DATA, KEY_APPLICATION), a->application,
			sizeof(a->application) },
	};
	bool warning = is_at(a, TOP, KEY_WARNINGS) || is_at(a, TOP, KEY_INFOS);
	if (top && is_at(a, TOP, KEY_STATUS))
		a->success = strcmp(text, "success") == 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i].here)
			str_escape(places[i].dst, places[i].cap, text, strlen(text));
	if (a->depth == 2 && warning && a->n_warnings < ANSWER_WARNINGS)
		str_escape(a->warnings[a->n_warnings++], sizeof(a->warnings[0]), text,
			strlen(text));
}

static int take_scalar(struct engine_answer *a, enum stream_token token, const char *text,
	size_t len, struct err *e)
{
	if (!in_result(a)) {
		take_fact(a, text);
		return 0;
	}
	if (in_pair(a))
		return take_in_pair(a, token, text, e);
	bool metric = a->depth >= SERIES && is_at(a, SERIES, KEY_METRIC);
	bool value = a->depth >= SERIES &&
		     (is_at(a, SERIES, KEY_VALUE) || is_at(a, SERIES, KEY_VALUES));
	if (metric && a->depth == METRIC && token == STREAM_STRING) {
		struct labels *l = &a->labels;
		l->values[l->n++] = l->text.len;
		str_add_bytes(&l->text, text, len + 1);
		return l->text.failed ? err_memory(e) : 0;
	}
	return metric || value || a->depth == RESULT ? refuse("what is in the result", e) : 0;
}

/* An object or an array begins. */
static int take_open(struct engine_answer *a, enum stream_token token, struct err *e)
{
	bool object = token == STREAM_OBJECT;
	if (a->depth == 0 && !object)
		return refuse("an answer that is not an object", e);
	a->depth++;
	a->keys[a->depth - 1] = KEY_OTHER;
	if (!in_result(a))
		return 0;
	if (a->depth == RESULT) {
		a->has_result = true;
		return object ? refuse("a result that is not a list", e) : 0;
	}
	if (a->depth == SERIES) {
		a->saw_labels = false;
		a->note = 0;
		a->labels.n = 0;
		str_clear(&a->labels.text);
		return object ? 0 : refuse("a series that is not an object", e);
	}
	bool metric = is_at(a, SERIES, KEY_METRIC);
	bool value = is_at(a, SERIES, KEY_VALUE) || is_at(a, SERIES, KEY_VALUES);
	if (metric)
		a->saw_labels = true;
	a->place = 0;
	unsigned most = metric || is_at(a, SERIES, KEY_VALUE) ? PAIR : PAIRS;
	if ((metric != object && (metric || value)) || ((metric || value) && a->depth > most))
		return refuse("what is in the result", e);
	return 0;
}

static int take_token(
	void *context, enum stream_token token, const char *text, size_t len, struct err *e)
{
	struct engine_answer *a = context;
	switch (token) {
	case STREAM_OBJECT:
	case STREAM_ARRAY:
		return take_open(a, token, e);
	case STREAM_OBJECT_END:
	case STREAM_ARRAY_END:
		if (in_result(a) && in_pair(a) && a->place != 2)
			return refuse("a sample that is not [time, \"value\"]", e);
		a->depth--;
		return 0;
	case STREAM_KEY:
		return take_key(a, text, len, e);
	default:
		return take_scalar(a, token, text, len, e);
	}
}

void engine_answer_start(struct engine_answer *a)
{
	str_clear(&a->labels.text);
	*a = (struct engine_answer){ .take = a->take,
		.context = a->context,
		.stream = a->stream,
		.labels = { .text = a->labels.text } };
	stream_start(&a->stream, take_token, a);
}

int engine_answer_feed(struct engine_answer *a, const char *bytes, size_t len, struct err *e)
{
	return stream_feed(&a->stream, bytes, len, e);
}

int engine_answer_end(struct engine_answer *a, struct err *e)
{
	return stream_end(&a->stream, e);
}

void engine_answer_finish(struct engine_answer *a)
{
	stream_finish(&a->stream);
	str_finish(&a->labels.text);
}

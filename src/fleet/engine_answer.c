/* Reads the answers of an engine: status, warnings, and the samples of a vector or a matrix.
 * The first part knows what the tokens of an answer mean, the second parses JSON, with one
 * state for each place in the grammar. */
#include "fleet/engine_answer.h"

enum token { TOKEN_KEY, TOKEN_STRING, TOKEN_NUMBER, TOKEN_LITERAL /* true, false or null */ };

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
	return depth <= ANSWER_DEPTH && a->keys[depth - 1] == key;
}

static bool in_result(const struct engine_answer *a)
{
	return a->depth >= RESULT && is_at(a, TOP, KEY_DATA) && is_at(a, DATA, KEY_RESULT);
}

static int refuse(const char *what, struct err *e)
{
	return err_set(e, ERR_WORLD, "%s is not what such an engine answers", what);
}

static int take_key(struct engine_answer *a, struct err *e)
{
	const char *text = str_text(&a->text);
	size_t len = a->text.len;
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

/* Reads a number. Nearly all samples have only digits and a point: up to 15 digits are exact,
 * and so is their division by a power of ten, rounded once. The rest is left to strtod(). */
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
	struct engine_answer *a, enum token token, const char *text, struct err *e)
{
	unsigned place = a->place++;
	if (!a->saw_labels)
		return refuse("a value before the labels of its series", e);
	if (place == 0 && token == TOKEN_NUMBER) {
		const char *end;
		a->time_s = number_of(text, &end);
		return isfinite(a->time_s) ? 0 : refuse("an endless time", e);
	}
	if (place == 1 && token == TOKEN_STRING)
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

static int take_scalar(struct engine_answer *a, enum token token, struct err *e)
{
	const char *text = str_text(&a->text);
	if (!in_result(a)) {
		take_fact(a, text);
		return 0;
	}
	if (in_pair(a))
		return take_in_pair(a, token, text, e);
	bool metric = a->depth >= SERIES && is_at(a, SERIES, KEY_METRIC);
	bool value = a->depth >= SERIES &&
		     (is_at(a, SERIES, KEY_VALUE) || is_at(a, SERIES, KEY_VALUES));
	if (metric && a->depth == METRIC && token == TOKEN_STRING) {
		struct labels *l = &a->labels;
		l->values[l->n++] = l->text.len;
		str_add_bytes(&l->text, text, a->text.len + 1);
		return l->text.failed ? err_memory(e) : 0;
	}
	return metric || value || a->depth == RESULT ? refuse("what is in the result", e) : 0;
}

/* An object or an array begins. */
static int take_open(struct engine_answer *a, bool object, struct err *e)
{
	if (a->depth == 1 && !object)
		return refuse("an answer that is not an object", e);
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

enum state {
	AT_VALUE,
	AT_VALUE_OR_END, /* after [ */
	AT_KEY,
	AT_KEY_OR_END, /* after { */
	AT_COLON,
	AT_COMMA_OR_END,
	AT_END, /* the text is complete */
	IN_STRING,
	IN_ESCAPE,  /* after a backslash */
	IN_UNICODE, /* digits of \uXXXX */
	IN_PAIR,    /* the backslash of the second half of a surrogate pair */
	IN_PAIR_U,
	IN_NUMBER,
	IN_LITERAL,
};

static int refuse_json(const struct engine_answer *a, const char *why, struct err *e)
{
	return err_set(e, ERR_WORLD, "it is not JSON: %s at byte %llu", why,
		(unsigned long long)a->n_bytes);
}

/* Takes the token that was read. */
static int end_token(struct engine_answer *a, enum token token, struct err *e)
{
	int rc = a->text.failed	      ? err_memory(e)
		 : token == TOKEN_KEY ? take_key(a, e)
				      : take_scalar(a, token, e);
	str_clear(&a->text);
	return rc;
}

/* What follows a complete value. */
static int after_value(const struct engine_answer *a)
{
	return a->depth ? AT_COMMA_OR_END : AT_END;
}

static bool in_object(const struct engine_answer *a)
{
	return a->depth && (a->objects >> (a->depth - 1) & 1);
}

static int open_bracket(struct engine_answer *a, bool object, struct err *e)
{
	if (a->depth == ANSWER_DEPTH)
		return refuse_json(a, "too deep", e);
	uint32_t bit = (uint32_t)1 << a->depth++;
	a->objects = object ? a->objects | bit : a->objects & ~bit;
	a->state = object ? AT_KEY_OR_END : AT_VALUE_OR_END;
	return take_open(a, object, e);
}

static int close_bracket(struct engine_answer *a, bool object, struct err *e)
{
	if (a->depth == 0 || in_object(a) != object)
		return refuse_json(a, "a bracket that does not match", e);
	if (in_result(a) && in_pair(a) && a->place != 2)
		return refuse("a sample that is not [time, \"value\"]", e);
	a->depth--;
	a->state = after_value(a);
	return 0;
}

static int begin_value(struct engine_answer *a, char c, struct err *e)
{
	if (c == '{' || c == '[')
		return open_bracket(a, c == '{', e);
	if (c == '"') {
		a->is_key = false;
		a->state = IN_STRING;
		return 0;
	}
	if (c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z'))
		return refuse_json(a, "no value", e);
	a->state = c >= 'a' ? IN_LITERAL : IN_NUMBER;
	str_add_bytes(&a->text, &c, 1);
	return 0;
}

/* Takes a character between tokens. */
static int take_between(struct engine_answer *a, char c, struct err *e)
{
	if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
		return 0;
	switch (a->state) {
	case AT_VALUE_OR_END:
		return c == ']' ? close_bracket(a, false, e) : begin_value(a, c, e);
	case AT_VALUE:
		return begin_value(a, c, e);
	case AT_KEY_OR_END:
	case AT_KEY:
		if (c == '}' && a->state == AT_KEY_OR_END)
			return close_bracket(a, true, e);
		if (c != '"')
			return refuse_json(a, "no key", e);
		a->is_key = true;
		a->state = IN_STRING;
		return 0;
	case AT_COLON:
		a->state = AT_VALUE;
		return c == ':' ? 0 : refuse_json(a, "no colon", e);
	case AT_COMMA_OR_END:
		if (c == '}' || c == ']')
			return close_bracket(a, c == '}', e);
		a->state = in_object(a) ? AT_KEY : AT_VALUE;
		return c == ',' ? 0 : refuse_json(a, "no comma", e);
	default:
		return refuse_json(a, "more after the end", e);
	}
}

static int end_string(struct engine_answer *a, struct err *e)
{
	a->state = a->is_key ? AT_COLON : after_value(a);
	return end_token(a, a->is_key ? TOKEN_KEY : TOKEN_STRING, e);
}

/* Adds a code point as UTF-8. */
static void add_code(struct engine_answer *a, unsigned code)
{
	char utf8[4];
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char heads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (size_t i = n; i-- > 1; code >>= 6)
		utf8[i] = (char)(0x80 | (code & 0x3f));
	utf8[0] = (char)(heads[n] | code);
	str_add_bytes(&a->text, utf8, n);
}

static int end_unicode(struct engine_answer *a, struct err *e)
{
	bool low = a->code >= 0xdc00 && a->code < 0xe000;
	a->state = IN_STRING;
	if (a->code == 0 || low != (a->high != 0))
		return refuse_json(a, "an escape that is no character", e);
	if (a->code >= 0xd800 && a->code < 0xdc00) {
		a->high = a->code;
		a->state = IN_PAIR;
		return 0;
	}
	if (low)
		a->code = 0x10000 + ((a->high - 0xd800) << 10) + (a->code - 0xdc00);
	a->high = 0;
	add_code(a, a->code);
	return 0;
}

static int take_digit(struct engine_answer *a, char c, struct err *e)
{
	const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
	if (!at)
		return refuse_json(a, "a wrong escape", e);
	a->code = a->code << 4 | (unsigned)(at - digits);
	return --a->digits ? 0 : end_unicode(a, e);
}

static int take_escape(struct engine_answer *a, char c, struct err *e)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = c ? strchr(from, c) : NULL;
	if (c == 'u') {
		a->digits = 4;
		a->code = 0;
		a->state = IN_UNICODE;
		return 0;
	}
	if (!at)
		return refuse_json(a, "a wrong escape", e);
	str_add_bytes(&a->text, &to[at - from], 1);
	a->state = IN_STRING;
	return 0;
}

/* Whether the text is a number of JSON: -?int(.digits)?(e[+-]digits)? */
static bool is_number(const char *at)
{
	at += *at == '-';
	size_t n = strspn(at, "0123456789");
	if (n == 0 || (n > 1 && *at == '0'))
		return false;
	at += n;
	if (*at == '.') {
		n = strspn(++at, "0123456789");
		if (n == 0)
			return false;
		at += n;
	}
	if (*at == 'e' || *at == 'E') {
		at++;
		at += *at == '+' || *at == '-';
		n = strspn(at, "0123456789");
		if (n == 0)
			return false;
		at += n;
	}
	return *at == '\0';
}

static int end_word(struct engine_answer *a, struct err *e)
{
	const char *text = str_text(&a->text);
	bool number = a->state == IN_NUMBER;
	bool good = number ? is_number(text)
			   : strcmp(text, "true") == 0 || strcmp(text, "false") == 0 ||
				     strcmp(text, "null") == 0;
	if (!good)
		return refuse_json(a, number ? "a wrong number" : "a wrong word", e);
	a->state = after_value(a);
	return end_token(a, number ? TOKEN_NUMBER : TOKEN_LITERAL, e);
}

static bool is_of_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' ||
	       c == '+' || c == 'E';
}

/* Keeps the first `n` of `len` bytes as text. False: the next byte has not arrived yet. */
static bool keep_text(struct engine_answer *a, const char *bytes, size_t n, size_t len)
{
	str_add_bytes(&a->text, bytes, n);
	a->n_bytes += n + (n < len);
	return n < len;
}

/* Takes the characters of a number or a word, and the character that ends it. Returns the
 * number of bytes. */
static size_t take_word(
	struct engine_answer *a, const char *bytes, size_t len, int *rc, struct err *e)
{
	size_t n = 0;
	while (n < len && is_of_word(bytes[n]))
		n++;
	if (!keep_text(a, bytes, n, len))
		return n;
	*rc = end_word(a, e);
	if (*rc == 0)
		*rc = take_between(a, bytes[n], e);
	return n + 1;
}

static int take_char(struct engine_answer *a, char c, struct err *e)
{
	switch (a->state) {
	case IN_ESCAPE:
		return take_escape(a, c, e);
	case IN_UNICODE:
		return take_digit(a, c, e);
	case IN_PAIR:
		a->state = IN_PAIR_U;
		return c == '\\' ? 0 : refuse_json(a, "half a surrogate pair", e);
	case IN_PAIR_U:
		return c == 'u' ? take_escape(a, c, e)
				: refuse_json(a, "half a surrogate pair", e);
	default:
		return take_between(a, c, e);
	}
}

/* Takes the plain part of a string, and the character that ends it. Returns its length. */
static size_t take_string(
	struct engine_answer *a, const char *bytes, size_t len, int *rc, struct err *e)
{
	size_t n = 0;
	while (n < len && bytes[n] != '"' && bytes[n] != '\\' && (unsigned char)bytes[n] >= 32)
		n++;
	if (!keep_text(a, bytes, n, len))
		return n;
	if (bytes[n] == '"')
		*rc = end_string(a, e);
	else if (bytes[n] == '\\')
		a->state = IN_ESCAPE;
	else
		*rc = refuse_json(a, "a control character in a string", e);
	return n + 1;
}

void engine_answer_start(struct engine_answer *a)
{
	str_clear(&a->text);
	str_clear(&a->labels.text);
	*a = (struct engine_answer){ .take = a->take,
		.context = a->context,
		.text = a->text,
		.labels = { .text = a->labels.text } };
}

int engine_answer_feed(struct engine_answer *a, const char *bytes, size_t len, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < len && rc == 0;) {
		if (a->state == IN_STRING) {
			i += take_string(a, bytes + i, len - i, &rc, e);
		} else if (a->state == IN_NUMBER || a->state == IN_LITERAL) {
			i += take_word(a, bytes + i, len - i, &rc, e);
		} else {
			a->n_bytes++;
			rc = take_char(a, bytes[i++], e);
		}
		if (rc == 0 && a->text.len > ANSWER_TOKEN_MAX)
			rc = refuse_json(a, "a token that is too long", e);
	}
	return rc;
}

int engine_answer_end(struct engine_answer *a, struct err *e)
{
	int rc = 0;
	if ((a->state == IN_NUMBER || a->state == IN_LITERAL) && a->depth == 0)
		rc = end_word(a, e);
	if (rc == 0 && a->state != AT_END)
		rc = a->n_bytes ? err_set(e, ERR_WORLD, "it ends after %llu bytes, too early",
					  (unsigned long long)a->n_bytes)
				: err_set(e, ERR_WORLD, "it is empty");
	return rc;
}

void engine_answer_finish(struct engine_answer *a)
{
	str_finish(&a->text);
	str_finish(&a->labels.text);
}

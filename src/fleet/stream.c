/* Parses JSON as it arrives, with one state for each place in the grammar. */
#include "fleet/stream.h"

#include <string.h>

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

void stream_start(struct stream *s, stream_take *take, void *context)
{
	str_clear(&s->text);
	*s = (struct stream){ .take = take, .context = context, .text = s->text };
}

void stream_finish(struct stream *s)
{
	str_finish(&s->text);
}

static int refuse(const struct stream *s, const char *why, struct err *e)
{
	return err_set(e, ERR_WORLD, "it is not JSON: %s at byte %llu", why,
		(unsigned long long)s->n_bytes);
}

static int hand_on(struct stream *s, enum stream_token token, struct err *e)
{
	if (s->text.failed)
		return err_memory(e);
	int rc = s->take(s->context, token, str_text(&s->text), s->text.len, e);
	str_clear(&s->text);
	return rc;
}

/* What follows a complete value. */
static int after_value(const struct stream *s)
{
	return s->depth ? AT_COMMA_OR_END : AT_END;
}

static bool in_object(const struct stream *s)
{
	return s->depth && (s->objects >> (s->depth - 1) & 1);
}

static int open(struct stream *s, bool object, struct err *e)
{
	if (s->depth == STREAM_DEPTH)
		return refuse(s, "too deep", e);
	uint32_t bit = (uint32_t)1 << s->depth++;
	s->objects = object ? s->objects | bit : s->objects & ~bit;
	s->state = object ? AT_KEY_OR_END : AT_VALUE_OR_END;
	return hand_on(s, object ? STREAM_OBJECT : STREAM_ARRAY, e);
}

static int close(struct stream *s, bool object, struct err *e)
{
	if (s->depth == 0 || in_object(s) != object)
		return refuse(s, "a bracket that does not match", e);
	s->depth--;
	s->state = after_value(s);
	return hand_on(s, object ? STREAM_OBJECT_END : STREAM_ARRAY_END, e);
}

static int begin_value(struct stream *s, char c, struct err *e)
{
	if (c == '{' || c == '[')
		return open(s, c == '{', e);
	if (c == '"') {
		s->key = false;
		s->state = IN_STRING;
		return 0;
	}
	if (c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z'))
		return refuse(s, "no value", e);
	s->state = c >= 'a' ? IN_LITERAL : IN_NUMBER;
	str_add_bytes(&s->text, &c, 1);
	return 0;
}

/* Takes a character between tokens. */
static int take_between(struct stream *s, char c, struct err *e)
{
	if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
		return 0;
	switch (s->state) {
	case AT_VALUE_OR_END:
		if (c == ']')
			return close(s, false, e);
		return begin_value(s, c, e);
	case AT_VALUE:
		return begin_value(s, c, e);
	case AT_KEY_OR_END:
	case AT_KEY:
		if (c == '}' && s->state == AT_KEY_OR_END)
			return close(s, true, e);
		if (c != '"')
			return refuse(s, "no key", e);
		s->key = true;
		s->state = IN_STRING;
		return 0;
	case AT_COLON:
		s->state = AT_VALUE;
		return c == ':' ? 0 : refuse(s, "no colon", e);
	case AT_COMMA_OR_END:
		if (c == '}' || c == ']')
			return close(s, c == '}', e);
		s->state = in_object(s) ? AT_KEY : AT_VALUE;
		return c == ',' ? 0 : refuse(s, "no comma", e);
	default:
		return refuse(s, "more after the end", e);
	}
}

static int end_string(struct stream *s, struct err *e)
{
	s->state = s->key ? AT_COLON : after_value(s);
	return hand_on(s, s->key ? STREAM_KEY : STREAM_STRING, e);
}

/* Adds a code point as UTF-8. */
static void add_code(struct stream *s, unsigned code)
{
	char utf8[4];
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char heads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (size_t i = n; i-- > 1; code >>= 6)
		utf8[i] = (char)(0x80 | (code & 0x3f));
	utf8[0] = (char)(heads[n] | code);
	str_add_bytes(&s->text, utf8, n);
}

static int end_unicode(struct stream *s, struct err *e)
{
	bool low = s->code >= 0xdc00 && s->code < 0xe000;
	s->state = IN_STRING;
	if (s->code == 0 || low != (s->high != 0))
		return refuse(s, "an escape that is no character", e);
	if (s->code >= 0xd800 && s->code < 0xdc00) {
		s->high = s->code;
		s->state = IN_PAIR;
		return 0;
	}
	if (low)
		s->code = 0x10000 + ((s->high - 0xd800) << 10) + (s->code - 0xdc00);
	s->high = 0;
	add_code(s, s->code);
	return 0;
}

static int take_digit(struct stream *s, char c, struct err *e)
{
	const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
	if (!at)
		return refuse(s, "a wrong escape", e);
	s->code = s->code << 4 | (unsigned)(at - digits);
	return --s->digits ? 0 : end_unicode(s, e);
}

static int take_escape(struct stream *s, char c, struct err *e)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = c ? strchr(from, c) : NULL;
	if (c == 'u') {
		s->digits = 4;
		s->code = 0;
		s->state = IN_UNICODE;
		return 0;
	}
	if (!at)
		return refuse(s, "a wrong escape", e);
	str_add_bytes(&s->text, &to[at - from], 1);
	s->state = IN_STRING;
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

static int end_word(struct stream *s, struct err *e)
{
	const char *text = str_text(&s->text);
	bool number = s->state == IN_NUMBER;
	bool good = number ? is_number(text)
			   : strcmp(text, "true") == 0 || strcmp(text, "false") == 0 ||
				     strcmp(text, "null") == 0;
	if (!good)
		return refuse(s, number ? "a wrong number" : "a wrong word", e);
	s->state = after_value(s);
	return hand_on(s, number ? STREAM_NUMBER : STREAM_LITERAL, e);
}

static bool is_of_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' ||
	       c == '+' || c == 'E';
}

/* Keeps the first `n` of `len` bytes as text. False: the byte after them has not arrived
 * yet. */
static bool keep_text(struct stream *s, const char *bytes, size_t n, size_t len)
{
	str_add_bytes(&s->text, bytes, n);
	s->n_bytes += n + (n < len);
	return n < len;
}

/* Takes the characters of a number or a word, and the character that ends it. Returns the
 * number of bytes. */
static size_t take_word(struct stream *s, const char *bytes, size_t len, int *rc, struct err *e)
{
	size_t n = 0;
	while (n < len && is_of_word(bytes[n]))
		n++;
	if (!keep_text(s, bytes, n, len))
		return n;
	*rc = end_word(s, e);
	if (*rc == 0)
		*rc = take_between(s, bytes[n], e);
	return n + 1;
}

static int take_char(struct stream *s, char c, struct err *e)
{
	switch (s->state) {
	case IN_ESCAPE:
		return take_escape(s, c, e);
	case IN_UNICODE:
		return take_digit(s, c, e);
	case IN_PAIR:
		s->state = IN_PAIR_U;
		return c == '\\' ? 0 : refuse(s, "half a surrogate pair", e);
	case IN_PAIR_U:
		return c == 'u' ? take_escape(s, c, e) : refuse(s, "half a surrogate pair", e);
	default:
		return take_between(s, c, e);
	}
}

/* Takes the plain part of a string, and the character that ends it. Returns the number of
 * bytes. */
static size_t take_string(
	struct stream *s, const char *bytes, size_t len, int *rc, struct err *e)
{
	size_t n = 0;
	while (n < len && bytes[n] != '"' && bytes[n] != '\\' && (unsigned char)bytes[n] >= 32)
		n++;
	if (!keep_text(s, bytes, n, len))
		return n;
	if (bytes[n] == '"')
		*rc = end_string(s, e);
	else if (bytes[n] == '\\')
		s->state = IN_ESCAPE;
	else
		*rc = refuse(s, "a control character in a string", e);
	return n + 1;
}

int stream_feed(struct stream *s, const char *bytes, size_t len, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < len && rc == 0;) {
		if (s->state == IN_STRING) {
			i += take_string(s, bytes + i, len - i, &rc, e);
		} else if (s->state == IN_NUMBER || s->state == IN_LITERAL) {
			i += take_word(s, bytes + i, len - i, &rc, e);
		} else {
			s->n_bytes++;
			rc = take_char(s, bytes[i++], e);
		}
		if (rc == 0 && s->text.len > STREAM_TOKEN_MAX)
			rc = refuse(s, "a token that is too long", e);
	}
	return rc;
}

int stream_end(struct stream *s, struct err *e)
{
	int rc = 0;
	if ((s->state == IN_NUMBER || s->state == IN_LITERAL) && s->depth == 0)
		rc = end_word(s, e);
	if (rc == 0 && s->state != AT_END)
		rc = s->n_bytes ? err_set(e, ERR_WORLD, "it ends after %llu bytes, too early",
					  (unsigned long long)s->n_bytes)
				: err_set(e, ERR_WORLD, "it is empty");
	return rc;
}

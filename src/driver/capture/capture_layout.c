/* Walks along a layout, member by member. */
#include "driver/capture/capture_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One member. */
struct member {
	char kind;
	size_t size, offset;
};

struct walk {
	const char *layout;
	size_t offset;
};

static size_t size_of(char kind)
{
	if (kind == 'b')
		return 1;
	return kind == 'Q' || kind == 'd' ? 8 : 4;
}

/* Steps to the next member; false: there is none. */
static bool next(struct walk *w, struct member *m)
{
	if (!*w->layout)
		return false;
	m->kind = *w->layout++;
	bool array = m->kind == 't' || m->kind == 'x';
	m->size = array ? 0 : size_of(m->kind);
	while (array && *w->layout >= '0' && *w->layout <= '9')
		m->size = m->size * 10 + (size_t)(*w->layout++ - '0');
	size_t align = array ? 1 : m->size;
	m->offset = (w->offset + align - 1) / align * align;
	w->offset = m->offset + m->size;
	return true;
}

size_t capture_layout_size(const char *layout)
{
	struct walk w = { layout, 0 };
	struct member m;
	size_t align = 1;
	while (next(&w, &m))
		if (m.kind != 't' && m.kind != 'x' && m.size > align)
			align = m.size;
	return (w.offset + align - 1) / align * align;
}

size_t capture_layout_numbers(const char *layout, const void *bytes, double *numbers)
{
	struct walk w = { layout, 0 };
	struct member m;
	size_t n = 0;
	while (next(&w, &m)) {
		const unsigned char *at = (const unsigned char *)bytes + m.offset;
		uint32_t u = 0;
		uint64_t q = 0;
		switch (m.kind) {
		case 'u':
		case 'i':
			memcpy(&u, at, sizeof(u));
			numbers[n++] = m.kind == 'i' ? (double)(int32_t)u : (double)u;
			break;
		case 'Q':
			memcpy(&q, at, sizeof(q));
			numbers[n++] = (double)q;
			break;
		case 'd':
			memcpy(&numbers[n++], at, sizeof(double));
			break;
		case 'b':
			numbers[n++] = *at;
			break;
		default:
			break;
		}
	}
	return n;
}

/* A quotation mark would end the text, so it is replaced. */
static void print_text(const char *bytes, size_t cap, struct str *out)
{
	char safe[4 * CAPTURE_LAYOUT_MAX + 1];
	str_escape(safe, sizeof(safe), bytes, strnlen(bytes, cap));
	str_add(out, " \"");
	for (const char *c = safe; *c; c++)
		if (*c == '"')
			str_add(out, "\\x22");
		else
			str_add_bytes(out, c, 1);
	str_add(out, "\"");
}

static void print_member(const struct member *m, const unsigned char *at, struct str *out)
{
	uint32_t u = 0;
	int32_t i = 0;
	uint64_t q = 0;
	double d = 0;
	char number[32];
	switch (m->kind) {
	case 'u':
		memcpy(&u, at, sizeof(u));
		str_addf(out, " %" PRIu32, u);
		break;
	case 'i':
		memcpy(&i, at, sizeof(i));
		str_addf(out, " %" PRId32, i);
		break;
	case 'Q':
		memcpy(&q, at, sizeof(q));
		str_addf(out, " %" PRIu64, q);
		break;
	case 'd':
		memcpy(&d, at, sizeof(d));
		str_exact_number(number, sizeof(number), d);
		str_addf(out, " %s", number[0] ? number : "none");
		break;
	case 'b':
		str_addf(out, " %u", *at);
		break;
	case 't':
		print_text((const char *)at, m->size, out);
		break;
	case 'x':
		str_add(out, " x");
		for (size_t k = 0; k < m->size; k++)
			str_addf(out, "%02x", at[k]);
		break;
	default:
		break;
	}
}

void capture_layout_print(const char *layout, const void *bytes, struct str *out)
{
	struct walk w = { layout, 0 };
	struct member m;
	while (next(&w, &m))
		print_member(&m, (const unsigned char *)bytes + m.offset, out);
}

/* The word after blanks; false: there is none, or it is too long. */
static bool take_word(const char **text, char *word, size_t cap)
{
	const char *at = *text + strspn(*text, " ");
	size_t len = strcspn(at, " ");
	if (len == 0 || len >= cap)
		return false;
	memcpy(word, at, len);
	word[len] = '\0';
	*text = at + len;
	return true;
}

static bool read_whole(const char *word, uint64_t max, uint64_t *value)
{
	char *end = NULL;
	if (word[0] < '0' || word[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(word, &end, 10);
	return !*end && errno == 0 && *value <= max;
}

static bool read_signed(const char *word, int32_t *value)
{
	uint64_t size = 0;
	bool less = word[0] == '-';
	if (!read_whole(word + less, (uint64_t)INT32_MAX + less, &size))
		return false;
	*value = (int32_t)(less ? -(int64_t)size : (int64_t)size);
	return true;
}

static bool read_double(const char *word, double *value)
{
	char *end = NULL;
	*value = NAN;
	if (strcmp(word, "none") == 0)
		return true;
	if (word[strspn(word, "0123456789+-.eE")])
		return false;
	*value = strtod(word, &end);
	return end != word && !*end && isfinite(*value);
}

static bool read_text(const char **text, size_t cap, unsigned char *to)
{
	const char *at = *text + strspn(*text, " ");
	const char *end = *at == '"' ? strchr(at + 1, '"') : NULL;
	size_t len = end ? (size_t)(end - at - 1) : 0;
	if (!end || (end[1] && end[1] != ' '))
		return false;
	if (to) {
		len = len < cap ? len : cap - 1;
		memset(to, 0, cap);
		memcpy(to, at + 1, len);
	}
	*text = end + 1;
	return true;
}

static int digit_of(char c)
{
	const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c) : NULL;
	return found ? (int)(found - digits) : -1;
}

static bool read_bytes(const char *word, size_t size, unsigned char *to)
{
	if (word[0] != 'x' || strlen(word) != 1 + 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		int high = digit_of(word[1 + 2 * i]), low = digit_of(word[2 + 2 * i]);
		if (high < 0 || low < 0)
			return false;
		if (to)
			to[i] = (unsigned char)(high * 16 + low);
	}
	return true;
}

static bool read_number(const struct member *m, const char *word, unsigned char *to)
{
	uint64_t q = 0;
	uint32_t u = 0;
	int32_t i = 0;
	double d = 0;
	unsigned char b = 0;
	const void *from = &q;
	bool good = false;
	if (m->kind == 'i') {
		good = read_signed(word, &i);
		from = &i;
	} else if (m->kind == 'd') {
		good = read_double(word, &d);
		from = &d;
	} else if (m->kind == 'Q') {
		good = read_whole(word, UINT64_MAX, &q);
	} else if (m->kind == 'u') {
		good = read_whole(word, UINT32_MAX, &q);
		u = (uint32_t)q;
		from = &u;
	} else {
		good = read_whole(word, UINT8_MAX, &q);
		b = (unsigned char)q;
		from = &b;
	}
	if (good && to)
		memcpy(to, from, m->size);
	return good;
}

bool capture_layout_read(const char *layout, const char **text, void *bytes)
{
	struct walk w = { layout, 0 };
	struct member m;
	while (next(&w, &m)) {
		char word[2 * CAPTURE_LAYOUT_MAX + 2];
		unsigned char *to = bytes ? (unsigned char *)bytes + m.offset : NULL;
		if (m.kind == 'V')
			continue;
		if (m.kind == 't') {
			if (!read_text(text, m.size, to))
				return false;
			continue;
		}
		if (!take_word(text, word, sizeof(word)))
			return false;
		if (m.kind == 'x' ? !read_bytes(word, m.size, to) : !read_number(&m, word, to))
			return false;
	}
	return true;
}

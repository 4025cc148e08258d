/* Growing strings, and escaping of bytes that could change a terminal. */
#include "base/str.h"

#include "base/base.h"

/* Bytes added between two calls of must_end(). */
enum { LOOK_BYTES = 4096 };

/* Makes room for `more` bytes, unless the limit forbids it. */
static bool reserve(struct str *s, size_t more)
{
	const struct str_limit *l = s->limit;
	size_t len = s->len + more;
	if (!l && !s->failed && more < s->cap - s->len)
		return true;
	s->failed = s->failed || more >= SIZE_MAX / 2 - s->len || (l && len > l->bytes) ||
		    (l && s->len / LOOK_BYTES != len / LOOK_BYTES && l->must_end(l->context)) ||
		    !array_reserve(&s->data, &s->cap, len + 1);
	return !s->failed;
}

void str_add_bytes(struct str *s, const char *bytes, size_t len)
{
	if (!reserve(s, len))
		return;
	if (len)
		memcpy(s->data + s->len, bytes, len);
	s->len += len;
	s->data[s->len] = '\0';
}

void str_add(struct str *s, const char *text)
{
	str_add_bytes(s, text, strlen(text));
}

void str_addf(struct str *s, const char *format, ...)
{
	va_list args;
	if (s->failed)
		return;
	va_start(args, format);
	size_t room = s->cap - s->len;
	int n = vsnprintf(room ? s->data + s->len : NULL, room, format, args);
	va_end(args);
	if (n < 0 || !reserve(s, (size_t)n)) {
		s->failed = true;
		if (room)
			s->data[s->len] = '\0';
		return;
	}
	if ((size_t)n >= room) { /* it did not fit */
		va_start(args, format);
		vsnprintf(s->data + s->len, (size_t)n + 1, format, args);
		va_end(args);
	}
	s->len += (size_t)n;
}

void str_add_repeat(struct str *s, const char *text, size_t times)
{
	size_t len = times ? strlen(text) : 0;
	if (len == 0)
		return;
	if (times > SIZE_MAX / 2 / len) {
		s->failed = true;
		return;
	}
	if (!reserve(s, len * times))
		return;
	if (len == 1) /* mostly blanks */
		memset(s->data + s->len, text[0], times);
	for (size_t i = 0; len > 1 && i < times; i++)
		memcpy(s->data + s->len + i * len, text, len);
	s->len += len * times;
	s->data[s->len] = '\0';
}

struct brief str_brief(const char *format, ...)
{
	struct brief b;
	va_list args;
	va_start(args, format);
	vsnprintf(b.text, sizeof(b.text), format, args);
	va_end(args);
	return b;
}

struct brief str_whole(int64_t number, const char *unit)
{
	char digits[20];
	size_t n = 0, len = number < 0;
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
	struct brief b;
	do
		digits[n++] = (char)('0' + left % 10);
	while (left /= 10);
	b.text[0] = '-';
	while (n)
		b.text[len++] = digits[--n];
	str_copy(b.text + len, sizeof(b.text) - len, unit);
	return b;
}

const char *str_text(const struct str *s)
{
	return s->data ? s->data : "";
}

void str_clear(struct str *s)
{
	s->len = 0;
	s->failed = false;
	if (s->data)
		s->data[0] = '\0';
}

void str_finish(struct str *s)
{
	free(s->data);
	*s = (struct str){ 0 };
}

uint64_t str_sum(const char *text)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		sum = (sum ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return sum;
}

bool str_ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);
	return len > n && strcmp(text + len - n, end) == 0;
}

int str_place(const char *const *table, int n, const char *text)
{
	int i = 0;
	while (i < n && (!text || strcmp(table[i], text) != 0))
		i++;
	return i;
}

bool str_copy(char *dst, size_t cap, const char *text)
{
	size_t len = strlen(text);
	size_t n = len < cap ? len : cap - 1;
	memcpy(dst, text, n);
	dst[n] = '\0';
	return n == len;
}

size_t str_utf8_char(const char *bytes, size_t len, unsigned *code_point)
{
	static const unsigned smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	if (len == 0)
		return 0;
	unsigned char b = (unsigned char)bytes[0];
	size_t n = b < 0x80 ? 1 : (b & 0xE0) == 0xC0 ? 2 : (b & 0xF0) == 0xE0 ? 3 : 4;
	if (n == 4 && (b & 0xF8) != 0xF0)
		return 0;
	if (n > len)
		return 0;
	unsigned c = n == 1 ? b : b & (0xFFu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		unsigned char next = (unsigned char)bytes[i];
		if ((next & 0xC0) != 0x80)
			return 0;
		c = c << 6 | (next & 0x3Fu);
	}
	if (c < smallest[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
		return 0;
	*code_point = c;
	return n;
}

/* Characters that are valid but can hide or reorder the text around them, and code points that
 * are not characters: XML forbids some of them. */
static bool is_unsafe(unsigned c)
{
	return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C ||
	       (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
	       (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) ||
	       (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE ||
	       (c >= 0xE0000 && c <= 0xE0FFF);
}

size_t str_escape(char *dst, size_t cap, const char *bytes, size_t len)
{
	size_t out = 0;
	for (size_t i = 0; i < len;) {
		unsigned c = 0;
		size_t n = str_utf8_char(bytes + i, len - i, &c);
		char piece[20];
		size_t piece_len = 0;
		if (n == 0 || is_unsafe(c)) {
			n = n ? n : 1;
			for (size_t k = 0; k < n; k++)
				piece_len += (size_t)snprintf(piece + piece_len,
					sizeof(piece) - piece_len, "\\x%02X",
					(unsigned)(unsigned char)bytes[i + k]);
		} else {
			piece_len = n;
			memcpy(piece, bytes + i, n);
		}
		if (out + piece_len >= cap)
			break;
		memcpy(dst + out, piece, piece_len);
		out += piece_len;
		i += n;
	}
	if (cap)
		dst[out] = '\0';
	return out;
}

void str_exact_number(char *dst, size_t cap, double number)
{
	char text[32] = "";
	/* Every double is exact with 17 digits; 15 are enough for most that people write. */
	for (int digits = 15; isfinite(number) && digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	str_copy(dst, cap, text);
}

/* wcwidth() depends on the locale; this covers the characters that reports contain. */
static size_t columns_of(unsigned c)
{
	bool combining = (c >= 0x300 && c <= 0x36F) || (c >= 0xFE00 && c <= 0xFE0F);
	if (combining)
		return 0;
	bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
		    (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
		    (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
		    (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
		    (c >= 0x20000 && c <= 0x3FFFD);
	return wide ? 2 : 1;
}

size_t str_plain(const char *text)
{
	size_t n = 0;
	while (text[n] >= ' ' && text[n] < 0x7F)
		n++;
	return n;
}

size_t str_columns(const char *text)
{
	size_t plain = str_plain(text);
	size_t len = plain + strlen(text + plain), columns = plain;
	for (size_t i = plain; i < len;) {
		unsigned c = 0;
		size_t n = str_utf8_char(text + i, len - i, &c);
		columns += n ? columns_of(c) : 1;
		i += n ? n : 1;
	}
	return columns;
}

/* Walks along a layout, member by member. */
#include "driver/capture/capture_layout.h"

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

/* A whole number; one with a sign as its two's complement. */
static uint64_t load(const struct member *m, const unsigned char *at)
{
	uint32_t u = 0;
	uint64_t q = 0;
	if (m->size == 8)
		memcpy(&q, at, sizeof(q));
	else if (m->size == 4)
		memcpy(&u, at, sizeof(u));
	else
		u = *at;
	return m->size == 8 ? q : m->kind == 'i' ? (uint64_t)(int32_t)u : u;
}

size_t capture_layout_numbers(const char *layout, const void *bytes, double *numbers)
{
	struct walk w = { layout, 0 };
	struct member m;
	size_t n = 0;
	while (next(&w, &m)) {
		const unsigned char *at = (const unsigned char *)bytes + m.offset;
		if (m.kind == 'd')
			memcpy(&numbers[n++], at, sizeof(double));
		else if (m.kind == 'i')
			numbers[n++] = (double)(int64_t)load(&m, at);
		else if (strchr("uQb", m.kind))
			numbers[n++] = (double)load(&m, at);
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
	double d = 0;
	char number[32];
	switch (m->kind) {
	case 'V':
	case 'v':
		break;
	case 'i':
		str_addf(out, " %" PRId64, (int64_t)load(m, at));
		break;
	case 'd':
		memcpy(&d, at, sizeof(d));
		str_exact_number(number, sizeof(number), d);
		str_addf(out, " %s", number[0] ? number : "none");
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
		str_addf(out, " %" PRIu64, load(m, at));
	}
}

void capture_layout_print(const char *layout, const void *bytes, struct str *out)
{
	struct walk w = { layout, 0 };
	struct member m;
	while (next(&w, &m))
		print_member(&m, (const unsigned char *)bytes + m.offset, out);
}

const char *capture_layout_word(const char **text, size_t *len, bool *quoted)
{
	const char *word = *text + strspn(*text, " ");
	*quoted = *word == '"';
	if (*quoted)
		word++;
	*len = strcspn(word, *quoted ? "\"" : " \"");
	const char *end = word + *len;
	if (*quoted ? *end != '"' : *len == 0)
		return NULL;
	end += *quoted;
	if (*end && *end != ' ')
		return NULL;
	*text = end;
	return word;
}

static bool read_whole(const char *word, size_t len, uint64_t most, uint64_t *value)
{
	char *end = NULL;
	if (len == 0 || word[0] < '0' || word[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(word, &end, 10);
	return end == word + len && errno == 0 && *value <= most;
}

static bool read_double(const char *word, size_t len, double *value)
{
	char *end = NULL;
	*value = NAN;
	if (len == 4 && memcmp(word, "none", len) == 0)
		return true;
	if (strspn(word, "0123456789+-.eE") != len)
		return false;
	*value = strtod(word, &end);
	return end == word + len && isfinite(*value);
}

static bool read_number(const struct member *m, const char *word, size_t len, unsigned char *to)
{
	bool less = m->kind == 'i' && word[0] == '-';
	uint64_t most = m->kind == 'i'	 ? (uint64_t)INT32_MAX + less
			: m->kind == 'Q' ? UINT64_MAX
			: m->kind == 'b' ? UINT8_MAX
					 : UINT32_MAX;
	uint64_t q = 0;
	double d = 0;
	bool good = m->kind == 'd' ? read_double(word, len, &d)
				   : read_whole(word + less, len - less, most, &q);
	if (less)
		q = -q;
	uint32_t u = (uint32_t)q;
	unsigned char b = (unsigned char)q;
	const void *from = m->kind == 'd' ? (const void *)&d
			   : m->size == 8 ? (const void *)&q
			   : m->size == 4 ? (const void *)&u
					  : &b;
	if (good && to)
		memcpy(to, from, m->size);
	return good;
}

static int digit_of(char c)
{
	const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c) : NULL;
	return found ? (int)(found - digits) : -1;
}

static bool read_bytes(const char *word, size_t len, size_t size, unsigned char *to)
{
	if (len != 1 + 2 * size || word[0] != 'x')
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

bool capture_layout_read(const char *layout, const char **text, void *bytes)
{
	struct walk w = { layout, 0 };
	struct member m;
	while (next(&w, &m)) {
		unsigned char *to = bytes ? (unsigned char *)bytes + m.offset : NULL;
		size_t len;
		bool quoted;
		if (m.kind == 'V' || m.kind == 'v')
			continue;
		const char *word = capture_layout_word(text, &len, &quoted);
		if (!word || quoted != (m.kind == 't'))
			return false;
		if (m.kind == 't' && to) {
			memset(to, 0, m.size);
			memcpy(to, word, len < m.size ? len : m.size - 1);
		}
		if (m.kind == 'x' && !read_bytes(word, len, m.size, to))
			return false;
		if (m.kind != 't' && m.kind != 'x' && !read_number(&m, word, len, to))
			return false;
	}
	return true;
}

const char *capture_layout_of_row(const char *layout, const char *row)
{
	static const char *const lists[] = { "uQuuQ", "uQuu", "uQ" };
	bool varies = strcmp(layout, lists[0]) == 0;
	for (size_t i = 0; varies && i < 3; i++) {
		const char *end = row;
		layout = lists[i];
		if (capture_layout_read(layout, &end, NULL) && !end[strspn(end, " ")])
			break;
	}
	return layout;
}

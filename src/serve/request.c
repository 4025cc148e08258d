/* Parses the target of a request: path, query, percent-encoding. */
#include "serve/request.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Whether the text can be shown and compared: valid UTF-8 without control characters. */
static bool is_plain(const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		unsigned code_point = 0;
		size_t n = str_utf8_char(text + at, len - at, &code_point);
		if (n == 0 || code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0))
			return false;
		at += n;
	}
	return true;
}

/* A part of the target. */
struct encoded {
	const char *bytes;
	size_t len;
	bool query; /* a plus means a blank */
};

/* Decodes a part of the target into the arena. */
static int decode(
	struct request *q, const struct encoded *from, const char **decoded, struct err *e)
{
	const char *bytes = from->bytes;
	size_t len = from->len;
	char *dst = arena_take(&q->texts, len + 1);
	size_t n = 0;
	if (!dst)
		return err_memory(e);
	for (size_t at = 0; at < len; at++, n++) {
		int high = -1, low = -1;
		dst[n] = from->query && bytes[at] == '+' ? ' ' : bytes[at];
		if (bytes[at] != '%')
			continue;
		if (at + 2 < len) {
			high = hex_digit(bytes[at + 1]);
			low = hex_digit(bytes[at + 2]);
		}
		if (high < 0 || low < 0)
			return err_set(
				e, ERR_USAGE, "bad URL: '%%' needs two hexadecimal digits");
		dst[n] = (char)(high * 16 + low);
		at += 2;
	}
	dst[n] = '\0';
	*decoded = dst;
	if (!is_plain(dst, n))
		return err_set(e, ERR_USAGE, "bad URL: control characters, or not UTF-8");
	return 0;
}

static int add_part(struct request *q, const char *bytes, size_t len, struct err *e)
{
	if (q->n_parts == REQUEST_MAX_PARTS)
		return err_set(e, ERR_USAGE, "bad URL: the path has too many parts");
	const struct encoded part_bytes = { bytes, len, false };
	int rc = decode(q, &part_bytes, &q->parts[q->n_parts], e);
	if (rc)
		return rc;
	const char *part = q->parts[q->n_parts++];
	if (strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
		return err_set(e, ERR_USAGE, "bad URL: the path must not contain '%s'", part);
	return 0;
}

static int read_path(struct request *q, const char *path, size_t len, struct err *e)
{
	if (len == 0 || path[0] != '/')
		return err_set(e, ERR_USAGE, "bad URL: the path must begin with a slash");
	for (size_t at = 1; at < len;) {
		const char *slash = memchr(path + at, '/', len - at);
		size_t part = slash ? (size_t)(slash - path) - at : len - at;
		int rc = add_part(q, path + at, part, e);
		if (rc)
			return rc;
		at += part + 1;
	}
	return 0;
}

static int add_param(struct request *q, const char *bytes, size_t len, struct err *e)
{
	const char *equals = memchr(bytes, '=', len);
	size_t name = equals ? (size_t)(equals - bytes) : len;
	if (q->n_params == REQUEST_MAX_PARAMS)
		return err_set(e, ERR_USAGE, "bad URL: too many parameters");
	struct request_param *p = &q->params[q->n_params++];
	p->name = p->value = "";
	const struct encoded written = { bytes, name, true };
	const struct encoded value = { bytes + name + 1, equals ? len - name - 1 : 0, true };
	int rc = decode(q, &written, &p->name, e);
	return rc || !equals ? rc : decode(q, &value, &p->value, e);
}

static int read_query(struct request *q, const char *query, size_t len, struct err *e)
{
	for (size_t at = 0; at < len;) {
		const char *and = memchr(query + at, '&', len - at);
		size_t item = and? (size_t)(and-query) - at : len - at;
		int rc = item ? add_param(q, query + at, item, e) : 0;
		if (rc)
			return rc;
		at += item + 1;
	}
	return 0;
}

int request_parse(struct request *q, const char *target, size_t len, struct err *e)
{
	*q = (struct request){ 0 };
	if (len > REQUEST_MAX_BYTES)
		return err_set(
			e, ERR_USAGE, "bad URL: longer than %d bytes", (int)REQUEST_MAX_BYTES);
	const char *mark = memchr(target, '?', len);
	size_t path = mark ? (size_t)(mark - target) : len;
	int rc = read_path(q, target, path, e);
	return rc || !mark ? rc : read_query(q, mark + 1, len - path - 1, e);
}

void request_finish(struct request *q)
{
	arena_finish(&q->texts);
}

const char *request_param(const struct request *q, const char *name)
{
	for (size_t i = 0; i < q->n_params; i++)
		if (strcmp(q->params[i].name, name) == 0)
			return q->params[i].value;
	return NULL;
}

/* The first of our types in the header counts: clients list their preferred type first, and
 * programs name only one. Quality values are not needed to distinguish a browser from a
 * program. */
enum media request_accept(const char *header)
{
	static const struct {
		const char *name;
		enum media media;
	} types[] = {
		{ "text/html", MEDIA_HTML },
		{ "application/json", MEDIA_JSON },
		{ "text/csv", MEDIA_CSV },
		{ "text/plain", MEDIA_TEXT },
	};
	for (const char *at = header ? header : ""; *at;) {
		at += strspn(at, " \t,");
		size_t len = strcspn(at, ",; \t");
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			if (len == strlen(types[i].name) &&
				strncasecmp(at, types[i].name, len) == 0)
				return types[i].media;
		at += strcspn(at, ",");
	}
	return MEDIA_JSON;
}

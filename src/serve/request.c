/* Parses the target of a request: path, query, percent-encoding; reads parameters by the option
 * tables of the commands. */
#include "serve/request.h"

#include "render/report_formats.h"

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

/* Decodes a part of the target into the arena; `query`: a plus means a blank. NULL: see `e`. */
static const char *decode(
	struct request *q, const char *bytes, size_t len, bool query, struct err *e)
{
	char *dst = arena_take(&q->texts, len + 1);
	size_t n = 0;
	if (!dst) {
		err_memory(e);
		return NULL;
	}
	for (size_t at = 0; at < len; at++, n++) {
		dst[n] = query && bytes[at] == '+' ? ' ' : bytes[at];
		if (bytes[at] != '%')
			continue;
		int high = at + 2 < len ? hex_digit(bytes[at + 1]) : -1;
		int low = at + 2 < len ? hex_digit(bytes[at + 2]) : -1;
		if (high < 0 || low < 0) {
			err_set(e, ERR_USAGE, "bad URL: '%%' needs two hexadecimal digits");
			return NULL;
		}
		dst[n] = (char)(high * 16 + low);
		at += 2;
	}
	dst[n] = '\0';
	if (is_plain(dst, n))
		return dst;
	err_set(e, ERR_USAGE, "bad URL: control characters, or not UTF-8");
	return NULL;
}

static int read_path(struct request *q, const char *path, size_t len, struct err *e)
{
	if (len == 0 || path[0] != '/')
		return err_set(e, ERR_USAGE, "bad URL: the path must begin with a slash");
	for (size_t at = 1; at < len;) {
		const char *slash = memchr(path + at, '/', len - at);
		size_t n = slash ? (size_t)(slash - path) - at : len - at;
		if (q->n_parts == REQUEST_MAX_PARTS)
			return err_set(e, ERR_USAGE, "bad URL: the path has too many parts");
		const char *part = decode(q, path + at, n, false, e);
		if (!part)
			return e->code;
		q->parts[q->n_parts++] = part;
		if (strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
			return err_set(
				e, ERR_USAGE, "bad URL: the path must not contain '%s'", part);
		at += n + 1;
	}
	return 0;
}

static int add_param(struct request *q, const char *bytes, size_t len, struct err *e)
{
	const char *equals = memchr(bytes, '=', len);
	size_t n = equals ? (size_t)(equals - bytes) : len;
	if (q->n_params == REQUEST_MAX_PARAMS)
		return err_set(e, ERR_USAGE, "bad URL: too many parameters");
	const char *name = decode(q, bytes, n, true, e);
	const char *value = name && equals ? decode(q, equals + 1, len - n - 1, true, e) : "";
	q->params[q->n_params++] =
		(struct request_param){ name ? name : "", value ? value : "" };
	return name && value ? 0 : e->code;
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

int request_read_present(struct present *p, const struct request *q, int wait_ms, struct err *e)
{
	const struct store_list *stores = q->world->stores;
	int rc = 0;
	for (size_t i = 0; i < stores->n && rc == 0; i++)
		rc = present_store_add(p, stores->paths[i], q->now_ms, wait_ms, e);
	return rc;
}

/* The first of our types in the header counts: clients put what they prefer first, and programs
 * name only one. Quality values are not needed to distinguish a browser from a program. */
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

int request_read(
	const struct request *q, const struct option_row *rows, void *values, struct err *e)
{
	for (size_t i = 0; i < q->n_params; i++) {
		const struct written as = { q->params[i].name, q->params[i].value };
		const struct option_row *row = rows;
		while (row->name && strcmp(row->name, as.name) != 0)
			row++;
		int rc = row->name ? options_set_one(row, &as, values, e) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

#define AT(member) .offset = offsetof(struct report_params, member)
#define ONLY(name_, kind_)                                                                     \
	{                                                                                      \
		.kind = OPTION_LIST, .name = name_, AT(words.only.lists[kind_])                \
	}
static const struct option_row report_rows[] = {
	{ .kind = OPTION_TEXT, .name = "since", .arg = "TIME", AT(words.window.since) },
	{ .kind = OPTION_TEXT, .name = "until", .arg = "TIME", AT(words.window.until) },
	{ .kind = OPTION_TEXT, .name = "last", .arg = "TIME", AT(words.window.last) },
	{ .kind = OPTION_CHOICE, .name = "utc", .choices = "1|0", AT(utc) },
	{ .kind = OPTION_TEXT, .name = "by", .arg = "WHAT", AT(words.by) },
	ONLY("user", ONLY_USER),
	ONLY("group", ONLY_GROUP),
	ONLY("notebook", ONLY_NOTEBOOK),
	ONLY("job", ONLY_JOB),
	ONLY("card", ONLY_CARD),
	ONLY("host", ONLY_HOST),
	ONLY("model", ONLY_MODEL),
	{ .kind = OPTION_CHOICE, .name = "sort", .choices = ORDER_CHOICES, AT(words.sort) },
	{ .kind = OPTION_MAYBE, .name = "compare", AT(words.compare) },
	{ .kind = OPTION_COUNT, .name = "top", AT(words.top), .max = 1e9 },
	{ .kind = OPTION_COUNT, .name = "longest", AT(words.longest), .max = 1e9 },
	{ .kind = OPTION_CHOICE, .name = "table", .choices = REPORT_TABLE_CHOICES, AT(table) },
	{ 0 },
};

int request_read_report(
	struct report_params *p, const struct request *q, bool people, struct err *e)
{
	const struct serve_world *world = q->world;
	const struct config *c = world->config;
	*p = (struct report_params){ .words = REPORT_WORDS_NONE };
	if (request_read(q, report_rows, p, e))
		return e->code;
	/* A form sends all of its fields: an empty one counts as not given. */
	const char **texts[] = { &p->words.window.since, &p->words.window.until,
		&p->words.window.last, &p->words.by };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (*texts[i] && !**texts[i])
			*texts[i] = NULL;
	for (size_t i = 0; i < RESTRICTIONS; i++) {
		struct text_list *list = &p->words.only.lists[i];
		size_t n = 0;
		for (size_t k = 0; k < list->n; k++)
			if (*list->items[k])
				list->items[n++] = list->items[k];
		list->n = n;
	}
	/* Limits the rows: a larger number would only keep the server busy. */
	if (p->words.longest > REPORT_ROWS)
		p->words.longest = REPORT_ROWS;
	if (p->words.top > REPORT_ROWS || p->words.top == 0 || (p->words.top < 0 && !people))
		p->words.top = REPORT_ROWS;
	p->words.people = people;
	p->words.utc = p->utc ? *p->utc == '1' : world->utc;
	if (report_ask_check_groups(&p->words, c, e) ||
		report_ask(&p->asked, &p->words, q->now_ms, e))
		return e->code;
	str_escape(p->currency, sizeof(p->currency), c->currency, strlen(c->currency));
	p->asked.request.currency = p->currency;
	p->asked.request.most = REPORT_ROWS;
	p->asked.question.paths = (const char *const *)world->stores->paths;
	p->asked.question.n_paths = world->stores->n;
	p->asked.question.stop = q->stop;
	p->prices = (struct report_prices){ NAN, &c->prices };
	report_ask_configure(&p->asked.question, &p->asked.request, c, &p->prices);
	return 0;
}

void request_target_shown(char *dst, size_t cap, const char *target)
{
	size_t n = 0, name = strcspn(target, "?");
	for (size_t at = 0; target[at] && n + 1 < cap;) {
		size_t take = n + name < cap ? name : cap - 1 - n;
		memcpy(dst + n, target + at, take);
		n += take;
		at += name;
		if (target[at] == '=')
			at += strcspn(target + at, "&");
		if (target[at] && n + 1 < cap)
			dst[n++] = target[at++];
		name = strcspn(target + at, "=&");
	}
	dst[n] = '\0';
}

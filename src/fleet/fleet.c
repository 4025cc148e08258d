/* Builds the queries of a fleet and sends them. */
#include "fleet/fleet.h"

/* VictoriaMetrics accepts queries of up to 16 KiB. */
enum { MATCHER_MAX = 6000 };

static int read_match(struct fleet *f, const char *match, struct err *e)
{
	size_t len = match ? strlen(match) : 0;
	bool open = len && *match == '{';
	if (open != (len && match[len - 1] == '}') || (open && len < 2) ||
		(len && strpbrk(match, "\n\r")))
		return err_set(
			e, ERR_USAGE, "--match looks like '{job=\"gua\"}', not '%s'", match);
	f->matchers = len ? strndup(match + open, len - 2 * open) : strdup("");
	return f->matchers ? 0 : err_memory(e);
}

static int read_labels(struct fleet *f, const char *labels, struct err *e)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	str_copy(f->by, sizeof(f->by), labels);
	for (const char *at = labels;; at++) {
		size_t len = strspn(at, letters);
		if (!len || f->n_labels == FLEET_LABELS || (at[len] && at[len] != ',') ||
			strlen(labels) >= sizeof(f->by))
			return err_set(e, ERR_USAGE,
				"--host-label is a label such as instance, or up to %d with "
				"commas, not '%s'",
				FLEET_LABELS, labels);
		f->labels[f->n_labels] = strndup(at, len);
		if (!f->labels[f->n_labels])
			return err_memory(e);
		f->n_labels++;
		at += len;
		if (!*at)
			return 0;
	}
}

int fleet_open(struct fleet *f, const struct client_options *o, struct err *e)
{
	*f = (struct fleet){ .timeout_ms = o->conf.timeout_ms };
	if (read_match(f, o->conf.match, e) || read_labels(f, o->conf.host_label, e))
		return e->code;
	return client_open(&f->client, o, e);
}

void fleet_close(struct fleet *f)
{
	for (size_t i = 0; i < f->n_labels; i++)
		free(f->labels[i]);
	free(f->matchers);
	free(f->narrow);
	client_close(f->client);
	*f = (struct fleet){ 0 };
}

int fleet_probe(struct fleet *f, struct err *e)
{
	struct client_request r[] = { { .path = "status/buildinfo", .may_fail = true },
		{ .path = "query", .may_fail = true } };
	const struct engine_answer *info = &r[0].answer;
	client_request_param(
		&r[1], "query", "now()"); /* only VictoriaMetrics has this function */
	int rc = client_run(f->client, r, 2, e);
	const char *name = *info->application ? info->application
			   : !r[1].refused    ? "VictoriaMetrics"
					      : "Prometheus or compatible, version";
	/* VictoriaMetrics reports no version, or that of a compatible Prometheus. */
	bool known = !r[0].refused && *info->version && r[1].refused;
	if (!known && r[1].refused && !*info->application)
		name = "Prometheus or compatible";
	snprintf(f->engine, sizeof(f->engine), "%s%s%s", name, known ? " " : "",
		known ? info->version : ", version not reported");
	client_request_finish(&r[0]);
	client_request_finish(&r[1]);
	return rc;
}

const char *fleet_select(struct batch *b, const char *family, const char *extra)
{
	const struct fleet *f = b->fleet;
	return arena_textf(&b->texts, "%s{%s%s%s%s}", family, f->narrow ? f->narrow : "",
		f->matchers, *f->matchers && *extra ? "," : "", extra);
}

int fleet_host(
	const struct fleet *f, const struct labels *l, char key[HOST_KEY_CAP], struct err *e)
{
	size_t len = 0;
	bool some = false;
	for (size_t i = 0; i < f->n_labels; i++) {
		const char *value = engine_answer_label(l, f->labels[i]);
		some |= *value != '\0';
		if (i && len + 1 < HOST_KEY_CAP)
			key[len++] = '/';
		len += str_escape(key + len, HOST_KEY_CAP - len, value, strlen(value));
	}
	if (some)
		return 0;
	return err_set(e, ERR_WORLD,
		"a series has no label %s; --host-label names the one that tells hosts apart",
		f->by);
}

int fleet_bound(const struct fleet *f, size_t n_hosts, struct err *e)
{
	enum { HOSTS_MAX = 1 << 17 };
	if (n_hosts <= HOSTS_MAX)
		return 0;
	return err_set(e, ERR_WORLD,
		"it has more than %d hosts; --host-label names the label that tells hosts "
		"apart (now %s), and --match chooses some",
		HOSTS_MAX, f->by);
}

const char *fleet_keep(struct batch *b, struct str *text)
{
	const char *kept = arena_text(&b->texts, str_text(text));
	b->texts.failed |= text->failed;
	str_finish(text);
	return kept ? kept : "";
}

const char *fleet_quote(struct batch *b, const char *text)
{
	struct str out = { 0 };
	str_add(&out, "\"");
	for (const char *at = text; *at; at++) {
		if (*at == '\\' || *at == '"')
			str_add(&out, "\\");
		str_add_bytes(&out, at, 1);
	}
	str_add(&out, "\"");
	return fleet_keep(b, &out);
}

/* Appends a text as a part of a regular expression within a string of PromQL. */
static void add_literal(struct str *out, const char *text)
{
	for (const char *at = text; *at; at++) {
		if (strchr("\\.+*?()|[]{}^$", *at))
			str_add(out, "\\\\");
		if (*at == '\\' || *at == '"')
			str_add(out, "\\");
		str_add_bytes(out, at, 1);
	}
}

int fleet_narrow(struct fleet *f, const char *const *labels, const struct text_list *hosts,
	struct err *e)
{
	const char *const own[] = { f->n_labels == 1 ? f->labels[0] : NULL, NULL };
	struct str names = { 0 }, all = { 0 };
	bool plain = true;
	char word[TEXT_LIST_WORD_CAP];
	for (size_t i = 0; i < hosts->n; i++)
		for (const char *at = hosts->items[i]; options_list_word(&at, word);) {
			for (const char *c = word; *c; c++)
				plain &= *c > ' ' && *c < 127 && *c != '\\'; /* not escaped */
			str_add(&names, names.len ? "|" : "");
			add_literal(&names, word);
		}
	for (const char *const *label = labels ? labels : own; *label && names.len && plain;
		label++)
		str_addf(&all, labels ? "%s=~\"%s|\"," : "%s=~\"(%s)(:[0-9]+)?\",", *label,
			str_text(&names));
	free(f->narrow);
	f->narrow = strdup(all.len < MATCHER_MAX ? str_text(&all) : "");
	bool failed = names.failed || all.failed || !f->narrow;
	str_finish(&names);
	str_finish(&all);
	return failed ? err_memory(e) : 0;
}

bool fleet_match_more(struct str *out, const char *label, const char *value)
{
	if (out->len == 0)
		str_addf(out, "%s=~\"", label);
	else
		str_add(out, "|");
	add_literal(out, value);
	return out->len < MATCHER_MAX;
}

const char *fleet_match_hosts(struct batch *b, const char *const *keys, size_t n, size_t *at)
{
	const struct fleet *f = b->fleet;
	struct str out = { 0 };
	bool room = true;
	while (*at < n && room) {
		const char *key = keys[(*at)++], *last = strrchr(key, '/');
		room = fleet_match_more(&out, f->labels[f->n_labels - 1],
			last && f->n_labels > 1 ? last + 1 : key);
	}
	str_add(&out, "\"");
	return fleet_keep(b, &out);
}

void fleet_query(struct batch *b, const char *query, double time_s, engine_answer_take *take,
	void *context)
{
	if (b->texts.failed || !array_one_more(&b->items, b->n)) {
		b->texts.failed = true;
		return;
	}
	struct client_request *r = &b->items[b->n++];
	*r = (struct client_request){ .path = "query",
		.answer = { .take = take, .context = context } };
	client_request_param(r, "query", query);
	client_request_number(r, "time", time_s);
	client_request_number(r, "timeout", (double)b->fleet->timeout_ms / 1000);
}

void fleet_query_hours(struct batch *b, const char *query, struct fleet_span span,
	engine_answer_take *take, void *context)
{
	fleet_query(b, query, span.last_s, take, context);
	if (b->texts.failed || span.first_s == span.last_s)
		return;
	struct client_request *r = &b->items[b->n - 1];
	r->path = "query_range";
	client_request_number(r, "start", span.first_s);
	client_request_number(r, "end", span.last_s);
	client_request_number(r, "step", 3600);
}

void fleet_free_texts(struct batch *b)
{
	bool failed = b->texts.failed;
	arena_finish(&b->texts);
	b->texts.failed = failed;
}

int fleet_run(struct batch *b, struct err *e)
{
	int rc = b->texts.failed ? err_memory(e)
				 : client_run(b->fleet->client, b->items, b->n, e);
	fleet_finish_batch(b);
	return rc;
}

void fleet_finish_batch(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		client_request_finish(&b->items[i]);
	free(b->items);
	arena_finish(&b->texts);
	*b = (struct batch){ .fleet = b->fleet };
}

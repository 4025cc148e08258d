/* Asks the engine for the state of each host, and prints it. */
#include "fleet/roster.h"

#include <ctype.h>

#include "audit/audit.h"
#include "fleet/exporter.h"
#include "model/columns.h"
#include "render/rows.h"

/* A host is silent if the engine has no scrape of it from the last SCRAPED_S seconds; it is
 * behind if it was last accounted more than BEHIND_S ago (a tick is 30 s by default). */
enum { SCRAPED_S = 300, BEHIND_S = 300, EXPECT_MAX_BYTES = 4 << 20 };
/* With fewer samples than this share, a host that another exporter watches has holes. */
#define OBSERVED_LEAST 0.98
/* One line for each host: 100,000 of them fit. */
#define ANSWER_MAX_BYTES ((int64_t)64 << 20)

const char *const roster_state_names[ROSTER_STATES] = {
	[ROSTER_MISSING] = "missing",
	[ROSTER_SILENT] = "silent",
	[ROSTER_HOLES] = "holes",
	[ROSTER_BEHIND] = "behind",
	[ROSTER_OK] = "ok",
};

void roster_short_name(char *dst, size_t cap, const char *key)
{
	const char *colon = strrchr(key, ':');
	str_copy(dst, cap, key);
	size_t len = colon ? (size_t)(colon - key) : 0;
	if (len && len < cap && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")])
		dst[len] = '\0';
}

int roster_shorten(const char **keys, size_t n, struct arena *texts, struct err *e)
{
	struct names names = { 0 };
	uint32_t *shorts = calloc(n + 1, sizeof(*shorts)),
		 *counts = calloc(n + 1, sizeof(*counts));
	int rc = shorts && counts ? 0 : err_memory(e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		char name[HOST_KEY_CAP];
		roster_short_name(name, sizeof(name), keys[i]);
		shorts[i] = names_find(&names, 0, name, e);
		rc = shorts[i] == IDMAP_NONE ? ERR_WORLD : 0;
		counts[rc ? 0 : shorts[i]]++;
	}
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (counts[shorts[i]] == 1)
			keys[i] = arena_text(texts, names.items[shorts[i]].text);
		rc = keys[i] ? 0 : err_memory(e);
	}
	names_finish(&names);
	free(shorts);
	free(counts);
	return rc;
}

/* The host with this name, added if it is new. NULL: out of memory. */
static struct roster_host *find_host(struct roster *r, const char *name, struct err *e)
{
	uint32_t index = names_find(&r->names, 0, name, e);
	if (index == IDMAP_NONE)
		return NULL;
	if (index < r->n)
		return &r->hosts[index];
	if (!array_one_more(&r->hosts, r->n)) {
		err_memory(e);
		return NULL;
	}
	struct roster_host *host = &r->hosts[r->n++];
	*host = (struct roster_host){ .name = r->names.items[index].text,
		.accounted_ms = -1,
		.gpus = -1,
		.metrics = "",
		.interval_ms = -1,
		.observed = NAN };
	return host;
}

int roster_expect(struct roster *r, const char *expect, struct err *e)
{
	struct file_content f = { 0 };
	char *end, *save = NULL;
	r->expected = -1;
	if (!expect)
		return 0;
	long long n = strtoll(expect, &end, 10);
	if (isdigit((unsigned char)*expect) && !*end) {
		r->expected = n;
		return 0;
	}
	int rc = file_read_regular(expect, EXPECT_MAX_BYTES, &f, e);
	for (char *line = rc ? NULL : strtok_r(f.data, "\r\n", &save); line && rc == 0;
		line = strtok_r(NULL, "\r\n", &save)) {
		char safe[HOST_KEY_CAP];
		line += strspn(line, " \t");
		size_t len = strcspn(line, " \t#");
		if (len == 0)
			continue;
		str_escape(safe, sizeof(safe), line, len);
		rc = names_find(&r->expected_names, 0, safe, e) == IDMAP_NONE ? ERR_WORLD : 0;
	}
	r->expected = (int64_t)r->expected_names.n;
	free(f.data);
	return rc ? err_prefix(e, "--expect") : 0;
}

/* What a question is about, and where its samples are stored. */
enum fact { FACT_ACCOUNTED, FACT_SCRAPED, FACT_GPUS, FACT_VERSION, FACTS };
struct asking {
	struct roster *r;
	const struct fleet *f;
	enum fact fact;
	const struct exporter *exporter; /* else NULL */
};

static struct roster_host *host_of(struct asking *a, const struct sample *s, struct err *e)
{
	char key[HOST_KEY_CAP];
	if (fleet_host(a->f, s->labels, key, e))
		return NULL;
	struct roster_host *host = find_host(a->r, key, e);
	return fleet_bound(a->f, a->r->n, e) ? NULL : host;
}

static int take_fact(void *context, const struct sample *s, struct err *e)
{
	struct asking *a = context;
	struct roster_host *host = host_of(a, s, e);
	const char *version = engine_answer_label(s->labels, "version");
	int64_t ms = s->value > 0 && s->value < 1e11 ? llround(s->value * 1000) : -1;
	if (!host)
		return ERR_WORLD;
	host->metrics = "gua";
	if (a->fact == FACT_ACCOUNTED && ms > host->accounted_ms)
		host->accounted_ms = ms;
	if (a->fact == FACT_SCRAPED)
		host->is_scraped = true;
	if (a->fact == FACT_GPUS && s->value >= 0 && s->value < 1e6)
		host->gpus = (int64_t)s->value;
	if (a->fact == FACT_VERSION)
		str_escape(host->version, sizeof(host->version), version, strlen(version));
	return 0;
}

static int compare_hosts(const void *x, const void *y)
{
	const struct roster_host *p = x, *q = y;
	return p->state != q->state ? (p->state < q->state ? -1 : 1) : strcmp(p->name, q->name);
}

static int shorten(struct roster *r, struct err *e)
{
	const char **keys = calloc(r->n + 1, sizeof(*keys));
	for (size_t i = 0; i < r->n && keys; i++)
		keys[i] = r->hosts[i].name;
	int rc = keys ? roster_shorten(keys, r->n, &r->names.texts, e) : err_memory(e);
	for (size_t i = 0; i < r->n && rc == 0; i++)
		r->hosts[i].name = keys[i];
	free(keys);
	return rc;
}

/* Whether a host is the expected one, with or without a port. */
static bool is_named(const char *name, const char *expected)
{
	char shorter[HOST_KEY_CAP];
	roster_short_name(shorter, sizeof(shorter), expected);
	if (strcmp(name, expected) == 0 || strcmp(name, shorter) == 0)
		return true;
	roster_short_name(shorter, sizeof(shorter), name);
	return strcmp(shorter, expected) == 0;
}

/* Adds the expected hosts that are not there. */
static int add_missing(struct roster *r, struct err *e)
{
	size_t n_seen = r->n;
	for (size_t i = 0; i < r->expected_names.n; i++) {
		const char *expected = r->expected_names.items[i].text;
		bool found = false;
		for (size_t k = 0; k < n_seen && !found; k++)
			found = is_named(r->hosts[k].name, expected);
		if (found)
			continue;
		struct roster_host *host = find_host(r, expected, e);
		if (!host)
			return ERR_WORLD;
		host->is_missing = true;
	}
	return 0;
}

static void judge_hosts(struct roster *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct roster_host *h = &r->hosts[i];
		bool seen = !h->is_missing;
		h->state = !seen					   ? ROSTER_MISSING
			   : !h->is_scraped				   ? ROSTER_SILENT
			   : h->observed < OBSERVED_LEAST		   ? ROSTER_HOLES
			   : h->interval_ms > 0				   ? ROSTER_OK
			   : r->now_ms - h->accounted_ms > 1000 * BEHIND_S ? ROSTER_BEHIND
									   : ROSTER_OK;
		r->counts[h->state]++;
		r->n_seen += seen;
	}
	/* If only a number of hosts is expected, the missing ones have no names. */
	if (r->expected > (int64_t)r->n)
		r->counts[ROSTER_MISSING] += (size_t)r->expected - r->n;
	array_sort(r->hosts, r->n, compare_hosts);
}

int roster_read(
	struct roster *r, struct fleet *f, int64_t now_ms, int64_t back_ms, struct err *e)
{
	static const char *const families[FACTS] = { FAMILY_TIME, FAMILY_TIME, FAMILY_GPUS,
		FAMILY_BUILD };
	struct batch b = { .fleet = f };
	struct asking asking[FACTS];
	r->now_ms = now_ms;
	client_bound(f->client, ANSWER_MAX_BYTES);
	int rc = fleet_probe(f, e);
	for (enum fact fact = 0; fact < FACTS; fact++) {
		const char *query =
			arena_textf(&b.texts, "max by (%s%s) (last_over_time(%s[%llds]))",
				f->by, fact == FACT_VERSION ? ",version" : "",
				fleet_select(&b, families[fact], ""),
				(long long)(fact == FACT_SCRAPED ? SCRAPED_S : back_ms / 1000));
		asking[fact] = (struct asking){ r, f, fact, NULL };
		fleet_query(&b, query, (double)now_ms / 1000, take_fact, &asking[fact]);
	}
	if (rc == 0)
		rc = fleet_run(&b, e);
	fleet_finish_batch(&b);
	return rc ? rc : shorten(r, e);
}

/* Counts the different texts of many; all that do not fit are the last one. */
struct tally {
	struct tally_item {
		const char *text;
		size_t n;
	} items[8];
	size_t n;
};

static void tally_add(struct tally *t, const char *text, const char *none)
{
	enum { MOST = sizeof(t->items) / sizeof(t->items[0]) };
	size_t i = 0;
	text = *text ? text : none;
	while (i < t->n && strcmp(t->items[i].text, text) != 0)
		i++;
	if (i == t->n && i < MOST)
		t->items[t->n++].text = text;
	else if (i == MOST)
		t->items[--i].text = "others";
	t->items[i].n++;
}

static int compare_items(const void *x, const void *y)
{
	const struct tally_item *p = x, *q = y;
	return p->n != q->n ? (p->n > q->n ? -1 : 1) : strcmp(p->text, q->text);
}

/* Appends the texts and how many there are of each, most first. */
static void tally_write(struct str *out, struct tally *t, const char *between)
{
	qsort(t->items, t->n, sizeof(t->items[0]), compare_items);
	for (size_t i = 0; i < t->n; i++)
		str_addf(out, "%s%s%s%zu", i ? ", " : "", t->items[i].text, between,
			t->items[i].n);
}

/* What the samples of an exporter cover. */
struct seen {
	const char *exporter;
	size_t n_hosts, n_leased, n_cards;
	int64_t interval_ms, observed_ms, window_ms;
};

/* Adds a host and its cards, which begin there. */
static int add_sampled(struct roster *r, const struct audit_host *from,
	const struct audit_card *cards, struct seen *to, struct err *e)
{
	int64_t observed_ms = 0, window_ms = 0;
	for (size_t i = 0; i < from->n_cards; i++) {
		observed_ms += state_observed_ms(cards[i].ms);
		window_ms += state_observed_ms(cards[i].ms) + cards[i].ms[CARD_UNOBSERVED];
	}
	struct roster_host *host = find_host(r, from->hostname, e);
	if (!host)
		return ERR_WORLD;
	host->metrics = from->metrics;
	host->accounted_ms = from->last_tick_ms;
	host->is_scraped = from->last_tick_ms >= r->now_ms - 1000 * SCRAPED_S;
	host->gpus = (int64_t)from->n_cards;
	host->has_leases = from->has_leases;
	host->interval_ms = from->interval_ms;
	host->observed = window_ms ? (double)observed_ms / (double)window_ms : (double)NAN;
	to->n_hosts++;
	to->n_cards += from->n_cards;
	to->interval_ms =
		from->interval_ms > to->interval_ms ? from->interval_ms : to->interval_ms;
	to->observed_ms += observed_ms;
	to->window_ms += window_ms;
	to->n_leased += from->has_leases;
	return 0;
}

static void add_models(struct str *out, const struct audit *a, const char *exporter)
{
	struct tally models = { 0 };
	for (size_t i = 0; i < a->n_cards; i++)
		if (strcmp(a->hosts[a->cards[i].host].metrics, exporter) == 0)
			tally_add(&models, a->cards[i].id.name, "unknown model");
	tally_write(out, &models, ": ");
}

/* Sets the version of a host that the exporter watches which says it. */
static int take_version(void *context, const struct sample *s, struct err *e)
{
	struct asking *a = context;
	char key[HOST_KEY_CAP], name[HOST_KEY_CAP];
	const char *version = engine_answer_label(s->labels, "version");
	if (fleet_host(a->f, s->labels, key, e))
		return ERR_WORLD;
	roster_short_name(name, sizeof(name), key);
	uint32_t index = names_get(&a->r->names, 0, name);
	if (index < a->r->n && strcmp(a->r->hosts[index].metrics, a->exporter->name) == 0)
		str_escape(a->r->hosts[index].version, sizeof(a->r->hosts[index].version),
			version, strlen(version));
	return 0;
}

static int ask_versions(
	struct roster *r, struct fleet *f, const struct audit *samples, struct err *e)
{
	struct batch b = { .fleet = f };
	struct asking asking[EXPORTERS];
	for (size_t i = 0; i < EXPORTERS; i++) {
		asking[i] = (struct asking){ r, f, FACT_VERSION, &exporters[i] };
		if (!exporters[i].build || !strstr(samples->fleet.samplers, exporters[i].name))
			continue;
		const char *query =
			arena_textf(&b.texts, "max by (%s,version) (last_over_time(%s[%ds]))",
				f->by, fleet_select(&b, exporters[i].build, ""), SCRAPED_S);
		fleet_query(&b, query, (double)r->now_ms / 1000, take_version, &asking[i]);
	}
	return fleet_run(&b, e);
}

static void add_tally(struct str *out, const struct roster *r, const char *whose)
{
	struct tally versions = { 0 };
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->hosts[i].metrics, whose) == 0)
			tally_add(&versions, r->hosts[i].version, "unknown");
	tally_write(out, &versions, " on ");
}

int roster_settle(struct roster *r, struct fleet *f, const struct audit *samples, struct err *e)
{
	struct seen seen[EXPORTERS] = { 0 };
	struct names own = { 0 }; /* hosts with gua */
	const struct audit_card *cards = samples->cards;
	size_t n = 0, n_own = r->n;
	int rc = 0;
	for (size_t i = 0; i < n_own && rc == 0; i++)
		rc = names_find(&own, 0, r->hosts[i].name, e) == IDMAP_NONE ? ERR_WORLD : 0;
	for (size_t i = 0; i < samples->n_hosts && rc == 0; i++) {
		const struct audit_host *host = &samples->hosts[i];
		size_t k = 0;
		while (k < n && strcmp(seen[k].exporter, host->metrics) != 0)
			k++;
		n += k == n;
		seen[k].exporter = host->metrics;
		if (!names_has(&own, 0, host->hostname))
			rc = add_sampled(r, host, cards, &seen[k], e);
		cards += host->n_cards;
	}
	names_finish(&own);
	if (rc == 0)
		rc = ask_versions(r, f, samples, e);
	for (size_t k = 0; k < n && rc == 0; k++) {
		const struct seen *x = &seen[k];
		if (!x->n_hosts)
			continue;
		str_addf(&r->exporters, "%s: %zu host%s, %zu GPU%s (", x->exporter, x->n_hosts,
			x->n_hosts == 1 ? "" : "s", x->n_cards, x->n_cards == 1 ? "" : "s");
		add_models(&r->exporters, samples, x->exporter);
		str_add(&r->exporters, "), version ");
		add_tally(&r->exporters, r, x->exporter);
		str_addf(&r->exporters,
			", sampled every %lld s, %.1f%% observed; its labels %s which pod or "
			"job has a GPU",
			(long long)(x->interval_ms / 1000),
			100 * (double)x->observed_ms / fmax((double)x->window_ms, 1),
			x->n_leased ? "say" : "do not say");
		if (x->n_leased && x->n_leased < x->n_hosts)
			str_addf(&r->exporters, " on %zu host%s", x->n_leased,
				x->n_leased == 1 ? "" : "s");
		str_add(&r->exporters, "\n");
	}
	if (rc == 0)
		rc = add_missing(r, e);
	if (rc == 0)
		judge_hosts(r);
	return rc;
}

bool roster_expects(const struct roster *r, const char *name)
{
	for (size_t i = 0; i < r->expected_names.n; i++)
		if (is_named(name, r->expected_names.items[i].text))
			return true;
	return false;
}

int roster_compare(
	const struct roster *r, struct audit *a, const struct restriction *only, struct err *e)
{
	enum { NAMED = 5 };
	const char *missing = "";
	size_t *n = &a->fleet.n_missing;
	bool some = only->lists[ONLY_CARD].n || only->lists[ONLY_MODEL].n;
	for (size_t i = 0; i < r->expected_names.n && !some; i++) {
		const char *expected = r->expected_names.items[i].text;
		bool found = !restriction_takes_host(only, expected);
		for (size_t k = 0; k < a->n_hosts && !found; k++)
			found = is_named(a->hosts[k].hostname, expected);
		if (!found && (*n)++ < NAMED)
			missing = arena_textf(
				&a->texts, "%s%s%s", missing, *n > 1 ? ", " : "", expected);
	}
	if (*n > NAMED)
		missing = arena_textf(&a->texts, "%s and %zu more", missing, *n - NAMED);
	/* If only a number of hosts is expected, the missing ones have no names. */
	if (!r->expected_names.n && !some && !only->lists[ONLY_HOST].n &&
		r->expected > (int64_t)a->n_hosts) {
		*n = (size_t)r->expected - a->n_hosts;
		missing = arena_textf(&a->texts, "%zu host%s", *n, *n == 1 ? "" : "s");
	}
	a->fleet.n_expected = r->expected;
	a->fleet.missing = missing;
	return a->texts.failed ? err_memory(e) : 0;
}

void roster_finish(struct roster *r)
{
	names_finish(&r->names);
	names_finish(&r->expected_names);
	free(r->hosts);
	str_finish(&r->exporters);
	*r = (struct roster){ 0 };
}

/* The data of a row. */
struct roster_row {
	const char *name, *state, *version, *metrics; /* NULL: unknown */
	int64_t accounted_ms, gpus, interval_ms;      /* -1 unknown */
	double observed, leases;
};

#define OF(member) offsetof(struct roster_row, member)
static const struct column columns[] = {
	{ "host", "host", .width = 16, .flexible = true, STRING(name) },
	{ "state", "state", STRING(state) },
	{ "accounted_until", "accounted until", KNOWN(MOMENT, accounted_ms) },
	{ "gpus", "GPUs", KNOWN(COUNT, gpus) },
	{ "version", "version", STRING(version) },
	/* Where there are samples of other exporters. */
	{ "metrics", "metrics", STRING(metrics) },
	{ "interval_seconds", "every", KNOWN(LENGTH, interval_ms), .optional = true },
	{ "observed", "observed", NUMBER(SHARE, observed) },
	{ "leases", "pods", NUMBER(BOOL, leases), .optional = true },
};
enum { OWN_COLUMNS = 5 };
#undef OF

/* The hosts, or those that have a fault. */
static struct table list_hosts(const struct roster *r, bool all)
{
	struct table t = { .columns = columns,
		.n_columns =
			r->exporters.len ? sizeof(columns) / sizeof(columns[0]) : OWN_COLUMNS };
	for (size_t i = 0; i < r->n; i++) {
		const struct roster_host *h = &r->hosts[i];
		const struct roster_row row = { h->name, roster_state_names[h->state],
			*h->version ? h->version : NULL, *h->metrics ? h->metrics : NULL,
			h->accounted_ms, h->gpus, h->interval_ms, h->observed,
			h->interval_ms > 0 ? (double)h->has_leases : (double)NAN };
		if (all || h->state != ROSTER_OK)
			table_add(&t, &row);
	}
	return t;
}

static void add_counts(struct str *out, const struct roster *r)
{
	size_t seen = r->n_seen;
	str_addf(out, "%zu host%s seen", seen, seen == 1 ? "" : "s");
	if (r->expected >= 0)
		str_addf(out, " of %lld expected", (long long)r->expected);
	str_addf(out, ": %zu ok", r->counts[ROSTER_OK]);
	for (int state = ROSTER_BEHIND; state >= 0; state--)
		if (r->counts[state])
			str_addf(out, ", %zu %s", r->counts[state], roster_state_names[state]);
	str_add(out, "\n");
}

void roster_text(struct str *out, const struct roster *r, const struct fleet *f,
	const struct roster_style *style)
{
	struct table t = list_hosts(r, style->all);
	const char *const *warnings;
	size_t n_warnings = client_warnings(f->client, &warnings);
	str_addf(out, "%s (%s)\n", client_url(f->client), f->engine);
	add_counts(out, r);
	if (r->n == 0)
		str_add(out,
			"The engine has no " FAMILY_TIME
			" that matches, and no metrics of another exporter: is gua scraped, "
			"and is --match right?\n");
	struct str versions = { 0 };
	add_tally(&versions, r, "gua");
	if (versions.len)
		str_addf(out, "versions: %s\n", str_text(&versions));
	out->failed |= versions.failed;
	str_finish(&versions);
	str_add(out, str_text(&r->exporters));
	if (t.n_rows) {
		str_add(out, "\n");
		text_add_table(out, &t, &style->text);
	}
	for (size_t i = 0; i < n_warnings; i++)
		str_addf(out, "%sengine warns: %s\n", i ? "" : "\n", warnings[i]);
	out->failed |= t.failed;
	table_finish(&t);
}

void roster_json(struct str *out, const struct roster *r, const struct fleet *f)
{
	struct json j = { .out = out, .lines = 2 };
	struct table hosts = list_hosts(r, true);
	const char *const *warnings;
	size_t n_warnings = client_warnings(f->client, &warnings);
	json_open(&j, NULL, '{');
	json_text(&j, "url", client_url(f->client));
	json_text(&j, "engine", f->engine);
	json_moment(&j, "now", r->now_ms);
	json_number(&j, "seen", (double)r->n_seen, 0);
	json_known(&j, "expected", r->expected);
	for (int state = 0; state < ROSTER_STATES; state++)
		json_number(&j, roster_state_names[state], (double)r->counts[state], 0);
	json_open(&j, "warnings", '[');
	for (size_t i = 0; i < n_warnings; i++)
		json_text(&j, NULL, warnings[i]);
	json_close(&j, ']');
	rows_json_table(&j, "hosts", &hosts);
	table_finish(&hosts);
	json_close(&j, '}');
	str_add(out, "\n");
}

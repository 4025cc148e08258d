/* Finds the state of each host of a fleet. */
#include "fleet/roster.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"

/* A host is silent if no scrape has reached the engine for SCRAPED_S, and its recorder is
 * behind if what it accounted is older than BEHIND_S (a tick is 30 s by default). */
enum { SCRAPED_S = 300, BEHIND_S = 300, EXPECT_MAX_BYTES = 4 << 20 };
/* One line for each host: 100,000 of them fit. */
#define ANSWER_MAX_BYTES ((int64_t)64 << 20)

const char *const roster_state_names[ROSTER_STATES] = {
	[ROSTER_MISSING] = "missing",
	[ROSTER_SILENT] = "silent",
	[ROSTER_BEHIND] = "behind",
	[ROSTER_OK] = "ok",
};

void host_short(char *dst, size_t cap, const char *key)
{
	const char *colon = strrchr(key, ':');
	text_copy(dst, cap, key);
	size_t len = colon ? (size_t)(colon - key) : 0;
	if (len && len < cap && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")])
		dst[len] = '\0';
}

/* The host of that name, added when it is new. NULL: out of memory. */
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
	*host = (struct roster_host){
		.name = r->names.items[index].text, .accounted_ms = -1, .gpus = -1
	};
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
		text_escape(safe, sizeof(safe), line, len);
		rc = names_find(&r->expected_names, 0, safe, e) == IDMAP_NONE ? ERR_WORLD : 0;
	}
	r->expected = (int64_t)r->expected_names.n;
	free(f.data);
	return rc ? err_prefix(e, "--expect") : 0;
}

/* What a sample is written to. */
struct asking {
	struct roster *r;
	const struct fleet *f;
};

static struct roster_host *host_of(struct asking *a, const struct sample *s, struct err *e)
{
	char key[HOST_KEY_CAP];
	if (!fleet_host(a->f, s->labels, key)) {
		err_set(e, ERR_WORLD,
			"the series of " FAMILY_TIME
			" have no label %s; --host-label names the "
			"one that tells hosts apart",
			a->f->by);
		return NULL;
	}
	struct roster_host *host = find_host(a->r, key, e);
	return fleet_bound(a->f, a->r->n, e) ? NULL : host;
}

static int take_accounted(void *context, const struct sample *s, struct err *e)
{
	struct roster_host *host = host_of(context, s, e);
	if (!host)
		return ERR_WORLD;
	int64_t ms = s->value > 0 && s->value < 1e11 ? llround(s->value * 1000) : -1;
	host->accounted_ms = ms > host->accounted_ms ? ms : host->accounted_ms;
	return 0;
}

static int take_scraped(void *context, const struct sample *s, struct err *e)
{
	struct roster_host *host = host_of(context, s, e);
	if (host)
		host->is_scraped = true;
	return host ? 0 : ERR_WORLD;
}

static int take_gpus(void *context, const struct sample *s, struct err *e)
{
	struct roster_host *host = host_of(context, s, e);
	if (host && s->value >= 0 && s->value < 1e6)
		host->gpus = (int64_t)s->value;
	return host ? 0 : ERR_WORLD;
}

static int take_build(void *context, const struct sample *s, struct err *e)
{
	struct roster_host *host = host_of(context, s, e);
	const char *version = label_of(s->labels, "version");
	if (host)
		text_escape(host->version, sizeof(host->version), version, strlen(version));
	return host ? 0 : ERR_WORLD;
}

static int compare_hosts(const void *x, const void *y)
{
	const struct roster_host *p = x, *q = y;
	return p->state != q->state ? (p->state < q->state ? -1 : 1) : strcmp(p->name, q->name);
}

/* Leaves out the ports of hosts, except of those that differ in nothing else. */
static int shorten(struct roster *r, struct err *e)
{
	struct names names = { 0 };
	uint32_t *shorts = calloc(r->n + 1, sizeof(*shorts)),
		 *counts = calloc(r->n + 1, sizeof(*counts));
	int rc = shorts && counts ? 0 : err_memory(e);
	for (size_t i = 0; i < r->n && rc == 0; i++) {
		char name[HOST_KEY_CAP];
		host_short(name, sizeof(name), r->hosts[i].name);
		shorts[i] = names_find(&names, 0, name, e);
		rc = shorts[i] == IDMAP_NONE ? ERR_WORLD : 0;
		counts[rc ? 0 : shorts[i]]++;
	}
	for (size_t i = 0; i < r->n && rc == 0; i++)
		if (counts[shorts[i]] == 1)
			r->hosts[i].name =
				arena_text(&r->names.texts, names.items[shorts[i]].text);
	for (size_t i = 0; i < r->n && rc == 0; i++)
		rc = r->hosts[i].name ? 0 : err_memory(e);
	names_finish(&names);
	free(shorts);
	free(counts);
	return rc;
}

/* Whether a host is the one that was expected: with or without a port. */
static bool is_named(const char *name, const char *expected)
{
	char shorter[HOST_KEY_CAP];
	host_short(shorter, sizeof(shorter), expected);
	if (strcmp(name, expected) == 0 || strcmp(name, shorter) == 0)
		return true;
	host_short(shorter, sizeof(shorter), name);
	return strcmp(shorter, expected) == 0;
}

/* Adds the hosts that were expected and are not there. */
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

static void judge(struct roster *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct roster_host *h = &r->hosts[i];
		bool seen = !h->is_missing;
		h->state = !seen					   ? ROSTER_MISSING
			   : !h->is_scraped				   ? ROSTER_SILENT
			   : r->now_ms - h->accounted_ms > 1000 * BEHIND_S ? ROSTER_BEHIND
									   : ROSTER_OK;
		r->counts[h->state]++;
		r->n_seen += seen;
	}
	/* Of a number of hosts, those that are not there have no name. */
	if (r->expected > (int64_t)r->n)
		r->counts[ROSTER_MISSING] += (size_t)r->expected - r->n;
	if (r->n)
		qsort(r->hosts, r->n, sizeof(*r->hosts), compare_hosts);
}

/* A question for a family: by host, and by one more label. */
struct question {
	const char *family, *more;
	int64_t back_s;
	answer_take *take;
};

static void ask(struct batch *b, struct asking *context, struct question q)
{
	struct str query = { 0 };
	str_addf(&query, "max by (%s%s) (last_over_time(", context->f->by, q.more);
	fleet_select(context->f, &query, q.family, "");
	str_addf(&query, "[%llds]))", (long long)q.back_s);
	batch_query(b, &query, (double)context->r->now_ms / 1000, q.take, context);
	str_finish(&query);
}

int roster_read(
	struct roster *r, struct fleet *f, int64_t now_ms, int64_t back_ms, struct err *e)
{
	struct batch b = { .fleet = f };
	struct asking asking = { r, f };
	int64_t back_s = back_ms / 1000;
	r->now_ms = now_ms;
	client_bound(f->client, ANSWER_MAX_BYTES);
	int rc = fleet_probe(f, e);
	ask(&b, &asking, (struct question){ FAMILY_TIME, "", back_s, take_accounted });
	ask(&b, &asking, (struct question){ FAMILY_TIME, "", SCRAPED_S, take_scraped });
	ask(&b, &asking, (struct question){ FAMILY_GPUS, "", back_s, take_gpus });
	ask(&b, &asking, (struct question){ FAMILY_BUILD, ",version", back_s, take_build });
	if (rc == 0)
		rc = batch_run(&b, e);
	batch_finish(&b);
	if (rc == 0)
		rc = shorten(r, e);
	if (rc == 0)
		rc = add_missing(r, e);
	if (rc == 0)
		judge(r);
	return rc;
}

int roster_compare(struct roster *r, struct audit *a, struct err *e)
{
	enum { NAMED = 5 };
	struct str missing = { 0 };
	size_t *n = &a->fleet.n_missing;
	for (size_t i = 0; i < r->expected_names.n; i++) {
		const char *expected = r->expected_names.items[i].text;
		bool found = false;
		for (size_t k = 0; k < a->n_hosts && !found; k++)
			found = is_named(a->hosts[k].hostname, expected);
		if (!found && (*n)++ < NAMED)
			str_addf(&missing, "%s%s", *n > 1 ? ", " : "", expected);
	}
	if (*n > NAMED)
		str_addf(&missing, " and %zu more", *n - NAMED);
	a->fleet.n_expected = r->expected;
	a->fleet.missing = arena_text(&a->texts, str_text(&missing));
	bool failed = missing.failed || !a->fleet.missing;
	str_finish(&missing);
	return failed ? err_memory(e) : 0;
}

void roster_finish(struct roster *r)
{
	names_finish(&r->names);
	names_finish(&r->expected_names);
	free(r->hosts);
	*r = (struct roster){ 0 };
}

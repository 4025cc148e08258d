/* Prints the state of each host of a fleet, for people and for programs. */
#include "fleet/roster_show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/json.h"

static struct cell get_state(const void *row, size_t of)
{
	(void)of;
	return cell_text(roster_state_names[((const struct roster_host *)row)->state]);
}

static struct cell get_version(const void *row, size_t of)
{
	const char *version = ((const struct roster_host *)row)->version;
	(void)of;
	return cell_text(*version ? version : NULL);
}

#define OF(member) offsetof(struct roster_host, member)
static const struct column columns[] = {
	{ .key = "host",
		.title = "host",
		.flexible = true,
		.kind = COLUMN_TEXT,
		.get = get_string,
		.of = OF(name) },
	{ .key = "state", .title = "state", .kind = COLUMN_TEXT, .get = get_state },
	{ .key = "accounted_until",
		.title = "accounted until",
		.kind = COLUMN_MOMENT,
		.get = get_known,
		.of = OF(accounted_ms) },
	{ .key = "gpus",
		.title = "GPUs",
		.kind = COLUMN_COUNT,
		.get = get_known,
		.of = OF(gpus) },
	{ .key = "version", .title = "version", .kind = COLUMN_TEXT, .get = get_version },
};
#undef OF

struct version_count {
	const char *version;
	size_t n;
};

static int compare_versions(const void *x, const void *y)
{
	const struct version_count *p = x, *q = y;
	return p->n != q->n ? (p->n > q->n ? -1 : 1) : strcmp(p->version, q->version);
}

/* The versions and how many hosts have each, most first; the caller frees them. */
static struct version_count *count_versions(const struct roster *r, size_t *n)
{
	struct version_count *counts = calloc(r->n + 1, sizeof(*counts));
	*n = 0;
	for (size_t i = 0; i < r->n && counts; i++) {
		size_t k = 0;
		if (r->hosts[i].state == ROSTER_MISSING)
			continue;
		while (k < *n && strcmp(counts[k].version, r->hosts[i].version) != 0)
			k++;
		counts[k].version = r->hosts[i].version;
		*n += k == *n;
		counts[k].n++;
	}
	if (counts && *n)
		qsort(counts, *n, sizeof(*counts), compare_versions);
	return counts;
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

static void add_versions(struct str *out, const struct roster *r)
{
	enum { SHOWN = 4 };
	size_t n = 0;
	struct version_count *counts = count_versions(r, &n);
	str_add(out, "versions: ");
	for (size_t i = 0; i < n && i < SHOWN && counts; i++)
		str_addf(out, "%s%s on %zu", i ? ", " : "",
			*counts[i].version ? counts[i].version : "unknown", counts[i].n);
	str_add(out, n > SHOWN ? ", and others\n" : "\n");
	out->failed |= !counts;
	free(counts);
}

void roster_text(struct str *out, const struct roster *r, const struct fleet *f,
	const struct roster_style *style)
{
	struct table t = { .columns = columns,
		.n_columns = sizeof(columns) / sizeof(columns[0]) };
	const char *const *warnings;
	size_t n_warnings = client_warnings(f->client, &warnings);
	str_addf(out, "%s (%s)\n", client_url(f->client), f->engine);
	add_counts(out, r);
	if (r->n == 0)
		str_add(out, "The engine has no " FAMILY_TIME
			     " that matches: is gua scraped, and is --match right?\n");
	else
		add_versions(out, r);
	for (size_t i = 0; i < r->n; i++)
		if (style->all || r->hosts[i].state != ROSTER_OK)
			table_add(&t, &r->hosts[i]);
	if (t.n_rows) {
		str_add(out, "\n");
		text_add_table(out, &t, &style->text);
	}
	for (size_t i = 0; i < n_warnings; i++)
		str_addf(out, "%sengine warns: %s\n", i ? "" : "\n", warnings[i]);
	out->failed |= t.failed;
	table_finish(&t);
}

static void add_hosts(struct json *j, const struct roster *r)
{
	json_open(j, "hosts", '[');
	for (size_t i = 0; i < r->n; i++) {
		const struct roster_host *h = &r->hosts[i];
		json_open(j, NULL, '{');
		json_text(j, "host", h->name);
		json_text(j, "state", roster_state_names[h->state]);
		json_moment(j, "accounted_until", h->accounted_ms);
		json_number(j, "gpus", h->gpus < 0 ? (double)NAN : (double)h->gpus, 0);
		json_text(j, "version", *h->version ? h->version : NULL);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void roster_json(struct str *out, const struct roster *r, const struct fleet *f)
{
	struct json j = { .out = out, .lines = 2 };
	const char *const *warnings;
	size_t n_warnings = client_warnings(f->client, &warnings);
	json_open(&j, NULL, '{');
	json_text(&j, "url", client_url(f->client));
	json_text(&j, "engine", f->engine);
	json_moment(&j, "now", r->now_ms);
	json_number(&j, "seen", (double)r->n_seen, 0);
	json_number(&j, "expected", r->expected < 0 ? (double)NAN : (double)r->expected, 0);
	for (int state = 0; state < ROSTER_STATES; state++)
		json_number(&j, roster_state_names[state], (double)r->counts[state], 0);
	json_open(&j, "warnings", '[');
	for (size_t i = 0; i < n_warnings; i++)
		json_text(&j, NULL, warnings[i]);
	json_close(&j, ']');
	add_hosts(&j, r);
	json_close(&j, '}');
	str_add(out, "\n");
}

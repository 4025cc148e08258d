/* Chooses whose metrics an audit is made from, and runs the steps. */
#include "fleet/fleet_audit.h"

#include "fleet/sampled.h"
#include "fleet/survey.h"

/* An exporter that the engine has metrics of. */
struct found {
	const struct exporter *x;
	double n_series;
	int64_t oldest_ms;
};

struct choice {
	bool counters;		       /* gua's */
	bool nothing;		       /* of all exporters */
	struct found found[EXPORTERS]; /* most series first */
	size_t n;
};

static int compare_found(const void *x, const void *y)
{
	const struct found *p = x, *q = y;
	return p->n_series != q->n_series ? (p->n_series > q->n_series ? -1 : 1)
					  : array_compare(p->x - q->x, 0);
}

/* Finds out whose metrics the engine has, among those that were asked for. */
static int choose(
	struct choice *c, const struct fleet_fill *fill, const char *metrics, struct err *e)
{
	struct probe p = probe_of(fill->f, fill->a->since_ms, fill->a->until_ms);
	bool others = strcmp(metrics, "others") == 0;
	bool any = others || strcmp(metrics, "auto") == 0;
	c->counters = strcmp(metrics, "gua") == 0;
	if (c->counters)
		return 0;
	const struct probe_query own = { .before = "count(last_over_time(",
		.matchers =
			"__name__=\"" FAMILY_CARD "\",state=\"active\"", /* each card has it */
		.after = "))" };
	int rc = any && !others ? probe_has(&p, &own, &c->counters, e) : 0;
	for (size_t i = 0; i < EXPORTERS && rc == 0; i++) {
		struct found found = { .x = &exporters[i] };
		if (!any && strcmp(exporters[i].name, metrics) != 0)
			continue;
		rc = probe_count_cards(&p, found.x, &found.n_series, e);
		found.oldest_ms = probe_oldest(&p);
		if (found.n_series > 0 || !any)
			c->found[c->n++] = found;
	}
	array_sort(c->found, c->n, compare_found);
	/* If there is nothing, the error is about gua's counters. */
	c->nothing = any && c->n == 0 && !c->counters;
	c->counters |= c->n == 0 && !others;
	return rc;
}

/* Checks that what is there can answer the question. Where gua's counters cannot, and it was
 * not gua that was asked for, samples may. */
static int check(
	struct choice *c, const struct fleet_question *q, struct audit *a, struct err *e)
{
	int rc = c->counters ? q->check_counters(q->audit, e) : 0;
	if (c->n == 0)
		return rc;
	struct err other = { 0 };
	int rc_samples = q->check_samples(q->audit, &other);
	a->fleet.samples_alone = rc && !rc_samples;
	if (rc_samples)
		*e = other;
	c->counters &= !rc;
	return rc_samples;
}

/* ERR_NOTHING: there are cards, and none that was asked for. */
static int check_cards(const struct fleet_fill *fill, size_t n_known, struct err *e)
{
	const struct text_list *lists = fill->q->only.lists;
	for (int kind = ONLY_CARD; kind < RESTRICTIONS && n_known && !fill->a->n_cards; kind++)
		if (lists[kind].n)
			return err_set(e, ERR_NOTHING, "no GPU of this window matches --%s",
				restriction_names[kind]);
	return 0;
}

/* Names what was used. If there was nothing, then what was asked for. */
static int name_metrics(struct audit *a, const struct choice *c, struct err *e)
{
	struct audit_fleet *f = &a->fleet;
	const char *own, *samplers = "";
	for (size_t i = 0; i < a->n_hosts; i++)
		f->n_counted += strcmp(a->hosts[i].metrics, "gua") == 0;
	for (size_t k = 0; k < c->n; k++) {
		const char *name = c->found[k].x->name;
		bool used = !a->n_hosts;
		for (size_t i = 0; i < a->n_hosts; i++)
			used |= strcmp(a->hosts[i].metrics, name) == 0;
		if (used)
			samplers = arena_textf(
				&a->texts, "%s%s%s", samplers, *samplers ? " and " : "", name);
	}
	own = c->nothing ? "gua or of another exporter" : f->n_counted || !c->n ? "gua" : "";
	f->metrics = arena_textf(
		&a->texts, "%s%s%s", own, *own && *samplers ? " and " : "", samplers);
	f->samplers = samplers;
	return a->texts.failed ? err_memory(e) : 0;
}

/* Reads both kinds; the hosts that have gua's counters come first, so that no card of theirs
 * is taken again. */
static int read_all(struct fleet_fill *fill, const struct choice *c, struct survey *survey,
	struct sampled *sampled, struct err *e)
{
	size_t n_known = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->found[i].oldest_ms >= 0 && c->n + c->counters > 1)
			fill->others_ms = fill->others_ms < 0 ? c->found[i].oldest_ms
							      : clock_earlier(fill->others_ms,
									c->found[i].oldest_ms);
	const struct text_list *hosts = &fill->q->only.lists[ONLY_HOST];
	n_known += hosts->n && c->n;
	int rc = fleet_narrow(fill->f, NULL, hosts, e);
	if (rc == 0 && c->counters)
		rc = survey_run(survey, fill, e);
	n_known += survey->n_cards;
	for (size_t i = 0; i < c->n && rc == 0; i++) {
		const struct exporter *x = c->found[i].x;
		bool named = *x->labels[EXPORTER_HOST] && strcmp(fill->f->by, "instance") == 0;
		rc = fleet_narrow(fill->f, named ? x->labels[EXPORTER_HOST] : NULL, hosts, e);
		if (rc == 0)
			rc = sampled_ask_run(&sampled[i], fill, x, e);
		n_known += sampled[i].n_cards;
	}
	if (rc || check_cards(fill, n_known, e) || fleet_fill_sort(fill, e))
		return e->code;
	/* Counters are read hour by hour for whole hosts: they have no time line. */
	if (fill->a->n_cards && c->counters && survey->n_cards)
		fill->a->columns.n = 0;
	if (hours_make_columns(fill->a, e) || (c->counters && survey_fill_users(survey, e)))
		return e->code;
	for (size_t i = 0; i < c->n && rc == 0; i++)
		rc = sampled_fill_users(&sampled[i], 1 + i, e);
	return rc || fleet_fill_end(fill, e) ? e->code : name_metrics(fill->a, c, e);
}

int fleet_audit_run(
	struct audit *a, struct fleet *f, const struct fleet_question *q, struct err *e)
{
	struct fleet_fill fill = { .f = f, .q = q->audit, .a = a, .expected = q->expected };
	struct survey survey = { 0 };
	struct sampled sampled[EXPORTERS] = { 0 };
	struct choice c = { 0 };
	bool failed = fleet_fill_begin(&fill, e) || choose(&c, &fill, q->metrics, e) ||
		      check(&c, q, a, e) || read_all(&fill, &c, &survey, sampled, e);
	survey_finish(&survey);
	for (size_t i = 0; i < EXPORTERS; i++)
		sampled_finish(&sampled[i]);
	fleet_fill_finish(&fill);
	return failed ? e->code : 0;
}

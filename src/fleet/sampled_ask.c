/* Asks an engine for the samples of another exporter. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "audit/gather.h"
#include "base/clock.h"
#include "fleet/roster.h"
#include "fleet/sampled.h"

/* A window is probed at this many moments, each over a part of it, which is not longer than
 * this; up to a day, they cover all of it. */
enum { PROBES = 8, PROBE_MIN_S = 600, PROBE_MAX_S = 3 * 3600 };
/* A start of 0 asks for all data: this far back. */
enum { OLDEST_S = 400 * 86400 };

/* The moments of a probe, and what was found at them. */
struct probe {
	struct fleet *f;
	double from_s, to_s, range_s;
	struct number {
		const struct fleet *f;
		double value;
		size_t n; /* how many came */
	} found[PROBES];
};

static struct probe probe_of(const struct audit *a, struct fleet *f)
{
	double to_s = (double)a->until_ms / 1000;
	double from_s = fmax((double)a->since_ms / 1000, to_s - OLDEST_S);
	double range_s = (to_s - from_s) / PROBES;
	range_s = fmin(fmax(range_s, PROBE_MIN_S), PROBE_MAX_S);
	return (struct probe){
		.f = f, .from_s = from_s, .to_s = to_s, .range_s = ceil(range_s)
	};
}

static double probe_time(const struct probe *p, size_t i)
{
	return p->to_s - (p->to_s - p->from_s) * (double)i / PROBES;
}

static int take_number(void *context, const struct sample *sample, struct err *e)
{
	struct number *to = context;
	to->value = sample->value;
	return fleet_bound(to->f, ++to->n, e);
}

/* Asks `before SELECTOR[range]after` at each moment; the selector has these matchers. */
static int ask_probe(struct probe *p, const char *before, const char *matchers,
	const char *after, struct err *e)
{
	struct batch b = { .fleet = p->f };
	struct str query = { 0 };
	str_add(&query, before);
	fleet_select(p->f, &query, "", matchers);
	str_addf(&query, "[%llds]%s", (long long)p->range_s, after);
	for (size_t i = 0; i < PROBES; i++) {
		p->found[i] = (struct number){ .f = p->f };
		fleet_query(&b, &query, probe_time(p, i), take_number, &p->found[i]);
	}
	str_finish(&query);
	return fleet_run(&b, e);
}

static double largest(const struct probe *p)
{
	double most = 0;
	for (size_t i = 0; i < PROBES; i++)
		most = fmax(most, p->found[i].value);
	return most;
}

/* How many series of an exporter's utilisation, or else memory, there are at a time. */
static int count_series(struct probe *p, const struct exporter *x, double *n, struct err *e)
{
	static const enum exporter_role roles[] = { EXPORTER_USE, EXPORTER_MEMORY };
	int rc = 0;
	*n = 0;
	for (size_t i = 0; i < 2 && rc == 0 && *n < 1; i++) {
		struct str match = { 0 };
		exporter_match(x, &match, roles[i], EXPORTER_ALL_RANKS);
		rc = ask_probe(p, "count(last_over_time(", str_text(&match), "))", e);
		*n = largest(p);
		str_finish(&match);
	}
	return rc;
}

/* Chooses the exporter that has the most series, unless gua has some. */
static int choose(struct sampled *s, struct probe *p, struct err *e)
{
	double most = 0;
	int rc = ask_probe(p, "count(last_over_time(", "__name__=\"" FAMILY_CARD "\"", "))", e);
	if (rc || largest(p) > 0)
		return rc;
	for (size_t i = 0; i < n_exporters && rc == 0; i++) {
		double n = 0;
		rc = count_series(p, &exporters[i], &n, e);
		if (n > most)
			s->x = &exporters[i];
		most = fmax(most, n);
	}
	return rc;
}

/* Finds the usual time between two scrapes: the series that has the most samples, but for a
 * few, has one at each. */
static int find_step(struct sampled *s, struct probe *p, struct err *e)
{
	struct str match = { 0 };
	exporter_match(s->x, &match, EXPORTER_MEMORY, EXPORTER_ALL_RANKS);
	int rc = ask_probe(p, "quantile(0.9, count_over_time(", str_text(&match), "))", e);
	str_finish(&match);
	double most = largest(p);
	s->step_ms = most >= 1 ? llround(p->range_s / most) * 1000 : 0;
	s->step_ms = s->step_ms > 0 ? s->step_ms : 1000;
	/* Missed scrapes make it look longer than it was set. */
	static const int64_t usual_ms[] = { 5000, 10000, 15000, 20000, 30000, 60000, 120000 };
	for (size_t i = 0; i < sizeof(usual_ms) / sizeof(usual_ms[0]); i++)
		if (llabs(s->step_ms - usual_ms[i]) * 10 <= usual_ms[i])
			s->step_ms = usual_ms[i];
	return rc;
}

/* Adds the query for all samples with a role. */
static void ask_raw(struct sampled *s, struct batch *b, enum exporter_role role)
{
	struct str query = { 0 }, match = { 0 };
	double slack_s = (double)sampled_limit(s->step_ms) / 1000;
	double to_s = (double)s->a->until_ms / 1000, from_s = (double)s->a->since_ms / 1000;
	from_s = fmax(from_s, to_s - OLDEST_S);
	if (exporter_match(s->x, &match, role, EXPORTER_ALL_RANKS)) {
		fleet_select(s->f, &query, "", str_text(&match));
		str_addf(&query, "[%llds]", (long long)ceil(to_s - from_s + 2 * slack_s));
		fleet_query(b, &query, to_s + slack_s, sampled_take, s);
	}
	b->failed |= match.failed;
	str_finish(&query);
	str_finish(&match);
}

/* Takes what the labels of a series say, and no sample. */
static int take_labels(void *context, const struct sample *sample, struct err *e)
{
	uint32_t number;
	return sampled_series(context, sample->labels, &number, e);
}

static void ask_info(struct sampled *s, struct batch *b, const struct probe *p)
{
	struct str query = { 0 }, match = { 0 };
	for (size_t i = PROBES;
		i-- > 0 && exporter_match(s->x, &match, EXPORTER_INFO, EXPORTER_ALL_RANKS);) {
		str_clear(&query);
		str_add(&query, "last_over_time(");
		fleet_select(s->f, &query, "", str_text(&match));
		str_addf(&query, "[%llds])", (long long)p->range_s);
		fleet_query(b, &query, probe_time(p, i), take_labels, s);
		str_clear(&match);
	}
	str_finish(&query);
	str_finish(&match);
}

static int take_least(void *context, const struct sample *sample, struct err *e)
{
	struct sampled *s = context;
	uint32_t number;
	int rc = sampled_number(s, sample, &number, e);
	if (rc)
		return rc;
	struct sampled_card *card = &s->cards[s->series[number].card];
	card->floor_bytes = fmin(card->floor_bytes, sample->value);
	return 0;
}

/* Finds the driver's own memory, where an exporter counts it as used, at the moments of the
 * probe. */
static int read_floors(struct sampled *s, const struct probe *p, struct err *e)
{
	struct batch b = { .fleet = s->f };
	struct str query = { 0 }, match = { 0 };
	exporter_match(s->x, &match, EXPORTER_MEMORY, EXPORTER_ALL_RANKS);
	str_add(&query, "min_over_time(");
	fleet_select(s->f, &query, "", str_text(&match));
	str_addf(&query, "[%llds])", (long long)p->range_s);
	for (size_t i = 0; i < PROBES; i++)
		fleet_query(&b, &query, probe_time(p, i), take_least, s);
	b.failed |= match.failed;
	str_finish(&query);
	str_finish(&match);
	int rc = fleet_run(&b, e);
	return rc ? rc : sampled_floors(s, e);
}

/* ERR_NOTHING: there are cards, and none that was asked for. */
static int check_cards(const struct sampled *s, struct err *e)
{
	const struct text_list *lists = s->q->only.lists;
	for (size_t i = 0; i < s->n_cards; i++)
		if (!s->cards[i].left_out)
			return 0;
	for (int kind = ONLY_CARD; kind < RESTRICTIONS && s->n_cards; kind++)
		if (lists[kind].n)
			return err_set(e, ERR_NOTHING, "no GPU of this window matches --%s",
				restriction_names[kind]);
	return 0;
}

static int read_raw(struct sampled *s, struct err *e)
{
	struct batch b = { .fleet = s->f };
	int64_t oldest_ms = -1;
	for (enum exporter_role role = 0; role < EXPORTER_INFO; role++)
		ask_raw(s, &b, role);
	int rc = fleet_run(&b, e);
	for (size_t i = 0; i < s->n_raws; i++)
		if (oldest_ms < 0 || s->raws[i].t_ms < oldest_ms)
			oldest_ms = s->raws[i].t_ms;
	sampled_restrict(s);
	if (rc == 0)
		rc = sampled_window(s, oldest_ms, e);
	return rc ? rc : sampled_judge(s, e);
}

/* With more samples of the cards' use than this in a second of --timeout, a million by default,
 * the engine judges them: it reads them much faster than it sends them. */
enum { SENT_A_SECOND = 8334 };

static int run(struct sampled *s, struct probe *p, struct err *e)
{
	struct batch b = { .fleet = s->f };
	s->a->of_users = restriction_of_users(&s->q->only);
	int rc = find_step(s, p, e);
	if (rc == 0)
		rc = count_series(p, s->x, &s->n_at_once, e);
	ask_info(s, &b, p);
	if (rc == 0)
		rc = fleet_run(&b, e);
	fleet_finish_batch(&b);
	if (rc)
		return rc;
	double n = s->n_at_once * (p->to_s - p->from_s) * 1000 / (double)s->step_ms;
	s->a->since_ms = llround(1000 * p->from_s);
	bool many = n > SENT_A_SECOND * (double)s->f->timeout_ms / 1000;
	if (many && s->x->has_reserved)
		rc = read_floors(s, p, e);
	if (rc == 0)
		rc = many ? sampled_hours(s, e) : read_raw(s, e);
	if (rc == 0)
		rc = check_cards(s, e);
	s->step_ms = clock_later(s->step_ms, s->x->reads_ms);
	return rc ? rc : sampled_fill(s, e);
}

int sampled_ask_run(struct audit *a, struct fleet *f, const struct sampled_question *q,
	bool *done, struct err *e)
{
	struct sampled s = { .f = f, .x = q->x, .q = q->audit, .a = a };
	audit_init(a);
	tzset();
	audit_clip(a, s.q, false);
	sampled_init(&s);
	struct probe p = probe_of(a, f);
	*done = false;
	if (p.to_s - p.from_s < 1)
		return err_set(e, ERR_USAGE, "the window is empty");
	int rc = *f->engine ? 0 : fleet_probe(f, e);
	if (rc == 0 && !s.x)
		rc = choose(&s, &p, e);
	*done = s.x != NULL;
	if (rc == 0 && s.x)
		rc = q->check(s.q, e);
	if (rc == 0 && s.x)
		rc = run(&s, &p, e);
	if (rc == 0 && s.x)
		rc = roster_compare(q->expected, a, &s.q->only, e);
	sampled_finish(&s);
	return rc;
}

/* Asks an engine for the samples of another exporter. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "fleet/sampled.h"

/* Finds the usual time between two scrapes: the series that has the most samples, but for a
 * few, has one at each. */
static int find_step(struct sampled *s, struct probe *p, struct err *e)
{
	struct str match = { 0 };
	exporter_match(s->x, &match, EXPORTER_MEMORY, EXPORTER_ALL_RANKS);
	const struct probe_query q = { "quantile(0.9, count_over_time(", str_text(&match), "))",
		NULL, NULL };
	int rc = probe_ask(p, &q, e);
	str_finish(&match);
	double most = probe_largest(p);
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
	return sampled_series(context, sample->labels, NULL, &number, e);
}

static int take_least(void *context, const struct sample *sample, struct err *e)
{
	struct sampled *s = context;
	uint32_t number;
	int rc = sampled_number(s, sample, NULL, &number, e);
	if (rc)
		return rc;
	struct sampled_card *card = &s->cards[s->series[number].card];
	card->floor_bytes = fmin(card->floor_bytes, sample->value);
	return 0;
}

/* Asks what the series with a role say at the moments of the probe: the labels, or the least
 * used memory, for what the driver keeps for itself. */
static int ask_role(struct sampled *s, struct probe *p, enum exporter_role role, struct err *e)
{
	struct str match = { 0 };
	bool some = exporter_match(s->x, &match, role, EXPORTER_ALL_RANKS);
	const struct probe_query labels = { "last_over_time(", str_text(&match), ")",
		take_labels, s },
				 least = { "min_over_time(", str_text(&match), ")", take_least,
					 s };
	int rc = some ? probe_ask(p, role == EXPORTER_MEMORY ? &least : &labels, e) : 0;
	str_finish(&match);
	return rc;
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
		rc = fleet_fill_window(s->fill, oldest_ms, e);
	return rc ? rc : sampled_judge(s, e);
}

/* Whether the fill has all cards that this exporter watched at the moments of the probe: where
 * gua is on all hosts, another exporter's samples need not be read. */
static int check_known(struct sampled *s, struct probe *p, bool *known, struct err *e)
{
	*known = false;
	if (s->fill->cards.n == 0)
		return 0;
	int rc = ask_role(s, p, EXPORTER_MEMORY, e);
	sampled_restrict(s);
	*known = s->n_cards > 0;
	for (size_t i = 0; i < s->n_cards; i++)
		*known &= s->cards[i].left_out;
	return rc;
}

/* With more samples of the cards' use than this in a second of --timeout, a million by default,
 * the engine judges them: it reads them much faster than it sends them. */
enum { SENT_A_SECOND = 8334 };

int sampled_ask_run(
	struct sampled *s, struct fleet_fill *fill, const struct exporter *x, struct err *e)
{
	*s = (struct sampled){ .fill = fill,
		.f = fill->f,
		.q = fill->q,
		.a = fill->a,
		.x = x,
		.rules = RULES_DEFAULT };
	struct probe p = probe_of(s->f, s->a->since_ms, s->a->until_ms);
	bool known = false;
	int rc = check_known(s, &p, &known, e);
	if (rc || known)
		return rc;
	s->rules.count_graphics = true; /* used memory is of all processes */
	s->a->rules = s->rules;
	s->a->since_ms = llround(1000 * p.from_s);
	rc = find_step(s, &p, e);
	if (rc == 0)
		rc = probe_count_cards(&p, x, &s->n_at_once, e);
	if (rc == 0)
		rc = ask_role(s, &p, EXPORTER_INFO, e);
	double n = s->n_at_once * (p.to_s - p.from_s) * 1000 / (double)s->step_ms;
	bool many = n > SENT_A_SECOND * (double)s->f->timeout_ms / 1000;
	if (many && x->has_reserved && rc == 0)
		rc = ask_role(s, &p, EXPORTER_MEMORY, e);
	if (many && x->has_reserved && rc == 0)
		rc = sampled_floors(s, e);
	if (rc == 0)
		rc = many ? sampled_hours(s, &p, e) : read_raw(s, e);
	s->step_ms = clock_later(s->step_ms, x->reads_ms);
	return rc ? rc : sampled_fill(s, e);
}

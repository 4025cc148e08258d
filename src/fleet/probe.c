/* Asks an engine at a few moments of a window. */
#include "fleet/probe.h"

/* The range of a moment; up to a day, the moments cover all of the window. */
enum { RANGE_MIN_S = 600, RANGE_MAX_S = 3 * 3600 };
enum { OLDEST_S = 400 * 86400 };

struct probe probe_of(struct fleet *f, int64_t since_ms, int64_t until_ms)
{
	double to_s = (double)until_ms / 1000;
	double from_s = fmax((double)since_ms / 1000, to_s - OLDEST_S);
	double range_s = fmin(fmax((to_s - from_s) / PROBES, RANGE_MIN_S), RANGE_MAX_S);
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
	struct probe_number *to = context;
	to->value = sample->value;
	return fleet_bound(to->f, ++to->n, e);
}

/* Asks at the moments first <= i < end, of which 0 is the newest. */
static int ask_some(
	struct probe *p, const struct probe_query *q, size_t first, size_t end, struct err *e)
{
	struct batch b = { .fleet = p->f };
	const char *names = q->x ? exporter_match(q->x, q->role, &b.texts) : "";
	const char *query = arena_textf(&b.texts, "%s%s[%llds]%s", q->before,
		fleet_select(&b, "",
			arena_textf(&b.texts, "%s%s%s", names ? names : "",
				q->x && q->matchers ? "," : "",
				q->matchers ? q->matchers : "")),
		(long long)p->range_s, q->after);
	for (size_t i = end; i-- > first;) {
		p->found[i] = (struct probe_number){ .f = p->f };
		if (names)
			fleet_query(&b, query, probe_time(p, i),
				q->take ? q->take : take_number,
				q->take ? q->context : &p->found[i]);
	}
	return fleet_run(&b, e);
}

int probe_ask(struct probe *p, const struct probe_query *q, struct err *e)
{
	return ask_some(p, q, 0, PROBES, e);
}

int probe_has(struct probe *p, const struct probe_query *q, bool *has, struct err *e)
{
	int rc = 0;
	*has = false;
	for (size_t i = 0; i < PROBES && rc == 0 && !*has; i++) {
		rc = ask_some(p, q, i, i + 1, e);
		*has = p->found[i].value > 0;
	}
	return rc;
}

double probe_largest(const struct probe *p)
{
	double most = 0;
	for (size_t i = 0; i < PROBES; i++)
		most = fmax(most, p->found[i].value);
	return most;
}

int64_t probe_oldest(const struct probe *p)
{
	size_t i = PROBES;
	while (i > 0 && !(p->found[i - 1].value > 0))
		i--;
	return i == PROBES ? llround(1000 * p->from_s)
	       : i	   ? llround(1000 * (probe_time(p, i - 1) - p->range_s))
			   : -1;
}

int probe_count(struct probe *p, const struct exporter *x, enum exporter_role role,
	const struct exporter_metric **found, struct err *e)
{
	const struct probe_query q = { "count(last_over_time(", "))", x, role, NULL, NULL,
		NULL };
	int rc = probe_ask(p, &q, e);
	*found = rc == 0 && probe_largest(p) > 0 ? exporter_first(x, role) : NULL;
	return rc;
}

int probe_count_cards(struct probe *p, const struct exporter *x, double *n, struct err *e)
{
	const struct exporter_metric *found;
	int rc = probe_count(p, x, EXPORTER_USE, &found, e);
	if (rc == 0 && !found)
		rc = probe_count(p, x, EXPORTER_MEMORY, &found, e);
	*n = probe_largest(p);
	return rc;
}

/* Finds users who began while their host could not be scraped: what their first sample shows
 * belongs to the window. A user who comes back after a long time looks alike, but shows more
 * than the time without a scrape allows. */
#include <math.h>
#include <stdlib.h>

#include "fleet/survey.h"

/* More are not looked at: the engine's history begins in the window. */
enum { MOST_ROWS = 200, STEP_S = 60 };

/* One user of a host. */
struct newcomer {
	struct survey *s;
	size_t row;
	double found_s;	 /* when the first sample was taken; NAN unknown */
	double before_s; /* up to when the host was accounted before that; NAN unknown */
};

static int take_found(void *context, const struct sample *sample, struct err *e)
{
	(void)e;
	((struct newcomer *)context)->found_s = sample->value;
	return 0;
}

static int take_before(void *context, const struct sample *sample, struct err *e)
{
	(void)e;
	((struct newcomer *)context)->before_s = sample->value;
	return 0;
}

/* Whether the first sample of a series shows more than a newborn's. */
static bool is_newcomer(const struct survey *s, const struct meter_row *row)
{
	const struct survey_host *h = &s->hosts[row->host];
	if (isnan(h->before[EDGE_START]) || h->left_out)
		return false;
	for (int state = 0; state < METER_STATES; state++)
		if (isnan(row->states[state].at[METER_BEFORE_START]) &&
			row->states[state].at[METER_FIRST] > 0)
			return true;
	return false;
}

static void ask(const struct newcomer *n, struct batch *b, bool before)
{
	const struct survey *s = n->s;
	const struct meter_row *row = &s->users.rows[n->row];
	struct str query = { 0 }, extra = { 0 };
	size_t at = 0;
	double length = s->edges[EDGE_END] - s->edges[EDGE_START];
	fleet_match_hosts(s->f, &extra, &s->hosts[row->host].key, 1, &at);
	if (before) {
		str_add(&query, "max(last_over_time(");
		fleet_select(s->f, &query, FAMILY_TIME, str_text(&extra));
		str_addf(&query, "[%ds]))", LONG_LOOK_S);
	} else {
		str_add(&extra, ",identity=");
		fleet_quote(&extra, row->name);
		str_add(&query, "min(min_over_time(timestamp(");
		fleet_select(s->f, &query, FAMILY_IDENTITY, str_text(&extra));
		str_addf(&query, ")[%llds:%ds]))", (long long)length, STEP_S);
	}
	b->failed |= extra.failed;
	batch_query(b, &query, before ? n->found_s - 1 : s->edges[EDGE_END],
		before ? take_before : take_found, (void *)(uintptr_t)n);
	str_finish(&query);
	str_finish(&extra);
}

/* Decides: what is possible since the last scrape before it began there. */
static void judge(const struct newcomer *n)
{
	struct survey *s = n->s;
	struct meter_row *row = &s->users.rows[n->row];
	double sum = 0, most = n->found_s - n->before_s;
	for (int state = 0; state < METER_STATES; state++)
		sum += row->states[state].at[METER_FIRST] > 0
			       ? row->states[state].at[METER_FIRST]
			       : 0;
	if (!(sum <= most * (double)s->hosts[row->host].n_cards))
		return;
	for (int state = 0; state < METER_STATES; state++)
		row->states[state].at[METER_FIRST] = 0;
}

int survey_newborn(struct survey *s, struct err *e)
{
	struct newcomer *all = calloc(MOST_ROWS, sizeof(*all));
	struct batch b = { .fleet = s->f };
	size_t n = 0;
	if (!all)
		return err_memory(e);
	for (size_t i = 0; i < s->users.n && n < MOST_ROWS; i++)
		if (is_newcomer(s, &s->users.rows[i]))
			all[n++] = (struct newcomer){ s, i, NAN, NAN };
	for (size_t i = 0; i < n; i++)
		ask(&all[i], &b, false);
	int rc = batch_run(&b, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		if (!isnan(all[i].found_s))
			ask(&all[i], &b, true);
	if (rc == 0)
		rc = batch_run(&b, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		judge(&all[i]);
	batch_finish(&b);
	free(all);
	return rc;
}

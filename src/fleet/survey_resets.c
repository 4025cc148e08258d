/* Finds what the counters of a host had counted when its store was lost: the samples around
 * that moment are read one by one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/survey.h"

/* More than these are not looked at: something else is wrong. */
enum { MOST_RESETS = 200 };

/* The samples of one host, in time order for each series. */
struct samples {
	struct survey_take to;
	struct meters found;
	double before;
};

static int take_raw(void *context, const struct sample *sample, struct err *e)
{
	struct samples *r = context;
	const char *name = label_of(sample->labels, "uuid");
	int state = r->to.state >= 0 ? r->to.state
				     : survey_state(label_of(sample->labels, "state"));
	char safe[UUID_CAP];
	struct survey_host *host = survey_host(r->to.s, sample, e);
	name = *name ? name : label_of(sample->labels, "identity");
	if (!host)
		return ERR_WORLD;
	if (state < 0 || !*name)
		return 0;
	text_escape(safe, sizeof(safe), name, strlen(name));
	struct meter_row *row =
		meters_find(&r->found, (uint32_t)(host - r->to.s->hosts), safe, e);
	if (!row)
		return ERR_WORLD;
	if (!*sample->note)
		row->states[state].lost = 0;
	else if (sample->value < r->before)
		row->states[state].lost += r->before;
	*sample->note = 1;
	row->states[state].at[METER_BEFORE_END] = r->before = sample->value;
	return 0;
}

/* Adds the question for a family of a host. */
static void ask(struct survey *s, struct batch *b, const struct survey_host *host,
	const char *family, struct samples *to)
{
	struct str query = { 0 }, extra = { 0 };
	size_t at = 0;
	fleet_match_hosts(s->f, &extra, &host->key, 1, &at);
	fleet_select(s->f, &query, family, str_text(&extra));
	str_addf(&query, "[%llds]", (long long)(host->reset_to - host->reset_from) + LOOK_S);
	batch_query(b, &query, host->reset_to, take_raw, to);
	b->failed |= extra.failed;
	str_finish(&query);
	str_finish(&extra);
}

/* Adds what was found to the counters. One that did not come back ended with its store. */
static int keep(struct samples *r, struct err *e)
{
	struct survey *s = r->to.s;
	for (size_t i = 0; i < r->found.n; i++) {
		const struct meter_row *from = &r->found.rows[i];
		bool users = r->to.to == &s->users;
		if (!names_has(&r->to.to->names, from->host, from->name) &&
			!(users && survey_takes_user(s, from)))
			continue;
		struct meter_row *to = meters_find(r->to.to, from->host, from->name, e);
		if (!to)
			return ERR_WORLD;
		for (int state = 0; state < METER_STATES; state++) {
			const struct meter *own = &from->states[state];
			bool ended = isnan(to->states[state].at[METER_BEFORE_END]) &&
				     own->lost <= 0 && own->at[METER_BEFORE_END] > 0;
			to->states[state].lost += ended ? own->at[METER_BEFORE_END] : own->lost;
		}
	}
	return 0;
}

static int read_host(struct survey *s, const struct survey_host *host, struct err *e)
{
	static const char *const families[] = { FAMILY_CARD, FAMILY_ENERGY, FAMILY_IDENTITY,
		FAMILY_SQUATTING };
	struct meters *const to[] = { &s->cards, &s->energy, &s->users, &s->users };
	struct samples samples[4] = { 0 };
	struct batch b = { .fleet = s->f };
	for (size_t i = 0; i < 4; i++) {
		samples[i].to = (struct survey_take){ s, to[i], 0,
			i == 3 ? (int)HOLDER_SQUATTING : -1 };
		ask(s, &b, host, families[i], &samples[i]);
	}
	int rc = batch_run(&b, e);
	for (size_t i = 0; i < 4; i++) {
		if (rc == 0)
			rc = keep(&samples[i], e);
		meters_finish(&samples[i].found);
	}
	return rc;
}

int survey_resets(struct survey *s, struct err *e)
{
	size_t n = 0;
	int rc = 0;
	for (size_t i = 0; i < s->n_hosts && rc == 0; i++)
		if (s->hosts[i].reset_to > 0 && n++ < MOST_RESETS)
			rc = read_host(s, &s->hosts[i], e);
	return rc;
}

/* Queries the engine of a fleet for one window, step by step. */
#include "fleet/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "fleet/roster.h"
#include "audit/restriction.h"

int survey_state(const char *label)
{
	for (int state = 0; state < CARD_STATES; state++)
		if (strcmp(card_state_names[state], label) == 0)
			return state;
	return strcmp(label, "idle") == 0 ? CARD_TRULY_IDLE : -1;
}

static struct survey_host *add_host(struct survey *s, const char *key, struct err *e)
{
	char name[HOST_KEY_CAP];
	roster_short_name(name, sizeof(name), key);
	const char *copy = arena_text(&s->arena, name);
	if (!copy || !array_one_more(&s->hosts, s->n_hosts)) {
		err_memory(e);
		return NULL;
	}
	struct survey_host *host = &s->hosts[s->n_hosts];
	*host = (struct survey_host){ .key = s->names.items[s->n_hosts].text,
		.name = copy,
		.before = { NAN, NAN },
		.after = { NAN, NAN },
		.first = NAN,
		.last = NAN,
		.left_out = !restriction_takes_host(&s->q->only, name) &&
			    !restriction_takes_host(&s->q->only, key) };
	s->n_hosts++;
	return host;
}

struct survey_host *survey_host(struct survey *s, const struct sample *sample, struct err *e)
{
	char key[HOST_KEY_CAP];
	if (!fleet_host(s->f, sample->labels, key)) {
		err_set(e, ERR_WORLD,
			"a series has no label %s; --host-label names the one that tells hosts "
			"apart",
			s->f->by);
		return NULL;
	}
	uint32_t index = names_find(&s->names, 0, key, e);
	if (index == IDMAP_NONE || fleet_bound(s->f, s->names.n, e))
		return NULL;
	return index < s->n_hosts ? &s->hosts[index] : add_host(s, key, e);
}

/* Takes up to when the counters of a host were accounted. */
static int take_time(void *context, const struct sample *sample, struct err *e)
{
	const struct survey_take *take = context;
	struct survey_host *host = survey_host(take->s, sample, e);
	if (!host)
		return ERR_WORLD;
	double *const places[METER_SLOTS] = { &host->before[0], &host->after[0],
		&host->before[1], &host->after[1], &host->first };
	*places[take->slot] = sample->value;
	if (take->slot != METER_AFTER_END && !(host->last >= sample->value))
		host->last = sample->value;
	return 0;
}

static int take_meter(void *context, const struct sample *sample, struct err *e)
{
	const struct survey_take *take = context;
	const char *uuid = engine_answer_label(sample->labels, "uuid");
	const char *name = *uuid ? uuid : engine_answer_label(sample->labels, "identity");
	int state = take->state >= 0
			    ? take->state
			    : survey_state(engine_answer_label(sample->labels, "state"));
	char safe[UUID_CAP];
	struct survey_host *host = survey_host(take->s, sample, e);
	if (!host)
		return ERR_WORLD;
	if (state < 0 || !*name || sample->value < 0 || sample->value > 1e14)
		return 0;
	str_escape(safe, sizeof(safe), name, strlen(name));
	struct meter_row *row =
		meter_find(take->to, (uint32_t)(host - take->s->hosts), safe, e);
	if (!row)
		return ERR_WORLD;
	if (*uuid)
		str_copy(
			row->gpu, sizeof(row->gpu), engine_answer_label(sample->labels, "gpu"));
	row->states[state].at[take->slot] = sample->value;
	return 0;
}

/* Adds the query for one family: its labels in addition to those of the host, and where the
 * samples go. */
static void ask_family(struct survey *s, struct batch *b, const struct survey_question *q,
	const char *family, struct survey_take take)
{
	struct survey_take *context = arena_take(&s->arena, sizeof(*context));
	struct str query = { 0 };
	bool after = strcmp(q->over, "min_over_time") == 0;
	const char *by = take.to == &s->cards || take.to == &s->energy ? ",gpu,uuid,state"
			 : !take.to				       ? ""
			 : take.state >= 0			       ? ",identity"
								       : ",identity,state";
	/* With replicas: takes the newest value before an edge, the oldest after it. Without
	 * replicas, grouping would only cost time. */
	if (s->has_twins)
		str_addf(&query, "%s by (%s%s) (", after ? "min" : "max", s->f->by, by);
	str_addf(&query, "%s(", q->over);
	fleet_select(s->f, &query, family, q->extra);
	str_addf(&query, "[%llds])%s", (long long)ceil(q->range_s), s->has_twins ? ")" : "");
	if (context) {
		*context = take;
		fleet_query(b, &query, q->time_s, take.to ? take_meter : take_time, context);
	}
	b->failed |= !context;
	str_finish(&query);
}

void survey_ask(struct survey *s, struct batch *b, const struct survey_question *q)
{
	struct survey_take time = { s, NULL, q->slot, -1 },
			   cards = { s, &s->cards, q->slot, -1 },
			   energy = { s, &s->energy, q->slot, -1 },
			   users = { s, &s->users, q->slot, -1 },
			   squatting = { s, &s->users, q->slot, HOLDER_SQUATTING };
	ask_family(s, b, q, FAMILY_TIME, time);
	ask_family(s, b, q, FAMILY_CARD, cards);
	ask_family(s, b, q, FAMILY_ENERGY, energy);
	ask_family(s, b, q, FAMILY_IDENTITY, users);
	ask_family(s, b, q, FAMILY_SQUATTING, squatting);
}

/* The sum of a card's counters at the first sample. */
static double first_sum(const struct meter_row *row)
{
	double sum = 0;
	for (int state = 0; state < METER_STATES; state++)
		if (!isnan(row->states[state].at[METER_FIRST]))
			sum += row->states[state].at[METER_FIRST];
	return sum;
}

/* The counter of a new card at the start: 0, unless the card began before. */
static double newborn_start(const struct survey *s, const struct meter_row *row, double first)
{
	double seen = s->hosts[row->host].first, born = seen - first_sum(row);
	const struct edge_times times = { s->edges[EDGE_START], born, seen };
	return isnan(born) ? 0 : meter_value(0, first, &times);
}

double survey_start(
	const struct survey *s, const struct meter_row *row, int state, bool *in_sum)
{
	const struct survey_host *h = &s->hosts[row->host];
	const double *at = row->states[state].at;
	bool known = !isnan(at[METER_BEFORE_START]);
	bool found = !isnan(at[METER_AFTER_START]);
	const struct edge_times times = { s->edges[EDGE_START], h->before[EDGE_START],
		found ? h->after[EDGE_START] : h->first };
	if (in_sum)
		*in_sum = known || isnan(h->before[EDGE_START]);
	if (known)
		return meter_value(at[METER_BEFORE_START],
			found ? at[METER_AFTER_START] : at[METER_FIRST], &times);
	/* A card that is not in the snapshot began in the window, or is new to the engine. */
	if (*row->gpu && first_sum(row) <= NEWBORN_S && !isnan(at[METER_FIRST]))
		return newborn_start(s, row, at[METER_FIRST]);
	return isnan(at[METER_FIRST]) ? 0 : at[METER_FIRST];
}

double survey_end(const struct survey *s, const struct meter_row *row, int state)
{
	const struct survey_host *h = &s->hosts[row->host];
	const double *at = row->states[state].at;
	const struct edge_times times = { s->edges[EDGE_END], h->before[EDGE_END],
		h->after[EDGE_END] };
	return meter_value(at[METER_BEFORE_END], at[METER_AFTER_END], &times);
}

static void finish(struct survey *s)
{
	names_finish(&s->names);
	names_finish(&s->info_names);
	meter_finish(&s->cards);
	meter_finish(&s->energy);
	meter_finish(&s->users);
	free(s->hosts);
	free(s->infos);
	arena_finish(&s->arena);
}

int survey_run(struct audit *a, struct fleet *f, const struct audit_question *q,
	struct roster *expected, struct err *e)
{
	static int (*const steps[])(struct survey *, struct err *) = { survey_edges,
		survey_edges_exceptions, survey_choose, survey_hours, survey_edges_newborn,
		survey_edges_resets, survey_fill };
	struct survey s = { .f = f,
		.q = q,
		.a = a,
		.expected = expected,
		.oldest = NAN,
		.now_s = (double)q->now_ms / 1000,
		.clock = { .utc = q->utc } };
	int rc = 0;
	audit_init(a);
	tzset();
	audit_clip(a, q, false);
	s.edges[EDGE_START] = (double)a->since_ms / 1000;
	s.edges[EDGE_END] = (double)a->until_ms / 1000;
	if (s.edges[EDGE_END] - s.edges[EDGE_START] < 1)
		return err_set(e, ERR_USAGE, "the window is empty");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0; i++)
		rc = steps[i](&s, e);
	finish(&s);
	if (rc == 0)
		audit_add_up(a);
	return rc ? rc : roster_compare(expected, a, &q->only, e);
}

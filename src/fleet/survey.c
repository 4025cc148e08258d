/* Queries the engine of a fleet for one window, step by step: the counters at its edges, how
 * much they grew, and which hosts, cards and users are selected. */
#include "fleet/survey.h"

#include "audit/audit.h"
#include "fleet/roster.h"

const struct survey_family survey_families[COUNT_KINDS] = {
	[COUNT_CARDS] = { FAMILY_CARD, "uuid", ",gpu,uuid,state", -1 },
	[COUNT_ENERGY] = { FAMILY_ENERGY, "uuid", ",gpu,uuid,state", -1 },
	[COUNT_USERS] = { FAMILY_IDENTITY, "identity", ",identity,state", -1 },
	[COUNT_SQUATTING] = { FAMILY_SQUATTING, "identity", ",identity", HOLDER_SQUATTING },
};

struct meters *survey_meters(struct survey *s, const struct survey_family *family)
{
	struct meters *const all[COUNT_KINDS] = { &s->cards, &s->energy, &s->users, &s->users };
	return all[family - survey_families];
}

int survey_state(const struct survey_family *family, const struct sample *sample)
{
	const char *label = engine_answer_label(sample->labels, "state");
	for (int state = 0; state < CARD_STATES && family->state < 0; state++)
		if (strcmp(state_looks[state].key, label) == 0 ||
			strcmp(state_looks[state].label, label) == 0)
			return state;
	return family->state;
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
		.at = { NAN, NAN, NAN, NAN, NAN },
		.last = NAN,
		.left_out = !restriction_takes_host(&s->q->only, name) &&
			    !restriction_takes_host(&s->q->only, key) };
	s->n_hosts++;
	return host;
}

struct survey_host *survey_host(struct survey *s, const struct sample *sample, struct err *e)
{
	char key[HOST_KEY_CAP];
	if (fleet_host(s->f, sample->labels, key, e))
		return NULL;
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
	host->at[take->slot] = sample->value;
	if (take->slot != METER_AFTER_END && !(host->last >= sample->value))
		host->last = sample->value;
	return 0;
}

int survey_take_value(void *context, const struct sample *sample, struct err *e)
{
	(void)e;
	*(double *)context = sample->value;
	return 0;
}

struct meter_row *survey_row(const struct survey_take *take, struct meters *to,
	const struct sample *sample, int *state, struct err *e)
{
	const char *name = engine_answer_label(sample->labels, take->family->label);
	char safe[UUID_CAP];
	const struct survey_host *host = survey_host(take->s, sample, e);
	*state = survey_state(take->family, sample);
	if (!host || *state < 0 || !*name)
		return NULL;
	str_escape(safe, sizeof(safe), name, strlen(name));
	return meter_find(to, (uint32_t)(host - take->s->hosts), safe, e);
}

static int take_meter(void *context, const struct sample *sample, struct err *e)
{
	const struct survey_take *take = context;
	int state;
	struct meters *to = survey_meters(take->s, take->family);
	if (sample->value < 0 || sample->value > 1e14)
		return survey_host(take->s, sample, e) ? 0 : ERR_WORLD;
	struct meter_row *row = survey_row(take, to, sample, &state, e);
	if (!row)
		return e->code;
	if (*engine_answer_label(sample->labels, "uuid"))
		str_copy(
			row->gpu, sizeof(row->gpu), engine_answer_label(sample->labels, "gpu"));
	struct meter *meter = meter_add(to, row, state, e);
	if (meter)
		meter->at[take->slot] = sample->value;
	return meter ? 0 : ERR_WORLD;
}

/* Adds the query for one family; NULL: up to when the counters of hosts were accounted. */
static void ask_family(struct survey *s, struct batch *b, const struct survey_question *q,
	const struct survey_family *family)
{
	struct survey_take *take = arena_take(&s->arena, sizeof(*take));
	enum edge edge = q->slot < METER_BEFORE_END ? EDGE_START : EDGE_END;
	bool after = q->slot == METER_AFTER_START || q->slot == METER_AFTER_END;
	bool last = !after && q->slot != METER_FIRST;
	/* The smallest value after an edge is the first one, unless a store is lost in that
	 * time; so the time is as short as possible. */
	double time_s = s->edges[edge] + (after ? s->lag_s + 1 + q->range_s : 0);
	const char *query =
		arena_textf(&b->texts, "%s_over_time(%s[%llds])", last ? "last" : "min",
			fleet_select(b, family ? family->name : FAMILY_TIME, q->extra),
			(long long)ceil(q->range_s));
	/* With replicas: takes the newest value before an edge, the oldest after it. Without
	 * replicas, grouping would only cost time. */
	if (s->has_twins)
		query = arena_textf(&b->texts, "%s by (%s%s) (%s)", last ? "max" : "min",
			s->f->by, family ? family->by : "", query);
	b->texts.failed |= !take;
	if (take)
		*take = (struct survey_take){ s, family, q->slot };
	fleet_query(b, query, time_s, family ? take_meter : take_time, take);
}

void survey_ask(struct survey *s, struct batch *b, const struct survey_question *q)
{
	ask_family(s, b, q, NULL);
	for (size_t i = 0; i < COUNT_KINDS; i++)
		ask_family(s, b, q, &survey_families[i]);
}

/* The sum of a card's counters at the first sample. */
static double first_sum(const struct meter_row *row)
{
	double sum = 0;
	for (int state = 0; state < METER_STATES; state++)
		if (!isnan(meter_of(row, state)->at[METER_FIRST]))
			sum += meter_of(row, state)->at[METER_FIRST];
	return sum;
}

/* The counter of a new card at the start: 0, unless the card began before. */
static double newborn_start(const struct survey *s, const struct meter_row *row, double first)
{
	double seen = s->hosts[row->host].at[METER_FIRST], born = seen - first_sum(row);
	const struct edge_times times = { s->edges[EDGE_START], born, seen };
	return isnan(born) ? 0 : meter_value(0, first, &times);
}

double survey_start(
	const struct survey *s, const struct meter_row *row, int state, bool *in_sum)
{
	const struct survey_host *h = &s->hosts[row->host];
	const double *at = meter_of(row, state)->at;
	bool known = !isnan(at[METER_BEFORE_START]);
	bool found = !isnan(at[METER_AFTER_START]);
	const struct edge_times times = { s->edges[EDGE_START], h->at[METER_BEFORE_START],
		found ? h->at[METER_AFTER_START] : h->at[METER_FIRST] };
	if (in_sum)
		*in_sum = known || isnan(h->at[METER_BEFORE_START]);
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
	const double *at = meter_of(row, state)->at;
	const struct edge_times times = { s->edges[EDGE_END], h->at[METER_BEFORE_END],
		h->at[METER_AFTER_END] };
	return meter_value(at[METER_BEFORE_END], at[METER_AFTER_END], &times);
}

int64_t survey_growth(const struct survey *s, const struct meter_row *row, int state)
{
	double end = survey_end(s, row, state);
	if (isnan(end) && !(meter_of(row, state)->lost > 0))
		return -1;
	if (isnan(end)) /* it did not come back after the store was lost */
		end = 0;
	int64_t ms = llround(1000 * end) - llround(1000 * survey_start(s, row, state, NULL)) +
		     llround(1000 * meter_of(row, state)->lost);
	return ms > 0 ? ms : 0;
}

int64_t survey_grown(const struct survey *s, const struct meter_row *row, int state)
{
	int64_t ms = survey_growth(s, row, state);
	return ms > 0 ? ms : 0;
}

const char *survey_info(
	const struct survey *s, const struct meter_row *row, enum survey_info which)
{
	return row->info[which] ? s->infos.items[row->info[which] - 1].text : "";
}

void survey_card_id(struct card_id *id, const struct survey *s, const struct meter_row *row)
{
	char *end;
	id->index = (int)strtol(row->gpu, &end, 10);
	if (*end == ':')
		id->mig_index = (int)strtol(end + 1, NULL, 10);
	str_copy(id->uuid, sizeof(id->uuid), row->name);
	str_copy(id->name, sizeof(id->name), survey_info(s, row, INFO_MODEL));
}

static bool takes_card(const struct survey *s, const struct meter_row *row)
{
	struct audit_card card = { .id = { .mig_index = -1 } };
	survey_card_id(&card.id, s, row);
	return restriction_takes_card(&s->q->only, &card);
}

bool survey_takes_user(const struct survey *s, const struct meter_row *row)
{
	const struct audit_question *q = s->q;
	const char *group = q->group_of ? q->group_of(q->group_context, row->name) : NULL;
	return !s->no_users && strcmp(row->name, NOBODY) != 0 &&
	       restriction_takes_user(&q->only, row->name, group);
}

static int by_host(const void *x, const void *y)
{
	const struct meter_row *p = x, *q = y;
	int order = array_compare(p->host, q->host);
	return order ? order : strcmp(p->name, q->name);
}

/* Keeps the rows that are selected, grouped by host. */
static int keep(struct survey *s, struct meters *m,
	bool (*takes)(const struct survey *s, const struct meter_row *row), struct err *e)
{
	struct meters kept = { .values = m->values };
	int rc = 0;
	array_sort(m->rows, m->n, by_host);
	for (size_t i = 0; i < m->n && rc == 0; i++) {
		const struct meter_row *from = &m->rows[i];
		if (!takes(s, from)) {
			s->hosts[from->host].is_partial |= m == &s->cards;
			continue;
		}
		struct meter_row *to = meter_find(&kept, from->host, from->name, e);
		if (to) {
			const char *name = to->name;
			*to = *from;
			to->name = name;
		}
		rc = to ? 0 : ERR_WORLD;
	}
	m->values = (struct arena){ 0 };
	meter_finish(m);
	*m = kept;
	return rc;
}

/* Drops users of hosts of which only some cards are included: their time there is unknown. */
static int drop_users(struct survey *s, struct err *e)
{
	bool partial = false;
	for (size_t i = 0; i < s->cards.n; i++)
		partial |= s->hosts[s->cards.rows[i].host].is_partial;
	if (!partial)
		return 0;
	if (s->a->of_users || identity_by_has(&s->q->by, IDENTITY_USER) ||
		identity_by_has(&s->q->by, IDENTITY_GROUP))
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet say who used a host, not on which card, and "
			"some of these hosts have other cards too: with --from, --card and "
			"--model do not combine with --user, --group and their --by");
	meter_finish(&s->users);
	s->no_users = true;
	return 0;
}

static int choose(struct survey *s, struct err *e)
{
	const struct restriction *only = &s->q->only;
	size_t n_cards = s->cards.n;
	if (only->lists[ONLY_CARD].n || only->lists[ONLY_MODEL].n) {
		if (keep(s, &s->cards, takes_card, e))
			return e->code;
		if (n_cards && s->cards.n == 0)
			return err_set(e, ERR_NOTHING, "no GPU of this window matches --%s",
				restriction_names[only->lists[ONLY_CARD].n ? ONLY_CARD
									   : ONLY_MODEL]);
		if (drop_users(s, e))
			return e->code;
	}
	return s->a->of_users ? keep(s, &s->users, survey_takes_user, e) : 0;
}

int survey_run(struct survey *s, struct fleet_fill *fill, struct err *e)
{
	static int (*const steps[])(struct survey *, struct err *) = { survey_edges,
		survey_edges_exceptions, choose, survey_hours, survey_edges_newborn,
		survey_edges_resets, survey_fill };
	int rc = 0;
	*s = (struct survey){ .fill = fill,
		.f = fill->f,
		.q = fill->q,
		.a = fill->a,
		.oldest = NAN,
		.now_s = (double)fill->q->now_ms / 1000,
		.edges = {
			(double)fill->a->since_ms / 1000, (double)fill->a->until_ms / 1000 } };
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0; i++)
		rc = steps[i](s, e);
	return rc;
}

void survey_finish(struct survey *s)
{
	names_finish(&s->names);
	names_finish(&s->infos);
	meter_finish(&s->cards);
	meter_finish(&s->energy);
	meter_finish(&s->users);
	free(s->hosts);
	arena_finish(&s->arena);
}

/* Adds the hours of the week and the days to an audit: reads the sums of each host at every
 * full hour of the window, and adds the growth from one to the next. Together this is the
 * growth of the counters over the window. A decreasing sum shows a lost store. */
#include "fleet/survey.h"

/* Limits: sums that are kept at a time; samples that the engine reads for one query, and
 * values that it keeps for it (VictoriaMetrics refuses 1e9, Prometheus 50e6). */
enum { MOST_CELLS = 4000000, MOST_SAMPLES = 500000000, MOST_VALUES = 20000000 };
enum { SAMPLES_PER_HOUR = 60 };
/* Snapshots may differ in time by this much: a sum that decreases by less is not a reset. */
enum { SLACK_MS = 1000 * (LOOK_S + 100) };

#define PLACE_NONE UINT64_MAX

/* Full hours of the window, and the sums at some of them. */
struct hours {
	struct survey *s;
	const struct survey_family *family; /* of the counters */
	const struct meters *rows;
	int64_t first, n; /* number of the first hour since 1970, and how many */
	int64_t from, to; /* those in `sums`, from <= hour < to, from 0 on */
	double *sums;	  /* by hour, then host, then state; NAN: none */
	size_t n_hosts;
};

static struct fleet_stretch stretch_of(double from_s, double to_s)
{
	return (struct fleet_stretch){ llround(1000 * from_s), llround(1000 * to_s) };
}

/* Where the sums of a series go, the same for all its samples: 1 + the index in a row of all
 * hosts and states. PLACE_NONE: nowhere. */
static int place_series(struct hours *h, const struct sample *sample, struct err *e)
{
	int state = survey_state(h->family, sample);
	const struct survey_host *host = survey_host(h->s, sample, e);
	if (!host)
		return ERR_WORLD;
	size_t index = (size_t)(host - h->s->hosts);
	bool good = state >= 0 && state < METER_STATES && index < h->n_hosts;
	*sample->note = good ? 1 + index * METER_STATES + (size_t)state : PLACE_NONE;
	return 0;
}

static int take_sum(void *context, const struct sample *sample, struct err *e)
{
	struct hours *h = context;
	int rc = *sample->note ? 0 : place_series(h, sample, e);
	int64_t hour = llround(sample->time_s / HOUR_S) - h->first;
	if (rc || *sample->note == PLACE_NONE || hour < h->from || hour >= h->to)
		return rc;
	size_t row = (size_t)(hour - h->from) * h->n_hosts * METER_STATES;
	h->sums[row + *sample->note - 1] = sample->value;
	return 0;
}

/* Whether only some rows are selected. */
static bool restriction_of_rows(const struct hours *h)
{
	const struct text_list *only = h->s->q->only.lists;
	return h->rows == &h->s->users || only[ONLY_CARD].n || only[ONLY_MODEL].n;
}

/* Whether the recording rule has the sums of all hosts at both edges. */
static int has_recorded_sums(const struct hours *h, bool *has, struct err *e)
{
	struct survey *s = h->s;
	struct batch b = { .fleet = s->f };
	double counts[EDGES] = { 0 };
	*has = false;
	if (restriction_of_rows(h))
		return 0;
	const char *query =
		arena_textf(&b.texts, "count(count by (%s) (last_over_time(%s[%ds])))",
			s->f->by, fleet_select(&b, FAMILY_HOST_SUM, ""), LOOK_S);
	for (int edge = 0; edge < EDGES; edge++)
		fleet_query(&b, query, s->edges[edge], survey_take_value, &counts[edge]);
	int rc = fleet_run(&b, e);
	*has = true;
	for (int edge = 0; edge < EDGES; edge++) {
		double n = 0;
		for (size_t i = 0; i < s->n_hosts; i++)
			n += !isnan(s->hosts[i].at[SLOT_BEFORE(edge)]);
		*has &= counts[edge] == n;
	}
	return rc;
}

/* Queries the sums at the hours h->from .. h->to, of the rows that the matchers select. */
static void ask_part(struct hours *h, struct batch *b, bool recorded, const char *extra)
{
	struct survey *s = h->s;
	const char *by = s->f->by, *state = h->family->state >= 0 ? "" : ",state";
	int64_t series = 1 + (int64_t)(recorded ? s->n_hosts : h->rows->n) * 4;
	int64_t each = 1 + MOST_SAMPLES / (series * SAMPLES_PER_HOUR);
	if (each > 1 + MOST_VALUES / series)
		each = 1 + MOST_VALUES / series;
	const char *query = arena_textf(&b->texts, "last_over_time(%s[%ds])",
		fleet_select(b, recorded ? FAMILY_HOST_SUM : h->family->name, extra), LOOK_S);
	if (s->has_twins && !recorded)
		query = arena_textf(
			&b->texts, "max by (%s,%s%s) (%s)", by, h->family->label, state, query);
	query = arena_textf(
		&b->texts, "%s by (%s%s) (%s)", recorded ? "max" : "sum", by, state, query);
	for (int64_t from = h->from; from < h->to && !b->texts.failed; from += each) {
		int64_t last = from + each < h->to ? from + each - 1 : h->to - 1;
		const struct fleet_span span = { (double)((h->first + from) * HOUR_S),
			(double)((h->first + last) * HOUR_S) };
		fleet_query_hours(b, query, span, take_sum, h);
	}
}

/* Queries the selected rows by name, in as many parts as needed. All rows of a host are in
 * one part, because its sum must be in one answer. */
static void ask_chosen(struct hours *h, struct batch *b)
{
	const struct meters *m = h->rows;
	struct names asked = { 0 };
	struct str extra = { 0 };
	struct err e = { 0 };
	for (size_t i = 0; i < m->n && !b->texts.failed; i++) {
		bool more = true, same = i + 1 < m->n && m->rows[i + 1].host == m->rows[i].host;
		if (!names_has(&asked, 0, m->rows[i].name))
			more = fleet_match_more(&extra, h->family->label, m->rows[i].name);
		b->texts.failed |= names_find(&asked, 0, m->rows[i].name, &e) == IDMAP_NONE;
		if (i + 1 < m->n && (more || same || h->rows == &h->s->users))
			continue;
		str_add(&extra, "\"");
		ask_part(h, b, false, str_text(&extra));
		b->texts.failed |= extra.failed;
		str_clear(&extra);
		fleet_free_texts(b);
	}
	names_finish(&asked);
	str_finish(&extra);
}

/* The state in which time is counted; a squatting user counts as idle. */
static int state_of(bool of_users, int state)
{
	return of_users && state == HOLDER_SQUATTING ? (int)CARD_IDLE_HELD : state;
}

/* Adds the growth of a host's sum up to a moment. */
static void grow(
	struct hours *h, struct survey_host *host, int state, double time_s, int64_t value_ms)
{
	struct survey *s = h->s;
	bool of_users = h->rows == &s->users;
	int64_t before_ms = host->start_ms[state], grown_ms = value_ms - before_ms;
	double from_s = host->booked_to[state];
	if (from_s >= time_s)
		return;
	if (grown_ms < 0) {
		/* For users, resets are known from the cards. */
		if (of_users ? !(host->reset_to > 0)
			     : -grown_ms <= (int64_t)host->n_cards * SLACK_MS)
			return;
		if (!(host->reset_to > 0)) {
			host->reset_from = from_s;
			s->n_resets++;
		}
		host->reset_to = time_s; /* of the last one, if there are several */
		grown_ms = value_ms;
	}
	fleet_fill_time(
		s->fill, stretch_of(from_s, time_s), state_of(of_users, state), grown_ms);
	host->booked_ms[state] += grown_ms;
	host->start_ms[state] = value_ms;
	host->booked_to[state] = time_s;
}

static void fold(struct hours *h)
{
	struct survey *s = h->s;
	for (int64_t hour = h->from; hour < h->to; hour++)
		for (size_t i = 0; i < h->n_hosts; i++) {
			size_t row = (size_t)(hour - h->from) * h->n_hosts + i;
			for (int state = 0; state < METER_STATES; state++) {
				double sum = h->sums[row * METER_STATES + (size_t)state];
				if (!isnan(sum) && !s->hosts[i].left_out)
					grow(h, &s->hosts[i], state,
						(double)((h->first + hour) * HOUR_S),
						llround(1000 * sum));
			}
		}
}

/* Sums up the counters of each host at the start. */
static void begin(const struct hours *h)
{
	struct survey *s = h->s;
	for (size_t i = 0; i < s->n_hosts; i++) {
		struct survey_host *host = &s->hosts[i];
		memset(host->start_ms, 0, sizeof(host->start_ms));
		memset(host->end_ms, 0, sizeof(host->end_ms));
		memset(host->booked_ms, 0, sizeof(host->booked_ms));
		bool known = !isnan(host->at[METER_BEFORE_START]);
		for (int state = 0; state < METER_STATES; state++)
			host->booked_to[state] = known || isnan(host->at[METER_FIRST])
							 ? s->edges[EDGE_START]
							 : host->at[METER_FIRST];
	}
	for (size_t i = 0; i < h->rows->n; i++) {
		const struct meter_row *row = &h->rows->rows[i];
		s->hosts[row->host].n_cards += h->rows == &s->cards;
		for (int state = 0; state < METER_STATES; state++) {
			bool in_sum = false;
			double value = survey_start(s, row, state, &in_sum);
			if (in_sum)
				s->hosts[row->host].start_ms[state] += llround(1000 * value);
		}
	}
}

/* The time from the last full hour to the end. */
static void finish(struct hours *h)
{
	struct survey *s = h->s;
	for (size_t i = 0; i < h->rows->n; i++)
		for (int state = 0; state < METER_STATES; state++) {
			const struct meter_row *row = &h->rows->rows[i];
			double value = survey_end(s, row, state);
			s->hosts[row->host].end_ms[state] +=
				isnan(value) ? 0 : llround(1000 * value);
		}
	for (struct survey_host *host = s->hosts; host < s->hosts + s->n_hosts; host++)
		for (int state = 0; state < METER_STATES; state++)
			if (!host->left_out)
				grow(h, host, state, s->edges[EDGE_END], host->end_ms[state]);
}

static int read_hours(struct hours *h, struct err *e)
{
	struct batch b = { .fleet = h->s->f };
	bool recorded = false;
	int64_t each = MOST_CELLS / (int64_t)(h->n_hosts * METER_STATES);
	each = each > 0 ? each : 1;
	each = each < h->n ? each : h->n;
	size_t cells = (size_t)each * h->n_hosts * METER_STATES;
	h->sums = malloc(cells * sizeof(*h->sums));
	int rc = h->sums ? has_recorded_sums(h, &recorded, e) : err_memory(e);
	for (h->from = 0; h->from < h->n && rc == 0; h->from = h->to) {
		h->to = h->from + each < h->n ? h->from + each : h->n;
		for (size_t i = 0; i < cells; i++)
			h->sums[i] = NAN;
		if (restriction_of_rows(h))
			ask_chosen(h, &b);
		else
			ask_part(h, &b, recorded, "");
		rc = fleet_run(&b, e);
		if (rc == 0)
			fold(h);
	}
	free(h->sums);
	return rc;
}

static struct hours hours_of(struct survey *s, enum survey_kind kind)
{
	int64_t first = (int64_t)floor(s->edges[EDGE_START] / HOUR_S) + 1;
	int64_t end = (int64_t)ceil(s->edges[EDGE_END] / HOUR_S);
	return (struct hours){ .s = s,
		.family = &survey_families[kind],
		.rows = survey_meters(s, &survey_families[kind]),
		.first = first,
		.n = end - first,
		.n_hosts = s->n_hosts };
}

int survey_hours(struct survey *s, struct err *e)
{
	struct hours h = hours_of(s, COUNT_CARDS);
	s->fill->clock.days_only = s->a->of_users;
	int rc = 0;
	begin(&h);
	if (h.n > 0 && s->n_hosts)
		rc = read_hours(&h, e);
	if (rc == 0)
		finish(&h);
	return rc;
}

void survey_hours_settle(struct survey *s, const struct meters *m)
{
	bool of_users = m == &s->users;
	for (size_t i = 0; i < m->n; i++)
		for (int state = 0; state < METER_STATES; state++)
			s->hosts[m->rows[i].host].booked_ms[state] -=
				survey_grown(s, &m->rows[i], state);
	for (size_t i = 0; i < s->n_hosts; i++) {
		struct survey_host *h = &s->hosts[i];
		struct fleet_stretch t =
			h->reset_to > 0 ? stretch_of(h->reset_from, h->reset_to)
					: stretch_of(s->edges[EDGE_START], s->edges[EDGE_END]);
		for (int state = 0; state < METER_STATES && !h->left_out; state++)
			fleet_fill_time(
				s->fill, t, state_of(of_users, state), -h->booked_ms[state]);
	}
}

int survey_hours_of_users(struct survey *s, struct err *e)
{
	int rc = 0;
	hours_clear(&s->a->days);
	s->fill->clock.days_only = false;
	struct hours h = hours_of(s, COUNT_USERS);
	begin(&h);
	for (int kind = COUNT_USERS; kind <= COUNT_SQUATTING && rc == 0; kind++) {
		h.family = &survey_families[kind];
		if (h.n > 0 && s->users.n)
			rc = read_hours(&h, e);
	}
	if (rc == 0)
		finish(&h);
	survey_hours_settle(s, &s->users);
	return rc;
}

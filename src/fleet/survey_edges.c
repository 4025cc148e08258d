/* Reads the counters at both edges of a window; then queries one by one the series that
 * came, went or lost their store in it. */
#include "fleet/survey.h"

/* At most this many hosts that lost their store are examined: more mean another fault. */
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
	int state;
	struct meter_row *row = survey_row(&r->to, &r->found, sample, &state, e);
	if (!row)
		return e->code;
	struct meter *meter = meter_add(&r->found, row, state, e);
	if (!meter)
		return ERR_WORLD;
	if (!*sample->note)
		meter->lost = 0;
	else if (sample->value < r->before)
		meter->lost += r->before;
	*sample->note = 1;
	meter->at[METER_BEFORE_END] = r->before = sample->value;
	return 0;
}

/* Adds the query for one family of a host. */
static void ask_resets(struct batch *b, const struct survey_host *host, struct samples *to)
{
	size_t at = 0;
	const char *matcher = fleet_match_hosts(b, &host->key, 1, &at);
	const char *query = arena_textf(&b->texts, "%s[%llds]",
		fleet_select(b, to->to.family->name, matcher),
		(long long)(host->reset_to - host->reset_from) + LOOK_S);
	fleet_query(b, query, host->reset_to, take_raw, to);
}

/* Adds the growth that was found to the counters. A counter that did not come back ended
 * with its store. */
static int keep(struct samples *r, struct err *e)
{
	struct survey *s = r->to.s;
	struct meters *m = survey_meters(s, r->to.family);
	for (size_t i = 0; i < r->found.n; i++) {
		const struct meter_row *from = &r->found.rows[i];
		bool users = m == &s->users;
		if (!names_has(&m->names, from->host, from->name) &&
			!(users && survey_takes_user(s, from)))
			continue;
		struct meter_row *to = meter_find(m, from->host, from->name, e);
		if (!to)
			return ERR_WORLD;
		for (int state = 0; state < METER_STATES; state++) {
			const struct meter *own = meter_of(from, state);
			bool ended = isnan(meter_of(to, state)->at[METER_BEFORE_END]) &&
				     own->lost <= 0 && own->at[METER_BEFORE_END] > 0;
			if (!ended && own->lost <= 0)
				continue;
			struct meter *sum = meter_add(m, to, state, e);
			if (!sum)
				return ERR_WORLD;
			sum->lost += ended ? own->at[METER_BEFORE_END] : own->lost;
		}
	}
	return 0;
}

static int read_host(struct survey *s, const struct survey_host *host, struct err *e)
{
	struct samples samples[COUNT_KINDS] = { 0 };
	struct batch b = { .fleet = s->f };
	for (size_t i = 0; i < COUNT_KINDS; i++) {
		samples[i].to = (struct survey_take){ .s = s, .family = &survey_families[i] };
		ask_resets(&b, host, &samples[i]);
	}
	int rc = fleet_run(&b, e);
	for (size_t i = 0; i < COUNT_KINDS; i++) {
		if (rc == 0)
			rc = keep(&samples[i], e);
		meter_finish(&samples[i].found);
	}
	return rc;
}

int survey_edges_resets(struct survey *s, struct err *e)
{
	size_t n = 0;
	int rc = 0;
	for (size_t i = 0; i < s->n_hosts && rc == 0; i++)
		if (s->hosts[i].reset_to > 0 && n++ < MOST_RESETS)
			rc = read_host(s, &s->hosts[i], e);
	return rc;
}

/* At most this many new users are examined: if more, the engine's history begins there. */
enum { MOST_ROWS = 200, STEP_S = 60 };

/* One user of a host. */
struct newcomer {
	struct survey *s;
	size_t row;
	double found_s;	 /* when the first sample was taken; NAN unknown */
	double before_s; /* up to when the host was accounted before that; NAN: unknown */
};

/* Whether the first sample of a series is too large for a new counter. */
static bool is_newcomer(const struct survey *s, const struct meter_row *row)
{
	const struct survey_host *h = &s->hosts[row->host];
	if (isnan(h->at[METER_BEFORE_START]) || h->left_out)
		return false;
	for (int state = 0; state < METER_STATES; state++)
		if (isnan(meter_of(row, state)->at[METER_BEFORE_START]) &&
			meter_of(row, state)->at[METER_FIRST] > 0)
			return true;
	return false;
}

/* Asks when the first sample was taken, or with `before` up to when the host was accounted
 * before that. */
static void ask_newborn(struct newcomer *n, struct batch *b, bool before)
{
	const struct survey *s = n->s;
	const struct meter_row *row = &s->users.rows[n->row];
	size_t at = 0;
	const char *host = fleet_match_hosts(b, &s->hosts[row->host].key, 1, &at);
	if (before) {
		const char *query = arena_textf(&b->texts, "max(last_over_time(%s[%ds]))",
			fleet_select(b, FAMILY_TIME, host), LONG_LOOK_S);
		fleet_query(b, query, n->found_s - 1, survey_take_value, &n->before_s);
		return;
	}
	double length = s->edges[EDGE_END] - s->edges[EDGE_START];
	const char *user =
		arena_textf(&b->texts, "%s,identity=%s", host, fleet_quote(b, row->name));
	const char *query =
		arena_textf(&b->texts, "min(min_over_time(timestamp(%s)[%llds:%ds]))",
			fleet_select(b, FAMILY_IDENTITY, user), (long long)length, STEP_S);
	fleet_query(b, query, s->edges[EDGE_END], survey_take_value, &n->found_s);
}

/* Decides: as much as fits into the time since the last scrape before it began there. */
static void judge_newcomer(const struct newcomer *n)
{
	struct survey *s = n->s;
	struct meter_row *row = &s->users.rows[n->row];
	double sum = 0, most = n->found_s - n->before_s;
	for (int state = 0; state < METER_STATES; state++)
		sum += meter_of(row, state)->at[METER_FIRST] > 0
			       ? meter_of(row, state)->at[METER_FIRST]
			       : 0;
	if (!(sum <= most * (double)s->hosts[row->host].n_cards))
		return;
	for (int state = 0; state < METER_STATES; state++)
		if (row->states[state])
			row->states[state]->at[METER_FIRST] = 0;
}

int survey_edges_newborn(struct survey *s, struct err *e)
{
	struct newcomer all[MOST_ROWS];
	struct batch b = { .fleet = s->f };
	size_t n = 0;
	for (size_t i = 0; i < s->users.n && n < MOST_ROWS; i++)
		if (is_newcomer(s, &s->users.rows[i]))
			all[n++] = (struct newcomer){ s, i, NAN, NAN };
	for (size_t i = 0; i < n; i++)
		ask_newborn(&all[i], &b, false);
	int rc = fleet_run(&b, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		if (!isnan(all[i].found_s))
			ask_newborn(&all[i], &b, true);
	if (rc == 0)
		rc = fleet_run(&b, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		judge_newcomer(&all[i]);
	fleet_finish_batch(&b);
	return rc;
}

/* An engine reads about this many samples in some seconds; a query about the users of all
 * hosts that needs more is not sent. */
enum { SCRAPE_S = 60, AFTER_S = 3 * SCRAPE_S, MOST_SAMPLES = 100000000, LAG_MAX_S = 300 };

static int take_lag(void *context, const struct sample *sample, struct err *e)
{
	struct survey *s = context;
	(void)e;
	double lag = ceil(1.1 * sample->value);
	s->lag_s = lag > 1 && lag < LAG_MAX_S ? lag : s->lag_s;
	return 0;
}

/* Takes a host that was scraped in the window, even if it is in no snapshot. */
static int take_seen(void *context, const struct sample *sample, struct err *e)
{
	struct survey *s = context;
	if (sample->value <= s->edges[EDGE_START])
		return 0;
	struct survey_host *host = survey_host(s, sample, e);
	if (host && !(host->last >= sample->value))
		host->last = sample->value;
	return host ? 0 : ERR_WORLD;
}

/* When a host was first seen: in the window, or up to a day before it. */
static int take_known(void *context, const struct sample *sample, struct err *e)
{
	struct survey *s = context;
	const struct survey_host *host = survey_host(s, sample, e);
	if (!host)
		return ERR_WORLD;
	if (!host->left_out && !(s->oldest <= sample->value))
		s->oldest = sample->value;
	return 0;
}

/* How many series one host has, at most, of a family that each host has once. */
static int take_twins(void *context, const struct sample *sample, struct err *e)
{
	struct survey *s = context;
	(void)e;
	s->has_twins |= sample->value > 1;
	return 0;
}

static int take_info(void *context, const struct sample *sample, struct err *e)
{
	struct survey *s = context;
	static const char *const labels[SURVEY_INFOS] = { "model", "driver_version", "source" };
	char safe[128], uuid[UUID_CAP];
	const char *text = engine_answer_label(sample->labels, "uuid");
	struct survey_host *host = survey_host(s, sample, e);
	if (!host)
		return ERR_WORLD;
	str_escape(uuid, sizeof(uuid), text, strlen(text));
	struct meter_row *row = meter_find(&s->cards, (uint32_t)(host - s->hosts), uuid, e);
	for (size_t i = 0; i < SURVEY_INFOS && row; i++) {
		text = engine_answer_label(sample->labels, labels[i]);
		str_escape(safe, sizeof(safe), text, strlen(text));
		row->info[i] = names_find(&s->infos, 0, safe, e) + 1;
		if (!row->info[i]) /* IDMAP_NONE: out of memory */
			return ERR_WORLD;
	}
	return row ? 0 : ERR_WORLD;
}

static void ask_lag(struct survey *s, struct batch *b)
{
	const char *times = fleet_select(b, FAMILY_TIME, "");
	fleet_query(b,
		arena_textf(&b->texts, "quantile(0.95, timestamp(%s) - %s)", times, times),
		s->edges[EDGE_END], take_lag, s);
}

static void ask_twins(struct survey *s, struct batch *b)
{
	const char *query =
		arena_textf(&b->texts, "max(count by (%s) (last_over_time(%s[%ds])))", s->f->by,
			fleet_select(b, FAMILY_TIME, ""), LOOK_S);
	for (int edge = 0; edge < EDGES; edge++)
		fleet_query(b, query, s->edges[edge], take_twins, s);
}

/* Asks for the hosts of the window. */
static void ask_seen(struct survey *s, struct batch *b)
{
	double to = s->edges[EDGE_END];
	long long length = (long long)ceil(to - s->edges[EDGE_START]);
	const char *by = s->f->by, *times = fleet_select(b, FAMILY_TIME, "");
	fleet_query(b,
		arena_textf(&b->texts, "max by (%s) (last_over_time(%s[%llds]))", by, times,
			length),
		to, take_seen, s);
	fleet_query(b,
		arena_textf(&b->texts, "min by (%s) (min_over_time(%s[%llds]))", by, times,
			length + LONG_LOOK_S),
		to, take_known, s);
}

static void ask_info(struct survey *s, struct batch *b, const struct survey_question *q)
{
	const char *query = arena_textf(&b->texts,
		"max by (%s,uuid,model,driver_version,source) (last_over_time(%s[%llds]))",
		s->f->by, fleet_select(b, FAMILY_INFO, q->extra), (long long)ceil(q->range_s));
	fleet_query(b, query, s->edges[EDGE_END], take_info, s);
}

int survey_edges(struct survey *s, struct err *e)
{
	struct batch b = { .fleet = s->f };
	ask_lag(s, &b);
	ask_seen(s, &b);
	ask_twins(s, &b);
	int rc = fleet_run(&b, e);
	if (!isnan(s->oldest) && rc == 0) {
		/* The window begins with the oldest data: the first counters of a new card
		 * cover time from before it was first seen. */
		rc = fleet_fill_window(s->fill, llround(1000 * (s->oldest - NEWBORN_S)), e);
		s->edges[EDGE_START] = (double)s->a->since_ms / 1000;
	}
	s->has_after = s->edges[EDGE_END] + s->lag_s < s->now_s;
	for (enum edge edge = 0; edge < EDGES; edge++) {
		const struct survey_question before = { SLOT_BEFORE(edge), LOOK_S, "" };
		const struct survey_question after = { SLOT_AFTER(edge), AFTER_S, "" };
		survey_ask(s, &b, &before);
		if (edge == EDGE_END)
			ask_info(s, &b, &before);
		if (edge == EDGE_START || s->has_after)
			survey_ask(s, &b, &after);
	}
	if (rc == 0)
		rc = fleet_run(&b, e);
	fleet_finish_batch(&b);
	return rc;
}

/* The hosts that a query is about. */
struct chosen {
	const char **keys;
	size_t n;
};

/* Sends a query about some hosts, in as many parts as needed. */
static int ask_about(
	struct survey *s, const struct chosen *c, struct survey_question q, struct err *e)
{
	struct batch b = { .fleet = s->f };
	for (size_t at = 0; at < c->n && !b.texts.failed;) {
		q.extra = fleet_match_hosts(&b, c->keys, c->n, &at);
		survey_ask(s, &b, &q);
		if (q.slot == METER_BEFORE_END) /* for hosts that went */
			ask_info(s, &b, &q);
		fleet_free_texts(&b);
	}
	return fleet_run(&b, e);
}

static bool is_seen(const struct survey *s, const struct survey_host *h)
{
	return h->last > s->edges[EDGE_START] && !h->left_out;
}

/* Asks the question about the hosts that have no time for its slot yet. */
static int ask_lacking(
	struct survey *s, struct chosen *c, struct survey_question q, struct err *e)
{
	c->n = 0;
	for (size_t i = 0; i < s->n_hosts; i++)
		if (is_seen(s, &s->hosts[i]) && isnan(s->hosts[i].at[q.slot]))
			c->keys[c->n++] = s->hosts[i].key;
	return ask_about(s, c, q, e);
}

/* Marks hosts with a series that begins within the window; returns how many rows have one. */
static size_t mark_new(struct survey *s, const struct meters *m)
{
	size_t n = 0;
	for (const struct meter_row *row = m->rows; row < m->rows + m->n; row++) {
		struct survey_host *h = &s->hosts[row->host];
		bool new = false;
		for (int state = 0; state < METER_STATES; state++)
			new |= !isnan(meter_of(row, state)->at[METER_BEFORE_END]) &&
			       isnan(meter_of(row, state)->at[METER_BEFORE_START]);
		*(m == &s->users ? &h->has_new_user : &h->has_new_card) |= new;
		n += new;
	}
	return n;
}

/* Chooses the hosts whose first values are needed: those that have no value before or after
 * the start, and those with a new card or user; for users only if that is not too expensive. */
static void choose_new(struct survey *s, struct chosen *c)
{
	double length = s->edges[EDGE_END] - s->edges[EDGE_START];
	size_t n_series = 0, n_new = mark_new(s, &s->users);
	mark_new(s, &s->cards);
	for (size_t i = 0; i < s->users.n; i++)
		n_series += s->hosts[s->users.rows[i].host].has_new_user ? METER_STATES : 0;
	bool ask = (double)n_series * length / SCRAPE_S < MOST_SAMPLES;
	s->n_assumed = ask ? 0 : n_new;
	c->n = 0;
	for (size_t i = 0; i < s->n_hosts; i++) {
		const struct survey_host *h = &s->hosts[i];
		bool lacks =
			isnan(h->at[METER_BEFORE_START]) || isnan(h->at[METER_AFTER_START]);
		if (is_seen(s, h) && (lacks || h->has_new_card || (ask && h->has_new_user)))
			c->keys[c->n++] = h->key;
	}
}

/* Queries the first values after the edges for hosts that have none soon after them: hosts
 * that could not be scraped for up to an hour, at the end for up to a day. If the store was
 * lost in the window, the smallest value is not the first one. */
static int ask_later(struct survey *s, struct chosen *c, struct err *e)
{
	double room = s->now_s - s->edges[EDGE_END] - s->lag_s - 1;
	const double ranges[EDGES][2] = { { LOOK_S, HOUR_S },
		{ LOOK_S, room < LONG_LOOK_S ? room : LONG_LOOK_S } };
	int rc = 0;
	for (enum edge edge = 0; edge < EDGES; edge++) {
		if (edge == EDGE_END && !s->has_after)
			break;
		for (size_t i = 0; i < 2 && rc == 0 && ranges[edge][i] >= LOOK_S; i++)
			rc = ask_lacking(s, c,
				(struct survey_question){
					SLOT_AFTER(edge), ranges[edge][i], "" },
				e);
	}
	return rc;
}

int survey_edges_exceptions(struct survey *s, struct err *e)
{
	double range_s = s->edges[EDGE_END] - s->edges[EDGE_START] - 1;
	const struct survey_question at_start = { METER_BEFORE_START, LONG_LOOK_S, "" };
	const struct survey_question at_end = { METER_BEFORE_END, range_s, "" };
	const struct survey_question first = { METER_FIRST, range_s, "" };
	struct chosen c = { .keys = calloc(s->n_hosts + 1, sizeof(*c.keys)) };
	if (!c.keys)
		return err_memory(e);
	bool failed = ask_lacking(s, &c, at_start, e) || ask_later(s, &c, e) ||
		      ask_lacking(s, &c, at_end, e);
	if (!failed) {
		choose_new(s, &c);
		failed = ask_about(s, &c, first, e);
	}
	free(c.keys);
	return failed ? e->code : 0;
}

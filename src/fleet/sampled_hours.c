/* Audits long windows of samples: the engine judges them and counts states, hour by hour. */
#include <ctype.h>

#include "fleet/sampled.h"

/* Values that the engine keeps for one query, its longest time, and values that are kept here
 * at a time. */
enum { MOST_VALUES = 10000000, HOURS_MAX = 48, MOST_KEPT = 2000000 };
enum { HOUR_MS = 3600000 };
/* The holders of a card in an hour that are told apart. */
enum { PARTS_MAX = 64 };

/* The values of an exporter that are read beside the counts. */
static const enum exporter_role value_roles[] = { EXPORTER_ENERGY, EXPORTER_POWER, EXPORTER_USE,
	EXPORTER_SM_ACTIVE };
enum { VALUES = sizeof(value_roles) / sizeof(value_roles[0]) };

/* One query counts four things, each in 13 bits of a sum: an hour has fewer seconds. The sum is
 * exact, because a double has 53 bits. For each sample, the engine adds
 * (1 + USE * active) * (MEMORY + held). */
enum { COUNT_BITS = 13, MEMORY_WEIGHT = 1 << COUNT_BITS, USE_WEIGHT = 1 << (2 * COUNT_BITS) };
struct counts {
	double n, active, idle, unknown; /* samples: all, and those in a state */
};

/* `odd`: of samples with use or memory alone. */
static struct counts counts_of(double sum, bool odd)
{
	uint64_t bits = sum > 0 && sum < 0x1p52 ? (uint64_t)llround(sum) : 0;
	const uint64_t mask = MEMORY_WEIGHT - 1;
	double held = (double)(bits & mask), n = (double)(bits >> COUNT_BITS & mask),
	       active_held = (double)(bits >> 2 * COUNT_BITS & mask),
	       active = (double)(bits >> 3 * COUNT_BITS & mask);
	return odd ? (struct counts){ .n = n + active, .active = active, .unknown = held }
		   : (struct counts){ .n = n, .active = active, .idle = held - active_held };
}

/* Samples that a query is about: their cards are scraped equally often, and their exporter
 * counts the same memory of the driver as used. */
struct group {
	struct sampled *s;
	/* Of what its values are. NULL: counts of states; a metric of memory: the same for
	 * cards of which only use or only memory is known. */
	const struct exporter_metric *metric;
	double floor_bytes;
	int64_t step_ms;
	const char *matchers; /* "": all cards */
	double n_cards;	      /* about */
};

static bool is_odd(const struct exporter_metric *metric)
{
	return metric && metric->role == EXPORTER_MEMORY;
}

/* The group of a card. The main one has also cards that were not there at the moments of the
 * probe, or cannot be asked for by name. */
static struct group group_of(struct sampled *s, const struct sampled_card *card)
{
	bool known = card->label && *card->label;
	bool has_floor = known && s->x->has_reserved && !isnan(card->floor_bytes);
	return (struct group){ .s = s,
		.floor_bytes = has_floor ? card->floor_bytes : s->main_floor_bytes,
		.step_ms = known ? sampled_step(sampled_interval(s, card->host)) : s->step_ms };
}

static bool is_same(const struct group *g, const struct group *h)
{
	return g->step_ms == h->step_ms && fabs(g->floor_bytes - h->floor_bytes) <= 1e6;
}

/* Values of the metrics with a role, over a range of time. */
struct wanted {
	enum exporter_role role;
	const char *over, *matchers;
	int64_t range_ms;
};

/* Their text: the largest of copies. Of two ranks, the higher one counts; of replicas, the
 * first one that has a value: the largest would be too large too often. */
static const char *values_of(struct batch *b, const struct sampled *s, struct wanted w)
{
	const char * or = "(";
	struct str out = { 0 };
	for (const struct exporter_metric *m = s->x->metrics; m->names; m++)
		for (size_t i = 0; m->role == w.role && (i == 0 || i < s->n_copies); i++) {
			const char *match = arena_textf(&b->texts, "__name__=~\"%s\"%s%s%s",
				m->names, *w.matchers ? "," : "", w.matchers,
				s->n_copies ? s->copies[i] : "");
			str_addf(&out, "%smax by (%s) (%s(%s[%lldms])) * %.17g <= %g", or,
				s->by, w.over, fleet_select(b, "", match),
				(long long)w.range_ms, m->scale, exporter_most[w.role]);
			or = " or ";
		}
	str_add(&out, ")");
	return fleet_keep(b, &out);
}

/* Continues a query with the labels for whose a card is, from the values of metrics. */
static const char *with_numbers(
	struct batch *b, const struct sampled *s, const char *query, struct wanted w)
{
	static const struct {
		enum exporter_role role;
		enum exporter_label label;
	} both[] = { { EXPORTER_JOB_NUMBER, EXPORTER_JOB },
		{ EXPORTER_USER_NUMBER, EXPORTER_USER } };
	for (size_t i = 0; i < 2; i++) {
		const char *label = s->x->labels[both[i].label][0];
		w.role = both[i].role;
		query = arena_textf(&b->texts,
			"%s * on (%s,%s,%s) group_left (%s) count_values without () (\"%s\", "
			"%s)",
			query, s->x->labels[EXPORTER_CARD][0],
			s->x->labels[EXPORTER_INSTANCE][0], s->f->by, label, label,
			values_of(b, s, w));
	}
	return query;
}

/* Writes the query that judges the samples of `length_ms` of a group. A sample counts until
 * the next one must be there. */
static const char *write_query(struct batch *b, const struct group *g, int64_t length_ms)
{
	const struct sampled *s = g->s;
	struct wanted w = { EXPORTER_USE, "last_over_time", g->matchers, g->step_ms * 3 / 2 };
	const char *use = values_of(b, s, w);
	w.role = EXPORTER_MEMORY;
	const char *memory = values_of(b, s, w), *query;
	double least = s->rules.active_util_pct;
	double most = (double)s->rules.held_mem_bytes + g->floor_bytes;
	if (is_odd(g->metric))
		query = arena_textf(&b->texts,
			"(((%s > bool %.17g) + %d) unless %s or ((%s >= %.17g) * 0 + %lld) "
			"unless %s)",
			memory, most, MEMORY_WEIGHT, use, use, least,
			(long long)MEMORY_WEIGHT * USE_WEIGHT, memory);
	else
		query = arena_textf(&b->texts,
			"(((%s >= bool %.17g) * %d + 1) * ((%s > bool %.17g) + %d))", use,
			least, USE_WEIGHT, memory, most, MEMORY_WEIGHT);
	if (s->has_numbers)
		query = with_numbers(b, s, query, w);
	return arena_textf(&b->texts, "sum_over_time((%s)[%lldms:%lldms])", query,
		(long long)length_ms, (long long)g->step_ms);
}

static int take_value(void *context, const struct sample *sample, struct err *e)
{
	const struct group *g = context;
	uint32_t number;
	if (sampled_number(g->s, sample, g->metric, &number, e))
		return e->code;
	struct group own = group_of(g->s, &g->s->cards[g->s->series[number].card]);
	if ((!g->metric || is_odd(g->metric)) && !is_same(g, &own))
		return 0;
	return sampled_keep(g->s,
		(struct sampled_raw){ llround(1000 * sample->time_s), sample->value, number,
			(uint32_t)(*sample->note >> 32) },
		e);
}

/* Stretches of time of one length, up to an hour, that end from `first_ms` to `last_ms`. */
struct span {
	int64_t first_ms, last_ms, length_ms;
};

/* Adds a query at the ends of the stretches. */
static void ask_span(struct batch *b, const char *query, struct span span, struct group *g)
{
	const struct fleet_span asked = { (double)span.first_ms / 1000,
		(double)span.last_ms / 1000 };
	fleet_query_hours(b, query, asked, take_value, g);
}

/* Asks for counters at full hours, or for means. */
static void ask_values(struct batch *b, struct span span, struct group *g)
{
	bool counts = g->metric->role == EXPORTER_ENERGY;
	struct wanted w = { g->metric->role, counts ? "last_over_time" : "avg_over_time", "",
		counts ? g->step_ms * 3 / 2 : span.length_ms };
	if (counts && span.length_ms != HOUR_MS)
		return;
	span.first_ms -= counts ? HOUR_MS : 0;
	ask_span(b, values_of(b, g->s, w), span, g);
}

/* What a card did for a holder in an hour, or a part of one. */
struct part {
	uint32_t holder;
	struct counts counts;
	double values[EXPORTER_ROLES]; /* means; NAN: not known */
};
struct hour {
	uint32_t card;
	int64_t from_ms, to_ms;
	struct part parts[PARTS_MAX];
	size_t n;
	double samples;		     /* of all parts */
	double counter_mj, power_mj; /* at its end, and of its parts; NAN: not known */
};

static void add_means(
	struct sampled_card *card, struct hour *h, const struct part *p, double ms)
{
	double values[EXPORTER_ROLES];
	/* Where metrics say whose a card is, its values are without a holder. */
	for (int role = 0; role < EXPORTER_ROLES; role++) {
		values[role] = p->values[role];
		for (size_t i = 0; i < h->n && isnan(values[role]); i++)
			if (h->parts[i].holder == SAMPLED_NOBODY)
				values[role] = h->parts[i].values[role];
	}
	if (!isnan(values[EXPORTER_USE]))
		card->util_pct_ms =
			clock_later(card->util_pct_ms, 0) + llround(values[EXPORTER_USE] * ms);
	if (!isnan(values[EXPORTER_SM_ACTIVE])) {
		card->sm_active_pct_ms += llround(values[EXPORTER_SM_ACTIVE] * ms);
		card->sm_active_ms += llround(ms);
	}
	if (!isnan(values[EXPORTER_POWER]))
		h->power_mj = fmax(h->power_mj, 0) + values[EXPORTER_POWER] * ms;
}

/* Adds samples that these holders share. Without memory, nobody uses a card. */
static int book(struct sampled *s, struct hour *h, const struct part *p,
	struct sampled_stretch t, struct err *e)
{
	const struct counts *c = &p->counts;
	double length_ms = (double)(h->to_ms - h->from_ms), worst = 0;
	struct sampled_card *card = &s->cards[t.card];
	double unit_ms = length_ms /
			 fmax(length_ms / (double)sampled_step(card->interval_ms), h->samples);
	double states[CARD_STATES] = { [CARD_ACTIVE] = c->active,
		[CARD_IDLE_HELD] = c->idle,
		[CARD_USE_UNKNOWN] = c->unknown };
	states[t.n_holders ? CARD_RESERVED : CARD_TRULY_IDLE] =
		c->n - c->active - c->idle - c->unknown;
	int rc = 0;
	for (int state = 0; state < CARD_STATES && rc == 0; state++) {
		worst = fmax(worst, states[state] * (1 - states[state] / fmax(c->n, 1)));
		t.state = (enum card_state)state;
		t.ms = llround(states[state] * unit_ms);
		if (t.ms > 0)
			rc = sampled_book(s, &t, e);
	}
	card->changes += worst;
	add_means(card, h, p, (c->n - c->unknown) * unit_ms);
	return rc;
}

/* Adds the energy of an hour in which the card did what `before` does not have yet. What use
 * takes differs from hour to hour: hours without it count most. */
static void fold_energy(
	const struct hour *h, struct sampled_card *card, const int64_t before[CARD_STATES])
{
	double hour_ms = (double)(h->to_ms - h->from_ms), own[CARD_STATES], all = 0;
	for (int state = 0; state < CARD_STATES; state++) {
		own[state] = (double)(card->ms[state] - before[state]) / hour_ms;
		all += own[state];
	}
	double mj = card->counter_ms == h->from_ms && h->counter_mj >= card->counter_mj
			    ? (h->counter_mj - card->counter_mj) * all
			    : h->power_mj;
	/* Instances have copies of what their card takes. */
	if (isnan(mj) || all <= 0 || card->parent != IDMAP_NONE)
		return;
	double weight = 1 / (0.01 + own[CARD_ACTIVE] * own[CARD_ACTIVE]);
	card->hours_mj += mj;
	for (int state = 0; state < CARD_STATES; state++) {
		card->energy_known_ms[state] += card->ms[state] - before[state];
		card->mj[state] += weight * own[state] * mj / hour_ms;
		for (int other = 0; other < CARD_STATES; other++)
			card->products[state][other] += weight * own[state] * own[other];
	}
}

/* Finds what a card takes in each state, in W: that with which its hours fit best, by least
 * squares. It begins with the mean, which stays where hours do not tell states apart. */
static void find_powers(const struct sampled_card *card, double power[CARD_STATES])
{
	enum { ROUNDS = 300 };
	double known_ms = 0;
	for (int state = 0; state < CARD_STATES; state++)
		known_ms += (double)card->energy_known_ms[state];
	for (int state = 0; state < CARD_STATES; state++)
		power[state] = known_ms > 0 ? card->hours_mj / known_ms : 0;
	for (int i = 0; i < ROUNDS * CARD_STATES; i++) {
		int state = i % CARD_STATES;
		const double *products = card->products[state];
		double rest = card->mj[state];
		for (int other = 0; other < CARD_STATES; other++)
			rest -= other != state ? products[other] * power[other] : 0;
		if (products[state] > 0)
			power[state] = fmax(rest, 0) / products[state];
	}
}

/* Divides the energy of a card among its states. The few hours at whose edges there is no
 * counter are taken to be like the others. */
static void divide_energy(struct sampled_card *card)
{
	double power[CARD_STATES], all_mj = 0;
	find_powers(card, power);
	for (int state = 0; state < CARD_STATES; state++)
		all_mj += power[state] * (double)card->energy_known_ms[state];
	for (int state = 0; state < CARD_STATES && all_mj > 0; state++) {
		bool most = 2 * card->energy_known_ms[state] > card->ms[state];
		int64_t ms = most ? card->ms[state] : card->energy_known_ms[state];
		card->energy_known_ms[state] = ms;
		card->energy_mj[state] =
			llround(power[state] * (double)ms * card->hours_mj / all_mj);
	}
}

/* Adds the states of an hour of a card. Pods that follow each other have parts of it. Pods that
 * share it have copies, each with the values of the whole card, unless there is a part of
 * nobody, too: then only that one has them. */
static int fold_states(struct sampled *s, struct hour *h, struct err *e)
{
	struct sampled_card *card = &s->cards[h->card];
	struct sampled_stretch t = {
		.card = h->card, .from_ms = h->from_ms, .to_ms = h->to_ms
	};
	double due = (double)(h->to_ms - h->from_ms) / (double)sampled_step(card->interval_ms);
	const struct part *whole = NULL;
	uint32_t holders[PARTS_MAX];
	if (h->to_ms >= card->divided_from_ms && h->to_ms <= card->divided_to_ms)
		return 0;
	for (size_t i = 0; i < h->n; i++) {
		h->samples += h->parts[i].counts.n;
		if (h->parts[i].holder != SAMPLED_NOBODY && h->parts[i].counts.n > 0)
			holders[t.n_holders++] = h->parts[i].holder;
		else if (h->parts[i].counts.n > 0.9 * due)
			whole = &h->parts[i];
	}
	int64_t ms = llround(fmin(h->samples / due, 1) * (double)(h->to_ms - h->from_ms));
	if (card->first_ms < 0)
		card->first_ms = h->to_ms - ms;
	card->last_ms = h->from_ms + ms;
	if (whole && t.n_holders && h->samples > 1.1 * due) {
		h->samples = whole->counts.n;
		t.holders = holders;
		return book(s, h, whole, t, e);
	}
	int rc = 0;
	for (size_t i = 0; i < h->n && rc == 0; i++) {
		t.holders = &h->parts[i].holder;
		t.n_holders = h->parts[i].holder != SAMPLED_NOBODY;
		rc = book(s, h, &h->parts[i], t, e);
	}
	return rc;
}

static int fold_hour(struct sampled *s, struct hour *h, struct err *e)
{
	int64_t before[CARD_STATES];
	if (h->to_ms == 0 || s->cards[h->card].left_out)
		return 0;
	struct sampled_card *card = &s->cards[h->card];
	memcpy(before, card->ms, sizeof(before));
	card->interval_ms = sampled_interval(s, card->host);
	int rc = h->n ? fold_states(s, h, e) : 0;
	fold_energy(h, card, before);
	if (!isnan(h->counter_mj)) {
		card->counter_mj = h->counter_mj;
		card->counter_ms = h->to_ms;
	}
	return rc;
}

/* The length of the stretch that ends there. */
static int64_t length_at(const struct sampled *s, int64_t to_ms)
{
	int64_t from_ms = (to_ms - 1) / HOUR_MS * HOUR_MS;
	return to_ms - clock_later(from_ms, s->asked_ms);
}

/* The window begins with the first sample: as many before the end of the first stretch as the
 * card with the most has in it. */
static int set_window(struct sampled *s, struct err *e)
{
	int64_t first_ms = INT64_MAX, most_ms = 0;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < s->n_raws; i++) {
			const struct sampled_series *series = &s->series[s->raws[i].series];
			const struct sampled_card *card = &s->cards[series->card];
			bool odd = is_odd(series->metric);
			double n = counts_of(s->raws[i].value, odd).n;
			if (series->metric && !odd)
				continue;
			first_ms = clock_earlier(first_ms, s->raws[i].t_ms);
			if (pass && s->raws[i].t_ms == first_ms)
				most_ms = clock_later(most_ms,
					llround(n) *
						sampled_step(sampled_interval(s, card->host)));
		}
	return fleet_fill_window(
		s->fill, first_ms - clock_earlier(most_ms, length_at(s, first_ms)), e);
}

/* The part of a holder in an hour, added if it is new; NULL: there are too many. */
static struct part *find_part(struct hour *h, uint32_t holder)
{
	size_t i = 0;
	while (i < h->n && h->parts[i].holder != holder)
		i++;
	if (i == PARTS_MAX)
		return NULL;
	if (i == h->n) {
		h->parts[h->n++] = (struct part){ .holder = holder };
		for (int role = 0; role < EXPORTER_ROLES; role++)
			h->parts[i].values[role] = NAN;
	}
	return &h->parts[i];
}

static void take_raw(struct hour *h, const struct sampled_series *series, double value)
{
	const struct exporter_metric *metric = series->metric;
	struct part *p = find_part(h, series->holder);
	if (metric && metric->role == EXPORTER_ENERGY) {
		h->counter_mj = fmax(h->counter_mj, value);
	} else if (p && metric && !is_odd(metric)) {
		double *at = &p->values[metric->role];
		*at = isnan(*at) ? value : (*at + value) / 2;
	} else if (p) {
		struct counts c = counts_of(value, is_odd(metric));
		p->counts.n += c.n;
		p->counts.active += c.active;
		p->counts.idle += c.idle;
		p->counts.unknown += c.unknown;
	}
}

/* Adds all that was kept, and forgets it. */
static int fold(struct sampled *s, bool *begun, struct err *e)
{
	struct hour h = { 0 };
	int rc = 0;
	if (s->n_raws && !*begun) {
		rc = set_window(s, e);
		*begun = true;
	}
	sampled_restrict(s);
	sampled_sort(s);
	for (size_t i = 0; i < s->n_raws && rc == 0; i++) {
		const struct sampled_raw *raw = &s->raws[i];
		const struct sampled_series *series = &s->series[raw->series];
		if (i == 0 || series->card != h.card || raw->t_ms != h.to_ms) {
			rc = fold_hour(s, &h, e);
			h.card = series->card;
			h.to_ms = raw->t_ms;
			h.from_ms = raw->t_ms - length_at(s, raw->t_ms);
			h.n = 0;
			h.samples = 0;
			h.counter_mj = h.power_mj = NAN;
		} else if (raw->series == raw[-1].series && raw->labels == raw[-1].labels) {
			continue; /* an answer that broke off was repeated */
		}
		take_raw(&h, series, raw->value);
	}
	s->n_raws = 0;
	return rc ? rc : fold_hour(s, &h, e);
}

/* What is asked. */
struct asking {
	struct group *groups;
	size_t n;
	struct group values[VALUES]; /* without a metric: there are none */
};

/* How many values the engine keeps for each card of a group and hour: use and memory. */
static double values_per_hour(const struct group *g)
{
	return 2 * HOUR_MS / (double)g->step_ms;
}

/* How many hours a query may have. */
static int64_t hours_at_once(const struct asking *a)
{
	double most = 1;
	for (size_t i = 0; i < a->n; i++)
		most = fmax(most, a->groups[i].n_cards * values_per_hour(&a->groups[i]));
	return clock_earlier(HOURS_MAX, clock_later((int64_t)(MOST_VALUES / most), 1));
}

/* Reads the hours from `*at_ms` on, as many as may be kept, and moves it on. */
static int read_some(struct sampled *s, struct asking *a, int64_t *at_ms, struct err *e)
{
	struct batch b = { .fleet = s->f };
	int64_t each = hours_at_once(a), until_ms = s->a->until_ms;
	int64_t stop_ms = *at_ms + (int64_t)(MOST_KEPT / (VALUES * s->n_at_once + 1)) * HOUR_MS;
	do {
		int64_t full_ms = (*at_ms / HOUR_MS + 1) * HOUR_MS;
		struct span span = { full_ms, full_ms, HOUR_MS };
		if (*at_ms % HOUR_MS || full_ms > until_ms) {
			span.first_ms = clock_earlier(full_ms, until_ms);
			span.length_ms = span.first_ms - *at_ms;
			span.last_ms = span.first_ms;
		} else {
			int64_t most_ms = until_ms / HOUR_MS * HOUR_MS;
			span.last_ms = clock_earlier(full_ms + (each - 1) * HOUR_MS, most_ms);
		}
		for (size_t i = 0; i < a->n; i++)
			ask_span(&b, write_query(&b, &a->groups[i], span.length_ms), span,
				&a->groups[i]);
		for (size_t i = 0; i < VALUES; i++)
			if (a->values[i].metric)
				ask_values(&b, span, &a->values[i]);
		fleet_free_texts(&b);
		*at_ms = span.last_ms;
	} while (*at_ms < until_ms && *at_ms + each * HOUR_MS <= stop_ms);
	return fleet_run(&b, e);
}

/* Finds out which values there are; power only without a counter of energy. */
static int find_values(struct sampled *s, struct asking *a, struct probe *p, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < VALUES && rc == 0; i++) {
		a->values[i] = (struct group){ .s = s, .step_ms = s->longest_ms };
		if (value_roles[i] != EXPORTER_POWER || !a->values[i - 1].metric)
			rc = probe_count(p, s->x, value_roles[i], &a->values[i].metric, e);
	}
	return rc;
}

static int add_group(struct asking *a, struct group *group, struct err *e)
{
	if (group->s->texts.failed || !array_one_more(&a->groups, a->n))
		return err_memory(e);
	a->groups[a->n++] = *group;
	group->n_cards = 0;
	return 0;
}

/* Adds a group of the cards that a matcher lists, which is then empty. */
static int add_listed(struct asking *a, struct str *matcher, struct group *group, struct err *e)
{
	struct arena *texts = &group->s->texts;
	group->matchers = arena_textf(texts, "%s\"", str_text(matcher));
	texts->failed |= matcher->failed;
	str_clear(matcher);
	return add_group(a, group, e);
}

/* Cards by the last character of their UUID; those with another one are [0]. */
struct endings {
	double counts[129];
};

static int take_ending(void *context, const struct sample *sample, struct err *e)
{
	struct endings *to = context;
	const char *text = engine_answer_label(sample->labels, "ending");
	bool plain = isalnum((unsigned char)*text) && !text[1];
	to->counts[plain ? (unsigned char)*text : 0] = sample->value;
	(void)e;
	return 0;
}

static int count_endings(struct sampled *s, struct endings *to, struct err *e)
{
	const char *label = s->x->labels[EXPORTER_CARD][0];
	struct batch b = { .fleet = s->f };
	const char *names = exporter_match(s->x, EXPORTER_MEMORY, &b.texts);
	const char *query = arena_textf(&b.texts,
		"count by (ending) (label_replace(max by (%s) (last_over_time(%s[1h])), "
		"\"ending\", \"$1\", \"%s\", \".*(.)\"))",
		label, fleet_select(&b, "", names ? names : ""), label);
	fleet_query(&b, query, (double)s->a->until_ms / 1000, take_ending, to);
	return fleet_run(&b, e);
}

/* Makes groups of all cards, by the last character of their UUIDs. To read fewer cards for more
 * hours at once costs an engine much less than to read more cards for fewer hours. */
static int split(struct sampled *s, struct asking *a, struct group group, struct err *e)
{
	const char *label = s->x->labels[EXPORTER_CARD][0];
	double most = MOST_VALUES / (HOURS_MAX * values_per_hour(&group));
	struct endings endings = { { 0 } };
	char taken[129] = "";
	size_t n = 0, first = 0; /* in `taken`: its end, and where the group begins */
	int rc = s->n_at_once > most ? count_endings(s, &endings, e) : 0;
	endings.counts[128] = INFINITY; /* ends the last group */
	for (int c = 1; c <= 128 && rc == 0; c++) {
		if (endings.counts[c] <= 0)
			continue;
		if (n > first && group.n_cards + endings.counts[c] > most) {
			group.matchers =
				arena_textf(&s->texts, "%s=~\".*[%s]\"", label, taken + first);
			rc = add_group(a, &group, e);
			first = n;
		}
		if (c < 128)
			taken[n++] = (char)c;
		group.n_cards += endings.counts[c];
	}
	/* The others, and those that were not there at that moment; or all. */
	group.n_cards = n ? endings.counts[0] : s->n_at_once;
	group.matchers = n ? arena_textf(&s->texts, "%s!~\".*[%s]\"", label, taken) : "";
	return rc ? rc : add_group(a, &group, e);
}

/* Whether a card must be asked for by name: it is odd, or not in the main group. */
static bool needs_name(struct sampled *s, const struct sampled_card *card, bool odd)
{
	const struct group main = { .floor_bytes = s->main_floor_bytes, .step_ms = s->step_ms };
	const struct group own = group_of(s, card);
	return card->label && *card->label && (odd ? card->odd : !is_same(&own, &main));
}

/* Makes groups of such cards. */
static int list_cards(struct sampled *s, struct asking *a, bool odd, struct err *e)
{
	const size_t most_text = 2200 / (s->n_copies + 1); /* six times in a query */
	struct str matcher = { 0 };
	bool *done = calloc(s->n_cards + 1, sizeof(*done));
	int rc = done ? 0 : err_memory(e);
	for (size_t i = 0; i < s->n_cards && rc == 0; i++) {
		struct group group = group_of(s, &s->cards[i]);
		if (done[i] || !needs_name(s, &s->cards[i], odd))
			continue;
		if (odd)
			group.metric = exporter_first(s->x, EXPORTER_MEMORY);
		for (size_t k = i; k < s->n_cards && rc == 0; k++) {
			const struct sampled_card *card = &s->cards[k];
			const struct group own = group_of(s, card);
			if (done[k] || !is_same(&group, &own) || !needs_name(s, card, odd))
				continue;
			done[k] = true;
			group.n_cards++;
			fleet_match_more(&matcher, s->x->labels[EXPORTER_CARD][0], card->label);
			if (matcher.len > most_text)
				rc = add_listed(a, &matcher, &group, e);
		}
		if (matcher.len && rc == 0)
			rc = add_listed(a, &matcher, &group, e);
	}
	free(done);
	str_finish(&matcher);
	return rc;
}

/* The main group has the floor that most cards have. */
static void set_main_floor(struct sampled *s)
{
	size_t votes = 0;
	s->main_floor_bytes = 0;
	for (size_t i = 0; i < s->n_cards && s->x->has_reserved; i++) {
		double floor_bytes = s->cards[i].floor_bytes;
		if (isnan(floor_bytes))
			continue;
		if (votes == 0)
			s->main_floor_bytes = floor_bytes;
		votes += fabs(s->main_floor_bytes - floor_bytes) <= 1e6 ? 1 : (size_t)-1;
	}
}

int sampled_hours(struct sampled *s, struct probe *p, struct err *e)
{
	struct asking a = { 0 };
	bool begun = false;
	s->fill->slot_seconds = HOUR_MS / 1000;
	set_main_floor(s);
	int rc = split(s, &a,
		(struct group){
			.s = s, .floor_bytes = s->main_floor_bytes, .step_ms = s->step_ms },
		e);
	for (int odd = 0; odd < 2 && rc == 0; odd++)
		rc = list_cards(s, &a, odd, e);
	if (rc == 0)
		rc = find_values(s, &a, p, e);
	s->asked_ms = s->a->since_ms;
	for (int64_t at_ms = s->a->since_ms; at_ms < s->a->until_ms && rc == 0;) {
		rc = read_some(s, &a, &at_ms, e) || fold(s, &begun, e) ? e->code : 0;
	}
	for (size_t i = 0; i < s->n_cards; i++)
		divide_energy(&s->cards[i]);
	free(a.groups);
	return rc;
}

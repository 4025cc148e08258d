/* Audits long windows of samples: the engine judges them and counts states, hour by hour. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "fleet/sampled.h"

/* Values that the engine keeps for one query, its longest time, and values that are kept here
 * at a time. */
enum { MOST_VALUES = 10000000, HOURS_MAX = 48, MOST_KEPT = 2000000 };
enum { HOUR_MS = 3600000 };
/* The holders of a card in an hour that are told apart. */
enum { PARTS_MAX = 64 };

/* One query counts four things, each in 13 bits of a sum: an hour has fewer seconds. The sum is
 * exact, because a double has 53 bits. For each sample, the engine adds
 * (1 + USE * active) * (MEMORY + held). */
enum { COUNT_BITS = 13, MEMORY_WEIGHT = 1 << COUNT_BITS, USE_WEIGHT = 1 << (2 * COUNT_BITS) };
struct counts {
	double n, active, held, active_held; /* samples */
};

static struct counts counts_of(double sum)
{
	uint64_t bits = sum > 0 && sum < 0x1p52 ? (uint64_t)llround(sum) : 0;
	const uint64_t mask = MEMORY_WEIGHT - 1;
	return (struct counts){ .held = (double)(bits & mask),
		.n = (double)(bits >> COUNT_BITS & mask),
		.active_held = (double)(bits >> 2 * COUNT_BITS & mask),
		.active = (double)(bits >> 3 * COUNT_BITS & mask) };
}

/* Samples by state; without memory, nobody uses a card. */
static void count_states(const struct counts *c, bool leased, double to[CARD_STATES])
{
	double idle = c->held - c->active_held;
	to[CARD_ACTIVE] += c->active;
	to[CARD_IDLE_HELD] += idle;
	to[leased ? CARD_RESERVED : CARD_TRULY_IDLE] += c->n - c->active - idle;
}

struct wanted {
	enum exporter_role role;
	int rank;
	const char *matchers;
};

/* Appends the values of these metrics: the largest of copies and replicas, no older than one
 * and a half scrapes. */
static void add_values(const struct sampled *s, struct str *out, struct wanted w)
{
	struct str match = { 0 };
	const struct exporter_metric *m = exporter_match(s->x, &match, w.role, w.rank);
	str_addf(&match, "%s%s", *w.matchers ? "," : "", w.matchers);
	str_add(out, "(max by (");
	exporter_add_labels(s->x, out);
	str_addf(out, "%s) (last_over_time(", s->f->by);
	fleet_select(s->f, out, "", str_text(&match));
	str_addf(out, "[%lldms])) * %.17g <= %g)", (long long)(s->step_ms * 3 / 2), m->scale,
		exporter_most[w.role]);
	out->failed |= match.failed;
	str_finish(&match);
}

/* Cards that one query is about: their exporter counts the same memory of the driver as used.
 */
struct group {
	double floor_bytes;
	const char *matchers; /* "": all cards */
	double n_cards;	      /* about */
};
struct groups {
	struct group *items;
	size_t n;
};

/* Writes the query that judges the samples of `length_ms` of a group. */
static void write_query(
	const struct sampled *s, struct str *out, const struct group *g, int64_t length_ms)
{
	struct str none = { 0 };
	bool two = exporter_match(s->x, &none, EXPORTER_USE, 1) != NULL;
	str_finish(&none);
	str_add(out, "sum_over_time(((((");
	if (two)
		add_values(s, out, (struct wanted){ EXPORTER_USE, 1, g->matchers });
	str_add(out, two ? " or " : "");
	add_values(s, out, (struct wanted){ EXPORTER_USE, 0, g->matchers });
	str_addf(out, ") >= bool %.17g) * %d + 1) * ((", s->rules.active_util_pct, USE_WEIGHT);
	add_values(s, out, (struct wanted){ EXPORTER_MEMORY, 0, g->matchers });
	str_addf(out, " > bool %.17g) + %d))[%lldms:%lldms])",
		(double)s->rules.held_mem_bytes + g->floor_bytes, MEMORY_WEIGHT,
		(long long)length_ms, (long long)s->step_ms);
}

/* What the values of a query are: counts of states, or a metric of energy or power. */
struct asked {
	struct sampled *s;
	const struct exporter_metric *metric; /* NULL: counts */
};

static int take_value(void *context, const struct sample *sample, struct err *e)
{
	const struct asked *asked = context;
	uint32_t number;
	int rc = sampled_number(asked->s, sample, asked->metric, &number, e);
	double scale = asked->metric ? asked->metric->scale : 1;
	const struct sampled_raw raw = { llround(1000 * sample->time_s), sample->value * scale,
		number };
	return rc ? rc : sampled_keep(asked->s, raw, e);
}

/* Stretches of time of one length, up to an hour, that end from `first_ms` to `last_ms`. */
struct span {
	int64_t first_ms, last_ms, length_ms;
};

/* Adds a query at the ends of the stretches. */
static void ask_span(
	struct batch *b, const struct str *query, struct span span, struct asked *asked)
{
	struct client_request *r =
		fleet_query(b, query, (double)span.last_ms / 1000, take_value, asked);
	if (!r || span.first_ms == span.last_ms)
		return;
	r->path = "query_range";
	client_request_number(r, "start", (double)span.first_ms / 1000);
	client_request_number(r, "end", (double)span.last_ms / 1000);
	client_request_number(r, "step", (double)HOUR_MS / 1000);
}

/* Asks for the counters of energy at full hours, or for the mean power of each hour. */
static void ask_energy(struct batch *b, struct span span, struct asked *asked)
{
	const struct sampled *s = asked->s;
	struct str query = { 0 }, match = { 0 };
	bool counts = asked->metric->role == EXPORTER_ENERGY;
	exporter_match(s->x, &match, asked->metric->role, EXPORTER_ALL_RANKS);
	str_add(&query, counts ? "last_over_time(" : "avg_over_time(");
	fleet_select(s->f, &query, "", str_text(&match));
	str_addf(&query, "[%lldms])", (long long)(counts ? s->step_ms * 3 / 2 : HOUR_MS));
	span.first_ms -= counts ? HOUR_MS : 0;
	ask_span(b, &query, span, asked);
	str_finish(&query);
	str_finish(&match);
}

/* What a card did in an hour, or a part of one. */
struct hour {
	uint32_t card;
	int64_t from_ms, to_ms;
	uint32_t holders[PARTS_MAX];
	struct counts counts[PARTS_MAX];
	size_t n;
	double samples;		    /* of all parts */
	double counter_mj, power_w; /* at its end, and in it; NAN: not known */
};

/* Adds samples that these holders share. */
static int book(struct sampled *s, const struct hour *h, const struct counts *c,
	struct sampled_stretch t, struct err *e)
{
	double states[CARD_STATES] = { 0 };
	double due = (double)(h->to_ms - h->from_ms) / (double)s->step_ms;
	double unit_ms = (double)(h->to_ms - h->from_ms) / fmax(due, h->samples);
	double worst = 0;
	int rc = 0;
	count_states(c, t.n_holders > 0, states);
	for (int state = 0; state < CARD_STATES && rc == 0; state++) {
		worst = fmax(worst, states[state] * (1 - states[state] / fmax(c->n, 1)));
		t.state = (enum card_state)state;
		t.ms = llround(states[state] * unit_ms);
		if (t.ms > 0)
			rc = sampled_book(s, &t, e);
	}
	s->cards[t.card].changes += worst;
	return rc;
}

/* Adds the energy of an hour in which the card did what `before` does not have yet. */
static void fold_energy(
	const struct hour *h, struct sampled_card *card, const int64_t before[CARD_STATES])
{
	int64_t ms = 0, most_ms = 0, length_ms = h->to_ms - h->from_ms;
	double grown_mj = card->counter_ms == h->from_ms && h->counter_mj >= card->counter_mj
				  ? h->counter_mj - card->counter_mj
				  : h->power_w * (double)length_ms;
	int most = 0;
	for (int state = 0; state < CARD_STATES; state++) {
		int64_t own_ms = card->ms[state] - before[state];
		ms += own_ms;
		most = own_ms > most_ms ? state : most;
		most_ms = clock_later(most_ms, own_ms);
	}
	if (isnan(grown_mj) || ms == 0)
		return;
	double mj = grown_mj * (double)ms / (double)length_ms;
	card->hours_mj += mj;
	for (int state = 0; state < CARD_STATES; state++)
		card->energy_known_ms[state] += card->ms[state] - before[state];
	if (most_ms == ms) {
		card->pure_mj[most] += mj;
		card->pure_ms[most] += ms;
	}
}

/* Divides the energy of a card among its states: by their power in hours with one state alone.
 * A state without such hours has the rest. The few hours at whose edges there is no counter are
 * taken to be like the others. */
static void divide_energy(struct sampled_card *card)
{
	double power[CARD_STATES] = { 0 }, known_mj = 0, unknown_ms = 0, all_mj = 0;
	for (int state = 0; state < CARD_STATES; state++) {
		double ms = (double)card->energy_known_ms[state];
		if (card->pure_ms[state])
			power[state] = card->pure_mj[state] / (double)card->pure_ms[state];
		known_mj += power[state] * ms;
		unknown_ms += card->pure_ms[state] ? 0 : ms;
	}
	for (int state = 0; state < CARD_STATES; state++) {
		if (!card->pure_ms[state] && unknown_ms > 0)
			power[state] = fmax(card->hours_mj - known_mj, 0) / unknown_ms;
		all_mj += power[state] * (double)card->energy_known_ms[state];
	}
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
	double due = (double)(h->to_ms - h->from_ms) / (double)s->step_ms;
	bool divided = h->to_ms >= card->divided_from_ms && h->to_ms <= card->divided_to_ms;
	if (divided)
		return 0;
	for (size_t i = 0; i < h->n; i++)
		h->samples += h->counts[i].n;
	int64_t ms =
		llround(fmin(h->samples * (double)s->step_ms, (double)(h->to_ms - h->from_ms)));
	if (card->first_ms < 0)
		card->first_ms = h->to_ms - ms;
	card->last_ms = h->from_ms + ms;
	card->interval_ms = s->step_ms;
	for (size_t i = 0; i < h->n; i++)
		if (h->holders[i] == SAMPLED_NOBODY && h->n > 1 && h->samples > 1.1 * due &&
			h->counts[i].n > 0.9 * due) {
			struct counts whole = h->counts[i];
			h->holders[i] = h->holders[h->n - 1];
			h->samples = whole.n;
			t.holders = h->holders;
			t.n_holders = h->n - 1;
			return book(s, h, &whole, t, e);
		}
	int rc = 0;
	for (size_t i = 0; i < h->n && rc == 0; i++) {
		t.holders = &h->holders[i];
		t.n_holders = h->holders[i] != SAMPLED_NOBODY;
		rc = book(s, h, &h->counts[i], t, e);
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
	for (size_t i = 0; i < s->n_raws; i++)
		if (!s->series[s->raws[i].series].metric)
			first_ms = clock_earlier(first_ms, s->raws[i].t_ms);
	for (size_t i = 0; i < s->n_raws; i++)
		if (s->raws[i].t_ms == first_ms && !s->series[s->raws[i].series].metric)
			most_ms = clock_later(
				most_ms, llround(counts_of(s->raws[i].value).n) * s->step_ms);
	return fleet_fill_window(
		s->fill, first_ms - clock_earlier(most_ms, length_at(s, first_ms)), e);
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
	sampled_divide(s);
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
			h.counter_mj = h.power_w = NAN;
		} else if (raw->series == raw[-1].series) {
			continue; /* a repeated answer */
		}
		if (series->metric && series->metric->role == EXPORTER_ENERGY)
			h.counter_mj = fmax(h.counter_mj, raw->value);
		else if (series->metric)
			h.power_w = fmax(h.power_w, raw->value);
		if (series->metric || h.n == PARTS_MAX)
			continue;
		h.holders[h.n] = series->holder;
		h.counts[h.n++] = counts_of(raw->value);
	}
	s->n_raws = 0;
	return rc ? rc : fold_hour(s, &h, e);
}

/* What is asked. */
struct asking {
	struct groups groups;
	struct asked counts, energy; /* energy: without a metric there is none */
};

/* How many values the engine keeps for each card and hour: use and memory. */
static double values_per_hour(const struct sampled *s)
{
	return 2 * HOUR_MS / (double)s->step_ms;
}

/* How many hours a query may have. */
static int64_t hours_at_once(const struct sampled *s, const struct groups *g)
{
	double most = 1;
	for (size_t i = 0; i < g->n; i++)
		most = fmax(most, g->items[i].n_cards);
	int64_t hours = (int64_t)(MOST_VALUES / (most * values_per_hour(s)));
	return clock_earlier(HOURS_MAX, clock_later(hours, 1));
}

/* Reads the hours from `*at_ms` on, as many as may be kept, and moves it on. */
static int read_some(struct sampled *s, struct asking *a, int64_t *at_ms, struct err *e)
{
	struct batch b = { .fleet = s->f };
	int64_t each = hours_at_once(s, &a->groups), until_ms = s->a->until_ms;
	int64_t stop_ms = *at_ms + (int64_t)(MOST_KEPT / (2 * s->n_at_once + 1)) * HOUR_MS;
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
		for (size_t i = 0; i < a->groups.n; i++) {
			struct str query = { 0 };
			write_query(s, &query, &a->groups.items[i], span.length_ms);
			ask_span(&b, &query, span, &a->counts);
			str_finish(&query);
		}
		if (a->energy.metric && span.length_ms == HOUR_MS)
			ask_energy(&b, span, &a->energy);
		*at_ms = span.last_ms;
	} while (*at_ms < until_ms && *at_ms + each * HOUR_MS <= stop_ms);
	return fleet_run(&b, e);
}

/* Finds out whether there is a counter of energy, or else a power. */
static int find_energy(struct asking *a, struct probe *p, struct err *e)
{
	static const enum exporter_role roles[] = { EXPORTER_ENERGY, EXPORTER_POWER };
	int rc = 0;
	a->energy = (struct asked){ .s = a->counts.s };
	for (size_t i = 0; i < 2 && rc == 0 && !a->energy.metric; i++)
		rc = probe_count(p, a->counts.s->x, roles[i], &a->energy.metric, e);
	return rc;
}

static int add_group(struct sampled *s, struct groups *g, struct group new, struct err *e)
{
	new.matchers = arena_text(&s->texts, new.matchers);
	if (!new.matchers || !array_one_more(&g->items, g->n))
		return err_memory(e);
	g->items[g->n++] = new;
	return 0;
}

/* Adds a group of the cards that were collected. */
static int close_group(struct sampled *s, struct groups *g, struct str *matchers,
	struct group group, struct err *e)
{
	str_add(matchers, "\"");
	group.matchers = str_text(matchers);
	int rc = matchers->failed ? err_memory(e) : add_group(s, g, group, e);
	str_clear(matchers);
	return rc;
}

/* Cards by the last character of their UUID; those with another one are [0]. */
struct endings {
	double counts[128];
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
	struct str query = { 0 }, match = { 0 };
	exporter_match(s->x, &match, EXPORTER_MEMORY, EXPORTER_ALL_RANKS);
	str_addf(
		&query, "count by (ending) (label_replace(max by (%s) (last_over_time(", label);
	fleet_select(s->f, &query, "", str_text(&match));
	str_addf(&query, "[1h])), \"ending\", \"$1\", \"%s\", \".*(.)\"))", label);
	fleet_query(&b, &query, (double)s->a->until_ms / 1000, take_ending, to);
	str_finish(&query);
	str_finish(&match);
	return fleet_run(&b, e);
}

/* Makes groups of all cards, by the last character of their UUIDs. To read fewer cards for more
 * hours at once costs an engine much less than to read more cards for fewer hours. */
static int split(struct sampled *s, struct groups *g, double floor_bytes, struct err *e)
{
	const char *label = s->x->labels[EXPORTER_CARD][0];
	double most = MOST_VALUES / (HOURS_MAX * values_per_hour(s));
	struct endings endings = { { 0 } };
	struct str taken = { 0 }, matchers = { 0 }, rest = { 0 };
	struct group group = { .floor_bytes = floor_bytes };
	int rc = s->n_at_once > most ? count_endings(s, &endings, e) : 0;
	for (int c = 1; c < 128 && rc == 0; c++) {
		if (endings.counts[c] <= 0)
			continue;
		if (matchers.len && group.n_cards + endings.counts[c] > most) {
			str_add(&matchers, "]");
			rc = close_group(s, g, &matchers, group, e);
			group.n_cards = 0;
		}
		str_addf(&taken, "%c", c);
		if (!matchers.len)
			str_addf(&matchers, "%s=~\".*[", label);
		str_addf(&matchers, "%c", c);
		group.n_cards += endings.counts[c];
	}
	if (rc == 0 && matchers.len) {
		str_add(&matchers, "]");
		rc = close_group(s, g, &matchers, group, e);
	}
	/* The others, and those that were not there at that moment; or all. */
	group.n_cards = taken.len ? endings.counts[0] : s->n_at_once;
	if (taken.len)
		str_addf(&rest, "%s!~\".*[%s]\"", label, str_text(&taken));
	group.matchers = str_text(&rest);
	if (rc == 0)
		rc = rest.failed ? err_memory(e) : add_group(s, g, group, e);
	str_finish(&taken);
	str_finish(&matchers);
	str_finish(&rest);
	return rc;
}

/* Makes one group of all cards, or where the driver's own memory differs, groups of cards by
 * name. */
static int make_groups(struct sampled *s, struct groups *g, struct err *e)
{
	struct str matchers = { 0 };
	bool differ = false;
	double least = s->n_cards && s->x->has_reserved ? s->cards[0].floor_bytes : 0;
	int rc = 0;
	for (size_t i = 0; i < s->n_cards; i++)
		differ |= s->x->has_reserved && fabs(s->cards[i].floor_bytes - least) > 1e6;
	if (!differ)
		return split(s, g, least, e);
	for (uint32_t m = 0; m <= s->models.n && rc == 0; m++) {
		uint32_t model = m < s->models.n ? m : IDMAP_NONE;
		struct group group = { 0 };
		for (size_t i = 0; i < s->n_cards && rc == 0; i++) {
			const struct sampled_card *card = &s->cards[i];
			if (card->model != model || !card->label || !*card->label)
				continue;
			group.floor_bytes = card->floor_bytes;
			group.n_cards++;
			if (fleet_match_more(
				    &matchers, s->x->labels[EXPORTER_CARD][0], card->label))
				continue;
			rc = close_group(s, g, &matchers, group, e);
			group.n_cards = 0;
		}
		if (matchers.len && rc == 0)
			rc = close_group(s, g, &matchers, group, e);
	}
	str_finish(&matchers);
	return rc;
}

int sampled_hours(struct sampled *s, struct probe *p, struct err *e)
{
	struct asking a = { .counts = { s, NULL } };
	bool begun = false;
	int rc = make_groups(s, &a.groups, e);
	if (rc == 0)
		rc = find_energy(&a, p, e);
	s->asked_ms = s->a->since_ms;
	for (int64_t at_ms = s->a->since_ms; at_ms < s->a->until_ms && rc == 0;) {
		rc = read_some(s, &a, &at_ms, e);
		if (rc == 0)
			rc = fold(s, &begun, e);
	}
	for (size_t i = 0; i < s->n_cards; i++)
		divide_energy(&s->cards[i]);
	free(a.groups.items);
	return rc;
}

/* Makes an audit from a survey: selects hosts and cards, adds them, then users and the
 * breakdown. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/gather.h"
#include "driver/source.h"
#include "fleet/roster.h"
#include "fleet/survey.h"

struct filling {
	struct survey *s;
	struct gather g;
	struct users users;
	struct breakdown breakdown;
	size_t *first_card; /* by host of the audit, plus one at the end */
};

/* The part of an amount for one card, in proportion to its weight; the last card gets the
 * rest. */
static int64_t part_on(int64_t *left, int64_t *weights_left, int64_t weight, bool last)
{
	int64_t part = *left;
	if (!last)
		part = *weights_left > 0 ? (int64_t)((double)*left * (double)weight /
						     (double)*weights_left)
					 : 0;
	*left -= part;
	*weights_left -= weight;
	return part;
}

static int add_pair(struct filling *f, struct pair *pair, struct err *e)
{
	pair->peak_mem_kib = pair->last_active_ms = -1;
	pair->active_share_ms = pair->own_ms[HOLDER_ACTIVE];
	pair->idle_share_ms = pair->own_ms[HOLDER_IDLE_HELD];
	memcpy(pair->presence_ms, pair->own_ms, sizeof(pair->presence_ms));
	struct audit_sums time = holdings_sums(pair);
	audit_cost_holder(&time, &f->s->a->cards[pair->card]);
	audit_sums_add(&f->users.items[pair->user].sums, &time);
	return f->s->q->by.n ? breakdown_add(&f->breakdown, 0, pair, e) : 0;
}

/* Adds a user of a host. */
static int add_user(struct filling *f, const struct meter_row *row, struct err *e)
{
	enum { SUMS = 4, LAST = SUMS - 1 }; /* the last is reserved time: not a holder's */
	static const int states[SUMS] = { HOLDER_ACTIVE, HOLDER_IDLE_HELD, HOLDER_SQUATTING,
		CARD_RESERVED };
	static const int of_cards[SUMS] = { CARD_ACTIVE, CARD_IDLE_HELD, CARD_ACTIVE,
		CARD_RESERVED };
	const struct audit *a = f->s->a;
	size_t host = f->s->hosts[row->host].index;
	size_t first = f->first_card[host], end = f->first_card[host + 1];
	int64_t left[SUMS], weights[SUMS] = { 0 };
	uint32_t user = holdings_find_user(&f->users, row->name, e);
	if (user == IDMAP_NONE)
		return ERR_WORLD;
	for (size_t k = 0; k < SUMS; k++) {
		left[k] = survey_grown(f->s, row, states[k]);
		for (size_t card = first; card < end; card++)
			weights[k] += a->cards[card].ms[of_cards[k]];
	}
	if (left[0] + left[1] + left[2] + left[LAST] == 0)
		return 0;
	for (size_t card = first; card < end; card++) {
		struct pair pair = { .process = (int64_t)(row - f->s->users.rows) + 1,
			.card = (uint32_t)card,
			.user = user,
			.labels = { IDMAP_NONE, IDMAP_NONE },
			.started_ms = -1 };
		for (size_t k = 0; k < SUMS; k++)
			*(k == LAST ? &pair.reserved_ms : &pair.own_ms[states[k]]) =
				part_on(&left[k], &weights[k], a->cards[card].ms[of_cards[k]],
					card + 1 == end);
		int rc = add_pair(f, &pair, e);
		if (rc)
			return rc;
	}
	return 0;
}

/* Adds the users, and the breakdown that was asked for. The cards are there already. */
static int add_users(struct survey *s, struct err *e)
{
	struct audit *a = s->a;
	struct filling f = { .s = s, .g = { .a = a, .q = s->q } };
	struct audit_breakdown *to = &a->breakdown;
	f.first_card = calloc(a->n_hosts + 2, sizeof(*f.first_card));
	for (size_t i = 0; i < a->n_hosts && f.first_card; i++)
		f.first_card[i + 1] = f.first_card[i] + a->hosts[i].n_cards;
	int rc = f.first_card ? 0 : err_memory(e);
	breakdown_start(&f.breakdown, &f.g, &f.users, to, &s->q->by);
	for (size_t i = 0; i < to->by.n; i++)
		if (to->measures[i] != MEASURE_CARDS)
			to->measures[i] = MEASURE_SHARES;
	for (size_t i = 0; i < s->users.n && rc == 0; i++) {
		const struct meter_row *row = &s->users.rows[i];
		if (s->hosts[row->host].is_listed && strcmp(row->name, NOBODY) != 0)
			rc = add_user(&f, row, e);
	}
	if (rc == 0)
		rc = breakdown_end(&f.breakdown, e);
	if (rc == 0)
		rc = holdings_hand_over_users(&f.users, a, e);
	/* Users without time are the last: they are sorted by it. */
	while (rc == 0 && a->n_identities &&
		audit_holder_ms(a->identities[a->n_identities - 1].sums.ms) == 0 &&
		a->identities[a->n_identities - 1].sums.reserved_ms == 0)
		a->n_identities--;
	breakdown_finish(&f.breakdown);
	holdings_finish_users(&f.users);
	free(f.first_card);
	return rc;
}

/* A host without data for this long at the end is silent, as in gua fleet status. */
enum { SILENT_S = 300 };

static bool is_alive(const struct survey *s, const struct survey_host *h)
{
	return h->after[EDGE_END] > 0 ||
	       h->before[EDGE_END] > s->edges[EDGE_END] - SILENT_S - s->lag_s;
}

/* The end of a host's window: where its counters end while it is recording. */
static double end_of(const struct survey *s, const struct survey_host *h)
{
	bool pending = is_alive(s, h) && isnan(h->after[EDGE_END]);
	double end = pending ? h->before[EDGE_END] : s->edges[EDGE_END];
	return end < s->edges[EDGE_END] ? end : s->edges[EDGE_END];
}

struct ranked {
	uint32_t host;
	int64_t idle_ms;
	const char *name;
};

static int compare_ranked(const void *x, const void *y)
{
	const struct ranked *p = x, *q = y;
	if (p->idle_ms != q->idle_ms)
		return p->idle_ms > q->idle_ms ? -1 : 1;
	return strcmp(p->name, q->name);
}

/* The hosts that have a card, most idle-held time first. */
static struct ranked *rank_hosts(const struct survey *s, size_t *n)
{
	struct ranked *ranked = calloc(s->n_hosts + 1, sizeof(*ranked));
	bool *has_cards = calloc(s->n_hosts + 1, sizeof(*has_cards));
	*n = 0;
	for (uint32_t i = 0; i < s->n_hosts && ranked; i++)
		ranked[i] = (struct ranked){ i, 0, s->hosts[i].name };
	for (size_t i = 0; i < s->cards.n && ranked && has_cards; i++) {
		const struct meter_row *row = &s->cards.rows[i];
		ranked[row->host].idle_ms += survey_grown(s, row, CARD_IDLE_HELD);
		has_cards[row->host] |= survey_growth(s, row, CARD_ACTIVE) >= 0;
	}
	for (size_t i = 0; i < s->n_hosts && ranked && has_cards; i++)
		if (has_cards[i] && !s->hosts[i].left_out &&
			s->hosts[i].last > s->edges[EDGE_START])
			ranked[(*n)++] = ranked[i];
	if (*n)
		qsort(ranked, *n, sizeof(*ranked), compare_ranked);
	free(has_cards);
	return ranked;
}

/* Keeps the ports of host names that would be equal without them. */
static int tell_apart(struct survey *s, const struct ranked *ranked, size_t n, struct err *e)
{
	struct names names = { 0 };
	uint32_t *first = calloc(n + 1, sizeof(*first));
	int rc = first ? 0 : err_memory(e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct survey_host *h = &s->hosts[ranked[i].host];
		size_t known = names.n;
		uint32_t index = names_find(&names, 0, h->name, e);
		if (index == IDMAP_NONE) {
			rc = ERR_WORLD;
		} else if (index == known) {
			first[index] = ranked[i].host;
		} else {
			s->hosts[first[index]].name = s->hosts[first[index]].key;
			h->name = h->key;
		}
	}
	names_finish(&names);
	free(first);
	return rc;
}

static int add_host(struct survey *s, struct survey_host *h, struct err *e)
{
	struct audit *a = s->a;
	struct audit_host *host = audit_add_host(a, e);
	if (!host)
		return ERR_WORLD;
	h->index = (uint32_t)a->n_hosts - 1;
	str_copy(host->hostname, sizeof(host->hostname), h->name);
	h->is_expected = roster_expects(s->expected, h->name);
	host->ran = true;
	host->recording = is_alive(s, h);
	host->last_tick_ms = llround(1000 * h->last);
	host->until_ms = llround(1000 * end_of(s, h));
	if (host->until_ms > a->until_ms || a->n_hosts == 1)
		a->until_ms = host->until_ms;
	a->fleet.n_late += isnan(h->before[EDGE_START]) ? 1 : 0;
	a->fleet.n_silent += host->recording ? 0 : 1;
	return 0;
}

/* The start of a card's window; the window of a new card is as long as its time. */
static double start_of(const struct survey *s, const struct meter_row *row, int64_t observed_ms)
{
	const struct survey_host *h = &s->hosts[row->host];
	double from = s->edges[EDGE_START];
	if (isnan(row->states[CARD_ACTIVE].at[METER_BEFORE_START]))
		from = isnan(h->before[EDGE_START]) && !isnan(h->first)
			       ? h->first
			       : end_of(s, h) - (double)observed_ms / 1000;
	return from > s->edges[EDGE_START] ? from : s->edges[EDGE_START];
}

static int add_card(struct survey *s, const struct meter_row *row, struct err *e)
{
	const struct survey_host *h = &s->hosts[row->host];
	struct audit_card *card = audit_add_card(s->a, e);
	int64_t observed_ms = 0;
	if (!card)
		return ERR_WORLD;
	struct audit_host *host = &s->a->hosts[h->index];
	card->host = h->index;
	card->util_pct_ms = card->unsure_ms = -1;
	card->has_rows = true;
	survey_card_id(&card->id, s, row);
	str_copy(card->status, sizeof(card->status), "ok");
	if (row->info) {
		const struct survey_info *info = &s->infos[row->info - 1];
		str_copy(card->source, sizeof(card->source), info->source);
		str_copy(host->driver, sizeof(host->driver), info->driver);
		host->simulated |= *info->source && source_is_invented(info->source);
		host->captured |= source_is_captured(info->source);
	}
	for (int state = 0; state < CARD_STATES; state++) {
		if (state != CARD_UNOBSERVED)
			card->ms[state] = survey_grown(s, row, state);
		observed_ms += card->ms[state];
	}
	/* Only a host that knows of leases has the series. */
	bool leases = survey_growth(s, row, CARD_RESERVED) >= 0;
	host->has_leases |= leases;
	s->a->has_leases |= leases;
	double from = start_of(s, row, observed_ms), to = end_of(s, h);
	int64_t due_ms = llround(1000 * (h->is_expected ? s->edges[EDGE_START] : from));
	int64_t rest_ms = llround(1000 * to) - due_ms - observed_ms;
	card->ms[CARD_UNOBSERVED] = rest_ms > 0 ? rest_ms : 0;
	card->first_seen_ms = llround(1000 * from);
	card->last_seen_ms = llround(1000 * to);
	hours_add_window(&s->a->days, due_ms, card->last_seen_ms);
	host->n_cards++;
	return 0;
}

/* Adds the energy of the card that was added last. */
static int add_energy(struct survey *s, const struct meter_row *row, struct err *e)
{
	struct audit_card *card = &s->a->cards[s->a->n_cards - 1];
	size_t known = s->energy.n;
	const struct meter_row *energy = meter_find(&s->energy, row->host, row->name, e);
	if (!energy)
		return ERR_WORLD;
	for (int state = 0; state < CARD_STATES && s->energy.n == known; state++) {
		int64_t mj = survey_growth(s, energy, state);
		if (mj < 0 || state == CARD_UNOBSERVED)
			continue;
		card->energy_mj[state] = mj;
		card->energy_known_ms[state] = card->ms[state];
	}
	return 0;
}

static int compare_rows(const void *x, const void *y, void *survey)
{
	const struct survey *s = survey;
	const struct meter_row *p = &s->cards.rows[*(const uint32_t *)x];
	const struct meter_row *q = &s->cards.rows[*(const uint32_t *)y];
	uint32_t a = s->hosts[p->host].index, b = s->hosts[q->host].index;
	if (a != b)
		return a < b ? -1 : 1;
	int order = strverscmp(p->gpu, q->gpu);
	return order ? order : strcmp(p->name, q->name);
}

static int add_cards(struct survey *s, struct err *e)
{
	uint32_t *order = calloc(s->cards.n + 1, sizeof(*order));
	size_t n = 0;
	int rc = order ? 0 : err_memory(e);
	for (uint32_t i = 0; i < s->cards.n && order; i++)
		if (s->hosts[s->cards.rows[i].host].is_listed &&
			survey_growth(s, &s->cards.rows[i], CARD_ACTIVE) >= 0)
			order[n++] = i;
	if (n)
		qsort_r(order, n, sizeof(*order), compare_rows, s);
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = add_card(s, &s->cards.rows[order[i]], e);
		if (rc == 0)
			rc = add_energy(s, &s->cards.rows[order[i]], e);
	}
	free(order);
	return rc;
}

/* Counts the cards that two hosts each report for most of the window. */
static size_t count_twice(const struct survey *s, struct err *e)
{
	struct names uuids = { 0 };
	size_t n = 0, known = 0;
	for (size_t i = 0; i < s->a->n_cards; i++) {
		const struct audit_card *card = &s->a->cards[i];
		int64_t half_ms = (s->a->until_ms - s->a->since_ms) / 2;
		int64_t observed_ms = -card->ms[CARD_UNOBSERVED];
		for (int state = 0; state < CARD_STATES; state++)
			observed_ms += card->ms[state];
		if (observed_ms < half_ms + 1000)
			continue;
		names_find(&uuids, 0, card->id.uuid, e);
		n += uuids.n == known;
		known = uuids.n;
	}
	names_finish(&uuids);
	return n;
}

static void set_fleet(struct survey *s, struct err *e)
{
	struct audit_fleet *f = &s->a->fleet;
	f->asked = true;
	f->url = client_url(s->f->client);
	f->engine = s->f->engine;
	f->n_seen = s->a->n_hosts;
	f->n_expected = -1;
	f->missing = "";
	f->n_resets = s->n_resets;
	f->n_assumed = s->n_assumed;
	f->n_not_finite = client_not_finite(s->f->client);
	f->n_warnings = client_warnings(s->f->client, &f->warnings);
	f->n_twice = count_twice(s, e);
	for (size_t i = 0; i < s->n_hosts; i++)
		f->n_partial += s->hosts[i].is_partial && s->hosts[i].is_listed;
}

int survey_fill(struct survey *s, struct err *e)
{
	struct gather g = { .a = s->a, .q = s->q };
	size_t n = 0;
	if (s->a->of_users && s->cards.n && s->users.n == 0)
		return err_set(e, ERR_NOTHING, "no user of this window matches --%s",
			s->q->only.lists[ONLY_USER].n ? "user" : "group");
	struct ranked *ranked = rank_hosts(s, &n);
	int rc = ranked ? tell_apart(s, ranked, n, e) : err_memory(e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		s->hosts[ranked[i].host].is_listed = true;
		rc = add_host(s, &s->hosts[ranked[i].host], e);
	}
	free(ranked);
	if (rc == 0)
		rc = add_cards(s, e);
	if (rc)
		return rc;
	survey_hours_settle(s, &s->cards);
	hours_settle(&s->a->days);
	if (s->a->of_users)
		rc = survey_hours_of_users(s, e);
	if (rc == 0)
		rc = audit_cost_cards(&g, e);
	if (rc == 0)
		rc = add_users(s, e);
	set_fleet(s, e);
	return rc;
}

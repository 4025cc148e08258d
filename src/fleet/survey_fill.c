/* Adds the hosts, cards and users of a survey to the audit. */
#include "driver/source.h"
#include "fleet/roster.h"
#include "fleet/survey.h"

/* The part of an amount for one card, by its weight; the last card gets the rest. */
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

/* The cards of a host in the audit, which follow each other. */
struct cards_of {
	size_t first, end;
};
static struct cards_of cards_of(const struct survey *s, const struct survey_host *h)
{
	const struct audit *a = s->a;
	size_t at = s->fill->places[h->card];
	struct cards_of c = { at, at + 1 };
	while (c.first > 0 && a->cards[c.first - 1].host == a->cards[at].host)
		c.first--;
	while (c.end < a->n_cards && a->cards[c.end].host == a->cards[at].host)
		c.end++;
	return c;
}

/* Adds a user of a host. */
static int add_user(struct survey *s, const struct meter_row *row, struct err *e)
{
	enum { SUMS = 4, LAST = SUMS - 1 }; /* the last is reserved time: not a holder's */
	static const int states[SUMS] = { HOLDER_ACTIVE, HOLDER_IDLE_HELD, HOLDER_SQUATTING,
		CARD_RESERVED };
	static const int of_cards[SUMS] = { CARD_ACTIVE, CARD_IDLE_HELD, CARD_ACTIVE,
		CARD_RESERVED };
	const struct audit *a = s->a;
	struct cards_of cards = cards_of(s, &s->hosts[row->host]);
	int64_t left[SUMS], weights[SUMS] = { 0 };
	uint32_t user = holdings_find_user(&s->fill->users, row->name, e);
	int rc = user == IDMAP_NONE ? ERR_WORLD : 0;
	for (size_t k = 0; k < SUMS; k++) {
		left[k] = survey_grown(s, row, states[k]);
		for (size_t card = cards.first; card < cards.end; card++)
			weights[k] += a->cards[card].ms[of_cards[k]];
	}
	if (left[0] + left[1] + left[2] + left[LAST] == 0)
		return rc;
	for (size_t card = cards.first; card < cards.end && rc == 0; card++) {
		struct pair pair = { .process = (int64_t)(row - s->users.rows) + 1,
			.card = (uint32_t)card,
			.user = user,
			.labels = { IDMAP_NONE, IDMAP_NONE } };
		for (size_t k = 0; k < SUMS; k++)
			*(k == LAST ? &pair.reserved_ms : &pair.own_ms[states[k]]) =
				part_on(&left[k], &weights[k], a->cards[card].ms[of_cards[k]],
					card + 1 == cards.end);
		rc = fleet_fill_user(s->fill, 0, &pair, e);
	}
	return rc;
}

int survey_fill_users(struct survey *s, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < s->users.n && rc == 0; i++) {
		const struct meter_row *row = &s->users.rows[i];
		if (s->hosts[row->host].is_listed && strcmp(row->name, NOBODY) != 0)
			rc = add_user(s, row, e);
	}
	return rc;
}

/* A host without data for this long at the end is silent, as in gua fleet status. */
enum { SILENT_S = 300 };

static bool is_alive(const struct survey *s, const struct survey_host *h)
{
	return h->at[METER_AFTER_END] > 0 ||
	       h->at[METER_BEFORE_END] > s->edges[EDGE_END] - SILENT_S - s->lag_s;
}

/* The end of a host's window: where its counters end while it is recording. */
static double end_of(const struct survey *s, const struct survey_host *h)
{
	bool pending = is_alive(s, h) && isnan(h->at[METER_AFTER_END]);
	double end = pending ? h->at[METER_BEFORE_END] : s->edges[EDGE_END];
	return end < s->edges[EDGE_END] ? end : s->edges[EDGE_END];
}

/* The start of a card's window; the window of a new card is as long as its time. */
static double start_of(const struct survey *s, const struct meter_row *row, int64_t observed_ms)
{
	const struct survey_host *h = &s->hosts[row->host];
	double from = s->edges[EDGE_START];
	if (isnan(meter_of(row, CARD_ACTIVE)->at[METER_BEFORE_START]))
		from = isnan(h->at[METER_BEFORE_START]) && !isnan(h->at[METER_FIRST])
			       ? h->at[METER_FIRST]
			       : end_of(s, h) - (double)observed_ms / 1000;
	return from > s->edges[EDGE_START] ? from : s->edges[EDGE_START];
}

/* Whether a card was there in the window, on a host that the audit includes. */
static bool is_added(const struct survey *s, const struct meter_row *row)
{
	const struct survey_host *h = &s->hosts[row->host];
	return !h->left_out && h->last > s->edges[EDGE_START] &&
	       survey_growth(s, row, CARD_ACTIVE) >= 0;
}

/* Names the hosts that have cards; only where two would be equal, with a port. */
static int name_hosts(struct survey *s, struct err *e)
{
	const char **keys = calloc(s->n_hosts + 1, sizeof(*keys));
	size_t n = 0;
	int rc = keys ? 0 : err_memory(e);
	for (size_t i = 0; i < s->n_hosts && rc == 0; i++)
		if (s->hosts[i].has_cards)
			keys[n++] = s->hosts[i].key;
	if (rc == 0)
		rc = roster_shorten(keys, n, &s->arena, e);
	n = 0;
	for (size_t i = 0; i < s->n_hosts && rc == 0; i++)
		if (s->hosts[i].has_cards)
			s->hosts[i].name = keys[n++];
	free(keys);
	return rc;
}

static struct audit_host *add_host(struct survey *s, struct survey_host *h, struct err *e)
{
	struct audit *a = s->a;
	struct audit_host *host = fleet_fill_host(s->fill, h->name, e);
	if (!host || h->is_listed)
		return host;
	h->is_listed = true;
	h->card = (uint32_t)a->n_cards;
	host->metrics = "gua";
	host->recording = is_alive(s, h);
	host->last_tick_ms = llround(1000 * h->last);
	host->until_ms = llround(1000 * end_of(s, h));
	a->fleet.n_late += isnan(h->at[METER_BEFORE_START]) ? 1 : 0;
	a->fleet.n_partial += h->is_partial;
	return host;
}

/* Sets the energy of a card. */
static void set_energy(
	const struct survey *s, const struct meter_row *row, struct audit_card *card)
{
	uint32_t known = names_get(&s->energy.names, row->host, row->name);
	for (int state = 0; state < CARD_STATES && known != IDMAP_NONE; state++) {
		int64_t mj = survey_growth(s, &s->energy.rows[known], state);
		if (mj < 0 || state == CARD_UNOBSERVED)
			continue;
		card->energy_mj[state] = mj;
		card->energy_known_ms[state] = card->ms[state];
	}
}

static int add_card(struct survey *s, const struct meter_row *row, struct err *e)
{
	struct survey_host *h = &s->hosts[row->host];
	struct audit_card card = {
		.id = { .mig_index = -1, .gpu_instance = -1, .compute_instance = -1 },
		.util_pct_ms = -1,
		.unsure_ms = -1
	};
	struct audit_host *host = add_host(s, h, e);
	if (!host)
		return ERR_WORLD;
	survey_card_id(&card.id, s, row);
	str_copy(card.source, sizeof(card.source), survey_info(s, row, INFO_SOURCE));
	if (row->info[INFO_DRIVER])
		str_copy(host->driver, sizeof(host->driver), survey_info(s, row, INFO_DRIVER));
	host->simulated |= *card.source && source_is_invented(card.source);
	host->captured |= source_is_captured(card.source);
	for (int state = 0; state < CARD_STATES; state++)
		card.ms[state] = state == CARD_UNOBSERVED ? 0 : survey_grown(s, row, state);
	/* Only a host that knows of leases has the series. */
	host->has_leases |= survey_growth(s, row, CARD_RESERVED) >= 0;
	card.first_seen_ms = llround(1000 * start_of(s, row, state_observed_ms(card.ms)));
	card.last_seen_ms = llround(1000 * end_of(s, h));
	set_energy(s, row, &card);
	return fleet_fill_card(s->fill, host, &card, e) ? 0 : ERR_WORLD;
}

/* Counts the cards that two hosts each report for most of the window. */
static size_t count_twice(const struct survey *s, struct err *e)
{
	struct names uuids = { 0 };
	size_t n = 0, known = 0;
	for (size_t i = 0; i < s->a->n_cards; i++) {
		const struct audit_card *card = &s->a->cards[i];
		int64_t half_ms = (s->a->until_ms - s->a->since_ms) / 2;
		if (state_observed_ms(card->ms) < half_ms + 1000)
			continue;
		names_find(&uuids, 0, card->id.uuid, e);
		n += uuids.n == known;
		known = uuids.n;
	}
	names_finish(&uuids);
	return n;
}

int survey_fill(struct survey *s, struct err *e)
{
	int rc = 0;
	s->n_cards = s->cards.n;
	if (s->a->of_users && s->cards.n && s->users.n == 0)
		return err_set(e, ERR_NOTHING, "no user of this window matches --%s",
			s->q->only.lists[ONLY_USER].n ? "user" : "group");
	for (size_t i = 0; i < s->cards.n; i++)
		s->hosts[s->cards.rows[i].host].has_cards |= is_added(s, &s->cards.rows[i]);
	rc = name_hosts(s, e);
	for (size_t i = 0; i < s->cards.n && rc == 0; i++)
		if (is_added(s, &s->cards.rows[i]))
			rc = add_card(s, &s->cards.rows[i], e);
	if (rc)
		return rc;
	survey_hours_settle(s, &s->cards);
	hours_settle(&s->a->days);
	s->a->fleet.n_resets = s->n_resets;
	s->a->fleet.n_assumed = s->n_assumed;
	meter_finish(&s->cards);
	meter_finish(&s->energy);
	s->a->fleet.n_twice = count_twice(s, e);
	return s->a->of_users ? survey_hours_of_users(s, e) : 0;
}

/* Makes an audit from judged samples: hosts, cards, users and the breakdown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/gather.h"
#include "base/array.h"
#include "base/clock.h"
#include "fleet/sampled.h"

/* The hosts in the order of the audit: the one with the most idle-held time first. */
struct ranked {
	uint32_t host;
	int64_t idle_ms;
	size_t n_cards;
	const char *name;
};

static int compare_ranked(const void *x, const void *y)
{
	const struct ranked *p = x, *q = y;
	if (p->idle_ms != q->idle_ms)
		return p->idle_ms > q->idle_ms ? -1 : 1;
	return strcmp(p->name, q->name);
}

static bool is_observed(const struct sampled_card *card)
{
	int64_t ms = 0;
	for (int state = 0; state < CARD_STATES; state++)
		ms += card->ms[state];
	return !card->left_out && ms > 0;
}

static struct ranked *rank_hosts(const struct sampled *s, size_t *n)
{
	struct ranked *all = calloc(s->hosts.n + 1, sizeof(*all));
	*n = 0;
	for (uint32_t i = 0; i < s->hosts.n && all; i++)
		all[i] = (struct ranked){ i, 0, 0, s->hosts.items[i].text };
	for (size_t i = 0; i < s->n_cards && all; i++) {
		struct ranked *host = &all[s->cards[i].host];
		host->idle_ms += s->cards[i].ms[CARD_IDLE_HELD];
		host->n_cards += is_observed(&s->cards[i]);
	}
	for (size_t i = 0; i < s->hosts.n && all; i++)
		if (all[i].n_cards)
			all[(*n)++] = all[i];
	if (*n)
		qsort(all, *n, sizeof(*all), compare_ranked);
	return all;
}

/* The end of a card's window: its last sample, if the next one may only not be there yet. */
static int64_t end_of(const struct sampled *s, const struct sampled_card *card)
{
	int64_t until_ms = s->a->asked_until_ms;
	bool pending = until_ms - card->last_ms <= sampled_limit(card->interval_ms);
	return pending ? clock_earlier(card->last_ms, until_ms) : until_ms;
}

static int add_card(struct sampled *s, const struct sampled_card *from, struct err *e)
{
	struct audit_card *card = audit_add_card(s->a, e);
	if (!card)
		return ERR_WORLD;
	struct audit_host *host = &s->a->hosts[s->a->n_hosts - 1];
	int64_t observed_ms = 0, end_ms = end_of(s, from);
	card->host = s->a->n_hosts - 1;
	card->has_rows = true;
	sampled_card_id(&card->id, s, from);
	str_copy(card->status, sizeof(card->status), "ok");
	memcpy(card->ms, from->ms, sizeof(card->ms));
	memcpy(card->energy_mj, from->energy_mj, sizeof(card->energy_mj));
	memcpy(card->energy_known_ms, from->energy_known_ms, sizeof(card->energy_known_ms));
	card->util_pct_ms = from->util_pct_ms;
	card->sm_active_pct_ms = from->sm_active_pct_ms;
	card->sm_active_ms = from->sm_active_ms;
	for (int state = 0; state < CARD_STATES; state++)
		observed_ms += card->ms[state];
	card->first_seen_ms = clock_later(from->first_ms, s->a->since_ms);
	card->last_seen_ms = end_ms;
	card->ms[CARD_UNOBSERVED] = clock_later(end_ms - card->first_seen_ms - observed_ms, 0);
	int64_t unsure_ms = llround(sampled_error(from->changes) * (double)s->step_ms);
	card->unsure_ms = clock_earlier(unsure_ms, observed_ms);
	hours_add_window(&s->a->days, card->first_seen_ms, end_ms);
	host->last_tick_ms = clock_later(host->last_tick_ms, from->last_ms);
	host->until_ms = clock_later(host->until_ms, end_ms);
	host->recording |=
		end_ms < s->a->asked_until_ms || from->last_ms >= s->a->asked_until_ms;
	host->n_cards++;
	return 0;
}

static int compare_cards(const void *x, const void *y, void *sampled)
{
	const struct sampled *s = sampled;
	const struct sampled_card *p = &s->cards[*(const uint32_t *)x];
	const struct sampled_card *q = &s->cards[*(const uint32_t *)y];
	if (p->host != q->host)
		return p->host < q->host ? -1 : 1;
	if (p->index != q->index)
		return p->index < q->index ? -1 : 1;
	int order = strcmp(p->uuid, q->uuid);
	return order ? order : strverscmp(p->instance, q->instance);
}

/* Adds a host and its cards, which follow each other in `order`, which ends with
 * IDMAP_NONE. */
static int add_host(struct sampled *s, const struct ranked *from, const uint32_t *order,
	uint32_t *places, struct err *e)
{
	struct audit *a = s->a;
	struct audit_host *host = audit_add_host(a, e);
	int rc = 0;
	if (!host)
		return ERR_WORLD;
	str_copy(host->hostname, sizeof(host->hostname), from->name);
	host->ran = true;
	host->has_leases = s->has_leases;
	for (; *order != IDMAP_NONE && s->cards[*order].host == from->host && rc == 0;
		order++) {
		if (!is_observed(&s->cards[*order]))
			continue;
		places[*order] = (uint32_t)a->n_cards;
		rc = add_card(s, &s->cards[*order], e);
	}
	a->fleet.n_silent += a->hosts[a->n_hosts - 1].recording ? 0 : 1;
	return rc;
}

/* Adds all hosts and cards; `places` gets the number of each card in the audit. */
static int add_hosts(struct sampled *s, uint32_t *places, struct err *e)
{
	size_t n = 0;
	struct ranked *ranked = rank_hosts(s, &n);
	uint32_t *order = calloc(s->n_cards + 1, sizeof(*order));
	size_t *first = calloc(s->hosts.n + 1, sizeof(*first));
	int rc = ranked && order && first ? 0 : err_memory(e);
	for (uint32_t i = 0; i < s->n_cards && rc == 0; i++)
		order[i] = i;
	if (rc == 0)
		order[s->n_cards] = IDMAP_NONE;
	if (s->n_cards && rc == 0)
		qsort_r(order, s->n_cards, sizeof(*order), compare_cards, s);
	for (size_t i = s->n_cards; i-- > 0 && rc == 0;)
		first[s->cards[order[i]].host] = i;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add_host(s, &ranked[i], order + first[ranked[i].host], places, e);
	free(ranked);
	free(order);
	free(first);
	return rc;
}

/* What a kind of identity is called for a holder. */
static const char *name_of(const struct sampled_holder *h, enum identity kind)
{
	return kind == IDENTITY_POD	    ? h->pod
	       : kind == IDENTITY_JOB	    ? h->job
	       : kind == IDENTITY_CONTAINER ? h->container
					    : "";
}

/* The names and the time of a holder on a card. */
struct adding {
	struct sampled *s;
	struct users users;
	struct breakdown breakdown;
};

static int add_part(
	struct adding *f, const struct sampled_part *part, uint32_t card, struct err *e)
{
	const struct sampled_holder *h = &f->s->holders[part->holder];
	const struct by *by = &f->s->q->by;
	struct pair pair = { .process = (int64_t)part->holder,
		.card = card,
		.labels = { IDMAP_NONE, IDMAP_NONE },
		.own_ms = { [HOLDER_ACTIVE] = llround(part->ms[CARD_ACTIVE]),
			[HOLDER_IDLE_HELD] = llround(part->ms[CARD_IDLE_HELD]),
			[HOLDER_USE_UNKNOWN] = llround(part->ms[CARD_USE_UNKNOWN]) },
		.reserved_ms = llround(part->ms[CARD_RESERVED]),
		.started_ms = -1,
		.peak_mem_kib = -1,
		.last_active_ms = -1 };
	pair.active_share_ms = pair.own_ms[HOLDER_ACTIVE];
	pair.idle_share_ms = pair.own_ms[HOLDER_IDLE_HELD];
	pair.unknown_share_ms = pair.own_ms[HOLDER_USE_UNKNOWN];
	memcpy(pair.presence_ms, pair.own_ms, sizeof(pair.presence_ms));
	pair.user = holdings_find_user(&f->users, *h->user ? h->user : "(no user)", e);
	if (pair.user == IDMAP_NONE)
		return ERR_WORLD;
	for (size_t level = 0; level < by->n; level++) {
		const char *name = name_of(h, by->kinds[level]);
		if (*name && breakdown_label(&f->breakdown, &pair, level, name, e))
			return ERR_WORLD;
	}
	struct audit_sums time = holdings_sums(&pair);
	audit_cost_holder(&time, &f->s->a->cards[card]);
	audit_sums_add(&f->users.items[pair.user].sums, &time);
	return by->n ? breakdown_add(&f->breakdown, 0, &pair, e) : 0;
}

static int compare_parts(const void *x, const void *y)
{
	const struct sampled_part *p = x, *q = y;
	if (p->holder != q->holder)
		return p->holder < q->holder ? -1 : 1;
	return array_compare(p->card, q->card);
}

/* Adds the users, and the breakdown that was asked for. */
static int add_holders(struct sampled *s, const uint32_t *places, struct err *e)
{
	struct gather g = { .a = s->a, .q = s->q };
	struct adding f = { .s = s };
	struct audit_breakdown *to = &s->a->breakdown;
	int rc = 0;
	breakdown_start(&f.breakdown, &g, &f.users, to, &s->q->by);
	for (size_t i = 0; i < to->by.n; i++)
		if (to->measures[i] != MEASURE_CARDS)
			to->measures[i] = MEASURE_SHARES;
	if (s->n_parts)
		qsort(s->parts, s->n_parts, sizeof(*s->parts), compare_parts);
	for (size_t i = 0; i < s->n_parts && rc == 0; i++)
		if (places[s->parts[i].card] != IDMAP_NONE)
			rc = add_part(&f, &s->parts[i], places[s->parts[i].card], e);
	if (rc == 0)
		rc = breakdown_end(&f.breakdown, e);
	if (rc == 0)
		rc = holdings_hand_over_users(&f.users, s->a, e);
	breakdown_finish(&f.breakdown);
	holdings_finish_users(&f.users);
	return rc;
}

static void set_fleet(struct sampled *s)
{
	struct audit_fleet *f = &s->a->fleet;
	f->asked = true;
	f->url = client_url(s->f->client);
	f->engine = s->f->engine;
	f->metrics = s->x->name;
	f->sampled_ms = s->step_ms;
	f->n_seen = s->a->n_hosts;
	f->n_expected = -1;
	f->missing = "";
	f->n_not_finite = client_not_finite(s->f->client);
	f->n_warnings = client_warnings(s->f->client, &f->warnings);
}

int sampled_fill(struct sampled *s, struct err *e)
{
	struct gather g = { .a = s->a, .q = s->q };
	struct audit *a = s->a;
	uint32_t *places = malloc((s->n_cards + 1) * sizeof(*places));
	double changes = 0;
	for (size_t i = 0; i < s->n_cards && places; i++) {
		places[i] = IDMAP_NONE;
		changes += s->cards[i].changes;
	}
	int rc = places ? add_hosts(s, places, e) : err_memory(e);
	for (size_t i = 0; i < a->n_hosts; i++) {
		if (i == 0 || a->hosts[i].until_ms > a->until_ms)
			a->until_ms = a->hosts[i].until_ms;
	}
	hours_settle(&a->days);
	a->has_leases = s->has_leases;
	if (rc == 0)
		rc = audit_cost_cards(&g, e);
	if (rc == 0)
		rc = add_holders(s, places, e);
	free(places);
	set_fleet(s);
	if (rc)
		return rc;
	audit_add_up(a);
	for (size_t i = 0; i < a->n_hosts; i++)
		a->fleet.n_late += a->hosts[i].late;
	a->unsure_ms = llround(sampled_error(changes) * (double)s->step_ms);
	return 0;
}

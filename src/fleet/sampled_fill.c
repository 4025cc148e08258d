/* Adds the hosts, cards and users of judged samples to the audit. */
#include "fleet/sampled.h"

/* The end of a card's window: its last sample, if the next one may only not be there yet. */
static int64_t end_of(const struct sampled *s, const struct sampled_card *card)
{
	int64_t until_ms = s->a->asked_until_ms;
	bool pending = until_ms - card->last_ms <= sampled_limit(card->interval_ms);
	return pending ? clock_earlier(card->last_ms, until_ms) : until_ms;
}

static int add_card(struct sampled *s, struct sampled_card *from, struct err *e)
{
	struct audit_card card = {
		.id = { .mig_index = -1, .gpu_instance = -1, .compute_instance = -1 },
		.util_pct_ms = from->util_pct_ms,
		.sm_active_pct_ms = from->sm_active_pct_ms,
		.sm_active_ms = from->sm_active_ms,
		.first_seen_ms = clock_later(from->first_ms, s->a->since_ms),
		.last_seen_ms = end_of(s, from)
	};
	int64_t observed_ms = state_observed_ms(from->ms), until_ms = s->a->asked_until_ms;
	if (from->left_out || observed_ms == 0)
		return 0;
	sampled_card_id(&card.id, s, from);
	memcpy(card.ms, from->ms, sizeof(card.ms));
	memcpy(card.energy_mj, from->energy_mj, sizeof(card.energy_mj));
	memcpy(card.energy_known_ms, from->energy_known_ms, sizeof(card.energy_known_ms));
	int64_t every_ms = clock_later(from->interval_ms, s->x->reads_ms);
	int64_t unsure_ms = llround(sampled_error(from->changes) * (double)every_ms);
	card.unsure_ms = clock_earlier(unsure_ms, observed_ms);
	struct audit_host *host = fleet_fill_host(s->fill, s->hosts.items[from->host].text, e);
	if (!host)
		return ERR_WORLD;
	host->metrics = s->x->name;
	if (from->driver)
		str_copy(host->driver, sizeof(host->driver), from->driver);
	host->has_leases |= from->leased;
	host->interval_ms = from->interval_ms;
	host->last_tick_ms = clock_later(host->last_tick_ms, from->last_ms);
	host->until_ms = clock_later(host->until_ms, card.last_seen_ms);
	host->recording |= card.last_seen_ms < until_ms || from->last_ms >= until_ms;
	from->place = (uint32_t)s->a->n_cards;
	struct audit_fleet *f = &s->a->fleet;
	f->often_ms = f->sampled_ms ? clock_earlier(f->often_ms, every_ms) : every_ms;
	f->sampled_ms = clock_later(f->sampled_ms, every_ms);
	return fleet_fill_card(s->fill, host, &card, e) ? 0 : ERR_WORLD;
}

int sampled_fill(struct sampled *s, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < s->n_cards && rc == 0; i++)
		rc = add_card(s, &s->cards[i], e);
	if (!s->a->of_users)
		hours_settle(&s->a->days);
	return rc;
}

/* What a kind of identity is called for a holder; a workload is known from its pod. */
static const char *name_of(const struct sampled_holder *h, enum identity kind)
{
	return kind == IDENTITY_POD || kind == IDENTITY_WORKLOAD ? h->pod
	       : kind == IDENTITY_NAMESPACE			 ? h->namespace
	       : kind == IDENTITY_JOB				 ? h->job
	       : kind == IDENTITY_CONTAINER			 ? h->container
								 : "";
}

/* Adds the time of a holder on a card. */
static int add_part(
	struct sampled *s, size_t way, const struct sampled_part *part, struct err *e)
{
	struct fleet_fill *fill = s->fill;
	const struct sampled_holder *h = &s->holders[part->holder];
	const struct by *by = &s->q->by;
	struct pair pair = { .process = (int64_t)part->holder,
		.card = fill->places[s->cards[part->card].place],
		.labels = { IDMAP_NONE, IDMAP_NONE },
		.own_ms = { [HOLDER_ACTIVE] = llround(part->ms[CARD_ACTIVE]),
			[HOLDER_IDLE_HELD] = llround(part->ms[CARD_IDLE_HELD]),
			[HOLDER_USE_UNKNOWN] = llround(part->ms[CARD_USE_UNKNOWN]) },
		.reserved_ms = llround(part->ms[CARD_RESERVED]),
		.user = holdings_find_user(&fill->users, *h->user ? h->user : "(no user)", e) };
	if (pair.user == IDMAP_NONE)
		return ERR_WORLD;
	for (size_t level = 0; level < by->n; level++) {
		const char *name = name_of(h, by->kinds[level]);
		if (*name && breakdown_label(&fill->breakdown, &pair, level, name, e))
			return ERR_WORLD;
	}
	return fleet_fill_user(fill, way, &pair, e);
}

static int compare_parts(const void *x, const void *y)
{
	const struct sampled_part *p = x, *q = y;
	int order = array_compare(p->holder, q->holder);
	return order ? order : array_compare(p->card, q->card);
}

static void add_lane(const struct sampled *s, const struct sampled_card *from)
{
	const struct audit_columns *c = &s->a->columns;
	uint32_t place = s->fill->places[from->place];
	const struct audit_card *card = &s->a->cards[place];
	for (size_t i = 0; i < c->n; i++) {
		struct audit_column *column = &c->items[place * c->n + i];
		int64_t from_ms = c->first_ms + (int64_t)i * c->width_ms;
		int64_t length_ms = clock_earlier(from_ms + c->width_ms, card->to_ms) -
				    clock_later(from_ms, card->from_ms);
		if (from->columns)
			*column = from->columns[i];
		column->window_ms = clock_later(length_ms, column->ms[CARD_UNOBSERVED]);
		column->ms[CARD_UNOBSERVED] = column->window_ms - column->ms[CARD_UNOBSERVED];
	}
}

int sampled_fill_users(struct sampled *s, size_t way, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < s->n_cards; i++)
		if (s->cards[i].place != IDMAP_NONE)
			add_lane(s, &s->cards[i]);
	array_sort(s->parts, s->n_parts, compare_parts);
	for (size_t i = 0; i < s->n_parts && rc == 0; i++)
		if (s->cards[s->parts[i].card].place != IDMAP_NONE)
			rc = add_part(s, way, &s->parts[i], e);
	return rc;
}

/* Adds the users of a fleet to an audit, and the breakdown. Metrics say how much of a host's
 * time is a user's share, not on which card: the share is divided like the time of the host's
 * cards, so that its cost is what the cards cost. */
#include <stdlib.h>
#include <string.h>

#include "fleet/survey_fill.h"
#include "audit/gather.h"
#include "audit/audit.h"

struct filling {
	struct survey *s;
	struct gather g;
	struct users users;
	struct breakdown breakdown;
	size_t *first_card; /* by host of the audit, and one more */
};

/* The part of an amount that falls on a card: like its part of the weights, and the rest of
 * the amount on the last one. */
static int64_t part_on(int64_t *left, int64_t *weights_left, int64_t weight, bool last)
{
	int64_t part =
		last || *weights_left <= 0
			? (last ? *left : 0)
			: (int64_t)((double)*left * (double)weight / (double)*weights_left);
	*left -= part;
	*weights_left -= weight;
	return part;
}

static int add_pair(struct filling *f, struct pair *pair, struct err *e)
{
	struct audit_sums *own = &pair->own;
	own->peak_mem_kib = own->last_active_ms = -1;
	own->active_share_ms = own->ms[HOLDER_ACTIVE];
	own->idle_share_ms = own->ms[HOLDER_IDLE_HELD];
	memcpy(pair->presence_ms, own->ms, sizeof(pair->presence_ms));
	audit_cost_holder(own, &f->s->a->cards[pair->card]);
	audit_sums_add(&f->users.items[pair->user].sums, own);
	return f->s->q->by.n ? breakdown_add(&f->breakdown, 0, pair, e) : 0;
}

/* Adds a user of a host. */
static int add_user(struct filling *f, const struct meter_row *row, struct err *e)
{
	static const int states[] = { HOLDER_ACTIVE, HOLDER_IDLE_HELD, HOLDER_SQUATTING };
	static const int of_cards[] = { CARD_ACTIVE, CARD_IDLE_HELD, CARD_ACTIVE };
	const struct audit *a = f->s->a;
	size_t host = f->s->hosts[row->host].index;
	size_t first = f->first_card[host], end = f->first_card[host + 1];
	int64_t left[3], weights[3] = { 0 };
	uint32_t user = holders_find_user(&f->users, row->name, e);
	if (user == IDMAP_NONE)
		return ERR_WORLD;
	for (size_t k = 0; k < 3; k++) {
		left[k] = survey_grown(f->s, row, states[k]);
		for (size_t card = first; card < end; card++)
			weights[k] += a->cards[card].ms[of_cards[k]];
	}
	if (left[0] + left[1] + left[2] == 0)
		return 0;
	for (size_t card = first; card < end; card++) {
		struct pair pair = { .process = (int64_t)(row - f->s->users.rows) + 1,
			.card = (uint32_t)card,
			.user = user,
			.labels = { IDMAP_NONE, IDMAP_NONE },
			.started_ms = -1 };
		for (size_t k = 0; k < 3; k++)
			pair.own.ms[states[k]] = part_on(&left[k], &weights[k],
				a->cards[card].ms[of_cards[k]], card + 1 == end);
		int rc = add_pair(f, &pair, e);
		if (rc)
			return rc;
	}
	return 0;
}

/* Removes users who had no time. */
static void drop_idle(struct audit *a)
{
	while (a->n_identities && /* they are sorted by their time */
		audit_holder_ms(a->identities[a->n_identities - 1].sums.ms) == 0)
		a->n_identities--;
}

static int find_cards(struct filling *f, struct err *e)
{
	const struct audit *a = f->s->a;
	f->first_card = calloc(a->n_hosts + 2, sizeof(*f->first_card));
	for (size_t i = 0; i < a->n_hosts && f->first_card; i++)
		f->first_card[i + 1] = f->first_card[i] + a->hosts[i].n_cards;
	return f->first_card ? 0 : err_memory(e);
}

int survey_users(struct survey *s, struct err *e)
{
	struct filling f = { .s = s, .g = { .a = s->a, .q = s->q } };
	struct audit_breakdown *to = &s->a->breakdown;
	int rc = find_cards(&f, e);
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
		rc = holders_hand_over_users(&f.users, s->a, e);
	if (rc == 0)
		drop_idle(s->a);
	breakdown_finish(&f.breakdown);
	holders_finish_users(&f.users);
	free(f.first_card);
	return rc;
}

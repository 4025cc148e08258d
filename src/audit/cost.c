/* Works out what the time of cards and of their holders costs, in money and in energy. */
#include "audit/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "audit/gather.h"

#define HOUR_MS 3600e3
/* A card's power without any work is believed after this much of it. */
#define FLOOR_MS 60000

/* Truly-idle energy and time of all cards of a model. */
struct model_floor {
	const char *name;
	int64_t energy_mj, ms;
};

struct model_floors {
	struct model_floor *items;
	size_t n;
};

static struct model_floor *find_model(struct model_floors *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->items[i].name, name) == 0)
			return &m->items[i];
	return NULL;
}

static int add_model(struct model_floors *m, const struct audit_card *card, struct err *e)
{
	struct model_floor *model = find_model(m, card->id.name);
	if (!model && !array_one_more(&m->items, m->n))
		return err_memory(e);
	if (!model) {
		model = &m->items[m->n++];
		*model = (struct model_floor){ .name = card->id.name };
	}
	model->energy_mj += card->energy_mj[CARD_TRULY_IDLE];
	model->ms += card->energy_known_ms[CARD_TRULY_IDLE];
	return 0;
}

/* The mean power of a card without any work, in watts: its own or, if it was not idle for long
 * enough, that of all cards of its model; NAN: none was. */
static double floor_of(struct model_floors *m, const struct audit_card *card)
{
	int64_t ms = card->energy_known_ms[CARD_TRULY_IDLE];
	const struct model_floor *model = find_model(m, card->id.name);
	if (ms >= FLOOR_MS)
		return (double)card->energy_mj[CARD_TRULY_IDLE] / (double)ms;
	return model->ms >= FLOOR_MS ? (double)model->energy_mj / (double)model->ms : NAN;
}

int gather_costs(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	struct model_floors models = { 0 };
	int rc = 0;
	for (size_t i = 0; i < a->n_cards && rc == 0; i++)
		rc = add_model(&models, &a->cards[i], e);
	for (size_t i = 0; i < a->n_cards && rc == 0; i++) {
		struct audit_card *card = &a->cards[i];
		card->floor_w = floor_of(&models, card);
		card->price = g->q->price_of ? g->q->price_of(g->q->price_context, &card->id)
					     : (double)NAN;
	}
	free(models.items);
	return rc;
}

/* Adds the energy of a part of the card's time in a state. */
static void add_energy(struct audit_cost *cost, const struct audit_card *card,
	enum card_state state, double part_ms)
{
	if (part_ms <= 0 || card->ms[state] <= 0 || card->energy_known_ms[state] <= 0)
		return;
	double part = part_ms / (double)card->ms[state];
	double energy_mj = part * (double)card->energy_mj[state];
	double known_ms = part * (double)card->energy_known_ms[state];
	double floor_mj = fmin(card->floor_w * known_ms, energy_mj);
	cost->energy_mj += energy_mj;
	cost->floor_mj += isnan(card->floor_w) ? (double)NAN : floor_mj;
	cost->energy_ms += llround(known_ms);
}

/* Adds the money of a part of the card's time. */
static void add_money(
	struct audit_cost *cost, const struct audit_card *card, enum cost_part part, double ms)
{
	bool priced = isfinite(card->price);
	cost->priced |= priced;
	if (priced)
		cost->money[part] += card->price * ms / HOUR_MS;
	if (part < COST_PARTS)
		*(priced ? &cost->priced_ms : &cost->unpriced_ms) += llround(ms);
}

void cost_of_holder(struct audit_sums *sums, const struct audit_card *card)
{
	static const enum card_state states[] = { [COST_ACTIVE] = CARD_ACTIVE,
		[COST_IDLE_HELD] = CARD_IDLE_HELD,
		[COST_USE_UNKNOWN] = CARD_USE_UNKNOWN };
	const int64_t shares[] = { [COST_ACTIVE] = sums->active_share_ms,
		[COST_IDLE_HELD] = sums->idle_share_ms,
		[COST_USE_UNKNOWN] = sums->unknown_share_ms };
	sums->cost = (struct audit_cost){ 0 };
	for (int part = 0; part < COST_HELD_PARTS; part++) {
		add_money(&sums->cost, card, part, (double)shares[part]);
		add_energy(&sums->cost, card, states[part], (double)shares[part]);
	}
	add_money(&sums->cost, card, COST_SQUATTING, (double)sums->ms[HOLDER_SQUATTING]);
}

void cost_add_card(struct audit_cost *cost, const struct audit_card *card, int from, int to)
{
	static const enum card_state states[COST_PARTS] = { [COST_ACTIVE] = CARD_ACTIVE,
		[COST_IDLE_HELD] = CARD_IDLE_HELD,
		[COST_USE_UNKNOWN] = CARD_USE_UNKNOWN,
		[COST_TRULY_IDLE] = CARD_TRULY_IDLE,
		[COST_UNOBSERVED] = CARD_UNOBSERVED };
	for (int part = from; part < to; part++) {
		double ms = (double)card->ms[states[part]];
		add_money(cost, card, part, ms);
		add_energy(cost, card, states[part], ms);
	}
}

void cost_add(struct audit_cost *to, const struct audit_cost *more)
{
	for (int part = 0; part < COSTS; part++)
		to->money[part] += more->money[part];
	to->priced |= more->priced;
	to->priced_ms += more->priced_ms;
	to->unpriced_ms += more->unpriced_ms;
	to->energy_mj += more->energy_mj;
	to->floor_mj += more->floor_mj;
	to->energy_ms += more->energy_ms;
}

void cost_subtract(struct audit_cost *from, const struct audit_cost *less)
{
	for (int part = 0; part < COSTS; part++)
		from->money[part] -= less->money[part];
	from->priced_ms -= less->priced_ms;
	from->unpriced_ms -= less->unpriced_ms;
	from->energy_mj -= less->energy_mj;
	from->floor_mj -= less->floor_mj;
	from->energy_ms -= less->energy_ms;
}

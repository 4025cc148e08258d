/* Keeps the readings of each card between two ticks. Utilisation and power are means over that
 * time: they come from the sums and from the energy counter, and cost no call of the driver. */
#include "record/watch_now.h"

void watch_now_start(struct watched *card)
{
	card_now_clear(&card->now);
	card->meter.mj = card->tick_meter.mj = NAN;
}

void watch_now_energy(struct watched *card, int64_t at_ms, double energy_mj)
{
	bool restarted = energy_mj < card->meter.mj;
	card->meter = (struct energy_point){ at_ms, energy_mj };
	if (restarted || isnan(card->tick_meter.mj))
		card->tick_meter = card->meter;
}

void watch_now_take(
	struct watched *card, const struct card_reading *r, const struct round *round, size_t i)
{
	if (!round->look_all || !round->glanced)
		return;
	card_now_clear(&card->now);
	if (r->status != CARD_STATUS_OK || card->gone)
		return;
	card->now.mem_used_bytes = r->mem_used_bytes;
	card->now.temperature_c = round->cards[i].temperature_c;
	card->now.power_limit_w = round->cards[i].power_limit_w;
}

/* The mean power since the last tick; the current reading becomes that of the last tick. */
static double take_power_w(struct watched *card)
{
	int64_t ms = card->meter.at_ms - card->tick_meter.at_ms;
	double mj = card->meter.mj - card->tick_meter.mj;
	card->tick_meter = card->meter;
	return isnan(mj) || ms <= 0 ? NAN : mj / (double)ms;
}

/* The mean utilisation of a card over the time in the tick for which it is known. */
static double mean_util_pct(const struct tick *t, size_t card)
{
	int64_t ms = 0, pct_ms = 0;
	for (size_t i = 0; i < t->n_usage; i++) {
		const struct usage_sum *u = &t->usage[i];
		if (u->card != card || !state_has_util(u->state))
			continue;
		ms += u->ms;
		pct_ms += u->util_pct_ms;
	}
	return ms > 0 ? (double)pct_ms / (double)ms : NAN;
}

void watch_now_tick(struct watch *w, const struct tick *t)
{
	for (size_t i = 0; i < w->n_cards; i++) {
		struct watched *card = &w->cards[i];
		double power_w = take_power_w(card);
		struct card_now *now = &w->entries[i].now;
		*now = card->now;
		card_now_clear(&card->now);
		/* It may have been lost since the last look. */
		if (w->entries[i].status != CARD_STATUS_OK || card->gone) {
			card_now_clear(now);
			continue;
		}
		now->power_w = power_w;
		now->util_pct = mean_util_pct(t, i);
		now->idle_held_since_ms = card->account.idle_held_since_ms;
	}
}

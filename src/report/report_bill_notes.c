/* Writes the sentences about the bill. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/card_name.h"
#include "report/report_parts.h"

void price_text(char *dst, size_t cap, double price)
{
	bool whole = fabs(price * 100 - round(price * 100)) < 1e-6;
	snprintf(dst, cap, whole ? "%.2f" : "%.10g", price);
}

/* Whether an earlier card is of the same model. */
static bool is_repeated(const struct audit *a, size_t card)
{
	for (size_t i = 0; i < card; i++)
		if (strcmp(a->cards[i].id.name, a->cards[card].id.name) == 0)
			return true;
	return false;
}

static size_t count_model(const struct audit *a, const char *name)
{
	size_t n = 0;
	for (size_t i = 0; i < a->n_cards; i++)
		n += strcmp(a->cards[i].id.name, name) == 0;
	return n;
}

/* Names the models with (or without) a price: "2.50 EUR for A100-SXM4-80GB (2 GPUs)". */
static size_t name_models(
	struct str *out, const struct audit *a, bool priced, const char *currency)
{
	size_t n = 0;
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		char price[40] = "";
		if (isfinite(card->price) != priced || is_repeated(a, i))
			continue;
		size_t gpus = count_model(a, card->id.name);
		const char *name = card_short_name(card->id.name);
		price_text(price, sizeof(price), card->price);
		str_add(out, n++ ? ", " : "");
		if (priced)
			str_addf(out, "%s %s for ", price, currency);
		str_addf(out, "%s (%zu GPU%s)", *name ? name : "(unknown model)", gpus,
			gpus == 1 ? "" : "s");
	}
	return n;
}

static void add_prices(struct report *r, const struct audit *a)
{
	struct str with = { 0 }, without = { 0 };
	char hours[32];
	size_t n_with = name_models(&with, a, true, r->bill.currency);
	size_t n_without = name_models(&without, a, false, r->bill.currency);
	if (n_with)
		report_say(r, SENTENCE_BILL, NULL, "Price of a GPU-hour: %s.", str_text(&with));
	const struct audit_cost *cost = a->of_users ? &a->held_cost : &a->cost;
	snprintf(hours, sizeof(hours), "%.2f", (double)cost->unpriced_ms / 3600e3);
	if (n_without)
		report_say(r, SENTENCE_BILL, NULL,
			"No price is known for %s: %s GPU-hours are in no sum of money. "
			"[price] "
			"in gua.conf(5) sets it.",
			str_text(&without), hours);
	r->failed |= with.failed || without.failed;
	str_finish(&with);
	str_finish(&without);
}

static void add_energy(struct report *r, const struct audit *a)
{
	const struct audit_cost *cost = a->of_users ? &a->held_cost : &a->cost;
	int64_t ms = cost->priced_ms + cost->unpriced_ms;
	if (!r->bill.has_energy) {
		report_say(r, SENTENCE_ENERGY, NULL, "The driver reported no energy.");
		return;
	}
	report_say(r, SENTENCE_ENERGY, NULL,
		"Estimates: the energy of a GPU (known for %.1f%% of %s) is divided like "
		"its time. idle floor is what the GPU takes without any work%s.",
		100 * part_of(cost->energy_ms, ms),
		a->of_users ? "the time held" : "the window",
		isnan(cost->floor_mj) ? "; it is known only for GPUs that were idle in the "
					"window, and for others of their model"
				      : "");
}

void report_add_bill_sentences(struct report *r, const struct audit *a)
{
	const struct report_bill *bill = &r->bill;
	if (!bill->shown)
		return;
	add_energy(r, a);
	if (!bill->currency)
		return;
	report_say(r, SENTENCE_BILL, NULL, "%s",
		a->of_users ? "active and idle divide each GPU's time among its holders."
			    : "active and idle divide each GPU's time among its holders, so "
			      "that the lines add up to the total: GPUs x window x price. "
			      "free is truly-idle time.");
	if (a->held_cost.money[COST_SQUATTING] > 0)
		report_say(r, SENTENCE_BILL, NULL,
			"(idle on busy GPU) is in no sum: the user who kept the GPU busy pays "
			"for that time.");
	add_prices(r, a);
}

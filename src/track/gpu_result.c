/* Fills the GPU part of a tracker's result. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "track/gpu_private.h"
#include "track/tracker_private.h"

/* Time by state, from the ledger's only slot. */
struct times {
	double observed_ms, util_pct_ms;
	double active_ms, idle_held_ms; /* of the tree: presence */
};

static struct times times_of(const struct gpu *g, size_t card)
{
	struct times sum = { 0 };
	size_t n;
	const struct usage_sum *usage = ledger_usage_rows(&g->ledger, &n);
	for (size_t i = 0; i < n; i++) {
		if (usage[i].card != card || usage[i].state == CARD_UNOBSERVED)
			continue;
		sum.observed_ms += (double)usage[i].ms;
		sum.util_pct_ms += (double)usage[i].util_pct_ms;
	}
	const struct holding_sum *holding = ledger_holding_rows(&g->ledger, &n);
	for (size_t i = 0; i < n; i++) {
		const struct holding_sum *h = &holding[i];
		if (h->card != card || gpu_card_whose(h->process) != HOLDER_TREE)
			continue;
		sum.active_ms += (double)h->presence_ms[HOLDER_ACTIVE];
		/* A squatter holds memory and does nothing, even if others use the card. */
		sum.idle_held_ms += (double)(h->presence_ms[HOLDER_IDLE_HELD] +
					     h->presence_ms[HOLDER_SQUATTING]);
	}
	return sum;
}

static void fill_card(const struct gpu *g, size_t i, struct track_card *out)
{
	const struct gpu_card *c = &g->cards[i];
	struct times times = times_of(g, i);
	*out = c->shown;
	out->max_tree_bytes = c->listed && !c->tree_unknown ? c->shown.max_tree_bytes : -1;
	if (times.observed_ms > 0)
		out->mean_util_pct = times.util_pct_ms / times.observed_ms;
	out->max_util_pct = times.observed_ms > 0
				    ? track_max(c->shown.max_util_pct, out->mean_util_pct)
				    : NAN;
	if (c->tree_known_s > 0)
		out->mean_tree_pct = c->tree_pct_s / c->tree_known_s;
	/* If the tree held memory while the use was unknown, both times are unknown. */
	bool unseen = times.observed_ms <= 0 && out->max_tree_bytes != 0;
	out->active_s = unseen ? NAN : times.active_ms / 1e3;
	out->idle_held_s = unseen ? NAN : times.idle_held_ms / 1e3;
}

static void add_known(double *sum, double value)
{
	if (!isnan(value))
		*sum = (isnan(*sum) ? 0 : *sum) + value;
}

/* The host's capacity, which includes cards that are not in the result. */
static void add_capacity(struct track_result *r, const struct card_id *id)
{
	if (id->mem_total_bytes >= 0 && id->mig_index < 0)
		r->gpu_capacity_bytes =
			(r->gpu_capacity_bytes < 0 ? 0 : r->gpu_capacity_bytes) +
			id->mem_total_bytes;
}

static void add_card(struct track_result *r, const struct gpu_card *c,
	const struct track_card *card, bool counts)
{
	r->expected_gpus += counts;
	/* The sum is unknown if one card is unknown. A card counts if it had a process list or
	 * is OK at the end. */
	if (c->listed || card->status == CARD_STATUS_OK) {
		r->gpu_active_s += card->active_s;
		r->gpu_idle_held_s += card->idle_held_s;
	}
	add_known(&r->energy_j, card->energy_j);
	add_known(&r->tree_energy_j, card->tree_energy_j);
	if (counts)
		add_known(&r->gpu_util.mean_sum_pct, card->mean_util_pct);
}

/* Fills the groups' peaks; unknown when a card or a process did not report its memory. */
static void fill_ram(const struct gpu *g, struct track_result *r)
{
	bool silent = false;
	for (size_t i = 0; i < g->n_cards; i++)
		silent |= g->cards[i].looked && !g->cards[i].listed &&
			  g->cards[i].shown.status == CARD_STATUS_OK &&
			  gpu_shows(g, &g->cards[i]);
	for (int k = 0; k < TRACK_GROUPS; k++)
		r->gpu_ram[k] = silent || g->ram_unknown[k] ? -1 : g->max_ram[k];
	r->gpu_context_bytes = r->gpu_ram[TRACK_COMBINED] < 0 ? -1 : g->context_bytes;
	r->gpu_system_max_bytes = g->max_used_bytes;
}

void gpu_fill_none(struct track_result *r)
{
	r->gpu_known = false;
	r->gpu_count = r->expected_gpus = 0;
	r->gpu_capacity_bytes = r->gpu_system_max_bytes = r->gpu_context_bytes = -1;
	for (int k = 0; k < TRACK_GROUPS; k++)
		r->gpu_ram[k] = -1;
	r->gpu_util = (struct track_cpu){ NAN, NAN };
	r->gpu_active_s = r->gpu_idle_held_s = NAN;
	r->energy_j = r->tree_energy_j = NAN;
	r->n_cards = 0;
}

void gpu_fill(struct gpu *g, struct track_result *r)
{
	gpu_fill_none(r);
	if (g->state == GPU_OPENING)
		text_copy(r->gpu_note, sizeof(r->gpu_note),
			"the driver had not answered before the end");
	else
		text_copy(r->gpu_note, sizeof(r->gpu_note), g->note);
	if (g->state != GPU_OPEN)
		return;
	if (!array_resize(&r->cards, g->n_cards + 1))
		return;
	r->gpu_known = true;
	r->gpu_active_s = r->gpu_idle_held_s = 0;
	r->gpu_count = (int64_t)g->n_cards;
	for (size_t i = 0; i < g->n_cards; i++) {
		const struct gpu_card *c = &g->cards[i];
		add_capacity(r, &c->shown.id);
		if (!gpu_shows(g, c))
			continue;
		struct track_card *card = &r->cards[r->n_cards++];
		fill_card(g, i, card);
		add_card(r, c, card, gpu_counts(g, c));
	}
	if (!isnan(r->gpu_util.mean_sum_pct))
		r->gpu_util.max_sum_pct = track_max(g->max_sum_pct, r->gpu_util.mean_sum_pct);
	fill_ram(g, r);
}

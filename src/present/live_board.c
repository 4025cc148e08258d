/* Completes the metrics of boards and their cards with values that the driver does not report
 * directly. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "present/live_private.h"

/* Fills in values that are known without asking the driver again. */
static void fill_known(struct live *l, const struct card_id *id, int64_t used_bytes,
	double util_pct, double *values)
{
	unsigned domain, bus, device;
	values[METRIC_INDEX] = id->index;
	values[METRIC_CARDS] = (double)l->n_boards;
	if (id->mem_total_bytes >= 0)
		values[METRIC_MEMORY_TOTAL] = (double)id->mem_total_bytes;
	if (used_bytes >= 0)
		values[METRIC_MEMORY_USED] = (double)used_bytes;
	if (isnan(values[METRIC_MEMORY_FREE]))
		values[METRIC_MEMORY_FREE] =
			values[METRIC_MEMORY_TOTAL] - values[METRIC_MEMORY_USED];
	if (isnan(values[METRIC_UTILIZATION_GPU]))
		values[METRIC_UTILIZATION_GPU] = util_pct;
	if (sscanf(id->pci, "%x:%x:%x", &domain, &bus, &device) == 3) {
		values[METRIC_PCI_DOMAIN] = domain;
		values[METRIC_PCI_BUS] = bus;
		values[METRIC_PCI_DEVICE] = device;
	}
}

static void finish_board(struct live *l, struct present_board *b)
{
	const struct live_memory *m = &l->memory[b->first_card];
	if (b->mig && !isnan(b->values[METRIC_MEMORY_TOTAL]))
		b->id.mem_total_bytes = (int64_t)b->values[METRIC_MEMORY_TOTAL];
	else if (b->mig)
		b->id.mem_total_bytes = -1;
	int64_t used = b->mig ? -1 : l->source->cards[b->first_card].mem_used_bytes;
	fill_known(l, &b->id, used, b->mig ? NAN : m->util_pct, b->values);
	metric_derive(b->values);
}

static void finish_card(struct live *l, size_t i)
{
	struct present_card *c = &l->cards[i];
	const struct card_reading *r = &l->source->cards[i];
	const struct present_board *b = &l->boards[c->board];
	if (r->id.mig_index >= 0) {
		metric_derive(c->values);
		fill_known(l, &r->id, r->mem_used_bytes, l->memory[i].util_pct, c->values);
	} else {
		memcpy(c->values, b->values, sizeof(c->values));
		memcpy(c->texts, b->texts, sizeof(c->texts));
	}
	c->host = 0;
	c->last_seen_ms = -1;
	c->id = r->id;
	text_copy(c->source, sizeof(c->source), r->source);
	c->status = r->status;
	c->code = r->code;
	c->gone = r->gone;
	if (r->status == CARD_STATUS_OK)
		return;
	metric_clear(c->values, c->texts);
	c->values[METRIC_INDEX] = c->id.index;
	c->values[METRIC_CARDS] = (double)l->n_boards;
}

void live_finish_boards(struct live *l)
{
	for (size_t i = 0; i < l->n_boards; i++)
		finish_board(l, &l->boards[i]);
	for (size_t i = 0; i < l->n_cards; i++)
		finish_card(l, i);
}

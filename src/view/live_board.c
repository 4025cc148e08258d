/* The metrics of a live view: of boards, and of the cards that they are or are divided into. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "view/live_private.h"

/* The board of a card, made when the card is the first of it. */
static size_t find_board(struct live *l, size_t card)
{
	const struct card_reading *r = &l->source->cards[card];
	bool instance = r->id.mig_index >= 0;
	const char *uuid = instance ? r->id.parent_uuid : r->id.uuid;
	for (size_t i = 0; i < l->n_boards; i++)
		if (strcmp(l->boards[i].id.uuid, uuid) == 0)
			return i;
	struct live_board *b = &l->boards[l->n_boards];
	*b = (struct live_board){ .id = r->id, .first_card = card, .mig = instance };
	b->status = CARD_STATUS_LOST;
	b->code = r->code;
	if (instance) {
		text_copy(b->id.uuid, sizeof(b->id.uuid), r->id.parent_uuid);
		b->id.parent_uuid[0] = '\0';
		b->id.mig_index = b->id.gpu_instance = b->id.compute_instance = -1;
		if (l->source->ops->board)
			l->source->ops->board(l->source, card, &b->id);
	}
	metric_clear(b->values, b->texts);
	return l->n_boards++;
}

/* A board is as well as the best of its cards. */
static void make_boards(struct live *l)
{
	l->n_boards = 0;
	for (size_t i = 0; i < l->n_cards; i++) {
		const struct card_reading *r = &l->source->cards[i];
		size_t at = find_board(l, i);
		struct live_board *b = &l->boards[at];
		l->cards[i].board = at;
		if (b->status == CARD_STATUS_OK ||
			(b->status == CARD_STATUS_LOST && b->first_card != i &&
				r->status == CARD_STATUS_LOST))
			continue;
		b->status = r->status;
		b->code = r->code;
		b->first_card = i;
	}
}

static void read_metrics(
	struct live *l, size_t card, bool board, double *values, metric_texts texts)
{
	struct source *s = l->source;
	if (s->ops->metrics && s->cards[card].status == CARD_STATUS_OK)
		s->ops->metrics(s, card, board, l->wanted, values, texts);
}

/* What is known without asking the driver again. */
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

static void read_board(struct live *l, struct live_board *b)
{
	const struct live_memory *m = &l->memory[b->first_card];
	if (b->status == CARD_STATUS_OK)
		read_metrics(l, b->first_card, true, b->values, b->texts);
	if (b->mig && !isnan(b->values[METRIC_MEMORY_TOTAL]))
		b->id.mem_total_bytes = (int64_t)b->values[METRIC_MEMORY_TOTAL];
	else if (b->mig)
		b->id.mem_total_bytes = -1;
	int64_t used = b->mig ? -1 : l->source->cards[b->first_card].mem_used_bytes;
	fill_known(l, &b->id, used, b->mig ? NAN : m->util_pct, b->values);
	metric_derive(b->values);
}

/* What belongs to an instance itself, not to the board that it is a part of. */
static const enum metric divided[] = { METRIC_MEMORY_TOTAL, METRIC_MEMORY_RESERVED,
	METRIC_MEMORY_USED, METRIC_MEMORY_FREE, METRIC_UTILIZATION_GPU,
	METRIC_UTILIZATION_MEMORY, METRIC_UTILIZATION_ENCODER, METRIC_UTILIZATION_DECODER,
	METRIC_UTILIZATION_JPEG, METRIC_UTILIZATION_OFA, METRIC_BAR1_TOTAL, METRIC_BAR1_USED };

static void read_card(struct live *l, size_t i)
{
	struct live_card *c = &l->cards[i];
	const struct card_reading *r = &l->source->cards[i];
	const struct live_board *b = &l->boards[c->board];
	memcpy(c->values, b->values, sizeof(c->values));
	memcpy(c->texts, b->texts, sizeof(c->texts));
	if (r->id.mig_index >= 0) {
		for (size_t k = 0; k < sizeof(divided) / sizeof(divided[0]); k++)
			c->values[divided[k]] = NAN;
		read_metrics(l, i, false, c->values, c->texts);
		fill_known(l, &r->id, r->mem_used_bytes, l->memory[i].util_pct, c->values);
	}
	c->id = r->id;
	c->status = r->status;
	c->code = r->code;
	if (r->status == CARD_STATUS_OK)
		return;
	metric_clear(c->values, c->texts);
	c->values[METRIC_INDEX] = c->id.index;
	c->values[METRIC_CARDS] = (double)l->n_boards;
}

void live_read_boards(struct live *l)
{
	make_boards(l);
	for (size_t i = 0; i < l->n_boards; i++)
		read_board(l, &l->boards[i]);
	for (size_t i = 0; i < l->n_cards; i++)
		read_card(l, i);
}

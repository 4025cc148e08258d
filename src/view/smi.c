/* What the views of nvidia-smi share: the cards that were asked for, and their processes. */
#include "view/smi.h"

#include <stdio.h>

int smi_init(struct smi *s, struct live *l, const struct filter *f, struct err *e)
{
	*s = (struct smi){ .live = l, .now = live_present(l) };
	return stat_boards(&s->boards, l, f, e);
}

void smi_finish(struct smi *s)
{
	stat_boards_finish(&s->boards);
}

bool smi_lost(const struct smi *s)
{
	for (size_t i = 0; i < s->boards.n; i++)
		if (s->boards.all[i]->status == CARD_STATUS_LOST)
			return true;
	return false;
}

static bool is_on(
	const struct smi *s, const struct present_card *c, const struct present_board *b)
{
	return !c->gone && &s->now->boards[c->board] == b;
}

bool smi_process(
	const struct smi *s, const struct present_board *b, size_t n, struct smi_process *p)
{
	const struct present_card *cards = s->now->cards;
	for (size_t i = 0; i < s->now->n_cards; i++) {
		if (!is_on(s, &cards[i], b))
			continue;
		if (n < cards[i].n_processes) {
			p->card = &cards[i];
			p->process = &s->now->processes[cards[i].first_process + n];
			return true;
		}
		n -= cards[i].n_processes;
	}
	return false;
}

const struct present_card *smi_instance(
	const struct smi *s, const struct present_board *b, size_t n)
{
	const struct present_card *cards = s->now->cards;
	for (size_t i = 0; b->mig && i < s->now->n_cards; i++)
		if (is_on(s, &cards[i], b) && cards[i].id.mig_index >= 0 && n-- == 0)
			return &cards[i];
	return NULL;
}

void smi_type(char *dst, size_t cap, const struct present_process *p)
{
	bool compute = p->kind & (PROCESS_COMPUTE | PROCESS_MPS);
	snprintf(dst, cap, "%s%s%s%s", p->kind & PROCESS_MPS ? "M+" : "", compute ? "C" : "",
		compute && p->kind & PROCESS_GRAPHICS ? "+" : "",
		p->kind & PROCESS_GRAPHICS ? "G" : "");
}

void smi_id(char *dst, size_t cap, int id)
{
	if (id < 0)
		snprintf(dst, cap, "N/A");
	else
		snprintf(dst, cap, "%d", id);
}

/* Computes what all readers of the present need: idle times, and the sentence about a
 * suspect card. */
#include "model/present.h"

#include <stdio.h>

bool present_was_idle(const struct present_process *p)
{
	return p->was_idle_since_ms >= 0 && !p->active;
}

int64_t present_idle_ms(const struct present *all, const struct present_process *p)
{
	const struct present_host *host = &all->hosts[all->cards[p->card].host];
	int64_t until_ms = host->stale ? host->last_tick_ms : all->now_ms;
	if (!p->holder || p->active || p->idle_since_ms < 0)
		return -1;
	return until_ms > p->idle_since_ms ? until_ms - p->idle_since_ms : 0;
}

void present_suspect_text(char *dst, size_t cap, const struct present_card *card)
{
	char label[CARD_LABEL_CAP];
	card_label(label, sizeof(label), &card->id);
	snprintf(dst, cap,
		"card %s reports %.0f %% use with no process and no memory: not believed; "
		"opening and closing a CUDA context clears it",
		label, card->values[METRIC_UTILIZATION_GPU]);
}

/* Counts the cards that are read and those that are not. */
#include "record/health.h"

#include <stdio.h>

enum health health_of(const struct watch *w, bool down, bool incomplete)
{
	if (down)
		return HEALTH_DOWN;
	bool wrong = incomplete;
	for (size_t i = 0; i < w->n_cards; i++) {
		if (w->entries[i].status == CARD_STATUS_OK || w->cards[i].gone)
			continue;
		if (w->entries[i].status == CARD_STATUS_LOST && !w->cards[i].stuck)
			return HEALTH_LOST;
		wrong = true;
	}
	return wrong ? HEALTH_CARD : HEALTH_GOOD;
}

void health_tick_line(const struct watch *w, int64_t ticks, char *line, size_t size)
{
	size_t ok = 0, holders = 0;
	for (size_t i = 0; i < w->n_cards; i++) {
		ok += w->entries[i].status == CARD_STATUS_OK;
		for (size_t k = 0; k < w->cards[i].holders.n; k++)
			holders += holders_is_open(&w->cards[i].holders.items[k]);
	}
	snprintf(line, size,
		"tick %lld: %zu of %zu cards read, %zu holders, %zu usage and %zu holding sums",
		(long long)ticks, ok, w->n_cards, holders, w->ledger.usage.n,
		w->ledger.holding.n);
}

/* Keeps the mean utilisation of the last minutes, for each card. */
#include "top/top_history.h"

#define MINUTE_MS 60000

void top_history_finish(struct top_history *h)
{
	free(h->cards);
	*h = (struct top_history){ 0 };
}

void top_history_add(struct top_history *h, size_t card, int64_t at_ms, double pct)
{
	int64_t minute = at_ms / MINUTE_MS;
	if (card >= h->n_cards && array_resize(&h->cards, card + 1)) {
		memset(h->cards[h->n_cards], 0, (card + 1 - h->n_cards) * sizeof(*h->cards));
		h->n_cards = card + 1;
	}
	if (card >= h->n_cards || isnan(pct) || minute < 0)
		return;
	struct top_minute *m = &h->cards[card][minute % TOP_HISTORY_MINUTES];
	if (m->minute != minute)
		*m = (struct top_minute){ .minute = minute };
	m->sum += pct;
	m->n++;
}

void top_history_get(
	const struct top_history *h, size_t card, int64_t now_ms, double *pct, size_t n)
{
	int64_t last = now_ms / MINUTE_MS;
	for (size_t i = 0; i < n; i++) {
		int64_t minute = last - (int64_t)(n - 1 - i);
		const struct top_minute *m =
			card < h->n_cards && minute >= 0
				? &h->cards[card][minute % TOP_HISTORY_MINUTES]
				: NULL;
		pct[i] = m && m->n && m->minute == minute ? m->sum / m->n : NAN;
	}
}

/* Questions to the idle time of sessions that need no reading. */
#include "model/idle_history.h"

void idle_history_limit(struct idle_history *h, int64_t pct)
{
	for (size_t i = 0; i < h->n_limits; i++)
		if (h->limits[i] == pct)
			return;
	if (h->n_limits < IDLE_BELOW_MOST)
		h->limits[h->n_limits++] = pct;
}

size_t idle_history_limit_of(const struct idle_history *h, int64_t pct)
{
	for (size_t i = 0; i < h->n_limits; i++)
		if (h->limits[i] == pct)
			return i;
	return 0;
}

size_t idle_history_gap(const struct idle_history *h, uint32_t card, int64_t after_ms)
{
	size_t low = 0, high = h->n_gaps;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct idle_gap *gap = &h->gaps[middle];
		if (gap->card < card || (gap->card == card && gap->to_ms <= after_ms))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* How much of the session's blind time was before the moment. */
static int64_t blind_before(
	const struct idle_history *h, const struct idle_session *s, int64_t at_ms)
{
	const struct idle_blind *all = h->blinds + s->blinds.first;
	size_t low = 0, high = s->blinds.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (all[middle].from_ms < at_ms)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	const struct idle_blind *last = &all[low - 1];
	return last->before_ms + clock_earlier(last->to_ms, at_ms) - last->from_ms;
}

int64_t idle_history_blind(const struct idle_history *h, const struct idle_session *s,
	int64_t from_ms, int64_t to_ms)
{
	return to_ms > from_ms ? blind_before(h, s, to_ms) - blind_before(h, s, from_ms) : 0;
}

int64_t idle_history_most(
	const struct idle_history *h, uint32_t session, int64_t from_ms, int64_t to_ms)
{
	int64_t most = 0;
	for (size_t i = 0; i < h->n_lows; i++) {
		const struct idle_low *low = &h->lows[i];
		if (low->session == session && low->from_ms >= from_ms &&
			low->from_ms < to_ms && low->pct > most)
			most = low->pct;
	}
	return most;
}

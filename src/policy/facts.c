/* Works out the idle clock of a session from spans, marks and gaps. */
#include "policy/facts.h"

#include <string.h>

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

bool card_set_empty(const struct card_set *s)
{
	static const struct card_set none;
	return card_set_equal(s, &none);
}

void card_set_add(struct card_set *to, const struct card_set *more)
{
	for (size_t i = 0; i < CARD_WORDS; i++)
		to->bits[i] |= more->bits[i];
}

bool card_set_equal(const struct card_set *a, const struct card_set *b)
{
	return memcmp(a->bits, b->bits, sizeof(a->bits)) == 0;
}

static int64_t stale_ms(const struct idle_history *h)
{
	return later(STALE_TICKS * h->interval_ms, STALE_LEAST_MS);
}

static int64_t lag_ms(const struct idle_history *h)
{
	return later(h->interval_ms / 2, LAG_LEAST_MS);
}

bool facts_covers(const struct idle_history *h, const struct idle_span *s, int64_t at_ms)
{
	return s->begin_ms < at_ms &&
	       (h->present ? s->how == SPELL_OPEN : at_ms <= s->until_ms);
}

/* How much of the span was not observed until the moment, and whether the moment itself was. */
static int64_t unobserved_until(
	const struct idle_history *h, const struct idle_span *s, int64_t at_ms, bool *blind)
{
	int64_t sum = 0;
	if (s->unobserved_ms == 0)
		return 0;
	if (at_ms >= s->end_ms)
		return s->unobserved_ms;
	for (size_t i = idle_history_gap(h, s->card, s->begin_ms);
		i < h->n_gaps && h->gaps[i].card == s->card; i++) {
		const struct idle_gap *gap = &h->gaps[i];
		if (gap->from_ms > at_ms)
			break;
		int64_t from_ms = later(gap->from_ms, s->begin_ms);
		int64_t to_ms = earlier(gap->to_ms, at_ms);
		sum += to_ms > from_ms ? to_ms - from_ms : 0;
		*blind |= gap->to_ms >= at_ms && at_ms - gap->from_ms > lag_ms(h);
	}
	return earlier(sum, s->unobserved_ms);
}

/* The last mark that began before the moment; NULL: none. */
static const struct idle_mark *last_mark(
	const struct idle_history *h, const struct idle_session *session, int64_t at_ms)
{
	const struct idle_mark *marks = h->marks + session->first_mark;
	size_t low = 0, high = session->n_marks;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (marks[middle].from_ms < at_ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &marks[low - 1] : NULL;
}

static void add_span(struct session_facts *f, const struct idle_span *s)
{
	f->idle_since_ms = later(f->idle_since_ms, s->begin_ms);
	if (s->card < CARD_WORDS * 64)
		f->cards.bits[s->card / 64] |= UINT64_C(1) << s->card % 64;
	if (s->mem_kib >= 0)
		f->mem_bytes = later(f->mem_bytes, 0) + s->mem_kib * 1024;
}

/* One card of a session while its unobserved time is added up. */
struct blind_card {
	uint32_t card;
	int64_t unobserved_ms; /* the most of any of its spans */
	int64_t begin_ms;      /* of that span */
	size_t gap;	       /* the next one to look at */
};
enum { BLIND_CARDS = 64 };

static void take_card(
	struct blind_card *cards, size_t *n, const struct idle_span *s, int64_t unobserved_ms)
{
	size_t i = 0;
	while (i < *n && cards[i].card != s->card)
		i++;
	if (i == BLIND_CARDS)
		i--;
	else if (i == *n)
		cards[(*n)++] = (struct blind_card){ s->card, -1, 0, 0 };
	if (unobserved_ms <= cards[i].unobserved_ms)
		return;
	cards[i].unobserved_ms = unobserved_ms;
	cards[i].begin_ms = s->begin_ms;
}

/* The next gap of any of the cards; NULL: there is none before the moment. */
static const struct idle_gap *next_gap(
	const struct idle_history *h, struct blind_card *cards, size_t n, int64_t at_ms)
{
	const struct idle_gap *first = NULL;
	struct blind_card *of = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct idle_gap *gap = &h->gaps[cards[i].gap];
		if (cards[i].gap >= h->n_gaps || gap->card != cards[i].card ||
			gap->from_ms >= at_ms || (first && first->from_ms <= gap->from_ms))
			continue;
		first = gap;
		of = &cards[i];
	}
	if (of)
		of->gap++;
	return first;
}

/* While one of its cards was not observed, nobody knows whether the session was idle. What was
 * not observed on each card is known exactly; how much of it was at the same time follows from
 * the gaps. */
static int64_t unobserved_together(
	const struct idle_history *h, struct blind_card *cards, size_t n, int64_t at_ms)
{
	int64_t most = 0, sum = 0, joined = 0, until_ms = INT64_MIN;
	for (size_t i = 0; i < n; i++) {
		most = later(most, cards[i].unobserved_ms);
		sum += cards[i].unobserved_ms;
		cards[i].gap = idle_history_gap(h, cards[i].card, cards[i].begin_ms);
	}
	if (sum == most)
		return sum;
	const struct idle_gap *gap;
	while ((gap = next_gap(h, cards, n, at_ms))) {
		int64_t from_ms = later(gap->from_ms, until_ms);
		until_ms = later(until_ms, earlier(gap->to_ms, at_ms));
		joined += until_ms > from_ms ? until_ms - from_ms : 0;
	}
	return earlier(later(joined, most), sum);
}

/* The clock: from the session's last use to the last reading. All unobserved time of its idle
 * stretches is taken off, also that from before the last use. */
static int64_t clock_of(const struct session_facts *f, const struct idle_history *h,
	struct open_spans spans, int64_t at_ms, bool *blind)
{
	struct blind_card cards[BLIND_CARDS];
	size_t n = 0;
	int64_t seen_ms = at_ms;
	for (size_t i = 0; i < spans.n; i++) {
		const struct idle_span *s = &h->spans[spans.items[i]];
		int64_t end_ms = earlier(at_ms, s->end_ms);
		take_card(cards, &n, s, unobserved_until(h, s, end_ms, blind));
		seen_ms = earlier(seen_ms, end_ms);
		if ((h->present ? h->last_tick_ms : at_ms) - s->end_ms > lag_ms(h))
			*blind = true;
	}
	int64_t unobserved_ms = unobserved_together(h, cards, n, seen_ms);
	return later(seen_ms - f->idle_since_ms - unobserved_ms, 0);
}

void facts_at(struct session_facts *f, const struct idle_history *h,
	const struct idle_session *session, struct open_spans spans, int64_t at_ms)
{
	bool blind = false;
	f->session = session;
	f->holds = h->present ? session->holds : spans.n > 0;
	f->observed = true;
	f->idle_since_ms = f->mem_bytes = f->uid = -1;
	f->clock_ms = 0;
	f->born_ms = spans.n ? INT64_MAX : -1;
	f->cards = (struct card_set){ { 0 } };
	for (size_t i = 0; i < spans.n; i++) {
		const struct idle_span *s = &h->spans[spans.items[i]];
		add_span(f, s);
		int64_t uid = h->processes[s->process].uid;
		f->born_ms = earlier(f->born_ms, h->processes[s->process].started_ms);
		f->uid = f->uid < 0 || (uid >= 0 && uid < f->uid) ? uid : f->uid;
	}
	const struct idle_mark *mark = last_mark(h, session, at_ms);
	if (mark && spans.n)
		f->idle_since_ms = later(f->idle_since_ms, mark->until_ms);
	if (spans.n)
		f->idle_since_ms = later(f->idle_since_ms, session->used_ms);
	f->idle = spans.n > 0 && f->idle_since_ms <= at_ms;
	if (f->idle)
		f->clock_ms = clock_of(f, h, spans, at_ms, &blind);
	f->observed = !blind && !session->unlisted &&
		      (!h->present || at_ms - h->last_tick_ms <= stale_ms(h));
}

int64_t facts_next_use(
	const struct idle_history *h, const struct idle_session *session, int64_t after_ms)
{
	int64_t first = -1;
	const struct idle_mark *marks = h->marks + session->first_mark;
	for (size_t i = 0; i < session->n_marks && first < 0; i++)
		if (marks[i].until_ms > after_ms)
			first = later(marks[i].from_ms, after_ms);
	return first;
}

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
	return s->begin_ms < at_ms && (h->present ? s->open : at_ms <= s->until_ms);
}

/* The last mark that began before the moment; NULL: none. */
static const struct idle_mark *last_mark(
	const struct idle_history *h, const struct idle_part *part, int64_t at_ms)
{
	const struct idle_mark *marks = h->marks + part->first;
	size_t low = 0, high = part->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (marks[middle].from_ms < at_ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &marks[low - 1] : NULL;
}

static const struct idle_part *marks_of(
	const struct idle_history *h, const struct idle_session *session, int64_t idle_below)
{
	return &session->marks[idle_history_limit_of(h, idle_below)];
}

static void add_span(struct session_facts *f, const struct idle_history *h,
	const struct idle_span *s, int64_t *since_ms)
{
	const struct idle_process *p = &h->processes[s->process];
	*since_ms = earlier(*since_ms, s->held_since_ms);
	if (s->card < CARD_WORDS * 64)
		f->cards.bits[s->card / 64] |= UINT64_C(1) << s->card % 64;
	if (s->mem_kib >= 0)
		f->mem_bytes = later(f->mem_bytes, 0) + s->mem_kib * 1024;
	f->born_ms = earlier(f->born_ms, p->started_ms);
	f->uid = f->uid < 0 || (p->uid >= 0 && p->uid < f->uid) ? p->uid : f->uid;
}

/* Whether the session can be judged at the moment: all of its cards are observed, and its
 * own use of them is known. */
static void find_blind(struct session_facts *f, const struct idle_history *h, int64_t at_ms)
{
	const struct idle_part *part = &f->session->blinds;
	for (size_t i = part->first + part->n; i-- > part->first;) {
		const struct idle_blind *b = &h->blinds[i];
		if (b->from_ms >= at_ms)
			continue;
		if (b->to_ms >= at_ms && at_ms - b->from_ms > lag_ms(h)) {
			f->observed = f->observed && !b->unobserved;
			f->use_unknown = !b->unobserved;
		}
		return;
	}
}

/* The idle clock: the time from the session's last use to the last reading, without
 * unobserved time. */
void facts_at(struct session_facts *f, const struct idle_history *h,
	const struct idle_session *session, struct open_spans spans, int64_t at_ms)
{
	int64_t seen_ms = h->present ? earlier(at_ms, h->last_tick_ms) : at_ms;
	int64_t since_ms = INT64_MAX, now_ms = seen_ms;
	f->session = session;
	f->holds = h->present ? session->holds : spans.n > 0;
	f->observed = true;
	f->use_unknown = false;
	f->idle_since_ms = f->mem_bytes = f->uid = -1;
	f->born_ms = spans.n ? INT64_MAX : -1;
	f->clock_ms = 0;
	f->cards = (struct card_set){ { 0 } };
	for (size_t i = 0; i < spans.n; i++) {
		const struct idle_span *s = &h->spans[spans.items[i]];
		add_span(f, h, s, &since_ms);
		seen_ms = earlier(seen_ms, s->end_ms);
		f->observed = f->observed && now_ms - s->end_ms <= lag_ms(h);
	}
	if (spans.n) {
		const struct idle_mark *mark =
			last_mark(h, marks_of(h, session, f->idle_below), at_ms);
		since_ms = later(since_ms, session->used_ms);
		f->idle_since_ms = mark ? later(since_ms, mark->until_ms) : since_ms;
		find_blind(f, h, now_ms);
	}
	f->idle = spans.n > 0 && f->idle_since_ms <= at_ms;
	if (f->idle && seen_ms > f->idle_since_ms)
		f->clock_ms = seen_ms - f->idle_since_ms -
			      idle_history_blind(h, session, f->idle_since_ms, seen_ms);
	f->observed = f->observed && !session->unlisted &&
		      (!h->present || at_ms - h->last_tick_ms <= stale_ms(h));
}

int64_t facts_next_use(
	const struct idle_history *h, const struct session_facts *f, int64_t after_ms)
{
	const struct idle_part *part = marks_of(h, f->session, f->idle_below);
	for (size_t i = part->first; i < part->first + part->n; i++)
		if (h->marks[i].until_ms > after_ms)
			return later(h->marks[i].from_ms, after_ms);
	return -1;
}

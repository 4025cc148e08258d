/* Sorts what was read, and decides how time without readings counts. */
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "audit/idle_private.h"

/* A slot that begins within this time after a one-minute slot counts as following it
 * immediately. */
#define NEAR_MS INT64_C(30000)

static int compare_gaps(const void *a, const void *b)
{
	const struct idle_gap *x = a, *y = b;
	if (x->card != y->card)
		return x->card < y->card ? -1 : 1;
	return x->from_ms < y->from_ms ? -1 : x->from_ms > y->from_ms;
}

void idle_join_gaps(struct idle_history *h)
{
	size_t n = 0;
	if (h->n_gaps)
		qsort(h->gaps, h->n_gaps, sizeof(*h->gaps), compare_gaps);
	for (size_t i = 0; i < h->n_gaps; i++) {
		struct idle_gap *last = n ? &h->gaps[n - 1] : NULL;
		if (!last || last->card != h->gaps[i].card || last->to_ms < h->gaps[i].from_ms)
			h->gaps[n++] = h->gaps[i];
		else if (h->gaps[i].to_ms > last->to_ms)
			last->to_ms = h->gaps[i].to_ms;
	}
	h->n_gaps = n;
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

/* When the card was seen again, if it was lost from sight at this moment; otherwise the
 * moment. */
static int64_t seen_again(const struct idle_history *h, uint32_t card, int64_t at_ms)
{
	size_t i = idle_history_gap(h, card, at_ms);
	bool lost = i < h->n_gaps && h->gaps[i].card == card &&
		    h->gaps[i].from_ms <= at_ms + NEAR_MS;
	return lost ? h->gaps[i].to_ms : at_ms;
}

static int compare_spans(const void *a, const void *b)
{
	const struct idle_span *x = a, *y = b;
	if (x->begin_ms != y->begin_ms)
		return x->begin_ms < y->begin_ms ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->card < y->card ? -1 : x->card > y->card;
}

/* Since when each process has held a card. */
static bool find_held_since(struct idle_history *h)
{
	int64_t *since = calloc(2 * h->n_processes + 1, sizeof(*since));
	int64_t *until = since ? since + h->n_processes : NULL;
	if (!since)
		return false;
	for (size_t i = 0; i < h->n_processes; i++)
		until[i] = INT64_MIN;
	for (size_t i = 0; i < h->n_spans; i++) {
		struct idle_span *s = &h->spans[i];
		if (s->begin_ms > until[s->process])
			since[s->process] = s->begin_ms;
		until[s->process] = clock_later(until[s->process], s->until_ms);
		s->held_since_ms = since[s->process];
	}
	free(since);
	return true;
}

static int compare_marks(const void *a, const void *b)
{
	const struct idle_mark *x = a, *y = b;
	if (x->session != y->session)
		return x->session < y->session ? -1 : 1;
	if (x->limit != y->limit)
		return x->limit < y->limit ? -1 : 1;
	return x->from_ms < y->from_ms ? -1 : x->from_ms > y->from_ms;
}

/* Joins adjacent marks, and assigns them to the sessions. */
static void join_marks(struct idle_history *h)
{
	size_t n = 0;
	if (h->n_marks)
		qsort(h->marks, h->n_marks, sizeof(*h->marks), compare_marks);
	for (size_t i = 0; i < h->n_marks; i++) {
		struct idle_mark *last = n ? &h->marks[n - 1] : NULL;
		if (!last || last->session != h->marks[i].session ||
			last->limit != h->marks[i].limit ||
			h->marks[i].from_ms > last->until_ms)
			h->marks[n++] = h->marks[i];
		else if (h->marks[i].until_ms > last->until_ms)
			last->until_ms = h->marks[i].until_ms;
	}
	h->n_marks = n;
	for (size_t i = 0; i < n; i++) {
		struct idle_part *part =
			&h->sessions[h->marks[i].session].marks[h->marks[i].limit];
		if (part->n++ == 0)
			part->first = i;
	}
}

/* Adds blind time: while one of its cards was not observed, it is unknown whether the
 * session was idle. */
static bool add_blinds(struct idle_history *h, const struct idle_span *s)
{
	for (size_t i = idle_history_gap(h, s->card, s->begin_ms);
		i < h->n_gaps && h->gaps[i].card == s->card && h->gaps[i].from_ms < s->until_ms;
		i++) {
		if (!array_one_more(&h->blinds, h->n_blinds))
			return false;
		h->blinds[h->n_blinds++] = (struct idle_blind){ .session = s->session,
			.unobserved = true,
			.from_ms = clock_later(h->gaps[i].from_ms, s->begin_ms),
			.to_ms = clock_earlier(h->gaps[i].to_ms, s->until_ms) };
	}
	return true;
}

static int compare_blinds(const void *a, const void *b)
{
	const struct idle_blind *x = a, *y = b;
	if (x->session != y->session)
		return x->session < y->session ? -1 : 1;
	return x->from_ms < y->from_ms ? -1 : x->from_ms > y->from_ms;
}

static void join_blinds(struct idle_history *h)
{
	size_t n = 0;
	if (h->n_blinds)
		qsort(h->blinds, h->n_blinds, sizeof(*h->blinds), compare_blinds);
	for (size_t i = 0; i < h->n_blinds; i++) {
		const struct idle_blind *one = &h->blinds[i];
		struct idle_blind *last = n ? &h->blinds[n - 1] : NULL;
		if (!last || last->session != one->session || one->from_ms > last->to_ms) {
			h->blinds[n++] = *one;
			continue;
		}
		last->to_ms = clock_later(last->to_ms, one->to_ms);
		last->unobserved |= one->unobserved;
	}
	h->n_blinds = n;
	for (size_t i = 0; i < n; i++) {
		struct idle_blind *one = &h->blinds[i];
		struct idle_part *part = &h->sessions[one->session].blinds;
		if (part->n++ == 0)
			part->first = i;
		else
			one->before_ms = one[-1].before_ms + one[-1].to_ms - one[-1].from_ms;
	}
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

int idle_history_settle(struct idle_history *h, struct err *e)
{
	idle_join_gaps(h);
	for (size_t i = 0; i < h->n_sessions; i++) {
		h->sessions[i].blinds = (struct idle_part){ 0 };
		for (size_t k = 0; k < IDLE_BELOW_MOST; k++)
			h->sessions[i].marks[k] = (struct idle_part){ 0 };
	}
	for (size_t i = 0; i < h->n_marks; i++)
		h->marks[i].until_ms = seen_again(h, h->marks[i].card, h->marks[i].until_ms);
	for (size_t i = 0; i < h->n_spans; i++) {
		struct idle_span *s = &h->spans[i];
		s->until_ms = seen_again(h, s->card, s->end_ms);
		if (!add_blinds(h, s))
			return err_memory(e);
	}
	if (h->n_spans)
		qsort(h->spans, h->n_spans, sizeof(*h->spans), compare_spans);
	join_marks(h);
	join_blinds(h);
	return find_held_since(h) ? 0 : err_memory(e);
}

/* Brings what was read into order, and decides what time without readings means. */
#include <stdlib.h>

#include "base/array.h"
#include "query/idle_private.h"

/* What follows a slot of a minute within this time follows it at once. */
#define NEAR_MS INT64_C(30000)

static int compare_gaps(const void *a, const void *b)
{
	const struct idle_gap *x = a, *y = b;
	if (x->card != y->card)
		return x->card < y->card ? -1 : 1;
	return x->from_ms < y->from_ms ? -1 : x->from_ms > y->from_ms;
}

static void join_gaps(struct idle_history *h)
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

/* When the card could be seen again, if it was lost from sight at this moment; else the moment.
 */
static int64_t seen_again(const struct idle_history *h, uint32_t card, int64_t at_ms)
{
	size_t i = idle_history_gap(h, card, at_ms);
	bool lost = i < h->n_gaps && h->gaps[i].card == card &&
		    h->gaps[i].from_ms <= at_ms + NEAR_MS;
	return lost ? h->gaps[i].to_ms : at_ms;
}

/* A stretch that ended while nobody looked, or had time in it that nobody saw: what the process
 * did meanwhile is not known, and it cannot be asked any more. The session begins again. */
static bool add_unseen_end(struct idle_history *h, const struct idle_span *s)
{
	if (s->how == SPELL_OPEN || (s->until_ms <= s->end_ms && s->unobserved_ms == 0))
		return true;
	if (!array_one_more(&h->marks, h->n_marks))
		return false;
	h->marks[h->n_marks++] =
		(struct idle_mark){ s->session, s->card, s->end_ms, s->until_ms };
	return true;
}

static int compare_marks(const void *a, const void *b)
{
	const struct idle_mark *x = a, *y = b;
	if (x->session != y->session)
		return x->session < y->session ? -1 : 1;
	return x->from_ms < y->from_ms ? -1 : x->from_ms > y->from_ms;
}

/* Joins marks that touch, and hands them out to the sessions. */
static void join_marks(struct idle_history *h)
{
	size_t n = 0;
	if (h->n_marks)
		qsort(h->marks, h->n_marks, sizeof(*h->marks), compare_marks);
	for (size_t i = 0; i < h->n_marks; i++) {
		struct idle_mark *last = n ? &h->marks[n - 1] : NULL;
		if (!last || last->session != h->marks[i].session ||
			h->marks[i].from_ms > last->until_ms)
			h->marks[n++] = h->marks[i];
		else if (h->marks[i].until_ms > last->until_ms)
			last->until_ms = h->marks[i].until_ms;
	}
	h->n_marks = n;
	for (size_t i = 0; i < h->n_sessions; i++)
		h->sessions[i].n_marks = 0;
	for (size_t i = 0; i < n; i++) {
		struct idle_session *s = &h->sessions[h->marks[i].session];
		if (s->n_marks++ == 0)
			s->first_mark = i;
	}
}

int idle_history_settle(struct idle_history *h, struct err *e)
{
	join_gaps(h);
	for (size_t i = 0; i < h->n_marks; i++)
		h->marks[i].until_ms = seen_again(h, h->marks[i].card, h->marks[i].until_ms);
	for (size_t i = 0; i < h->n_spans; i++) {
		struct idle_span *s = &h->spans[i];
		s->until_ms = seen_again(h, s->card, s->end_ms);
		if (!add_unseen_end(h, s))
			return err_memory(e);
	}
	join_marks(h);
	return 0;
}

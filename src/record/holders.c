/* Turns process lists into stretches of time in which a process held memory. */
#include "record/holders.h"

/* Stretches that end later than this many times between two glances begin in the middle. */
#define SHORT_TIMES 4.0

int holders_reserve(struct holders *h, size_t more, struct err *e)
{
	return array_reserve(&h->items, &h->cap, h->n + more) ? 0 : err_memory(e);
}

void holders_finish(struct holders *h)
{
	free(h->items);
	*h = (struct holders){ 0 };
}

bool holders_is_open(const struct holder *h)
{
	return h->to.at == INT64_MAX;
}

/* The moment of a change within the window: its middle. After a stall only certain time counts:
 * a start is at the end of the window, an end at its start. */
static struct edge edge_of(const struct look_window *w, int64_t lo_ms, bool begins)
{
	struct edge edge = edge_between(lo_ms, w->hi_ms);
	if (w->stalled)
		edge.at = begins ? edge.hi : edge.lo;
	return edge;
}

/* The moment from which a new holder counts, not before it started. A program loads for some
 * time before it takes memory, so the middle stays where it is without the start. At the first
 * look, the samples in the driver's ring are older than the list. A process that started before
 * them was there; one with an unknown start may not have been. */
static struct edge begin_edge(const struct process_id *id, const struct look_window *w)
{
	if (w->first && id->started_ms >= 0 && id->started_ms <= w->lo_ms)
		return EDGE_ALWAYS;
	struct edge from = edge_of(w, w->lo_ms, true);
	if (id->started_ms > from.lo)
		from.lo = id->started_ms < from.hi ? id->started_ms : from.hi;
	if (w->left_ms > from.lo)
		from.at = w->left_ms;
	from.at = clock_later(from.lo, from.at);
	return from;
}

/* How a stretch begins. */
struct begin {
	struct edge from;
	int64_t since_ms;	     /* since when it holds, if it is the first */
	const struct holder *before; /* the stretch before this one; NULL: it is the first */
};

static void open_stretch(struct holders *h, const struct lives *lives, const struct listed *p,
	const struct begin *begin)
{
	const struct holder *before = begin->before;
	h->items[h->n++] = (struct holder){
		.process = p->life,
		.user = lives->lives[p->life].user,
		.kind = p->kind,
		.mem_bytes = p->mem_bytes,
		.sm_pct = before ? before->sm_pct : NAN,
		.uses_engine = before && before->uses_engine,
		.own_pct = before ? before->own_pct : NAN,
		.since_ms = before ? before->since_ms : begin->since_ms,
		.from = begin->from,
		.to = EDGE_NEVER,
		.last_active_ms = before ? before->last_active_ms : -1,
		.own_state = before ? before->own_state : HOLDER_ACTIVE,
		.user_state = before ? before->user_state : HOLDER_ACTIVE,
		.now_pct = before ? before->now_pct : 0,
		.before_pct = { before ? before->before_pct[0] : 0,
			before ? before->before_pct[1] : 0 },
		.turn = before ? before->turn : TURN_NONE,
	};
}

/* Returns the newest stretch of a life. */
static struct holder *find_last(const struct holders *h, size_t n, uint32_t life)
{
	while (n-- > 0)
		if (h->items[n].process == life)
			return &h->items[n];
	return NULL;
}

/* Takes one process of the list. Returns the same as holders_take(). */
static int64_t take_one(struct holders *h, size_t old, const struct lives *lives,
	const struct listed *p, const struct look_window *w)
{
	struct holder *last = find_last(h, old, p->life);
	/* A process that has exited but is still listed still holds its memory. */
	bool exited = lives->lives[p->life].exited_ms >= 0;
	if (last && exited && !holders_is_open(last) && last->to.hi >= w->lo_ms)
		last->to = EDGE_NEVER;
	if (!last || !holders_is_open(last)) {
		const struct process_id *id = &lives->entries[p->life].id;
		struct edge from = begin_edge(id, w);
		int64_t since_ms = from.at > 0 ? from.at : w->hi_ms;
		open_stretch(h, lives, p, &(struct begin){ from, since_ms, NULL });
		return from.lo;
	}
	last->kind = p->kind;
	last->user = lives->lives[p->life].user; /* its user name may have become known later */
	if (last->mem_bytes == p->mem_bytes)
		return INT64_MAX;
	struct edge change = edge_of(w, w->lo_ms, true);
	/* If memory changed twice before the first change was accounted, it counts as one
	 * change. */
	if (change.at <= last->from.at) {
		last->mem_bytes = p->mem_bytes;
		return change.lo;
	}
	struct holder before = *last;
	last->to = change;
	open_stretch(h, lives, p, &(struct begin){ change, w->hi_ms, &before });
	return change.lo;
}

static bool is_listed(const struct listed *list, size_t n, uint32_t life)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].life == life)
			return true;
	return false;
}

/* Since when processes may have come or gone. Processes that used the card were there until
 * then. If one replaced another, none went before the first new one had started, and none
 * came before the first old one may have gone. */
static int64_t earliest_change(const struct holders *h, const struct lives *lives,
	const struct listed *list, size_t n, const struct look_window *w)
{
	int64_t went_ms = INT64_MAX, came_ms = INT64_MAX;
	for (size_t i = 0; i < h->n; i++) {
		const struct holder *item = &h->items[i];
		if (holders_is_open(item) && !is_listed(list, n, item->process) &&
			item->last_active_ms < went_ms)
			went_ms = item->last_active_ms;
	}
	for (size_t i = 0; i < n; i++) {
		const struct holder *last = find_last(h, h->n, list[i].life);
		int64_t started_ms = lives->entries[list[i].life].id.started_ms;
		if ((!last || !holders_is_open(last)) && started_ms < came_ms)
			came_ms = started_ms;
	}
	bool swapped = w->steady && went_ms < INT64_MAX && came_ms < INT64_MAX;
	return swapped ? clock_later(w->lo_ms, clock_later(went_ms, came_ms)) : w->lo_ms;
}

int64_t holders_take(struct holders *h, struct lives *lives, const struct listed *list,
	size_t n, const struct look_window *window)
{
	struct look_window within = *window;
	size_t old = h->n;
	int64_t earliest_ms = INT64_MAX;
	within.lo_ms = earliest_change(h, lives, list, n, window);
	for (size_t i = 0; i < old && window->steady; i++)
		if (!holders_is_open(&h->items[i]) && h->items[i].to.at > within.left_ms)
			within.left_ms = h->items[i].to.at;
	window = &within;
	for (size_t i = 0; i < old; i++) {
		struct holder *item = &h->items[i];
		/* One that has let go of its memory before, and took it again, may have done so
		 * in a stall. */
		bool held_on =
			!window->stalled || window->first || !lives->lives[item->process].left;
		if (!holders_is_open(item) || (held_on && is_listed(list, n, item->process)))
			continue;
		/* A process may have come and gone within one window: its end is never before
		 * its start. */
		struct edge end = edge_of(window, window->lo_ms, false);
		item->to = end.at > item->from.at ? end : item->from;
		lives->lives[item->process].left = true;
		earliest_ms = window->lo_ms;
	}
	for (size_t i = 0; i < n; i++) {
		int64_t changed_ms = take_one(h, old, lives, &list[i], window);
		earliest_ms = changed_ms < earliest_ms ? changed_ms : earliest_ms;
	}
	return earliest_ms;
}

/* The begin of a stretch that ended at a moment that is known, soon after it was first seen. Of
 * processes that are shorter than the time between two glances, some are never seen. The
 * others stand for them: those that ended at once begin earlier, so that each counts as the
 * whole time between two glances. Later this would make longer ones too short, so it fades. */
static struct edge begin_before(struct edge from, const struct edge *to)
{
	if (from.at >= from.hi || to->hi > to->lo || to->at < from.hi)
		return from;
	double apart_ms = 2 * (double)(from.hi - from.at); /* the middle counts */
	double times = (double)(to->at - from.hi) / apart_ms, whole = floor(times);
	if (whole < SHORT_TIMES)
		from.at +=
			llround((1 - whole / SHORT_TIMES) * (times - whole - 0.5) * apart_ms);
	from.at = clock_later(from.lo, from.at);
	return from;
}

/* Whether the stretch goes on from another one of the same process. */
static bool goes_on_from(const struct holders *h, const struct holder *item)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->items[i].process == item->process && h->items[i].to.at == item->from.at)
			return true;
	return false;
}

bool holders_exit(struct holders *h, uint32_t life, const struct look_window *window)
{
	bool here = false;
	for (size_t i = 0; i < h->n; i++) {
		struct holder *item = &h->items[i];
		if (item->process != life || !holders_is_open(item))
			continue;
		item->to = edge_of(window, window->lo_ms, false);
		if (!goes_on_from(h, item))
			item->from = begin_before(item->from, &item->to);
		here = true;
	}
	return here;
}

void holders_end(struct holders *h, int64_t at_ms)
{
	for (size_t i = 0; i < h->n; i++)
		if (holders_is_open(&h->items[i]))
			h->items[i].to = edge_exactly(at_ms);
}

void holders_add_ended(struct holders *h, const struct lives *lives, const struct listed *p,
	int64_t from_ms, int64_t to_ms)
{
	const struct begin begin = { edge_exactly(from_ms), from_ms, NULL };
	open_stretch(h, lives, p, &begin);
	h->items[h->n - 1].to = edge_exactly(to_ms);
}

bool holders_had(const struct holders *h, const struct lives *lives, uint32_t pid,
	int64_t from_ms, int64_t to_ms)
{
	for (size_t i = 0; i < h->n; i++) {
		const struct holder *item = &h->items[i];
		if (lives->entries[item->process].id.pid == pid && item->from.lo <= to_ms &&
			item->to.hi >= from_ms)
			return true;
	}
	return false;
}

struct held holders_since(const struct holders *h, int64_t since_ms)
{
	struct held held = { 0 };
	for (size_t i = 0; i < h->n; i++)
		if (h->items[i].to.at > since_ms)
			classify_held_add(&held, h->items[i].mem_bytes);
	return held;
}

bool holders_are_several(const struct holders *h)
{
	const struct holder *one = NULL;
	for (size_t i = 0; i < h->n; i++) {
		if (!holders_is_open(&h->items[i]))
			continue;
		if (one && one->user != h->items[i].user)
			return true;
		one = &h->items[i];
	}
	return false;
}

void holders_drop(struct holders *h, int64_t covered_ms)
{
	size_t n = 0;
	for (size_t i = 0; i < h->n; i++)
		if (h->items[i].to.hi > covered_ms)
			h->items[n++] = h->items[i];
	h->n = n;
}

void holders_restart(struct holders *h)
{
	size_t n = 0;
	for (size_t i = 0; i < h->n; i++) {
		if (!holders_is_open(&h->items[i]))
			continue;
		h->items[n] = h->items[i];
		h->items[n++].from = EDGE_ALWAYS;
	}
	h->n = n;
}

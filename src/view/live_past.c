/* What the store adds to a live view: since when a process is idle, and was; what a bare
 * context takes. */
#include "view/live_private.h"

/* What a CUDA process takes before it stores anything depends on the card, the driver and on
 * which libraries the program loads: 0.1 to 0.6 GB as a rule. Where nothing was recorded that
 * would tell, this much is taken for about a context. */
#define CONTEXT_MOST_BYTES (512LL << 20)
/* A context and a few small buffers, against the floor of the model. */
#define CONTEXT_SLACK_PCT 125

const char *const live_context_texts[] = {
	[CONTEXT_MORE] = "",
	[CONTEXT_ABOUT] = "about a context",
	[CONTEXT_ONLY] = "context only",
};

/* The floor of a model is the least that several lives there had in common. It errs where a
 * small job was run again and again and nobody was ever there with a context alone. A program
 * that loads more libraries has a larger context than the floor, so that what is above it and
 * within the usual range is still about a context. An MPS client has none of its own. */
enum live_context live_judge_context(struct live *l, const struct live_process *p)
{
	struct err unread = { 0 };
	if (!p->holder || (p->kind & PROCESS_MPS) || p->mem_bytes < CONTEXT_LEAST_BYTES ||
		p->mem_bytes > CONTEXT_LARGEST_BYTES)
		return CONTEXT_MORE;
	if (l->has_past && !l->contexts.learned)
		context_learn(&l->contexts, l->past.db, &unread);
	int64_t floor = context_floor(&l->contexts, l->cards[p->card].id.name);
	if (floor >= 0 && p->mem_bytes <= floor * CONTEXT_SLACK_PCT / 100)
		return CONTEXT_ONLY;
	return p->mem_bytes <= CONTEXT_MOST_BYTES ? CONTEXT_ABOUT : CONTEXT_MORE;
}

void live_join_past(struct live *l, struct live_process *p, struct live_mark *m)
{
	const struct now_holder *h = now_find(
		&l->past, l->cards[p->card].id.uuid, &p->id, owners_boot_id(l->owners));
	m->recorded = h && l->past_fresh;
	if (!h)
		return;
	if (h->since_ms >= 0 && (p->held_since_ms < 0 || h->since_ms < p->held_since_ms))
		p->held_since_ms = h->since_ms;
	if (h->last_active_ms > p->last_active_ms)
		p->last_active_ms = h->last_active_ms;
	m->recorded_idle_ms = h->idle_since_ms;
	m->recorded_longer = h->idle_longer;
	/* Less than a tick is not idle. */
	if (!l->past_fresh && l->past.last_tick_ms - h->idle_since_ms >= l->past.interval_ms) {
		p->was_idle_since_ms = h->idle_since_ms;
		p->was_idle_longer = h->idle_longer;
	}
}

/* As the recorder at work has it, else as long as this view has looked; since it was seen
 * active, and never before it began to live. */
void live_idle_since(const struct live *l, struct live_process *p, const struct live_mark *m)
{
	int64_t covered_ms = l->memory[p->card].covered_ms, started_ms = p->id.started_ms;
	int64_t since_ms = m->recorded ? m->recorded_idle_ms : m->watched_ms;
	p->idle_longer = m->recorded ? m->recorded_longer
				     : p->held_since_ms < 0 || since_ms > p->held_since_ms;
	if (m->active_ms >= since_ms) {
		since_ms = m->active_ms;
		p->idle_longer = false;
	}
	if (!m->recorded && since_ms < covered_ms) {
		since_ms = covered_ms;
		p->idle_longer = true;
	}
	p->idle_since_ms = since_ms;
	if (since_ms > started_ms)
		return;
	p->idle_since_ms = started_ms < l->now_ms ? started_ms : l->now_ms;
	p->idle_longer = false;
}

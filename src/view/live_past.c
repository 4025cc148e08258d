/* What the store adds to a live view: since when a process is idle, and was. */
#include "view/live_private.h"

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
	if (!l->past_fresh && l->past.last_tick_ms - h->idle_since_ms >= l->past.interval_ms)
		p->was_idle_since_ms = h->idle_since_ms;
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

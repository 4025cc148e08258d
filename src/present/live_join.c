/* Joins what the driver says now with what the store says of the past. */
#include <math.h>
#include <stdlib.h>

#include "present/live_private.h"

/* Takes over the recorder's rules of active and held. If the rules have changed, the states
 * that were seen so far are forgotten: they were found by the old rules. */
static void join_rules(struct live *l)
{
	const struct rules *recorded = past_rules(&l->past);
	struct rules rules = recorded ? *recorded : l->usual_rules;
	bool same = rules_equal(&rules, &l->rules);
	l->rules = rules;
	for (size_t i = 0; !same && i < l->n_memory; i++) {
		l->memory[i].seen = false;
		l->memory[i].idle_ms = -1;
	}
}

static void join_process(struct live *l, struct present_process *p, struct live_mark *m)
{
	const struct now_holder *h = past_holder(
		&l->past, l->cards[p->card].id.uuid, &p->id, reader_boot_id(l->reader));
	m->recorded = h && l->past.fresh;
	if (!h)
		return;
	int64_t since_ms = live_until_now(l, h->since_ms);
	if (since_ms >= 0 && (p->held_since_ms < 0 || since_ms < p->held_since_ms))
		p->held_since_ms = since_ms;
	if (live_until_now(l, h->last_active_ms) > p->last_active_ms)
		p->last_active_ms = live_until_now(l, h->last_active_ms);
	m->recorded_idle_ms = live_until_now(l, h->idle_since_ms);
	m->recorded_longer = h->idle_longer;
	/* Idle for less than a tick does not count. Without utilisation it is not known. */
	if (isnan(l->memory[p->card].util_pct))
		return;
	if (!l->past.fresh &&
		l->past.now.last_tick_ms - h->idle_since_ms >= l->past.now.interval_ms) {
		p->was_idle_since_ms = h->idle_since_ms;
		p->was_idle_longer = h->idle_longer;
	}
}

void live_join(struct live *l)
{
	join_rules(l);
	for (size_t i = 0; i < l->now.n; i++)
		join_process(l, &l->now.items[i], &l->now.marks[i]);
}

/* Takes the store's answer: since when the card has been in its state and, if that was asked,
 * idle. The store knows nothing after its last tick, so some seconds before own_ms may be
 * missing. The store is then asked again (`lent`) when it has written them. */
static void take_past(struct live_memory *m, const struct now_ask *state, int64_t idle_ms,
	int64_t last_tick_ms)
{
	if (m->lent) {
		m->since_ms = m->own_ms;
		m->idle_ms = m->own_idle_ms;
		m->longer = true;
	}
	m->own_ms = m->since_ms;
	m->own_idle_ms = m->idle_ms;
	m->lent = last_tick_ms < m->own_ms;
	if (state->since_ms >= 0 && (m->since_ms < 0 || state->since_ms < m->since_ms)) {
		m->since_ms = state->since_ms;
		m->longer = state->longer;
	}
	if (idle_ms >= 0 && (m->idle_ms < 0 || idle_ms < m->idle_ms))
		m->idle_ms = idle_ms;
}

/* Asks the store since when each card has been in its state. If METRIC_GUA_IDLE_SINCE is
 * wanted, a second question for each card asks since when it has been idle. Without an answer,
 * the values that this view has seen itself stay. */
void live_join_states(struct live *l)
{
	size_t n = 0, at = 0, each = l->wanted[METRIC_GUA_IDLE_SINCE] ? 2 : 1;
	struct now_ask *asks = calloc(2 * l->n_cards + 1, sizeof(*asks));
	size_t *whose = calloc(l->n_cards + 1, sizeof(*whose));
	for (size_t i = 0; asks && whose && i < l->n_cards; i++) {
		const char *uuid = l->cards[i].id.uuid;
		unsigned state = 1U << l->cards[i].state;
		if (!l->memory[i].ask)
			continue;
		whose[n++] = i;
		asks[at++] = (struct now_ask){ uuid, state, -1, true };
		if (each == 2)
			asks[at++] = (struct now_ask){ uuid,
				IDLE_STATES & state ? IDLE_STATES : 0, -1, true };
	}
	past_states_since(&l->past, asks, at);
	for (size_t i = 0; i < n; i++)
		take_past(&l->memory[whose[i]], &asks[i * each],
			each == 2 ? asks[i * each + 1].since_ms : -1, l->past.now.last_tick_ms);
	free(asks);
	free(whose);
}

/* Derives the states of cards from the readings and the past, and for each process whether it
 * is a holder, whether it computes, and since when it is idle. */
#include "present/live_private.h"

/* Without utilisation the processes decide the state, if they are known. */
static enum card_state state_of(
	const struct live *l, size_t card, double util_pct, struct held held)
{
	if (l->memory[card].latched)
		return CARD_SUSPECT;
	if (isnan(util_pct) && !l->cards[card].processes_known)
		return CARD_UNOBSERVED;
	return classify_card(util_pct, held, &l->rules);
}

/* Returns since when the card has been in one of `states`, by the samples that were just read:
 * the begin of the unbroken series that ends with the newest sample. A sample is of the time
 * before its stamp, so the series begins where the sample before it ends. -1: the newest sample
 * is in another state, or there is none. Sets *whole if no sample is in another state. */
static int64_t since_by_samples(
	const struct live *l, size_t card, unsigned states, struct held held, bool *whole)
{
	const struct card_reading *r = &l->source->cards[card];
	int64_t since_ms = -1;
	*whole = true;
	for (size_t i = r->n_samples; i-- > 0;) {
		if (!(states & 1U << state_of(l, card, r->samples[i].util_pct, held))) {
			*whole = false;
			return since_ms < 0 ? -1 : live_sample_ms(l, card, i);
		}
		since_ms = live_sample_ms(l, card, i);
	}
	const struct live_memory *m = &l->memory[card];
	bool goes_on = since_ms >= 0 && m->from_ms >= 0 && !m->gap;
	return goes_on ? m->from_ms : since_ms;
}

/* Updates since when the card has been idle, whether it is held or not. Must run before
 * follow_state(), which sets `seen`. */
static void follow_idle(struct live *l, size_t card, enum card_state state, struct held held)
{
	struct live_memory *m = &l->memory[card];
	bool whole = true;
	int64_t since_ms = since_by_samples(l, card, IDLE_STATES, held, &whole);
	if (!(IDLE_STATES & 1U << state))
		m->idle_ms = -1;
	else if (!whole || m->gap || m->idle_ms < 0)
		m->idle_ms = since_ms >= 0 || !m->seen ? since_ms : l->now_ms;
}

/* Updates the remembered state of the card, and since when it has been in it. */
static void follow_state(struct live *l, size_t card, enum card_state state, struct held held)
{
	struct live_memory *m = &l->memory[card];
	bool whole = true, goes_on = m->seen && m->state == state && !m->gap;
	int64_t since_ms = since_by_samples(l, card, 1U << state, held, &whole);
	/* The state before was not fully known, so the card may have been in this one all the
	 * time. With CARD_USE_UNKNOWN it is known that the card was held, so it was not truly
	 * idle. */
	bool blind = m->state != state &&
		     (m->state == CARD_UNOBSERVED ||
			     (m->state == CARD_USE_UNKNOWN && state != CARD_TRULY_IDLE));
	bool first = !m->seen || m->gap || blind;
	/* Samples show use, but not when a holder came or went between two readings. */
	unsigned both = 1U << m->state | 1U << state;
	bool handed = whole && !first && (both & IDLE_STATES) == both;
	/* Nor do they show holders from before the first reading: the card counts as free from
	 * the first reading that finds it free. */
	bool freed = state == CARD_TRULY_IDLE;
	if (freed || (m->seen && !goes_on && (since_ms < 0 || handed)))
		since_ms = l->now_ms;
	if (!whole || !goes_on) {
		m->since_ms = since_ms;
		m->longer = first && (whole || freed);
		m->lent = false;
	}
	first |= m->longer && l->past.came;
	bool told = m->lent && l->past.now.last_tick_ms >= m->own_ms;
	bool stored = state != CARD_UNOBSERVED && state != CARD_SUSPECT;
	m->ask = whole && (first || told) && l->past.fresh && stored;
	m->state = state;
	m->seen = true;
}

/* Fills in the metrics that gua computes itself. */
static void compute_own(struct live *l, struct present_card *c, struct held held)
{
	double listed = 0, *v = c->values;
	bool known = c->processes_known;
	for (size_t k = 0; k < c->n_processes; k++) {
		int64_t mem = l->now.items[c->first_process + k].mem_bytes;
		known = known && mem >= 0;
		listed += mem >= 0 ? (double)mem : 0;
	}
	if (c->status != CARD_STATUS_OK)
		return;
	double used = v[METRIC_MEMORY_USED];
	known = known && !isnan(used) && !l->source->cards[c - l->cards].mem_is_sum;
	v[METRIC_GUA_ORPHAN_MEMORY] = known ? fmax(used - listed, 0) : NAN;
	v[METRIC_GUA_HOLDERS] = c->processes_known ? (double)held.n : NAN;
	v[METRIC_GUA_HELD_MEMORY] =
		c->processes_known && !held.unknown ? (double)held.bytes : NAN;
	v[METRIC_GUA_STATE_SINCE] = c->state_since_ms < 0 ? NAN : (double)c->state_since_ms;
	int64_t idle_ms = l->memory[c - l->cards].idle_ms;
	v[METRIC_GUA_IDLE_SINCE] = idle_ms < 0 ? NAN : (double)idle_ms;
	if (c->state == CARD_ACTIVE || c->state == CARD_IDLE_HELD ||
		c->state == CARD_USE_UNKNOWN)
		v[METRIC_GUA_FREE_FOR] = 0;
	else if (c->free_since_ms >= 0)
		v[METRIC_GUA_FREE_FOR] = (double)(l->now_ms - c->free_since_ms) / 1000;
}

/* Sets whether the card's utilisation is not believed (latched). Two looks in a row must find
 * no process, because samples may be older than the exit of the last one. A drain without
 * samples changes the answer only when a process has come. */
static void judge_samples(struct live *l, size_t card)
{
	struct live_memory *m = &l->memory[card];
	const struct card_reading *r = &l->source->cards[card];
	bool known = l->cards[card].processes_known && r->mem_used_bytes >= 0;
	bool empty = known && r->n_processes == 0;
	int64_t used_bytes = empty ? r->mem_used_bytes - classify_reserve_bytes(r) : -1;
	l->cards[card].unexplained_bytes = used_bytes > 0 && !r->mem_is_sum ? used_bytes : 0;
	if (r->n_samples || !empty || !reading_util_is_known(r->util_kind))
		m->latched =
			empty && m->empty && reading_util_is_known(r->util_kind) &&
			classify_is_latched(r->samples, r->n_samples, used_bytes, &l->rules);
	m->empty = empty;
}

/* The state of a card, by its newest sample and its holders. */
static void classify(struct live *l, size_t card)
{
	struct present_card *c = &l->cards[card];
	struct live_memory *m = &l->memory[card];
	struct held held = { 0 };
	for (size_t k = 0; k < c->n_processes; k++) {
		const struct present_process *p = &l->now.items[c->first_process + k];
		if (p->holder)
			classify_held_add(&held, p->mem_bytes);
	}
	if (c->status == CARD_STATUS_OK)
		judge_samples(l, card);
	else
		*m = live_nothing_seen;
	m->held = held;
	/* As the recorder does: somebody holds it, although no process is listed. */
	if (c->status == CARD_STATUS_OK && c->unexplained_bytes > l->rules.held_mem_bytes)
		classify_held_add(&held, c->unexplained_bytes);
	c->state = state_of(l, card, m->util_pct, held);
	if (c->status != CARD_STATUS_OK)
		return;
	follow_idle(l, card, c->state, held);
	follow_state(l, card, c->state, held);
}

/* Sets since when the process has been idle: by the recorder if one is running, else since this
 * view has watched it without a gap. It is not before the last time that this view saw it
 * active, and not before the start of the process. */
static void judge_idle(
	const struct live *l, struct present_process *p, const struct live_mark *m)
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
	p->idle_since_ms = live_until_now(l, started_ms);
	p->idle_longer = false;
}

/* Fills l->holders with the processes of a card, for the classifier. Returns how many. */
static size_t add_holders(struct live *l, const struct present_card *c)
{
	size_t n = 0;
	for (size_t k = 0; k < c->n_processes; k++) {
		const struct present_process *p = &l->now.items[c->first_process + k];
		l->holders[n++] = (struct holder){ .process = (uint32_t)k,
			.user = l->now.marks[c->first_process + k].user,
			.kind = p->kind,
			.mem_bytes = p->mem_bytes,
			.sm_pct = p->sm_pct,
			.from = EDGE_ALWAYS,
			.to = EDGE_NEVER };
	}
	return n;
}

/* Whether each process computes, by the recorder's rule: the card had an active sample, the
 * user was not a squatter, and the process itself used the card, if the driver reports that. */
static void judge_processes(struct live *l, size_t card)
{
	const struct present_card *c = &l->cards[card];
	const struct card_reading *r = &l->source->cards[card];
	int64_t active_ms = -1; /* of the newest sample that was active; -1: none */
	for (size_t i = r->n_samples; i-- > 0 && active_ms < 0;)
		if (r->samples[i].util_pct >= l->rules.active_util_pct)
			active_ms = live_sample_ms(l, card, i);
	struct use_since use = classify_use_of_samples(
		r->samples, r->n_samples, r->process_util_known, NULL, &l->rules);
	size_t n = add_holders(l, c);
	classify_use(l->holders, n, &use, &l->rules);
	for (size_t k = 0; k < n; k++) {
		struct present_process *p = &l->now.items[c->first_process + k];
		struct live_mark *mark = &l->now.marks[c->first_process + k];
		bool self = !use.known || p->sm_pct > 0;
		bool worked =
			active_ms >= 0 && self && l->holders[k].own_state == HOLDER_ACTIVE;
		if (worked && active_ms > mark->active_ms)
			mark->active_ms = active_ms;
		if (mark->active_ms > p->last_active_ms)
			p->last_active_ms = mark->active_ms;
		if (l->source->cards[card].n_samples)
			p->active = worked && c->state == CARD_ACTIVE;
		if (p->active || isnan(l->memory[card].util_pct))
			continue;
		judge_idle(l, p, mark);
	}
}

/* Takes over the recorder's rules of active and held. If the rules have changed, the states
 * that were seen so far are forgotten: they were found by the old rules. */
static void join_rules(struct live *l)
{
	struct rules rules = l->past.now.any_run ? l->past.now.rules : l->usual_rules;
	bool same = state_rules_equal(&rules, &l->rules);
	l->rules = rules;
	for (size_t i = 0; !same && i < l->n_memory; i++) {
		l->memory[i].seen = false;
		l->memory[i].idle_ms = -1;
	}
}

static void join_process(struct live *l, struct present_process *p, struct live_mark *m)
{
	const struct last_run_holder *h = last_run_find(&l->past.now, l->cards[p->card].id.uuid,
		&p->id, owners_boot_id(reader_owners(l->reader)));
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

/* Takes over what the store says about the rules and the processes. */
static void join_processes(struct live *l)
{
	join_rules(l);
	for (size_t i = 0; i < l->now.n; i++)
		join_process(l, &l->now.items[i], &l->now.marks[i]);
}

/* Takes the store's answer: since when the card has been in its state and, if that was asked,
 * idle. The store knows nothing after its last tick, so some seconds before own_ms may be
 * missing. The store is then asked again (`lent`) when it has written them. */
static void take_past(struct live_memory *m, const struct last_run_ask *state, int64_t idle_ms,
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
static void join_states(struct live *l)
{
	struct err unread = { 0 };
	size_t n = 0, at = 0, each = l->wanted[METRIC_GUA_IDLE_SINCE] ? 2 : 1;
	struct last_run_ask *asks = calloc(2 * l->n_cards + 1, sizeof(*asks));
	size_t *whose = calloc(l->n_cards + 1, sizeof(*whose));
	for (size_t i = 0; asks && whose && i < l->n_cards; i++) {
		const char *uuid = l->cards[i].id.uuid;
		unsigned state = 1U << l->cards[i].state;
		if (!l->memory[i].ask)
			continue;
		whose[n++] = i;
		asks[at++] = (struct last_run_ask){ uuid, state, -1, true };
		if (each == 2)
			asks[at++] = (struct last_run_ask){ uuid,
				IDLE_STATES & state ? IDLE_STATES : 0, -1, true };
	}
	if (at)
		last_run_states_since(&l->past.now, asks, at, &unread);
	for (size_t i = 0; i < n; i++)
		take_past(&l->memory[whose[i]], &asks[i * each],
			each == 2 ? asks[i * each + 1].since_ms : -1, l->past.now.last_tick_ms);
	free(asks);
	free(whose);
	l->past.came = false;
}

/* Whether each process is a holder, and whether its memory is about a bare context; then the
 * states of the cards. */
static void judge_states(struct live *l)
{
	for (size_t i = 0; i < l->now.n; i++) {
		struct present_process *p = &l->now.items[i];
		p->holder = classify_is_holder(p->kind, &l->rules);
		p->context = CONTEXT_MORE;
		if (p->holder && context_may_be(p->mem_bytes))
			p->context = context_judge(p->kind, p->mem_bytes,
				past_floor(&l->past, l->cards[p->card].id.name));
	}
	for (size_t i = 0; i < l->n_cards; i++)
		classify(l, i);
}

static void finish_card(struct live *l, size_t card, const struct leases *leases)
{
	struct present_card *c = &l->cards[card];
	const struct live_memory *m = &l->memory[card];
	c->state_since_ms = m->since_ms;
	c->state_longer = m->longer;
	c->free_since_ms = c->state == CARD_TRULY_IDLE ? m->since_ms : -1;
	c->n_leases = 0;
	c->leased_to[0] = c->lease_owner[0] = c->lease_job[0] = c->lease_task[0] = '\0';
	c->leased_since_ms = -1;
	if (c->status != CARD_STATUS_OK)
		return;
	for (size_t i = 0; leases && i < leases->n; i++)
		if (leases->v[i].since_ms <= l->now_ms &&
			lease_covers(leases, &leases->v[i], &c->id))
			present_add_lease(c, &leases->v[i]);
	judge_processes(l, card);
	compute_own(l, c, m->held);
}

void live_judge(struct live *l, const struct leases *leases)
{
	if (l->past.db)
		join_processes(l);
	judge_states(l);
	if (l->past.db)
		join_states(l);
	for (size_t i = 0; i < l->n_cards; i++)
		finish_card(l, i, leases);
	/* A board that is not divided has the metrics of its card. */
	for (size_t i = 0; i < l->n_boards; i++)
		if (!l->boards[i].mig)
			memcpy(l->boards[i].values, l->cards[l->boards[i].first_card].values,
				sizeof(l->boards[i].values));
}

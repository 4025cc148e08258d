/* Adds hosts, cards, identities and processes to an audit, and computes its sums. */
#include "audit/audit.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "audit/cost.h"

void audit_init(struct audit *a)
{
	*a = (struct audit){ .rules = RULES_DEFAULT, .oldest_ms = -1, .newest_ms = -1 };
}

struct audit_host *audit_add_host(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->hosts, a->n_hosts)) {
		err_memory(e);
		return NULL;
	}
	a->hosts[a->n_hosts] = (struct audit_host){ .known_ms = -1, .last_tick_ms = -1 };
	return &a->hosts[a->n_hosts++];
}

struct audit_card *audit_add_card(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->cards, a->n_cards)) {
		err_memory(e);
		return NULL;
	}
	a->cards[a->n_cards] = (struct audit_card){ .id = { .mig_index = -1,
							    .gpu_instance = -1,
							    .compute_instance = -1,
							    .mem_total_bytes = -1 },
		.price = NAN,
		.floor_w = NAN };
	return &a->cards[a->n_cards++];
}

struct audit_identity *audit_add_identity(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->identities, a->n_identities)) {
		err_memory(e);
		return NULL;
	}
	a->identities[a->n_identities] = (struct audit_identity){ .sums = AUDIT_SUMS_NONE };
	return &a->identities[a->n_identities++];
}

struct audit_process *audit_add_process(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->processes, a->n_processes)) {
		err_memory(e);
		return NULL;
	}
	a->processes[a->n_processes] =
		(struct audit_process){ .started_ms = -1, .sums = AUDIT_SUMS_NONE };
	return &a->processes[a->n_processes++];
}

struct audit_event *audit_add_event(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->events, a->n_events)) {
		err_memory(e);
		return NULL;
	}
	a->events[a->n_events] = (struct audit_event){
		.xid = -1, .total_ms = -1, .last_ms = INT64_MIN, .last_card = AUDIT_NO_CARD
	};
	return &a->events[a->n_events++];
}

int64_t audit_holder_ms(const int64_t ms[HOLDER_STATES])
{
	int64_t sum = 0;
	for (int state = 0; state < HOLDER_STATES; state++)
		sum += ms[state];
	return sum;
}

void audit_sums_add(struct audit_sums *to, const struct audit_sums *more)
{
	for (int state = 0; state < HOLDER_STATES; state++)
		to->ms[state] += more->ms[state];
	to->active_share_ms += more->active_share_ms;
	to->idle_share_ms += more->idle_share_ms;
	to->context_share_ms += more->context_share_ms;
	to->unknown_share_ms += more->unknown_share_ms;
	cost_add(&to->cost, &more->cost);
	if (more->peak_mem_kib > to->peak_mem_kib)
		to->peak_mem_kib = more->peak_mem_kib;
	if (more->last_active_ms > to->last_active_ms)
		to->last_active_ms = more->last_active_ms;
}

bool audit_is_late(const struct audit *a, int64_t known_ms)
{
	return known_ms > a->since_ms + AUDIT_CLIP_MS;
}

/* The uncertainty of all cards together: a card's own error does not depend on another's. */
static int64_t unsure_of_all(const struct audit *a)
{
	double linear_ms = 0, squares = 0;
	for (size_t i = 0; i < a->n_cards; i++) {
		double own_ms2 = (double)a->cards[i].unsure_ms2, root_ms = sqrt(own_ms2);
		double linear = (double)a->cards[i].unsure_ms - root_ms;
		linear_ms += linear > 0 ? linear : 0;
		squares += own_ms2;
	}
	return llround(linear_ms + sqrt(squares));
}

void audit_add_up(struct audit *a)
{
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		int64_t *known_ms = &a->hosts[card->host].known_ms;
		if (*known_ms < 0 || card->first_seen_ms < *known_ms)
			*known_ms = card->first_seen_ms;
		for (int state = 0; state < CARD_STATES; state++) {
			a->ms[state] += card->ms[state];
			a->energy_mj[state] += card->energy_mj[state];
			a->energy_known_ms[state] += card->energy_known_ms[state];
		}
		cost_add_card(&a->cost, card, 0, COST_PARTS);
	}
	for (size_t i = 0; i < a->n_hosts; i++)
		a->hosts[i].late = audit_is_late(a, a->hosts[i].known_ms);
	a->unsure_ms = unsure_of_all(a);
	int64_t shared_ms = 0, used_ms = a->ms[CARD_ACTIVE] + a->ms[CARD_IDLE_HELD];
	for (size_t i = 0; i < a->n_identities; i++) {
		const struct audit_sums *sums = &a->identities[i].sums;
		shared_ms += sums->active_share_ms + sums->idle_share_ms;
		cost_add(&a->held_cost, &sums->cost);
	}
	bool all = !a->of_users && !a->fleet.n_partial; /* of the users are known */
	a->unattributed_ms = used_ms > shared_ms && all ? used_ms - shared_ms : 0;
}

void audit_finish(struct audit *a)
{
	arena_finish(&a->texts);
	free(a->days.items);
	free(a->columns.items);
	free(a->columns.marks);
	free(a->present);
	free(a->events);
	free(a->stores.unread);
	free(a->spells.items);
	free(a->orphans.items);
	for (size_t level = 0; level < BY_MAX; level++) {
		free(a->breakdown.rows[level]);
		free(a->by_card.rows[level]);
	}
	free(a->processes);
	free(a->identities);
	free(a->cards);
	free(a->hosts);
	*a = (struct audit){ 0 };
}

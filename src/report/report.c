/* Computes the figures of a report. */
#include "report/report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/shares.h"
#include "audit/audit.h"
#include "report/bill.h"

double part_of(int64_t part_ms, int64_t whole_ms)
{
	return whole_ms > 0 ? (double)part_ms / (double)whole_ms : NAN;
}

int64_t observed_ms(const int64_t ms[CARD_STATES])
{
	return ms[CARD_ACTIVE] + ms[CARD_IDLE_HELD] + ms[CARD_TRULY_IDLE] +
	       ms[CARD_USE_UNKNOWN];
}

double energy_kwh(const int64_t energy_mj[CARD_STATES], const int64_t known_ms[CARD_STATES],
	const int64_t ms[CARD_STATES], size_t state)
{
	if (ms[state] > 0 && known_ms[state] == 0)
		return NAN;
	return (double)energy_mj[state] / 3.6e9;
}

void shown_shares(const int64_t ms[CARD_STATES], double shown[CARD_STATES], double *observed)
{
	double parts[CARD_STATES], shares[SHARES_MAX];
	const double window[] = { (double)observed_ms(ms), (double)ms[CARD_UNOBSERVED] };
	for (int state = 0; state < CARD_STATES; state++)
		parts[state] = state == CARD_UNOBSERVED ? 0 : (double)ms[state];
	shares_round(parts, CARD_STATES, shares);
	memcpy(shown, shares, CARD_STATES * sizeof(*shown));
	shares_round(window, 2, shares);
	*observed = shares[0];
	shown[CARD_UNOBSERVED] = isnan(shares[1]) ? 0 : shares[1];
}

void shown_held_shares(const int64_t ms[HOLDER_STATES], double shown[SHARES_MAX])
{
	double parts[HOLDER_STATES];
	for (int state = 0; state < HOLDER_STATES; state++)
		parts[state] = (double)ms[state];
	shares_round(parts, HOLDER_STATES, shown);
}

static void add_window(struct report *r, const struct audit *a)
{
	r->since_ms = a->since_ms;
	r->until_ms = a->until_ms;
	r->length_ms = a->until_ms - a->since_ms;
	r->asked_since_ms = a->asked_since_ms;
	r->asked_until_ms = a->asked_until_ms;
	r->clipped_start = a->clipped_start;
	r->clipped_end = a->clipped_end;
	r->resolution_ms = a->resolution_ms;
	r->rules = a->rules;
	r->rules_mixed = a->rules_mixed;
	r->strict = a->strict;
	r->hosts = a->hosts;
	r->n_hosts = a->n_hosts;
	r->n_listed = a->n_hosts > AUDIT_HOSTS_LISTED ? AUDIT_HOSTS_WORST : a->n_hosts;
}

/* The states of cards and of users, as the headline names them. */
struct headline_state {
	size_t state;
	bool if_some; /* shown only if there is some */
	struct report_state shown;
};
static const struct headline_state card_states[] = {
	{ CARD_ACTIVE, false, { "active", "", CARD_ACTIVE, 0, 0 } },
	{ CARD_IDLE_HELD, false,
		{ "idle-held", "held and not used: what dashboards miss", CARD_IDLE_HELD, 0,
			0 } },
	{ CARD_TRULY_IDLE, false, { "truly-idle", "", CARD_TRULY_IDLE, 0, 0 } },
	{ CARD_USE_UNKNOWN, true,
		{ "use unknown", "held, but the driver reports no utilisation (MIG)",
			CARD_USE_UNKNOWN, 0, 0 } },
};
static const struct headline_state holder_states[] = {
	{ HOLDER_ACTIVE, false, { "used", "", CARD_ACTIVE, 0, 0 } },
	{ HOLDER_IDLE_HELD, false, { "idle", "", CARD_IDLE_HELD, 0, 0 } },
	{ HOLDER_SQUATTING, false,
		{ "idle on busy GPU", "another user kept the GPU busy", MARK_SQUATTING, 0,
			0 } },
	{ HOLDER_TRULY_IDLE, true, { "little memory", "", CARD_TRULY_IDLE, 0, 0 } },
	{ HOLDER_USE_UNKNOWN, true,
		{ "use unknown", "the driver reports no utilisation (MIG)", CARD_USE_UNKNOWN, 0,
			0 } },
};

static void add_states(
	struct report *r, const struct headline_state *states, size_t n, const int64_t *ms)
{
	double parts[REPORT_MARKS], shown[SHARES_MAX];
	for (size_t i = 0; i < n; i++) {
		int64_t own_ms = ms[states[i].state];
		if (states[i].if_some && own_ms <= 0)
			continue;
		parts[r->n_states] = (double)own_ms;
		r->states[r->n_states] = states[i].shown;
		r->states[r->n_states++].ms = own_ms;
	}
	shares_round(parts, r->n_states, shown);
	for (size_t i = 0; i < r->n_states; i++)
		r->states[i].shown = shown[i];
}

#define ADD_STATES(r, states, ms) add_states(r, states, sizeof(states) / sizeof(states[0]), ms)

static void add_held(struct report *r, const struct audit *a)
{
	r->of_users = a->of_users;
	r->held = (struct audit_sums)AUDIT_SUMS_NONE;
	for (size_t i = 0; i < a->n_identities; i++)
		audit_sums_add(&r->held, &a->identities[i].sums);
	r->held_ms = audit_holder_ms(r->held.ms);
	for (int state = 0; state < HOLDER_STATES; state++)
		r->held_share[state] = part_of(r->held.ms[state], r->held_ms);
}

static void add_headline(struct report *r, const struct audit *a)
{
	memcpy(r->ms, a->ms, sizeof(r->ms));
	r->observed_ms = observed_ms(a->ms);
	int64_t whole_ms = r->observed_ms + a->ms[CARD_UNOBSERVED];
	for (int state = 0; state < CARD_STATES; state++)
		r->share[state] = part_of(a->ms[state], r->observed_ms);
	r->share[CARD_UNOBSERVED] =
		whole_ms > 0 ? part_of(a->ms[CARD_UNOBSERVED], whole_ms) : 0;
	r->observed = part_of(r->observed_ms, whole_ms);
	shown_shares(r->ms, r->shown, &r->shown_observed);
	r->uncertainty = a->fleet.asked ? (double)NAN : part_of(a->unsure_ms, r->observed_ms);
	r->unattributed_ms = a->unattributed_ms;
	for (size_t i = 0; i < a->n_cards; i++)
		r->observed_cards += observed_ms(a->cards[i].ms) > 0;
	if (r->of_users && r->held_ms > 0)
		ADD_STATES(r, holder_states, r->held.ms);
	else if (!r->of_users && r->observed_ms > 0)
		ADD_STATES(r, card_states, r->ms);
}

/* The money of idle-held time; of users, that of their share. */
static void add_cost(struct report_waste *w, const struct audit *a)
{
	struct bill_totals totals;
	w->cost = w->shown_cost = NAN;
	if (!a->cost.priced)
		return;
	bill_total(&totals, a);
	w->cost = (a->of_users ? &a->held_cost : &a->cost)->money[COST_IDLE_HELD];
	w->shown_cost =
		(double)(a->of_users ? &totals.held : &totals.all)->parts[COST_IDLE_HELD] / 100;
}

/* Of users: their own idle time. */
static void restrict_waste(struct report_waste *w, const struct report *r)
{
	w->idle_held_hours = (double)r->held.ms[HOLDER_IDLE_HELD] / 3600e3;
	w->truly_idle_hours = w->equivalent_unavailable = w->equivalent_free = NAN;
	w->energy_kwh = w->energy_known = NAN;
}

static void add_waste(struct report *r, const struct audit *a, const struct report_request *q)
{
	struct report_waste *w = &r->waste;
	double cards = (double)r->observed_cards;
	w->idle_held_hours = (double)r->ms[CARD_IDLE_HELD] / 3600e3;
	w->truly_idle_hours = (double)r->ms[CARD_TRULY_IDLE] / 3600e3;
	w->equivalent_unavailable = cards * r->share[CARD_IDLE_HELD];
	w->equivalent_free = cards * r->share[CARD_TRULY_IDLE];
	w->energy_kwh = energy_kwh(a->energy_mj, a->energy_known_ms, a->ms, CARD_IDLE_HELD);
	w->energy_known = part_of(a->energy_known_ms[CARD_IDLE_HELD], a->ms[CARD_IDLE_HELD]);
	w->currency = q->has_prices ? q->currency : NULL;
	w->squatting_hours = (double)r->held.ms[HOLDER_SQUATTING] / 3600e3;
	add_cost(w, a);
	if (r->of_users)
		restrict_waste(w, r);
	report_judge(r, a);
}

static void add_hours(struct report *r, const struct audit *a)
{
	for (int dow = 0; dow < 7; dow++) {
		for (int hour = 0; hour < 24; hour++) {
			const int64_t *ms = a->heat[dow][hour].ms;
			struct report_hour *h = &r->hours[dow][hour];
			int64_t sum_ms = 0;
			for (int state = 0; state < CARD_UNOBSERVED; state++)
				sum_ms += ms[state];
			h->observed = sum_ms != 0;
			r->has_hours |= h->observed;
			for (int state = 0; state < CARD_UNOBSERVED; state++) {
				h->ms[state] = ms[state];
				h->share[state] = part_of(ms[state], sum_ms);
			}
		}
	}
}

void report_add_figures(struct report *r, const struct audit *a, const struct report_request *q)
{
	add_window(r, a);
	add_held(r, a);
	add_headline(r, a);
	add_waste(r, a, q);
}

void report_make(struct report *r, const struct audit *a, const struct report_request *q)
{
	*r = (struct report){ .utc = q->utc,
		.only = q->only,
		.stores = &a->stores,
		.fleet = a->fleet.asked ? &a->fleet : NULL,
		.asked = q->asked };
	report_add_figures(r, a, q);
	add_hours(r, a);
	report_add_trend(r, a);
	report_add_timeline(r, a);
	report_add_hosts(&r->host_table, a);
	report_add_cards(&r->cards, a);
	report_add_identities(r, a, q);
	report_add_breakdown(r, a, q);
	report_add_events(&r->events, a);
	report_add_spells(&r->longest, a);
	report_add_bill(r, a, q);
	report_add_sentences(r, a, q);
}

void report_finish(struct report *r)
{
	for (size_t i = 0; i < r->n_sentences; i++)
		free(r->sentences[i].text);
	free(r->sentences);
	table_finish(&r->host_table);
	table_finish(&r->cards);
	table_finish(&r->identities);
	table_finish(&r->events);
	table_finish(&r->longest);
	table_finish(&r->orphans);
	table_finish(&r->bill.lines);
	table_finish(&r->bill.cards);
	table_finish(&r->bill.energy);
	table_finish(&r->breakdown.table);
	table_finish(&r->by_card.table);
	for (size_t i = 0; i < r->n_sections; i++)
		table_finish(&r->sections[i].table);
	free(r->breakdown.rows);
	report_finish_trend(r);
	report_finish_timeline(r);
	report_finish_compare(r);
	free(r->by_card.rows);
	*r = (struct report){ 0 };
}

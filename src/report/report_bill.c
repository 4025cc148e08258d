/* The lines of the bill, which add up to what all cards cost in the window. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shares.h"
#include "base/str.h"
#include "audit/audit.h"
#include "report/report_bill.h"

#define KWH_MJ 3.6e9

/* The lines while they are made. */
struct bill {
	const struct audit *a;
	const struct report_request *q;
	struct bill_line *lines;
	size_t n; /* those that add up */
	size_t n_identities;
	struct bill_totals totals;
};

/* Works out the amounts of a line from its cost. */
static void set_amounts(const struct bill *b, struct bill_line *line)
{
	const struct audit_cost *cost = &line->cost;
	double kwh = cost->energy_ms > 0 ? cost->energy_mj / KWH_MJ : NAN;
	line->exact[AMOUNT_HOURS] = (double)(cost->priced_ms + cost->unpriced_ms) / 3600e3;
	line->exact[AMOUNT_KWH] = kwh;
	line->exact[AMOUNT_FLOOR] = isnan(kwh) ? kwh : cost->floor_mj / KWH_MJ;
	line->exact[AMOUNT_ENERGY_COST] = kwh * b->q->energy_price;
	line->exact[AMOUNT_CO2] = kwh * b->q->co2_g_per_kwh / 1000;
}

static struct bill_line *add_line(
	struct bill *b, enum bill_kind kind, const struct audit_cost *cost)
{
	struct bill_line *line = &b->lines[b->n++];
	*line = (struct bill_line){ .kind = kind, .cost = *cost };
	set_amounts(b, line);
	return line;
}

/* Adds users, or groups if the report is by group. */
static void add_identities(struct bill *b)
{
	const struct audit_breakdown *groups = &b->a->breakdown;
	bool by_group = groups->by.n && groups->by.kinds[0] == IDENTITY_GROUP;
	size_t n = by_group ? groups->n[0] : b->a->n_identities;
	for (size_t i = 0; i < n; i++) {
		const struct audit_identity *user = by_group ? NULL : &b->a->identities[i];
		const struct audit_row *group = by_group ? &groups->rows[0][i] : NULL;
		struct bill_line *line = add_line(
			b, BILL_IDENTITY, by_group ? &group->sums.cost : &user->sums.cost);
		line->identity = by_group ? group->key : user->identity;
		const char *none = identity_kinds[IDENTITY_GROUP].none;
		const char *shown = by_group && !group->key ? none : line->identity;
		text_copy(line->label, sizeof(line->label), user_shown(shown));
	}
	b->n_identities = n;
}

/* Adds what is nobody's. */
static void add_others(struct bill *b)
{
	struct audit_cost used = { 0 }, free_time = { 0 }, unobserved = { 0 };
	for (size_t i = 0; i < b->a->n_cards; i++) {
		const struct audit_card *card = &b->a->cards[i];
		audit_cost_card(&used, card, 0, COST_HELD_PARTS);
		audit_cost_card(&free_time, card, COST_TRULY_IDLE, COST_TRULY_IDLE + 1);
		audit_cost_card(&unobserved, card, COST_UNOBSERVED, COST_UNOBSERVED + 1);
	}
	audit_cost_subtract(&used, &b->a->held_cost);
	used.money[COST_SQUATTING] = 0;
	if (used.energy_mj < 1) /* what rounding leaves over is not known energy */
		used.energy_ms = 0;
	add_line(b, BILL_UNATTRIBUTED, &used);
	add_line(b, BILL_FREE, &free_time);
	add_line(b, BILL_UNOBSERVED, &unobserved);
}

/* Rounds an amount of all lines to hundredths that add up. */
static bool fit_amount(struct bill *b, enum amount amount)
{
	double *exact = calloc(b->n + 1, sizeof(*exact)), sum = 0;
	int64_t *fitted = calloc(b->n + 1, sizeof(*fitted));
	for (size_t i = 0; i < b->n && exact; i++) {
		double x = b->lines[i].exact[amount];
		exact[i] = isnan(x) ? 0 : 100 * x;
		sum += exact[i];
	}
	bool fits = exact && fitted && shares_fit(exact, b->n, llround(sum), fitted);
	for (size_t i = 0; i < b->n && fits; i++)
		b->lines[i].shown[amount] =
			isnan(b->lines[i].exact[amount]) ? NAN : (double)fitted[i] / 100;
	free(exact);
	free(fitted);
	return fits;
}

/* Rounds the money of all lines to cents that add up. */
static bool fit_money(struct bill *b)
{
	size_t n = b->n_identities;
	const struct audit_cost **costs = calloc(n + 1, sizeof(*costs));
	struct bill_cents *cents = calloc(n + 1, sizeof(*cents)), others = b->totals.all;
	for (size_t i = 0; i < n && costs; i++)
		costs[i] = &b->lines[i].cost;
	bool fits = costs && cents && bill_divide(costs, n, &b->totals.held, cents);
	for (size_t i = 0; i < n && fits; i++) {
		b->lines[i].cents = cents[i];
		for (int part = 0; part < COST_PARTS; part++)
			others.parts[part] -= cents[i].parts[part];
	}
	for (int part = 0; part < COST_PARTS; part++) {
		size_t line = part < COST_HELD_PARTS ? 0 : (size_t)(1 + part - COST_HELD_PARTS);
		b->lines[n + line].cents.parts[part] = others.parts[part];
	}
	free(costs);
	free(cents);
	return fits;
}

static int compare_lines(const void *x, const void *y)
{
	const struct bill_line *p = x, *q = y;
	double a = 0, b = 0;
	for (int part = 0; part < COST_PARTS; part++) {
		a += p->cost.money[part];
		b += q->cost.money[part];
	}
	if (a != b)
		return a > b ? -1 : 1;
	if (p->exact[AMOUNT_HOURS] != q->exact[AMOUNT_HOURS])
		return p->exact[AMOUNT_HOURS] > q->exact[AMOUNT_HOURS] ? -1 : 1;
	return strcmp(p->label, q->label);
}

/* Adds a line to a sum of lines. */
static void sum_up(const struct bill *b, struct bill_line *sum, const struct bill_line *line)
{
	audit_cost_add(&sum->cost, &line->cost);
	bill_add(&sum->cents, &line->cents);
	set_amounts(b, sum);
	for (int i = 0; i < AMOUNTS; i++) {
		double before = isnan(sum->shown[i]) ? 0 : sum->shown[i];
		double more = isnan(line->shown[i]) ? 0 : line->shown[i];
		sum->shown[i] = isnan(sum->exact[i]) ? NAN : before + more;
	}
}

/* Adds the lines of identities to the table, those that are left out in one. */
static void list_identities(
	const struct bill *b, struct report_bill *to, struct bill_line *held)
{
	size_t top = b->q->top && b->n_identities > b->q->top ? b->q->top : b->n_identities;
	struct bill_line rest = { .kind = BILL_REST };
	for (size_t i = 0; i < b->n_identities; i++) {
		sum_up(b, held, &b->lines[i]);
		if (i < top)
			bill_list(to, &b->lines[i]);
		else
			sum_up(b, &rest, &b->lines[i]);
	}
	snprintf(rest.label, sizeof(rest.label), "(%zu more)", b->n_identities - top);
	if (top < b->n_identities && b->q->rest)
		bill_list(to, &rest);
}

/* Whether people need to read a line: not if nothing is in it. */
static bool is_empty(const struct bill_line *line)
{
	return line->shown[AMOUNT_HOURS] == 0 && bill_sum(&line->cents) == 0;
}

static void list_lines(struct bill *b, struct report_bill *to)
{
	struct bill_line held = { .kind = BILL_HELD, .label = "held" };
	struct bill_line total = { .kind = BILL_TOTAL, .label = "total" };
	static const char *const labels[BILL_KINDS] = { [BILL_UNATTRIBUTED] = "not attributed",
		[BILL_FREE] = "free",
		[BILL_UNOBSERVED] = "unobserved" };
	list_identities(b, to, &held);
	if (b->n_identities)
		bill_list(to, &held);
	for (size_t i = 0; i < b->n; i++) {
		struct bill_line *line = &b->lines[i];
		sum_up(b, &total, line);
		if (i < b->n_identities || b->a->of_users || (b->q->rest && is_empty(line)))
			continue;
		text_copy(line->label, sizeof(line->label), labels[line->kind]);
		bill_list(to, line);
	}
	if (!b->a->of_users) /* the rest is not only theirs */
		bill_list(to, &total);
}

void report_add_bill(struct report *r, const struct audit *a, const struct report_request *q)
{
	struct bill b = { .a = a, .q = q };
	size_t most = a->n_identities > a->breakdown.n[0] ? a->n_identities : a->breakdown.n[0];
	r->bill = (struct report_bill){ .shown = q->has_prices || isfinite(q->energy_price) ||
						 isfinite(q->co2_g_per_kwh),
		.currency = q->has_prices ? q->currency : NULL,
		.energy_currency = q->currency,
		.has_energy = (a->of_users ? &a->held_cost : &a->cost)->energy_ms > 0,
		.energy_price = q->energy_price,
		.co2_g_per_kwh = q->co2_g_per_kwh };
	bill_start(&r->bill);
	b.lines = calloc(most + 3, sizeof(*b.lines));
	bool fits = b.lines != NULL;
	if (fits) {
		bill_total(&b.totals, a);
		add_identities(&b);
		add_others(&b);
		fits = fit_money(&b);
		for (int i = 0; i < AMOUNTS && fits; i++)
			fits = fit_amount(&b, i);
	}
	if (fits) {
		qsort(b.lines, b.n_identities, sizeof(*b.lines), compare_lines);
		list_lines(&b, &r->bill);
		if (!a->of_users)
			fits = bill_list_cards(&r->bill.cards, a, &b.totals.all);
	}
	r->failed |= !fits;
	free(b.lines);
}

/* Rounds money to cents that add up. */
#include "report/bill.h"

#include <math.h>
#include <stdlib.h>

#include "base/shares.h"

static void round_parts(const double *money, size_t n, int64_t whole, int64_t *cents)
{
	double exact[COST_PARTS];
	for (size_t i = 0; i < n; i++)
		exact[i] = 100 * money[i];
	/* So few need no more memory than the smallest allocation; without it, each part is
	 * rounded by itself. */
	if (!shares_fit(exact, n, whole, cents))
		for (size_t i = 0; i < n; i++)
			cents[i] = llround(exact[i]);
}

void bill_total(struct bill_totals *t, const struct audit *a)
{
	double sum = 0;
	*t = (struct bill_totals){ 0 };
	for (int part = 0; part < COST_PARTS; part++)
		sum += a->cost.money[part];
	round_parts(a->cost.money, COST_PARTS, llround(100 * sum), t->all.parts);
	for (int part = 0; part < COST_HELD_PARTS; part++) {
		double held = a->held_cost.money[part];
		const double two[] = { held, a->cost.money[part] - held };
		int64_t cents[2];
		round_parts(two, 2, t->all.parts[part], cents);
		t->held.parts[part] = cents[0];
	}
	t->held.squatting = llround(100 * a->held_cost.money[COST_SQUATTING]);
}

/* Divides the cents of one kind of money among the costs. */
static bool divide(const struct audit_cost *const *costs, size_t n, enum cost_part part,
	const int64_t *whole, struct bill_cents *cents)
{
	double *exact = calloc(n + 1, sizeof(*exact)), sum = 0;
	int64_t *fitted = calloc(n + 1, sizeof(*fitted));
	for (size_t i = 0; i < n && exact; i++) {
		exact[i] = 100 * costs[i]->money[part];
		sum += exact[i];
	}
	int64_t own = llround(sum);
	bool is_sum = whole && fabs((double)*whole - sum) < 2;
	bool fits = exact && fitted && shares_fit(exact, n, is_sum ? *whole : own, fitted);
	for (size_t i = 0; i < n && fits; i++)
		*(part == COST_SQUATTING ? &cents[i].squatting : &cents[i].parts[part]) =
			fitted[i];
	free(exact);
	free(fitted);
	return fits;
}

bool bill_divide(const struct audit_cost *const *costs, size_t n,
	const struct bill_cents *whole, struct bill_cents *cents)
{
	bool fits = true;
	for (int part = 0; part < COST_PARTS && fits; part++)
		fits = divide(costs, n, part, whole ? &whole->parts[part] : NULL, cents);
	return fits &&
	       divide(costs, n, COST_SQUATTING, whole ? &whole->squatting : NULL, cents);
}

void bill_add(struct bill_cents *to, const struct bill_cents *more)
{
	for (int part = 0; part < COST_PARTS; part++)
		to->parts[part] += more->parts[part];
	to->squatting += more->squatting;
}

double bill_sum(const struct bill_cents *cents)
{
	int64_t sum = 0;
	for (int part = 0; part < COST_PARTS; part++)
		sum += cents->parts[part];
	return (double)sum / 100;
}

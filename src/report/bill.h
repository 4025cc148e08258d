/* Money for people: cents that add up, across and down, to one total. The parts of all cards'
 * cost are rounded first, by largest remainder; each table then divides these cents among its
 * rows, part by part, and what is printed of a row is the sum of its cents. Only for report/.
 */
#ifndef GUA_REPORT_BILL_H
#define GUA_REPORT_BILL_H

#include <stdbool.h>
#include <stddef.h>

#include "model/audit.h"

struct bill_cents {
	int64_t parts[COST_PARTS];
	int64_t squatting; /* in no sum */
};

struct bill_totals {
	struct bill_cents all;	/* the cards' time */
	struct bill_cents held; /* the shares of identities */
};
void bill_total(struct bill_totals *t, const struct audit *a);

/* Divides `whole` among n costs; NULL, or a whole that is not their sum: the cents of their own
 * sum. False: out of memory. */
bool bill_divide(const struct audit_cost *const *costs, size_t n,
	const struct bill_cents *whole, struct bill_cents *cents);
void bill_add(struct bill_cents *to, const struct bill_cents *more);
/* The sum of the parts, in money. */
double bill_sum(const struct bill_cents *cents);

#endif

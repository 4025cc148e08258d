/* The rows of the bill's tables, and their columns. Only for report/report*.c. */
#ifndef GUA_REPORT_REPORT_BILL_H
#define GUA_REPORT_REPORT_BILL_H

#include "report/bill.h"
#include "report/report_parts.h"

/* What a line has beside money. */
enum amount { AMOUNT_HOURS, AMOUNT_KWH, AMOUNT_FLOOR, AMOUNT_ENERGY_COST, AMOUNT_CO2, AMOUNTS };

struct bill_line {
	enum bill_kind kind;
	const char *identity; /* NULL: the line is of no identity */
	char label[LABEL_CAP];
	struct audit_cost cost;
	struct bill_cents cents;
	double exact[AMOUNTS], shown[AMOUNTS]; /* shown: hundredths; NAN: unknown */
};

/* Starts the tables of lines, and adds a line. */
void bill_start(struct report_bill *bill);
void bill_list(struct report_bill *bill, const struct bill_line *line);
/* Makes the table of what each card costs, with a line for all. False: out of memory. */
bool bill_list_cards(struct table *t, const struct audit *a, const struct bill_cents *all);

/* The money of a cost, exactly: one part, or at COSTS all parts together; NAN if none of its
 * time has a price. */
double cost_money(const struct audit_cost *cost, size_t part);

#endif

/* Prices time and divides energy; gather_costs() sets the prices. Only for audit/. */
#ifndef GUA_AUDIT_COST_H
#define GUA_AUDIT_COST_H

#include "model/audit.h"

/* The cost of a holder's shares on a card; of the squatting time in sums->ms. */
void cost_of_holder(struct audit_sums *sums, const struct audit_card *card);
/* Adds the cost of a card's time: the parts from <= part < to. */
void cost_add_card(struct audit_cost *cost, const struct audit_card *card, int from, int to);
void cost_add(struct audit_cost *to, const struct audit_cost *more);
void cost_subtract(struct audit_cost *from, const struct audit_cost *less);

#endif

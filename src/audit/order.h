/* The orders in which a report lists holders. */
#ifndef GUA_AUDIT_ORDER_H
#define GUA_AUDIT_ORDER_H

#include "model/audit_holders.h"

/* X(ID, name): most first; names from A to Z. Waste is idle and squatting time. */
#define ORDERS(X)                                                                              \
	X(WASTE, "waste")                                                                      \
	X(HELD, "held")                                                                        \
	X(USED, "used")                                                                        \
	X(IDLE, "idle")                                                                        \
	X(SQUATTING, "squatting")                                                              \
	X(SHARE, "share")                                                                      \
	X(MEMORY, "memory")                                                                    \
	X(NAME, "name")

/* "waste|held|...", for an option. */
#define ORDER_CHOICE(id, name) "|" name
#define ORDER_CHOICES (&(ORDERS(ORDER_CHOICE))[1])

enum order {
	ORDER_DEFAULT, /* waste; cards, models and hosts in their own order */
#define ORDER_ID(id, name) ORDER_##id,
	ORDERS(ORDER_ID)
#undef ORDER_ID
};

/* The order of that name; ORDER_DEFAULT for NULL. */
enum order order_of(const char *name);
/* Negative: `a` comes first; 0: names decide. */
int order_compare(enum order order, const struct audit_sums *a, const struct audit_sums *b);
/* The time held and not used. */
int64_t sums_waste(const struct audit_sums *sums);

#endif

/* Compares holders by one of their sums. */
#include "audit/order.h"

#include <string.h>

#include "audit/audit.h"

enum order order_of(const char *name)
{
#define ORDER_ROW(id, text)                                                                    \
	if (name && strcmp(name, text) == 0)                                                   \
		return ORDER_##id;
	ORDERS(ORDER_ROW)
#undef ORDER_ROW
	return ORDER_DEFAULT;
}

int64_t sums_waste(const struct audit_sums *sums)
{
	return sums->ms[HOLDER_IDLE_HELD] + sums->ms[HOLDER_SQUATTING];
}

static int64_t value_of(enum order order, const struct audit_sums *s)
{
	switch (order) {
	case ORDER_HELD:
		return audit_holder_ms(s->ms);
	case ORDER_USED:
		return s->ms[HOLDER_ACTIVE];
	case ORDER_IDLE:
		return s->ms[HOLDER_IDLE_HELD];
	case ORDER_SQUATTING:
		return s->ms[HOLDER_SQUATTING];
	case ORDER_SHARE:
		return s->active_share_ms + s->idle_share_ms;
	case ORDER_MEMORY:
		return s->peak_mem_kib;
	case ORDER_NAME:
		return 0;
	case ORDER_DEFAULT:
	case ORDER_WASTE:
		break;
	}
	return sums_waste(s);
}

int order_compare(enum order order, const struct audit_sums *a, const struct audit_sums *b)
{
	if (order == ORDER_NAME)
		return 0;
	int64_t x = value_of(order, a), y = value_of(order, b);
	if (x == y) {
		x = audit_holder_ms(a->ms);
		y = audit_holder_ms(b->ms);
	}
	return x == y ? 0 : x > y ? -1 : 1;
}

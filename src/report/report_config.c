/* Hands groups, prices and energy from the configuration to a report. */
#include "report/report_config.h"

#include <math.h>

static const char *find_group(const void *groups, const char *user)
{
	return config_groups_find(groups, user);
}

static double find_price(const void *prices, const struct card_id *card)
{
	const struct report_prices *p = prices;
	if (isfinite(p->all))
		return p->all;
	return config_price_of(p->by_name, card->name, card->mig_index >= 0);
}

void report_configure(struct audit_question *q, struct report_request *request,
	const struct config *c, const struct report_prices *prices)
{
	q->group_of = find_group;
	q->group_context = &c->groups;
	q->price_of = find_price;
	q->price_context = prices;
	request->has_groups = c->groups.n > 0;
	request->has_prices = isfinite(prices->all) || prices->by_name->n > 0;
	request->energy_price = c->energy_price;
	request->co2_g_per_kwh = c->co2_g_per_kwh;
}

/* What the configuration says about a report: groups, prices, energy. */
#ifndef GUA_REPORT_REPORT_CONFIG_H
#define GUA_REPORT_REPORT_CONFIG_H

#include "config/config.h"
#include "audit/audit.h"
#include "report/report.h"

/* Prices: one for all cards, or those of the configuration. */
struct report_prices {
	double all; /* NAN: none */
	const struct config_prices *by_name;
};

/* Fills the question and the request. The configuration and the prices must outlive them. */
void report_configure(struct audit_question *q, struct report_request *request,
	const struct config *c, const struct report_prices *prices);

#endif

/* The bill of a report: what all cards cost in the window, and whose it is. Only for
 * model/report.h. */
#ifndef GUA_MODEL_REPORT_BILL_H
#define GUA_MODEL_REPORT_BILL_H

#include <stdbool.h>

#include "model/table.h"

/* The lines of a bill. Those of identities, and the next three, add up to the total. */
enum bill_kind {
	BILL_IDENTITY,	   /* a user's or a group's shares */
	BILL_UNATTRIBUTED, /* held time that is in nobody's share */
	BILL_FREE,	   /* truly-idle time */
	BILL_UNOBSERVED,
	BILL_REST, /* identities that are left out: for people only */
	BILL_HELD, /* the sum of the identities */
	BILL_TOTAL,
	BILL_KINDS
};

struct report_bill {
	bool shown; /* there is a price of GPU-hours, of energy, or CO2 to show to people */
	const char *currency; /* of prices of GPU-hours; NULL: none was given */
	const char *energy_currency;
	/* NAN: not given. */
	double energy_price, co2_g_per_kwh;
	struct table lines;
	struct table cards, energy; /* only for people */
	bool has_energy;	    /* some is known */
};

#endif

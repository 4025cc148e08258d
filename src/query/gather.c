/* Runs the steps of an audit of stores in order. */
#include "query/gather.h"

#include <time.h>

#include "query/columns.h"

int audit_run(struct audit *a, const struct audit_question *q, struct err *e)
{
	static int (*const steps[])(struct gather *, struct err *) = { gather_open,
		gather_hosts, gather_window, gather_days, gather_cards, gather_wanted,
		gather_usage, gather_settle, gather_columns, gather_costs, gather_holders,
		gather_events, gather_present, gather_spells, gather_orphans };
	struct gather g = { .a = a, .q = q };
	int rc = 0;
	if (q->engine)
		return q->engine(q->engine_context, a, q, e);
	audit_init(a);
	tzset();
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0; i++)
		rc = steps[i](&g, e);
	gather_close(&g);
	if (rc == 0)
		audit_add_up(a);
	return rc;
}

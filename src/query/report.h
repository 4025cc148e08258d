/* Makes the report of an audit: each figure, sentence and table once, for all formats. */
#ifndef GUA_QUERY_REPORT_H
#define GUA_QUERY_REPORT_H

#include "model/report.h"

struct report_request {
	enum report_by by;
	size_t top;	      /* rows of identities or processes; 0: all */
	double cost;	      /* of one GPU-hour; NAN: not asked for */
	const char *currency; /* as given, escaped for a terminal */
	bool utc;	      /* moments in UTC instead of local time */
};

/* Fills `*r`, which borrows the audit's hosts: the audit must outlive it. If memory runs out,
 * r->failed or a table's flag is set. */
void report_make(struct report *r, const struct audit *a, const struct report_request *q);
void report_finish(struct report *r);

#endif

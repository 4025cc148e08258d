/* The processes of a store that an audit is restricted to. Only for audit/. */
#ifndef GUA_AUDIT_WANTED_H
#define GUA_AUDIT_WANTED_H

#include "audit/gather.h"

/* Whether the time of a process counts. */
bool wanted_has(const struct gather *g, const struct gather_file *file, int64_t process);
/* What to add to the condition of a query of holdings: " AND wanted(process)", or nothing. A
 * function in SQL passes over a row before its sums are decoded. */
const char *wanted_condition(const struct gather *g);

#endif

/* The processes of a store that an audit is restricted to. Only for query/. */
#ifndef GUA_QUERY_WANTED_H
#define GUA_QUERY_WANTED_H

#include "query/gather.h"

/* Whether the time of a process counts. */
bool wanted_has(const struct gather *g, const struct gather_file *file, int64_t process);

#endif

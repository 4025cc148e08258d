/* Checks that stores can be read as one: nothing of them would be counted twice. */
#ifndef GUA_QUERY_STORES_CHECK_H
#define GUA_QUERY_STORES_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Fails if one cannot be read, if one is given twice or is a copy of another, or if two have
 * recorded the same cards at the same time. `*simulated`: some of the data is. */
int stores_check(const char *const *paths, size_t n, bool *simulated, struct err *e);

#endif

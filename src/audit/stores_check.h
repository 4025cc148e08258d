/* Checks that stores can be read as one: nothing of them would be counted twice. */
#ifndef GUA_AUDIT_STORES_CHECK_H
#define GUA_AUDIT_STORES_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "store/merge.h"

/* Fails if one cannot be read, if one is given twice or is a copy of another, or if two have
 * recorded the same cards at the same time. `*simulated`: some of the data is. `*hosts`: whose
 * their rows are; the caller frees the items. */
int stores_check(const char *const *paths, size_t n, bool *simulated, struct merge_hosts *hosts,
	struct err *e);

#endif

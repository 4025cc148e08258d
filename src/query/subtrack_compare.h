/* Comparing the results of several sub-tracking analyses. */
#ifndef GUA_QUERY_SUBTRACK_COMPARE_H
#define GUA_QUERY_SUBTRACK_COMPARE_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* A named result file, as `sub-track analyze -f json` writes it. */
struct subtrack_session {
	const char *name;
	const char *path;
};

/* Puts one statistic (min, max, mean, std) of all sessions side by side:
 * { overall_resource_usage: { measurement: { session: value } },
 *   code_block_resource_usage: { measurement: { block: { session: value } } },
 *   code_block_compute_time: { block: { session: value } } }
 * The sessions of a group stand in ascending order of their values. Blocks must agree by name;
 * names that differ only in a line number at their end match, and are listed in `warnings`. The
 * caller frees *result with json_decref(). Sorts `sessions` by name. */
int subtrack_compare(json_t **result, struct subtrack_session *sessions, size_t n,
	const char *statistic, struct str *warnings, struct err *e);

#endif

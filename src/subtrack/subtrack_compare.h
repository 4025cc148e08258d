/* Comparing the results of several sub-tracking analyses. */
#ifndef GUA_SUBTRACK_SUBTRACK_COMPARE_H
#define GUA_SUBTRACK_SUBTRACK_COMPARE_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* A named result file, as `sub-track analyze -f json` writes it. */
struct subtrack_session {
	const char *name;
	const char *path;
};

/* What to compare, and the result. */
struct subtrack_comparison {
	const struct subtrack_session *sessions;
	size_t n;
	const char *statistic; /* min, max, mean or std */
	json_t *result;	       /* set; the caller frees it with json_decref() */
	struct str warnings;   /* set: a line for each pair of blocks that differ in their line
				  number; the caller finishes it */
};

/* Puts one statistic of all sessions side by side:
 * { overall_resource_usage: { measurement: { session: value } },
 *   code_block_resource_usage: { measurement: { block: { session: value } } },
 *   code_block_compute_time: { block: { session: value } } }
 * The sessions of a group stand in ascending order of their values. Blocks must agree by name;
 * names that differ only in a line number at their end match, with a warning, and have all
 * names in their key ("a.py:7 -> a.py:9", sorted as texts). */
int subtrack_compare(struct subtrack_comparison *c, struct err *e);

#endif

/* Makes one store of many: `gua merge`. */
#ifndef GUA_STORE_MERGE_H
#define GUA_STORE_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct merge_wish {
	const char *path;	  /* of the new store; must not exist */
	const char *const *paths; /* stores; they are only read */
	size_t n_paths;
	/* Called after each store; a result that is not 0 ends the merge. */
	int (*progress)(void *context, int64_t done, int64_t total);
	void *context;
};

struct merge_summary {
	int64_t hosts, cards, first_ms, last_ms; /* -1: it has no run */
	int64_t bytes;
};

/* Copies every row of the stores. The caller has checked that no time is in two of them. Hosts
 * with the same name and machine id become one, others of the same name NAME#2; so do the cards
 * of one host, whose sums are added. The new store appears when it is complete, or not at all.
 */
int store_merge(const struct merge_wish *wish, struct merge_summary *summary, struct err *e);

/* The length of a host's own name: "lab" of "lab#2". No host has such a name, so it is that of
 * another machine in a store that was merged: the number is not part of what it is. */
size_t merge_own_name(const char *hostname);

#endif

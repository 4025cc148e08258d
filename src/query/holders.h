/* The holders of one store while they are read. Only for query/. */
#ifndef GUA_QUERY_HOLDERS_H
#define GUA_QUERY_HOLDERS_H

#include "model/audit.h"

/* One process on one card. */
struct pair {
	int64_t process; /* its id in the store */
	uint32_t card;
	uint32_t user;		 /* index of its identity; IDMAP_NONE: no row for it */
	uint32_t labels[BY_MAX]; /* the names that a breakdown asks for; IDMAP_NONE: none */
	uint32_t pid;		 /* this and the next are from its row */
	int64_t started_ms;
	struct audit_sums own; /* by its own state */
	bool context;	       /* never more than a bare context */
	int64_t presence_ms[HOLDER_STATES];
};

#endif

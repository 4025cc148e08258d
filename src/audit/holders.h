/* The holders of one store while they are read. Only for audit/. */
#ifndef GUA_AUDIT_HOLDERS_H
#define GUA_AUDIT_HOLDERS_H

#include "model/audit.h"
#include "audit/idmap.h"
#include "audit/names.h"

/* One process on one card. `user` and `labels` are numbers in `users` and `labels` below and,
 * when the pair is added to the audit, of its identities and its breakdown. */
struct pair {
	int64_t process; /* its id in the store */
	uint32_t card;
	uint32_t place;		 /* of the card in the store */
	uint32_t user;		 /* IDMAP_NONE: there is no row for the process */
	uint32_t labels[BY_MAX]; /* the names that a breakdown asks for; IDMAP_NONE: none */
	uint32_t pid;		 /* this and the next are from its row */
	int64_t started_ms;
	struct audit_sums own; /* by its own state */
	bool context;	       /* never more than a bare context */
	int64_t presence_ms[HOLDER_STATES];
};

/* The pairs of one file. */
struct pairs {
	struct idmap map;
	struct pair *items;
	size_t n;
	size_t last;	     /* the previous pair: often the same */
	int64_t *unknown_ms; /* by place: presence with unknown use, also of what the audit is
				not restricted to; NULL if the file has none */
	struct names users, labels[BY_MAX];
};

void pairs_free(struct pairs *p);

#endif

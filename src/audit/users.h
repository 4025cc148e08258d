/* Identities by name while they are gathered, and the lists that a report shows. Only for
 * audit/. */
#ifndef GUA_AUDIT_USERS_H
#define GUA_AUDIT_USERS_H

#include "audit/gather.h"
#include "audit/names.h"

struct users {
	struct names names;
	struct audit_identity *items; /* by the number of the name */
	size_t n;
};

/* The index of `name`, added when it is new; IDMAP_NONE when out of memory. */
uint32_t users_find(struct users *u, const char *name, struct err *e);
/* Sorts by presence and moves them into the audit; what refers to them is renumbered. */
int users_hand_over(struct users *u, struct audit *a, struct err *e);
void users_finish(struct users *u);

/* Sorts the processes and keeps those that were asked for. */
void processes_choose(struct gather *g);

#endif

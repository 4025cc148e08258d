/* Groups the holders by the kinds of identity that were asked for. Only for audit/. */
#ifndef GUA_AUDIT_BREAKDOWN_H
#define GUA_AUDIT_BREAKDOWN_H

#include "audit/gather.h"
#include "audit/holders.h"
#include "audit/names.h"
#include "audit/users.h"

/* A breakdown while it is made. */
struct breakdown {
	struct gather *g;
	struct audit_breakdown *to;
	const struct users *users;
	struct names names[BY_MAX];
	struct idmap places[BY_MAX]; /* from the key of a row to the row */
	size_t path;		     /* with the next two: the process of the last pair */
	int64_t process;
	uint32_t n_processes; /* how many there were */
};

void breakdown_start(struct breakdown *b, struct gather *g, const struct users *users,
	struct audit_breakdown *to, const struct by *by);
/* The columns of the table process that the kinds need, or "NULL". */
const char *breakdown_column(const struct by *by, size_t level);
/* Sets the label of a pair from the text in that column. */
int breakdown_label(
	struct breakdown *b, struct pair *pair, size_t level, const char *text, struct err *e);
/* Adds a pair of the store `path`; those of a process follow each other. */
int breakdown_add(struct breakdown *b, size_t path, const struct pair *pair, struct err *e);
/* Adds the cards' own time, and gives the names to the audit. */
int breakdown_end(struct breakdown *b, struct err *e);
void breakdown_finish(struct breakdown *b);

#endif

/* Reads what an exporter shows of a store. */
#ifndef GUA_EXPORT_SCRAPE_H
#define GUA_EXPORT_SCRAPE_H

#include "base/err.h"
#include "model/scrape.h"
#include "export/identity_names.h"

struct sqlite3;

/* Fills *s from the store at `path`, all of one tick, as of `now_ms`: for the host of the
 * newest run. Finish *s in any case. */
int scrape_read(struct scrape *s, const char *path, const struct identity_names *names,
	int64_t now_ms, struct err *e);
void scrape_finish(struct scrape *s);

/* The same from an open store, with all cards and identities that there ever were, at their
 * true values, and without what is about the present. */
int scrape_totals(struct scrape *s, struct sqlite3 *db, const char *path,
	const struct identity_names *names, struct err *e);

/* The parts. The identities of a host; with `now_ms` -1, all of them at their true values. */
int scrape_identities(struct scrape *s, struct sqlite3 *db, const struct identity_names *names,
	int64_t now_ms, struct err *e);
/* The identity with this name, added if it is missing; NULL: out of memory. */
struct scrape_identity *scrape_identity(struct scrape *s, const char *name);

#endif

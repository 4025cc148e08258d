/* Reads from a store what an exporter shows. */
#pragma once

#include "config/config.h"
#include "model/scrape.h"

enum identity_how {
	IDENTITIES_USER,
	IDENTITIES_GROUP,
	IDENTITIES_NAMESPACE,
	IDENTITIES_HASHED,
	IDENTITIES_OFF,
};

struct identity_names {
	enum identity_how how;
	int64_t max; /* largest number of users with a series of their own */
	const struct config_groups *groups;
	char key[1024];
	size_t key_len;
	bool dcgm; /* show the names of dcgm-exporter, too */
};

/* Reads the section [metrics] of gua.conf(5), and the key if one is needed. The configuration
 * must outlive *n. */
int scrape_names_init(struct identity_names *n, const struct config *config, struct err *e);

/* SQL: the host of the newest run. */
#define SCRAPE_HOST "(SELECT host FROM run WHERE source <> 'import' ORDER BY id DESC LIMIT 1)"
/* SQL over the table identity AS i: whether its user is a namespace. Only IDENTITIES_NAMESPACE
 * asks it. */
const char *scrape_namespace_sql(const struct identity_names *n);
/* The exported name of a user (see gua-store(5)). */
void scrape_identity_name(const struct identity_names *n, const char *user, int64_t place,
	bool is_namespace, char dst[IDENTITY_NAME_CAP]);

struct sqlite3;

/* Fills *s from the store at `path`, all of one tick, as of `now_ms`: for the host of the
 * newest run. Finish *s in any case. */
int scrape_read(struct scrape *s, const char *path, const struct identity_names *names,
	int64_t now_ms, struct err *e);
void scrape_finish(struct scrape *s);

/* The same from an open store, with all cards and identities that ever existed, at their
 * true values, and without readings of the present. */
int scrape_totals(struct scrape *s, struct sqlite3 *db, const char *path,
	const struct identity_names *names, struct err *e);

/* The identity with this name, added if it is missing; NULL: out of memory. */
struct scrape_identity *scrape_identity(struct scrape *s, const char *name);

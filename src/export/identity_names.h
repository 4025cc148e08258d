/* What an exporter calls the user of some time: by name, by group, or by a hash that only the
 * owner of the key can make; a bounded number of them. */
#ifndef GUA_EXPORT_IDENTITY_NAMES_H
#define GUA_EXPORT_IDENTITY_NAMES_H

#include <stdint.h>

#include "base/err.h"
#include "config/config.h"
#include "model/scrape.h"

enum identity_how { IDENTITIES_USER, IDENTITIES_GROUP, IDENTITIES_HASHED, IDENTITIES_OFF };

struct identity_names {
	enum identity_how how;
	int64_t max; /* users with a series of their own */
	const struct config_groups *groups;
	char key[1024];
	size_t key_len;
};

/* Reads what [metrics] in gua.conf(5) says, and the key if one is needed. `how` is a word of
 * IDENTITY_WORDS; NULL: the one of the configuration, which must outlive *n. */
int identity_names_init(
	struct identity_names *n, const struct config *config, const char *how, struct err *e);

/* The name of a user at this place (see gua-store(5)). */
void identity_name(const struct identity_names *n, const char *user, int64_t place,
	char dst[IDENTITY_NAME_CAP]);

#endif

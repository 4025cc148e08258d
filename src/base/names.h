/* Gives numbers to names in the order in which they are first seen: the same name within the
 * same scope has the same number. */
#pragma once

#include "base/idmap.h"

struct name {
	const char *text;
	uint32_t scope;
};

/* Zero-initialise. */
struct names {
	struct arena texts;
	struct name *items;
	size_t n;
	struct idmap map; /* the number of a name, by the hash of its scope and text */
};

/* The number of a name, added when it is new; IDMAP_NONE when out of memory. */
uint32_t names_find(struct names *n, uint32_t scope, const char *text, struct err *e);
/* names_get(): the number of a name, or IDMAP_NONE. names_has(): whether it has one. */
uint32_t names_get(const struct names *n, uint32_t scope, const char *text);
bool names_has(const struct names *n, uint32_t scope, const char *text);
void names_finish(struct names *n);

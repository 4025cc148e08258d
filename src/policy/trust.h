/* Whether a configuration may end sessions: every file of it, and its directory, must have
 * belonged to root when it was read, and nobody else may write to them. */
#ifndef GUA_POLICY_TRUST_H
#define GUA_POLICY_TRUST_H

#include "base/err.h"
#include "config/settings.h"

/* 0, or ERR_WORLD with the reason. Lines that are not from files (--set) are not trusted. */
int trust_settings(const struct settings *s, struct err *e);

/* A hash of the settings, for the log: 16 hexadecimal digits. */
enum { TRUST_HASH_CAP = 17 };
void trust_hash(char dst[TRUST_HASH_CAP], const struct settings *s);

#endif

/* The names and secrets of those who may ask: a file with lines NAME:SECRET. A client sends the
 * secret as a bearer token, or name and secret as basic authentication. */
#ifndef GUA_SERVE_SECRETS_H
#define GUA_SERVE_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { SECRET_NAME_CAP = 64, SECRET_LEAST = 16 };

struct secrets; /* never changes after it was read */

/* Reads the file. Refuses one that other users may read or write, one without a line, and a
 * secret that is too short. `*s` is the caller's, to secrets_free(). */
int secrets_read(struct secrets **s, const char *path, struct err *e);
/* The same for text that is in memory; `name` is for messages. */
int secrets_parse(
	struct secrets **s, const char *name, const char *bytes, size_t len, struct err *e);
void secrets_free(struct secrets *s);

/* Whether an Authorization header (NULL: none was sent) has a secret; copies its name. How long
 * this takes does not depend on how much of a secret is right. */
bool secrets_allow(
	const struct secrets *s, const char *authorization, char name[SECRET_NAME_CAP]);

/* Fails unless the file is a regular one that only its owner, root, or the group of it may
 * read, and only its owner may write: for secrets and keys. Reads it into *bytes, to free(). */
int secret_file_read(const char *path, char **bytes, size_t *len, struct err *e);

#endif

/* The names and secrets of the clients that may send requests: a file with lines NAME:SECRET. A
 * client sends the secret as a bearer token, or name and secret as basic authentication. */
#pragma once

#include "base/base.h"

enum { SECRET_NAME_CAP = 64, SECRET_LEAST = 16 };

struct secrets; /* never changes after it is read */

/* Reads the file. Refuses a file that other users may read or write, an empty one, and a
 * secret that is too short. The caller frees `*s` with secrets_free(). */
int secrets_read(struct secrets **s, const char *path, struct err *e);
/* The same for text in memory; `name` is for messages. */
int secrets_parse(
	struct secrets **s, const char *name, const char *bytes, size_t len, struct err *e);
void secrets_free(struct secrets *s);

/* Whether an Authorization header (NULL: none was sent) has a valid secret; copies the name
 * of its owner. The time that this takes does not depend on how much of a secret is right. */
bool secrets_allow(
	const struct secrets *s, const char *authorization, char name[SECRET_NAME_CAP]);

/* Reads a file with secrets or keys into *bytes, to free(). Fails unless it is a regular
 * file that only its owner, root or its group may read, and only its owner may write. */
int secrets_read_file(const char *path, char **bytes, size_t *len, struct err *e);

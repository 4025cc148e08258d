/* A small JSON writer into a string: numbers keep the decimals that they have, unknown is null.
 */
#ifndef GUA_RENDER_JSON_H
#define GUA_RENDER_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Zero-initialise, then set `out` and `lines`. */
struct json {
	struct str *out;
	int lines; /* levels whose items get a line each; deeper ones share it */
	int depth; /* open objects and arrays */
	bool more; /* the innermost has an item already */
};

/* Opens an object '{' or an array '['; `key` is NULL in an array and at the top. */
void json_open(struct json *j, const char *key, char kind);
void json_close(struct json *j, char kind);
/* A number rounded to `decimals`, without trailing zeros; NAN and infinities become null. */
void json_number(struct json *j, const char *key, double number, int decimals);
/* A text (UTF-8), or null when it is NULL. */
void json_text(struct json *j, const char *key, const char *text);
void json_bool(struct json *j, const char *key, bool value);
/* A moment as ISO 8601 in UTC, or null when it is negative. */
void json_moment(struct json *j, const char *key, int64_t ms);

/* A number as JSON and CSV write it; "" when it is not finite. */
void number_text(char *dst, size_t cap, double number, int decimals);

#endif

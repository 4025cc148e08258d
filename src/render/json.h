/* A small JSON writer. Numbers keep their decimals; unknown values are null. */
#pragma once

#include "base/base.h"

/* Zero-initialise, then set `out` and `lines`. */
struct json {
	struct str *out;
	int lines; /* items down to this level are on lines of their own; deeper ones share */
	int depth; /* number of open objects and arrays */
	bool more; /* the innermost one already has an item */
};

/* Opens an object '{' or an array '['; `key` is NULL in an array and at the top level. */
void json_open(struct json *j, const char *key, char kind);
void json_close(struct json *j, char kind);
/* Adds a number rounded to `decimals`, without trailing zeros; NAN and infinity are null. */
void json_number(struct json *j, const char *key, double number, int decimals);
/* Adds a whole number, or null if it is negative. */
void json_known(struct json *j, const char *key, int64_t number);
/* Adds a number with all digits that it needs to be read back unchanged. */
void json_exact(struct json *j, const char *key, double number);
/* Adds a text (UTF-8), or null if it is NULL. */
void json_text(struct json *j, const char *key, const char *text);
/* Adds a text, or null if it is NULL or "". */
void json_label(struct json *j, const char *key, const char *text);
void json_bool(struct json *j, const char *key, bool value);
/* Adds a moment as ISO 8601 in UTC, or null if it is negative. */
void json_moment(struct json *j, const char *key, int64_t ms);

/* Formats a number for JSON and CSV; "" if it is not finite. */
void json_number_text(char *dst, size_t cap, double number, int decimals);

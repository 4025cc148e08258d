/* The texts that describe a process: their sizes, and a part of one. Longer texts are cut. */
#ifndef GUA_PROC_TEXT_H
#define GUA_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum {
	USER_CAP = 64,
	COMMAND_CAP = 256,
	LABEL_CAP = 128,
	TAG_CAP = 64,	  /* of a tag, an account, a python environment */
	LOGIN_CAP = 16,	  /* of what started a process */
	SESSION_CAP = 32, /* of the number of a login session */
	BOOT_ID_CAP = 40,
};

/* A part of the bytes of a file; it is not terminated. */
struct piece {
	const char *at;
	size_t len;
};

/* Matches a name with a '*' as its first or last character at most, which matches anything. */
bool piece_is_like(struct piece text, const char *pattern);
/* The last part of a path. Slashes after it do not count. */
struct piece piece_basename(struct piece path);
/* The path without its last part; an empty one if there is no other. */
struct piece piece_directory(struct piece path);

#endif

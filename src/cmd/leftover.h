/* What a program that could not begin has made on the way: files, and the directories that they
 * are in. It is taken away again, so that nothing is there that was not before. */
#ifndef GUA_CMD_LEFTOVER_H
#define GUA_CMD_LEFTOVER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct leftover {
	char path[PATH_MAX];
	bool fresh;  /* the file was not there */
	size_t kept; /* length of the deepest directory of the path that was */
};

/* Looks before a file with this absolute path is made. */
void leftover_note(struct leftover *l, const char *path);
/* Removes the file and the directories above it that were not there; a directory that somebody
 * else uses by now stays. */
void leftover_remove(const struct leftover *l);

#endif

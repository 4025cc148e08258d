/* Removes the files and directories that a program created before its start failed, so that it
 * leaves nothing behind. */
#ifndef GUA_CMD_SHARE_LEFTOVER_H
#define GUA_CMD_SHARE_LEFTOVER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct leftover {
	char path[PATH_MAX];
	bool fresh;  /* the file did not exist */
	size_t kept; /* length of the part of the path that existed */
};

/* Notes what exists of this absolute path, before the file is created. */
void leftover_note(struct leftover *l, const char *path);
/* Removes the file and the directories above it that did not exist before. A directory that is
 * not empty stays. */
void leftover_remove(const struct leftover *l);

#endif

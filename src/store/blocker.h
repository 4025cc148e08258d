/* Names the process whose lock keeps the recorder from writing. Every program that may read the
 * store may also lock it: SQLite's readers share the -shm file with the writer, and a read lock
 * on its first bytes is enough to stop all writing. That cannot be prevented, so it is made
 * visible. */
#ifndef GUA_STORE_BLOCKER_H
#define GUA_STORE_BLOCKER_H

#include "base/err.h"

struct store;

enum blocked {
	BLOCKS_WRITING, /* no transaction can begin */
	BLOCKS_FOLDING, /* the -wal file cannot start again from its beginning */
};

/* Appends " (pid N, uid U, NAME)" to the error if a process can be found that holds such a
 * lock. */
void blocker_name(struct store *s, enum blocked what, struct err *e);

#endif

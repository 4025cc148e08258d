/* The recorder's lock: one recorder per store. It is a POSIX record lock on STORE.lock, which
 * only the recorder's user may open; a lock is never stale. What other users may know about the
 * recorder is in the status file (statusfile.h). */
#pragma once

#include "base/base.h"

/* Writes the path of the file beside the store that ends in `suffix`. A symbolic link to the
 * store is followed, so that all names of a store have the same files. */
int lock_beside(char *path, size_t cap, const char *db, const char *suffix, struct err *e);
/* Whether to trust a file at `path`, beside the store, of this user. Root, the owner of the
 * store and the owner of its directory are trusted: they can replace the store itself. */
bool lock_trusts(uid_t uid, const char *db, const char *path);
/* Whether only its owner and root can change the store and what is beside it; *owner is that
 * owner. */
bool lock_protects(const char *db, uid_t *owner);
/* Refuses a store in a sticky directory such as /tmp if another user has put a file beside it
 * that SQLite would use: the pages in a -wal or -journal file replace those of the store. In
 * other directories, users who can make files can replace the store as well. */
int lock_check_logs(const char *db, struct err *e);
/* Takes the lock of the store at `db` for this process; *fd holds it until the process ends.
 * ERR_WORLD, with the pid, when another recorder has it; ERR_WORLD also when the lock file does
 * not belong to this user. ERR_BUSY when the disk is full. */
int lock_take(const char *db, int *fd, struct err *e);
/* Locks one byte of the store itself, open as `fd`, until that descriptor is closed: this also
 * detects a recorder that opened the store through a hard link and so has another STORE.lock.
 * ERR_WORLD when there is one; does nothing on a file system without such locks. */
int lock_store(int fd, const char *db, struct err *e);

/* Names the process whose lock keeps the recorder from writing. Every program that may read the
 * store may also lock it: SQLite's readers share the -shm file with the writer, and a read lock
 * on its first bytes stops all writing. That cannot be prevented, so it is reported. */

struct store;

enum blocked {
	BLOCKS_WRITING, /* no transaction can begin */
	BLOCKS_FOLDING, /* the -wal file cannot be restarted from its beginning */
};

/* Appends " (pid N, uid U, NAME)" to the error if a process is found that holds such a lock. */
void lock_name_blocker(struct store *s, enum blocked what, struct err *e);

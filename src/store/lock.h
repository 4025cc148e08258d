/* The recorder's lock: one recorder a store. It is a POSIX record lock on STORE.lock, so the
 * kernel knows who holds it: nothing is ever stale, and `gua status` and `gua stop` ask the
 * kernel for the pid. The file's text tells the faults in force. */
#ifndef GUA_STORE_LOCK_H
#define GUA_STORE_LOCK_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/fault.h"

#define LOCK_MAX_FAULTS 32
#define LOCK_TEXT_CAP 16384
/* What the file always has, also when the disk is full: just then there is a fault to tell. */
#define LOCK_ROOM 4096

/* Takes the lock of the store at `db` for this process, until it ends; *fd keeps it. ERR_WORLD
 * when another recorder has it, naming its pid. */
int lock_take(const char *db, int *fd, struct err *e);

/* Locks one byte of the store itself, open as `fd`, until that descriptor is closed: finds
 * another recorder also through a hard link, where there is another STORE.lock. ERR_WORLD when
 * there is one; where the file system has no such locks, nothing happens. */
int lock_store(int fd, const char *db, struct err *e);

/* The holder has no pid here: it is outside of this container, or on another host. */
#define LOCK_ELSEWHERE (-1)

/* Who holds the lock of `db`: a pid, LOCK_ELSEWHERE, or 0 when nobody does. `text` (of
 * LOCK_TEXT_CAP bytes, may be NULL) gets what the holder published. */
int lock_holder(const char *db, pid_t *pid, char *text, struct err *e);

/* Whether somebody holds it, wherever that one's pid is known: 1, 0, or -1 when there is no
 * lock file, it cannot be read, or is not on a disk of this host. Asks the kernel, waits for
 * nobody and changes nothing. */
int lock_is_held(const char *db);

/* Publishes the faults in force, "SINCE_MS TEXT" a line; nothing happens when fd is -1. */
void lock_publish(int fd, const struct fault *const *faults, size_t n);

#endif

/* The recorder's lock: one recorder a store. It is a POSIX record lock on STORE.lock, so the
 * kernel knows which process holds it. A lock is never stale, and `gua status` and `gua stop`
 * ask the kernel for the pid. The text in the file lists the current faults. */
#ifndef GUA_STORE_LOCK_H
#define GUA_STORE_LOCK_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/fault.h"

#define LOCK_MAX_FAULTS 32
#define LOCK_TEXT_CAP 16384
/* The smallest size of the file. It is allocated in advance, because a full disk is itself a
 * fault to report. */
#define LOCK_ROOM 4096

/* Takes the lock of the store at `db` for this process; *fd holds it until the process ends.
 * ERR_WORLD, with the pid, when another recorder has it. */
int lock_take(const char *db, int *fd, struct err *e);

/* Locks one byte of the store itself, open as `fd`, until that descriptor is closed: this also
 * detects a recorder that opened the store through a hard link and so has another STORE.lock.
 * ERR_WORLD when there is one; does nothing on a file system without such locks. */
int lock_store(int fd, const char *db, struct err *e);

/* The holder's pid is not visible here: it runs outside this container, or on another host. */
#define LOCK_ELSEWHERE (-1)

/* The process that holds the lock of `db`: a pid, LOCK_ELSEWHERE, or 0 when no process does.
 * `text` (of LOCK_TEXT_CAP bytes, may be NULL) gets what the holder published. */
int lock_holder(const char *db, pid_t *pid, char *text, struct err *e);

/* Whether a process holds the lock, even one with a pid that is not visible here: 1, 0, or -1
 * when there is no lock file, it cannot be read, or it is not on a disk of this host. Asks the
 * kernel, does not wait and changes nothing. */
int lock_is_held(const char *db);

/* Publishes the current faults, one "SINCE_MS TEXT" per line; does nothing when fd is -1. */
void lock_publish(int fd, const struct fault *const *faults, size_t n);

#endif

/* Finds the process that has locked a file, and says who it is. The kernel answers in two ways:
 * fcntl(2) names the process of a record lock, /proc/locks that of a flock(2). */
#ifndef GUA_PROC_LOCKS_H
#define GUA_PROC_LOCKS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/proc_parse.h"

/* A pid that is not visible here: the process is outside of this container, or on another
 * host. */
#define LOCK_UNSEEN (-1)

/* The process whose record lock conflicts with `wanted` on the open file: its pid, LOCK_UNSEEN,
 * or 0: none. False: the kernel cannot tell. */
bool proc_record_lock(int fd, const struct flock *wanted, pid_t *pid);

/* A file, as the kernel names it in /proc/locks. */
struct proc_file {
	dev_t device;
	ino_t inode;
};

/* The pid in the first line of /proc/locks that is a flock(2) on the file; -1: there is none.
 */
int64_t proc_parse_locks(const char *bytes, size_t len, const struct proc_file *file);

/* The process that took the flock(2) on a file. It may have ended, and its children may hold
 * the lock. -1: no lock, or its process is not visible here. */
int64_t proc_lock_pid(int proc, const struct proc_file *file);

/* Who a process is that has locked a file. */
struct lock_owner {
	int64_t uid;
	uint64_t start_ticks;
	char comm[PROC_COMM_CAP + 1];	  /* its name as it is */
	char name[4 * PROC_COMM_CAP + 1]; /* the same, safe to show */
};

/* False: it has ended, or cannot be read. */
bool proc_lock_owner(struct lock_owner *o, int proc, int64_t pid);

#endif

/* Finds the process that holds a lock on a file, by /proc/locks. */
#ifndef GUA_PROC_LOCKS_H
#define GUA_PROC_LOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A file, as the kernel names it there. */
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

#endif

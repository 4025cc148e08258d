/* Reads the files of one process below /proc. Nothing else in the tree opens them, so that
 * all stages have the same answer, and so that this can run in a process of its own: functions
 * take an open /proc and a pid and return plain values; none keeps anything.
 *
 * `proc` and `pid` name a process in one of two ways: an open /proc (proc_open) and its number;
 * or a handle of that process (proc_open_process) and 0. A pid may be another process' at the
 * next call; a handle fails then. Functions return 0, or -1 with errno: ENOENT or ESRCH when it
 * has ended, EACCES or EPERM when it may not be read, ENODATA when the bytes make no sense. */
#ifndef GUA_PROC_PROC_H
#define GUA_PROC_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/parse.h"

/* Opens ROOT/proc: `root` "" is this host's, else that of a recorded tree. Returns 0 or an
 * error's code; the caller closes it with close(2). */
int proc_open(int *proc, const char *root, struct err *e);
/* Opens the directory of one process, for reading several files of the same life. */
int proc_open_process(int proc, uint32_t pid);

int proc_read_stat(int proc, uint32_t pid, struct proc_stat *stat);
/* For callers that read it many times: opens the file, which stays with the life that it was
 * opened for, and reads it again from its start, with one call. */
int proc_open_stat(int proc, uint32_t pid);
int proc_read_stat_again(int stat_fd, struct proc_stat *stat);
/* The start time alone, which tells one life of a pid from the next; 0: not to be had. */
uint64_t proc_start_ticks(int proc, uint32_t pid);

/* All of `status` is -1 when it cannot be read. */
int proc_read_status(int proc, uint32_t pid, struct proc_status *status);
int proc_read_rollup(int proc, uint32_t pid, struct proc_rollup *rollup);
int proc_read_io(int proc, uint32_t pid, struct proc_io *io);

/* The uid that logged in, which survives su and sudo; -1: nobody did (services, containers), or
 * it cannot be read. */
int64_t proc_read_login_uid(int proc, uint32_t pid);

/* More of cmdline than this says nothing new: it is for command.h, jupyter.h and for people. */
enum { PROC_ARGUMENTS_CAP = 16 * 1024 };

/* The bytes of cmdline, cgroup and environ, as far as they fit, terminated; how many, or -1
 * with errno. An environment holds secrets: wipe it after use. */
ssize_t proc_read_arguments(int proc, uint32_t pid, char *dst, size_t cap);
ssize_t proc_read_cgroup(int proc, uint32_t pid, char *dst, size_t cap);
ssize_t proc_read_environment(int proc, uint32_t pid, char *dst, size_t cap);

#endif

/* Reads the files of one process below /proc. No other module opens them, so all stages get the
 * same answer, and this can run in a process of its own: functions take an open /proc and a pid
 * and return plain values; none keeps state.
 *
 * `proc` and `pid` name a process in one of two ways: an open /proc (proc_open) and its number;
 * or a handle of that process (proc_open_process) and 0. A pid may belong to another process at
 * the next call; a handle fails then. Functions return 0, or -1 with errno: ENOENT or ESRCH
 * when the process has ended, EACCES or EPERM when it may not be read, ENODATA when the bytes
 * cannot be parsed.
 *
 * For rollup, io, arguments and environment the kernel takes a lock of the process. Another
 * part of the kernel may hold it for ever (a page of a file system that does not answer, a
 * driver that hangs), and then reading blocks for ever too, in a state that no signal ends. So
 * programs read these through proc/reader.h. The other files do not block. */
#ifndef GUA_PROC_PROC_H
#define GUA_PROC_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/proc_parse.h"

/* Opens ROOT/proc: `root` is "" for this host, else a recorded tree. Returns 0 or an error
 * code; the caller closes *proc with close(2). */
int proc_open(int *proc, const char *root, struct err *e);
/* Opens the directory of one process, for reading several files of the same life. */
int proc_open_process(int proc, uint32_t pid);

int proc_read_stat(int proc, uint32_t pid, struct proc_stat *stat);
/* For callers that read stat many times: opens the file, which stays with the life that it was
 * opened for, and reads it again from its start with one call. */
int proc_open_stat(int proc, uint32_t pid);
int proc_read_stat_again(int stat_fd, struct proc_stat *stat);
/* Reads the resident pages from statm; -1: not available. They are exact. The number in stat is
 * not: since Linux 6.2 each processor counts for itself, and stat leaves out what it has not
 * handed over yet, which is megabytes on a host with many processors. (statm and status are
 * exact too only in kernels from 2025 on. Before, only smaps is, which may block.) */
int64_t proc_read_resident(int proc, uint32_t pid);
/* Reads only the start time, which differs between two lives of one pid; 0: not available. */
uint64_t proc_start_ticks(int proc, uint32_t pid);

/* All fields of `status` are -1 when it cannot be read. */
int proc_read_status(int proc, uint32_t pid, struct proc_status *status);
int proc_read_rollup(int proc, uint32_t pid, struct proc_rollup *rollup);
int proc_read_io(int proc, uint32_t pid, struct proc_io *io);

/* Reads the login uid, which su and sudo do not change; -1: there is none (services,
 * containers), or it cannot be read. A process that has none may choose one: owner.c. */
int64_t proc_read_login_uid(int proc, uint32_t pid);

/* Returns 1 when the process is in a user namespace of its own (a rootless container), 0 when
 * it is in that of the host, -1 when that is not known. */
int proc_read_user_namespace(int proc, uint32_t pid);

/* The longest part of cmdline that command.h, jupyter.h and people need. */
enum { PROC_ARGUMENTS_CAP = 16 * 1024 };

/* Read the bytes of cmdline, cgroup and environ, as many as fit, and terminate them. Return how
 * many, or -1 with errno. An environment holds secrets: wipe it after use. */
ssize_t proc_read_arguments(int proc, uint32_t pid, char *dst, size_t cap);
ssize_t proc_read_cgroup(int proc, uint32_t pid, char *dst, size_t cap);
ssize_t proc_read_environment(int proc, uint32_t pid, char *dst, size_t cap);
/* Reads the path of the program file (/proc/PID/exe), as much as fits; not terminated. Returns
 * how many bytes, or -1 with errno. It needs the same rights as the environment. */
ssize_t proc_read_program(int proc, uint32_t pid, char *dst, size_t cap);
/* Whose the program file is, and who may write to it. It needs the same rights. */
int proc_stat_program(int proc, uint32_t pid, struct stat *st);

/* A short path of a name in an open directory of this process, for calls that take no
 * directory. */
void proc_name_in(char *dst, size_t cap, int directory, const char *name);

#endif

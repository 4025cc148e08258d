/* Reads the files of /proc: those of one process, and those of the host. No other module opens
 * them, so all stages get the same answer, and all reading can be done in a process of its own:
 * functions take an open /proc and a pid and return plain values; none keeps state.
 *
 * `proc` and `pid` name a process in one of two ways: an open /proc (proc_open) and its number;
 * or a handle of that process (proc_open_process) and 0. A pid may belong to another process at
 * the next call; a handle fails then. Functions return 0, or -1 with errno: ENOENT or ESRCH
 * when the process has ended, EACCES or EPERM when it may not be read, ENODATA when the bytes
 * cannot be parsed.
 *
 * For rollup, io, arguments and environment the kernel takes a lock of the process. Another
 * part of the kernel may hold it for ever (a page of a file system that does not answer, a
 * driver that hangs). Then reading blocks for ever too, in a state that no signal ends. So
 * programs read these through proc/reader.h. The other files do not block. */
#pragma once

#include "base/idmap.h"
#include "proc/proc_parse.h"

/* Opens ROOT/proc: `root` is "" for this host, else a recorded tree. Returns 0 or an error
 * code; the caller closes *proc with close(2). */
int proc_open(int *proc, const char *root, struct err *e);
/* Opens the directory of one process, for reading several files of the same life. */
int proc_open_process(int proc, uint32_t pid);

int proc_read_stat(int proc, uint32_t pid, struct proc_stat *stat);
/* For callers that read a file many times: opens it ("stat", "statm"), and reads it again from
 * its start with one call. The file stays with the life for which it was opened. Files of the
 * whole host ("meminfo", "stat", "loadavg") have no pid: 0. Returns -1 with errno on failure;
 * reading from -1 fails. */
int proc_open_file(int proc, uint32_t pid, const char *name);
int proc_read_stat_again(int stat_fd, struct proc_stat *stat);
/* Reads the resident pages from statm; -1: not available. They are more exact than the number
 * in stat: since Linux 6.2 each processor counts for itself, and stat leaves out what a
 * processor has not added yet, which is megabytes on a host with many processors. (statm and
 * status are fully exact only in kernels from 2025 on. Before, only smaps is, which may block.)
 */
int64_t proc_read_resident(int proc, uint32_t pid);
int64_t proc_read_resident_again(int statm_fd);
/* Reads only the start time, which differs between two lives of one pid; 0: not available. */
uint64_t proc_start_ticks(int proc, uint32_t pid);

/* All fields of `status` are -1 when it cannot be read. */
int proc_read_status(int proc, uint32_t pid, struct proc_status *status);
int proc_read_rollup(int proc, uint32_t pid, struct proc_rollup *rollup);
int proc_read_io(int proc, uint32_t pid, struct proc_io *io);

/* Reads the login uid, which su and sudo do not change; -1: there is none (services,
 * containers), or it cannot be read. A process that has none may choose one: see owners.c. */
int64_t proc_read_login_uid(int proc, uint32_t pid);

/* Returns 1 when the process is in a user namespace of its own (a rootless container), 0 when
 * it is in that of the host, -1 when that is not known. */
int proc_read_user_namespace(int proc, uint32_t pid);

/* How much of cmdline is read: enough for command.h and for people. */
enum { PROC_ARGUMENTS_CAP = 16 * 1024 };

/* Read the bytes of cmdline, cgroup and environ, as many as fit, and terminate them. Return how
 * many, or -1 with errno. An environment holds secrets: wipe it after use. */
ssize_t proc_read_arguments(int proc, uint32_t pid, char *dst, size_t cap);
ssize_t proc_read_cgroup(int proc, uint32_t pid, char *dst, size_t cap);
ssize_t proc_read_environment(int proc, uint32_t pid, char *dst, size_t cap);
/* Reads the path of the program file ("exe") or of the working directory ("cwd"), as much as
 * fits; not terminated. Returns how many bytes, or -1 with errno. It needs the same rights as
 * the environment. */
ssize_t proc_read_link(int proc, uint32_t pid, const char *name, char *dst, size_t cap);
/* Finds who owns the program file and who may write to it. It needs the same rights. */
int proc_stat_program(int proc, uint32_t pid, struct stat *st);

/* Writes a short path of a name in an open directory of this process, for calls that take only
 * a path. */
void proc_name_in(char *dst, size_t cap, int directory, const char *name);

/* From here on: files of the whole host: memory, CPU time, processes, boot. */

/* Files that the tracker reads at each look, with proc_open_file(). */
bool proc_read_memory(int fd, struct proc_memory *memory);
bool proc_read_cpu(int fd, struct proc_cpu *cpu);
/* The pid that the kernel gave out last, or -1. */
int64_t proc_read_newest(int fd);

/* The processes of the host: opens the list (NULL with errno), and takes the next pid from it
 * (0: the end). The caller closes it with closedir(3). */
DIR *proc_open_list(int proc);
uint32_t proc_next_listed(DIR *list);

/* When the host was booted, unix milliseconds, or -1. It changes when the wall clock is set.
 * `real`: /proc is this host's; its clocks are finer than the file, which has seconds. */
int64_t proc_boot_ms(int proc, bool real);

/* Writes the id of this boot, escaped; "" when it cannot be read. */
void proc_read_boot_id(int proc, char *dst, size_t cap);

/* The process that has locked a file. The kernel answers in two ways: fcntl(2) names the
 * process of a record lock, /proc/locks that of a flock(2). */

/* A pid that is not visible here: the process is outside this container, or on another host. */
#define LOCK_UNSEEN (-1)

/* Finds the process whose record lock conflicts with `wanted` on the open file: its pid,
 * LOCK_UNSEEN, or 0: none. False: the kernel cannot tell. */
bool proc_record_lock(int fd, const struct flock *wanted, pid_t *pid);

/* The pid in the first line of /proc/locks that is a flock(2) on the file; -1: there is none.
 * Cuts the text into lines. */
int64_t proc_parse_locks(char *text, const struct file_id *file);

/* The process that took the flock(2) on a file. It may have ended, and its children may hold
 * the lock. -1: no lock, or its process is not visible here. */
int64_t proc_lock_pid(int proc, const struct file_id *file);

/* Adds the inodes of all files, of any device, that have a flock(2). False: out of memory, or
 * the list cannot be read. */
bool proc_locked_inodes(int proc, struct idmap *inodes);

/* A process that has locked a file. */
struct lock_owner {
	int64_t uid;
	uint64_t start_ticks;
	char comm[PROC_COMM_CAP + 1];	  /* its name, not escaped */
	char name[4 * PROC_COMM_CAP + 1]; /* the same, safe to show */
};

/* False: the process has ended, or cannot be read. */
bool proc_lock_owner(struct lock_owner *o, int proc, int64_t pid);

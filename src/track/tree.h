/* The process tree that is followed: its members, how new ones are found, and what they used.
 *
 * A member is a life, (pid, start time): once found it stays a member, even if its parent
 * changes. New processes are found by their number. The kernel gives out pids in ascending
 * order, so processes that started since the last look have pids between the newest pid then
 * and the newest now. A thousand processes from before cost nothing.
 *
 * Two other ways were not used. PID/task/TID/children, if the kernel has it, costs a file for
 * each thread of each member. A cgroup of its own needs a delegated cgroup v2 and root or
 * systemd's help, and counts each page once only within itself.
 *
 * Processes that the owner adopts as a subreaper are found as its children. A process is missed
 * only if its parent started and ended between two looks and there is no subreaper. */
#ifndef GUA_TRACK_TREE_H
#define GUA_TRACK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "track/files.h"
#include "track/member.h"

/* Files of members that are kept open: each saves two calls per look. */
enum { TREE_OPEN_FILES = 64 };

struct tree {
	int proc_fd, newest_fd; /* /proc, and the file of the newest pid; or -1 */
	pid_t owner;		/* its children are members too (subreaper); or 0 */
	bool real;		/* /proc is this host's: CPU clocks of processes can be read */
	double tick_s, page_bytes;
	double start_s;			 /* boot time at which tracking began */
	const struct track_files *files; /* NULL: read directly */
	const pid_t *excluded;		 /* never members */
	size_t n_excluded;
	struct member *members; /* parents before children; the first process is members[0] */
	size_t n, cap;
	uint32_t *by_pid;		   /* hash: index plus one; 2 * cap of them */
	size_t n_open;			   /* files kept open */
	int64_t newest_pid, newest_before; /* at the last look and at the previous one */
	int64_t seen, alive, peak_alive;
	bool changed;		    /* a process started or ended since memory.c cleared it */
	bool io_known;		    /* some member's I/O could be read */
	bool failed;		    /* out of memory: a process was not added */
	double forgotten[COUNTERS]; /* of ended members without a parent that were forgotten */
	int64_t n_forgotten;
	struct track_process others; /* sums of all that were forgotten */
};

/* Adds `pid` as the first member and, unless `fresh`, everything that is below it now. Fresh:
 * the owner has just started it, and everything below it has a newer pid. */
int tree_open(struct tree *t, const char *root, pid_t pid, bool fresh, struct err *e);
void tree_close(struct tree *t);

/* Finds new members and reads all members; times are seconds since the tracking began. */
void tree_look(struct tree *t, double now_s);
/* Reads one member again: it has ended and will be waited for, or may have changed. */
void tree_read_again(struct tree *t, pid_t pid, double now_s);
/* The owner has waited for `pid`; returns NO_MEMBER when it is not a member. */
uint32_t tree_reaped(struct tree *t, pid_t pid, const struct rusage *usage, double now_s);

/* Whether it is a process that samples for a tracker. */
bool tree_is_helper(const struct tree *t, pid_t pid);

/* Returns the member with this pid, a living one before those that ended, or NO_MEMBER. */
uint32_t tree_find(const struct tree *t, pid_t pid);

/* Sums what all members have used: each second counts once, even if a parent has waited for it.
 */
void tree_sum(struct tree *t, double sums[TRACK_GROUPS][COUNTERS]);

/* For tree.c and sums.c: removes a member; what it used goes to its parent. */
void tree_forget(struct tree *t, uint32_t i);

#endif

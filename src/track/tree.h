/* The process tree that is followed: its members, how new ones are found, and what they used.
 *
 * A member is a life, (pid, start time): once found it stays, whoever its parent becomes. New
 * processes are found by their number: the kernel hands pids out in ascending order, so those
 * that came since the last look lie between the newest pid then and now, and a thousand
 * processes that were there before cost nothing. (PID/task/TID/children, where the kernel has
 * it, costs a file for each thread of each member; a cgroup of its own needs a delegated
 * cgroup v2 and root or systemd's help, and counts no page twice only within itself: both were
 * left out.) What the owner adopts as a subreaper is found as its child. Not found is only a
 * process whose parent was born and ended between two looks, without a subreaper. */
#ifndef GUA_TRACK_TREE_H
#define GUA_TRACK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "track/member.h"

/* Files of members that are kept open: each spares two calls a look. */
enum { TREE_OPEN_FILES = 64 };

struct tree {
	int proc_fd, newest_fd; /* /proc, and the file of the newest pid; or -1 */
	pid_t owner;		/* whose children are members too (subreaper), or 0 */
	bool real;		/* /proc is this host's: CPU clocks of processes may be asked */
	double tick_s, page_bytes;
	double start_s;	       /* boot time at which tracking began */
	const pid_t *excluded; /* never members */
	size_t n_excluded;
	struct member *members; /* parents before children; the first process is members[0] */
	size_t n, cap;
	uint32_t *by_pid;		   /* hash: place plus one; 2 * cap of them */
	size_t n_open;			   /* files kept open */
	int64_t newest_pid, newest_before; /* at the last look and at the one before */
	int64_t seen, alive, peak_alive;
	bool changed;		    /* a process came or went since memory.c cleared it */
	bool io_known;		    /* some member's I/O could be read */
	bool failed;		    /* out of memory: a process was not added */
	double forgotten[COUNTERS]; /* of ended members without a parent that were forgotten */
	int64_t n_forgotten;
	struct track_process others; /* sums of all that were forgotten */
};

/* Takes `pid` in as the first member and, unless `fresh`, everything that is below it now.
 * Fresh: the owner has just started it, and everything below it has a newer pid. */
int tree_open(struct tree *t, const char *root, pid_t pid, bool fresh, struct err *e);
void tree_close(struct tree *t);

/* Finds new members and reads all; times are seconds since the tracking began. */
void tree_look(struct tree *t, double now_s);
/* Reads one member again: it has ended and is about to be waited for, or may have moved. */
void tree_read_again(struct tree *t, pid_t pid, double now_s);
/* The owner has waited for `pid`; NO_MEMBER when it is none. */
uint32_t tree_reaped(struct tree *t, pid_t pid, const struct rusage *usage, double now_s);

/* The member with this pid, the living one before those that ended, or NO_MEMBER. */
uint32_t tree_find(const struct tree *t, pid_t pid);

/* What all members have used: each second counts once, also if a parent has waited for it. */
void tree_sum(struct tree *t, double sums[TRACK_GROUPS][COUNTERS]);

/* For tree.c and sums.c: takes a member out; what it used goes to its parent. */
void tree_forget(struct tree *t, uint32_t i);

#endif

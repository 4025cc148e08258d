/* The process tree that is followed: how its files are read, its members, how new ones are
 * found, and what they used. */
#pragma once

#include <sys/resource.h>

#include "base/idmap.h"
#include "model/process.h"
#include "proc/mappings.h"
#include "proc/proc_parse.h"
#include "track/result.h"

/* How a tracker reads the files of processes that may block for ever (see proc/proc.h). A
 * program has a process for them, proc/reader.h; libgua, which is a guest in another program,
 * reads them directly, in a thread or process that it can leave behind. */

/* The first four return -1 with errno: EBUSY when the process blocks or may block. They answer
 * for the life id->start_ticks only. */
struct reader; /* of proc/reader.h */
struct track_files {
	ssize_t (*arguments)(
		struct reader *r, const struct process_id *id, char *dst, size_t cap);
	int (*rollup)(
		struct reader *r, const struct process_id *id, struct proc_rollup *rollup);
	int (*mappings)(struct reader *r, const struct process_id *id, struct mappings *found);
	int (*io)(struct reader *r, const struct process_id *id, struct proc_io *io);
	/* CPU time that reading has taken in another process. */
	double (*cpu_s)(const struct reader *r);
	/* Whether the process is one of those that read. */
	bool (*owns)(const struct reader *r, pid_t pid);
	struct reader *reader;
};

/* A command whose work does not run below it in the process tree: another program starts it, on
 * this host or on another one. What the tree used is then not what the work used. */
struct elsewhere {
	const char *program;
	const char *verbs;  /* one of these words is among its arguments; NULL: any */
	const char *unless; /* not with this option; NULL: none */
	const char *use;    /* how to track the work */
	bool in_job;	    /* its work is in the cgroup of its Slurm job */
	bool of_shell; /* other programs have it as a part of them: only what a user or a script
			  started counts */
};

/* One process of the tree, as the parts of a tracker know it. */

#define NO_MEMBER UINT32_MAX

/* What is counted over a life: seconds, bytes, and numbers of events. */
enum counter {
	COUNT_USER,
	COUNT_SYSTEM,
	COUNT_MINOR,
	COUNT_MAJOR,
	COUNT_VOLUNTARY,
	COUNT_INVOLUNTARY,
	COUNT_READ,
	COUNT_WRITTEN,
	COUNTERS
};

struct member {
	struct track_process shown; /* its row of the result; peaks are -1 until known */
	uint32_t parent; /* index of the member that will wait for it, or NO_MEMBER */
	int stat_fd;	 /* or -1 */
	bool zombie;	 /* has ended, and its parent has not waited for it yet */
	bool gone;	 /* is no longer in /proc */
	bool reaped;	 /* exact[] is set */
	bool final_read; /* was read as a zombie: own[] and waited[] are final */
	int looks_gone;	 /* how many looks ago it disappeared */

	double before_user_s, before_system_s; /* what it had used when tracking began */
	double own[COUNTERS];		       /* last reading, without children */
	double waited[COUNTERS]; /* of children that it waited for; I/O: its own too */
	double exact[COUNTERS];	 /* from wait4(2): its own and waited together */
	double dead[COUNTERS]; /* last readings of ended members below it; set by tree_sum() */
	double folded[COUNTERS]; /* the part of dead[] from members that were forgotten */

	char comm[16]; /* its program's name as last read, not NUL-terminated */
	bool settled;  /* its command was read again: a new process may exec once more */
	int64_t threads, rss_bytes;		/* now */
	int64_t faults_at_resident, stat_pages; /* what stat said when rss_bytes was read */
	/* For memory.c. */
	bool rolled;			  /* roll is set */
	struct proc_rollup roll;	  /* last reading */
	int64_t peak_rss_bytes;		  /* VmHWM as last read, or -1 */
	int64_t peak_before_bytes;	  /* the part of it from before the tracking */
	int64_t explained_rss_bytes;	  /* the part of the peak that a rollup showed */
	int64_t faults, faults_at_status; /* pages faulted in; when status was last read */
	int64_t faults_at_roll;
	int64_t gpu_bytes; /* now, over all cards; -1 unknown; for gpu.c */
};

/* Raises a peak to the value, if that is higher. */
static inline void tree_raise(int64_t *peak, int64_t value)
{
	if (value > *peak)
		*peak = value;
}

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
 * The tasks of srun are not below it: slurmd starts them. Where they are in the same Slurm job
 * by their cgroup, they are members too, if they started after srun and are not in the cgroup
 * of the first process, where other commands of a batch script are.
 *
 * Processes that the owner adopts as a subreaper are found as its children. A process is missed
 * only if its parent started and ended between two looks and there is no subreaper. */

/* Files of members that are kept open: each saves two calls per look. */
enum { TREE_OPEN_FILES = 64 };
enum { TREE_CGROUP_CAP = 2048 };

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
	struct idmap by_pid;		   /* indexes of members; ended ones may share a pid */
	size_t n_open;			   /* files kept open */
	int64_t newest_pid, newest_before; /* at the last look and at the previous one */
	int64_t seen, alive, peak_alive;
	bool changed;  /* a process started or ended since memory.c cleared it */
	bool io_known; /* some member's I/O could be read */
	bool failed;   /* out of memory: a process was not added */
	const struct elsewhere *elsewhere; /* a member whose work is outside; or NULL */
	const struct elsewhere *launcher; /* a member whose work is in its Slurm job; or NULL */
	uint64_t launched_ticks;	  /* when the launcher started */
	bool launcher_is_new;		  /* its work may be among processes seen before */
	int64_t n_launched;		  /* members that were found by their job */
	char jobs[2][LABEL_CAP]; /* cgroup.h's names of the job: of the first process's cgroup,
				    and of its environment; or "" */
	char cgroup[TREE_CGROUP_CAP]; /* of the first process */
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

/* Sums what all members used: each second counts once, even if a parent waited for it. */
void tree_sum(struct tree *t, double sums[TRACK_GROUPS][COUNTERS]);
/* Removes a member; what it used goes to its parent. */
void tree_forget(struct tree *t, uint32_t i);
/* Converts the usage that wait4(2) reports. */
void tree_count_usage(double counters[COUNTERS], const struct rusage *usage);

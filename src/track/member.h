/* One process of the tree, as the parts of a tracker know it. */
#ifndef GUA_TRACK_MEMBER_H
#define GUA_TRACK_MEMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "proc/parse.h"
#include "track/result.h"

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

/* Converts the usage that wait4(2) reports. */
void counters_of_rusage(double counters[COUNTERS], const struct rusage *usage);
/* The member is older than the tracking: its use and its peak up to now do not count. */
void member_was_there(struct member *m);

#endif

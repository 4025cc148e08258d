/* One process of the tree, as the parts of a tracker know it. */
#ifndef GUA_TRACK_MEMBER_H
#define GUA_TRACK_MEMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "proc/parse.h"
#include "track/result.h"

#define NO_MEMBER UINT32_MAX

/* What is counted up over a life. Seconds, bytes, times. */
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
	bool zombie;	 /* has ended, and nobody has waited for it yet */
	bool gone;	 /* is not in /proc any more */
	bool reaped;	 /* exact[] is set */
	bool final_read; /* was read as a zombie: own[] and waited[] are its last */
	int looks_gone;	 /* how many looks ago it went */

	double before_user_s, before_system_s; /* what it had used when tracking began */
	double own[COUNTERS];		       /* last reading, without children */
	double waited[COUNTERS]; /* of children that it waited for; I/O: its own too */
	double exact[COUNTERS];	 /* of wait4(2): its own and waited together */
	double dead[COUNTERS]; /* of members below it that ended, as last read; by tree_sum() */
	double folded[COUNTERS]; /* the part of dead[] whose members were forgotten */

	char comm[16];		    /* its program's name as last read, not ended by zero */
	bool settled;		    /* was described again: a new process may yet exec */
	int64_t threads, rss_bytes; /* now */
	/* For memory.c. */
	bool rolled;			  /* roll is set */
	struct proc_rollup roll;	  /* last reading */
	int64_t peak_rss_bytes;		  /* VmHWM as last read, or -1 */
	int64_t peak_before_bytes;	  /* of it, what was there before the tracking */
	int64_t explained_rss_bytes;	  /* of the peak, what was seen in a rollup */
	int64_t faults, faults_at_status; /* pages faulted in; when status was last read */
	int64_t faults_at_roll;
	int64_t gpu_bytes; /* now, over all cards; -1 unknown; for gpu.c */
};

/* Usage in wait4(2)'s terms. */
void counters_of_rusage(double counters[COUNTERS], const struct rusage *usage);
/* The member is older than the tracking: what it has used and its peak so far are not ours. */
void member_was_there(struct member *m);

#endif

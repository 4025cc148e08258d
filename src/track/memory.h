/* Reads the memory of the tree.
 *
 * Proportional memory (PSS) is right only when all members are read at about the same moment,
 * and reading it walks the page tables: 30 ms for 8 GB. So it is read in rounds over all
 * members, when memory has changed and when the budget allows it, which is less than 1 % of one
 * core. A change needs a page fault, and a file that is read anyway counts those. Peaks between
 * rounds come from the kernel's high-water marks: VmHWM of living processes, ru_maxrss of those
 * that the owner has waited for. */
#pragma once

#include "track/result.h"
#include "track/tree.h"

struct memory {
	struct track_ram now[TRACK_GROUPS];  /* at the last round */
	struct track_ram peak[TRACK_GROUPS]; /* -1: not known */
	bool some_unreadable;
	uint32_t locked_pid; /* the first member that blocked, and whose resident size counts */
	int64_t charged_bytes;	/* peak of the total with files that are shared with others
				   outside the tree counted whole; -1 not known */
	int64_t unshared_bytes; /* how much that was more than the total at its last reading */
	int64_t mapped_rss_bytes; /* the members' resident sizes together at that reading */
	double map_again_s;	  /* when the next one may be */
	int64_t unseen_bytes; /* the largest short peak beside which others may have been, which
				 do not count; 0: none that matters */
	int64_t largest_rss_bytes; /* the largest of any member */
	int64_t own_rss_bytes; /* the owner's peak; ru_maxrss of a child that has just executed
				  a program may be this value instead of its own */
	double credit_s;       /* CPU time that rounds may take now */
	double accrued_s;      /* when credit was last added, seconds of tracking */
	double round_s;	       /* when the last round was, or -1 */
	double status_s;       /* when high-water marks were last read, or -1 */
	double counters_s;     /* when read_counters() last read switches and I/O */
};

void memory_init(struct memory *m);
/* Call after tree_look(): reads what is due. */
void memory_look(struct memory *m, struct tree *t, double now_s);
/* The owner has waited for member `i`. */
void memory_reaped(struct memory *m, struct tree *t, uint32_t i, int64_t maxrss_bytes);

/* Sub-tracking: named code blocks with start and stop times, joined to the samples of a
 * tracking file: what each block used. The files are gpu-tracker's, CSV or SQLite. */
#ifndef GUA_SUBTRACK_SUBTRACK_H
#define GUA_SUBTRACK_SUBTRACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/tracking.h"

/* The columns of a sample without its time stamp, which is the last one. */
#define SUBTRACK_MEASUREMENTS (TRACKING_COLUMNS - 1)

/* Statistics of a set of numbers; NAN if it is empty. std is that of the whole population. */
struct subtrack_stats {
	double min, max, mean, std, total;
};

struct subtrack_block {
	char *name;			    /* escaped */
	int64_t timepoints;		    /* samples within any of its calls */
	int64_t calls, non_empty_calls;	    /* calls; those with a sample in them */
	struct subtrack_stats compute_time; /* seconds of a call */
	struct subtrack_stats usage[SUBTRACK_MEASUREMENTS];
};

struct subtrack {
	char *statics[TRACKING_STATICS]; /* as in the file, escaped; NULL: not there */
	struct subtrack_stats overall[SUBTRACK_MEASUREMENTS];
	struct subtrack_block *blocks; /* by name */
	size_t n_blocks;
	int64_t unfinished; /* calls that never stopped: left out */
};

/* Reads both files and joins them. */
int subtrack_analyze(struct subtrack *s, const char *tracking_file,
	const char *sub_tracking_file, struct err *e);
void subtrack_finish(struct subtrack *s);

/* Joins several sub-tracking files of the same kind into a new one. */
int subtrack_combine(const char *target, const char *const *paths, size_t n, struct err *e);

#endif

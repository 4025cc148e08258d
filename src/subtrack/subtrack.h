/* Analyses sub-tracking files: blocks of code joined with the samples of a tracking file. */
#pragma once

#include <jansson.h>

#include "base/base.h"
#include "model/tracking.h"

/* The columns of a sample without its time stamp, which is the last one. */
#define SUBTRACK_MEASUREMENTS (TRACKING_COLUMNS - 1)

/* Statistics of a set of numbers, by Welford's method, which keeps small differences. */
struct subtrack_stats {
	int64_t n; /* 0: the others mean nothing */
	double min, max, mean, total;
	double squares; /* sum of the squares of the differences from the mean */
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

/* A named result file, as `sub-track analyze -f json` writes it. */
struct subtrack_session {
	const char *name;
	const char *path;
};

/* What to compare, and the result. */
struct subtrack_comparison {
	const struct subtrack_session *sessions;
	size_t n;
	const char *statistic; /* min, max, mean or std */
	json_t *result;	       /* set; the caller frees it with json_decref() */
	struct str warnings;   /* set: a line for each pair of blocks that differ in their line
				  number; the caller finishes it */
};

/* Puts one statistic of all sessions side by side:
 * { overall_resource_usage: { measurement: { session: value } },
 *   code_block_resource_usage: { measurement: { block: { session: value } } },
 *   code_block_compute_time: { block: { session: value } } }
 * The sessions of a group stand in ascending order of their values. Blocks must agree by name;
 * names that differ only in a line number at their end match, with a warning, and have all
 * names in their key ("a.py:7 -> a.py:9", sorted as texts). */
int subtrack_compare(struct subtrack_comparison *c, struct err *e);

void subtrack_print_text(struct str *out, const struct subtrack *s);
/* Appends one JSON document; missing values are null. It is the input of a comparison. */
void subtrack_print_json(struct str *out, const struct subtrack *s);

/* The result of subtrack_compare(). The text is gpu-tracker's. */
void subtrack_print_comparison(struct str *out, const json_t *comparison);
void subtrack_print_comparison_json(struct str *out, const json_t *comparison);

/* The result of gua track in its formats. Keys and labels are those of gpu-tracker. */
#pragma once

#include "proc/user.h"
#include "track/result.h"

/* A unit that a number is shown in: value x factor. */
struct track_unit {
	const char
		*name; /* "megabytes", "hours" ... as on the command line and in the report */
	double factor; /* from bytes or seconds */
};

/* bytes kilobytes megabytes gigabytes terabytes (10^3), kibibytes .. tebibytes (2^10); "auto":
 * one that makes `value` readable. NULL: no such unit. */
const struct track_unit *track_size_unit(const char *name, double value);
/* seconds minutes hours days, auto. */
const struct track_unit *track_time_unit(const char *name, double value);

/* Append the names of the units and "auto", each followed by a space. */
void track_sizes(struct str *out);
void track_times(struct str *out);

enum track_format { TRACK_TEXT, TRACK_JSON, TRACK_CSV };
#define TRACK_FORMATS "text|json|csv" /* in that order */

struct track_style {
	enum track_format format;
	const char *ram_unit, *gpu_ram_unit, *time_unit; /* names; "auto" */
	bool legacy_spelling; /* the key "descendents", as in gpu-tracker before version 4 */
	bool processes;	      /* also print the table of processes */
	struct user_names *users; /* names of users for that table, or NULL */
	bool advice;		  /* print Slurm options for the next run */
	bool verbose;		  /* text: all values, not only the short text for people */
	bool followed; /* tracking began after the process had started: a part of its run is
			  missing */
};

/* What to request from Slurm, with a margin and rounded up; it lives as long as the outline. */
struct track_advice {
	int64_t cpus;
	char mem[32];  /* "": unknown */
	char gres[32]; /* "none", "gpu:2" */
	char time[32], command[160], margin[160];
	char basis[128]; /* what it is based on: "from 1 run"; without advice: what to do */
};
void track_advise(struct track_advice *advice, const struct track_result *r,
	const struct track_style *style);

void track_render(
	struct str *out, const struct track_result *r, const struct track_style *style);

/* One line for --progress: elapsed, CPU, RAM, GPU memory, GPU use; at most `columns` wide. */
void track_progress(struct str *out, const struct track_sample *s, int columns);

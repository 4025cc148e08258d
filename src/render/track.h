/* A tracker's result in its formats. Keys and labels are those that readers of gpu-tracker
 * know. */
#ifndef GUA_RENDER_TRACK_H
#define GUA_RENDER_TRACK_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
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

/* Append their names and auto, each with a blank behind it. */
void track_sizes(struct str *out);
void track_times(struct str *out);

enum track_format { TRACK_TEXT, TRACK_JSON, TRACK_CSV };

struct track_style {
	enum track_format format;
	const char *ram_unit, *gpu_ram_unit, *time_unit; /* names; "auto" */
	bool legacy_spelling;	  /* descendents, as before its version 4 */
	bool processes;		  /* the table of processes too */
	struct user_names *users; /* their names in that table, or NULL */
	bool advice;		  /* what to ask Slurm for */
};

void track_render(
	struct str *out, const struct track_result *r, const struct track_style *style);

/* One live line for --progress: elapsed, CPU, RAM, GPU memory, GPU use; at most `columns` wide.
 */
void track_progress(struct str *out, const struct track_sample *s, int columns);

#endif

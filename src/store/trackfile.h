/* The tracking file: one row per sample, as CSV or SQLite, with the columns that readers of
 * gpu-tracker know. Lines 1 and 2 (or the table static_data) give the units and the host; then
 * come the samples (or the table data). */
#pragma once

#include "track/result.h"

struct trackfile;

/* What does not change while the process is tracked. Factors turn bytes into the units. */
struct trackfile_head {
	const char *ram_unit, *gpu_ram_unit, *time_unit;
	double ram_factor, gpu_ram_factor;
	int64_t ram_capacity_bytes, gpu_capacity_bytes; /* -1 unknown */
	int64_t core_count, expected_cores, gpu_count, expected_gpus;
};

/* Creates the file; its ending, .csv or .sqlite, selects the format. Replaces an existing file
 * only with `overwrite`. */
int trackfile_open(struct trackfile **f, const char *path, bool overwrite, struct err *e);
/* Call it once, before the first sample. */
int trackfile_begin(struct trackfile *f, const struct trackfile_head *head, struct err *e);
int trackfile_add(struct trackfile *f, const struct track_sample *s, struct err *e);
int trackfile_close(struct trackfile *f, struct err *e);

/* Scrolling counters: at each look one line for each card (or process), in the columns of
 * nvidia-smi's dmon and pmon. */
#pragma once

#include "present/filter.h"
#include "present/live.h"

/* Counters of a board at the previous look: the view shows differences. */
struct dmon_before {
	double counters[METRIC_COUNT];
	int64_t at_ms; /* 0: there was no previous look */
};

enum { DMON_COLUMNS_MAX = 32 };

struct dmon {
	bool processes;
	bool as_smi; /* processes as in nvidia-smi's pmon: no use is "-", and old drivers have
			fewer columns */
	unsigned char columns[DMON_COLUMNS_MAX]; /* rows of the table of columns, in order */
	size_t n_columns;
	bool date, time; /* whether each line starts with them */
	bool csv, no_header, no_units;
	size_t cells; /* cells in the current line */
	struct dmon_before *before;
	size_t n_before;
	size_t since_header; /* lines since the last header, which is repeated */
	bool has_header;
};

/* Appends the letters of the groups, each followed by a space. */
void dmon_groups(struct str *out);
/* Chooses the columns: those of the groups, letters of "pucvmet" or of "um" for processes, in
 * the order of the letters. ERR_USAGE. */
int dmon_select(struct dmon *d, const char *groups, struct err *e);
/* Reads "csv,noheader,nounit"; ERR_USAGE. */
int dmon_format(struct dmon *d, const char *text, struct err *e);
/* Appends the words of --format, each followed by a space. */
void dmon_formats(struct str *out);
/* Sets the flags of the metrics that the columns need. */
void dmon_wanted(const struct dmon *d, unsigned char *wanted);
/* Appends one look, with the header if it is due. */
int dmon_look(
	struct dmon *d, struct live *l, const struct filter *f, struct str *out, struct err *e);
void dmon_finish(struct dmon *d);

/* Scrolling counters: one line a card (or a process) and look, in the columns of nvidia-smi's
 * dmon and pmon. */
#ifndef GUA_VIEW_DMON_H
#define GUA_VIEW_DMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "live/filter.h"
#include "live/live.h"

/* Counters of a board at the look before: what is shown are their differences. */
struct dmon_before {
	double counters[METRIC_COUNT];
	int64_t at_ms; /* 0: there was none */
};

enum { DMON_COLUMNS_MAX = 32 };

struct dmon {
	bool processes;
	unsigned char columns[DMON_COLUMNS_MAX]; /* rows of the table of columns, in order */
	size_t n_columns;
	bool date, time; /* in front of each line */
	bool csv, no_header, no_units;
	size_t cells; /* of the line so far */
	struct dmon_before *before;
	size_t n_before;
	size_t since_header; /* lines; the header comes again after some */
	bool has_header;
};

/* Appends the letters of the groups, each with a blank behind it. */
void dmon_groups(struct str *out);
/* Chooses the columns: those of the groups, letters of "pucvmet" or of "um" for processes, in
 * the order of the letters. ERR_USAGE. */
int dmon_select(struct dmon *d, const char *groups, struct err *e);
/* Reads "csv,noheader,nounit"; ERR_USAGE. */
int dmon_format(struct dmon *d, const char *text, struct err *e);
/* Appends those words, each with a blank behind it. */
void dmon_formats(struct str *out);
/* Sets the flags of the metrics that it needs. */
void dmon_wanted(const struct dmon *d, unsigned char *wanted);
/* Appends one look, with the header when it is time. */
int dmon_look(struct dmon *d, const struct live *l, const struct filter *f, struct str *out,
	struct err *e);
void dmon_finish(struct dmon *d);

#endif

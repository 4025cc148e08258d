/* The columns of a tracking file, which are those of gpu-tracker: one definition for the
 * writer and the reader. */
#pragma once

/* The columns of a sample, in order; the last one is its time stamp, in unix seconds. */
#define TRACKING_COLUMNS 22
extern const char *const tracking_columns[TRACKING_COLUMNS];

/* The columns of the head: the units and the host. The first three are texts. */
#define TRACKING_STATICS 9
extern const char *const tracking_statics[TRACKING_STATICS];

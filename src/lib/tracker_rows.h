/* Between tracker.c, which runs a tracker, and tracker_result.c, which reads it. */
#ifndef GUA_LIB_TRACKER_ROWS_H
#define GUA_LIB_TRACKER_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct gua_tracker;
struct image;
struct track_sample;

/* Checks the caller's struct and the state, and takes the newest numbers. */
int tracker_look(struct gua_tracker *t, const void *out, size_t size, struct image **seen);
/* The same with the numbers that were last taken. */
int tracker_row(struct gua_tracker *t, const void *out, size_t size, struct image **seen);
int tracker_no_row(struct gua_tracker *t, const char *what, size_t index);
/* The first kept sample from *number on, and its number. */
int tracker_sample_from(struct gua_tracker *t, const void *out, size_t size, int64_t *number,
	struct track_sample *kept);
/* What was last taken, or NULL. */
const struct image *tracker_seen(const struct gua_tracker *t);

#endif

/* Functions of tracker.c, which runs a tracker, for tracker_result.c, which reads its numbers.
 */
#ifndef GUA_LIB_TRACKER_ROWS_H
#define GUA_LIB_TRACKER_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct gua_tracker;
struct image;
struct track_sample;

/* Checks the caller's struct and the state, and takes the newest numbers. */
int tracker_look(struct gua_tracker *t, const void *out, size_t size, struct image **seen);
/* The same, with the numbers that were taken last. */
int tracker_row(struct gua_tracker *t, const void *out, size_t size, struct image **seen);
int tracker_no_row(struct gua_tracker *t, const char *what, size_t index);
/* Takes the first kept sample from *number on, and sets *number to its number. */
int tracker_sample_from(struct gua_tracker *t, const void *out, size_t size, int64_t *number,
	struct track_sample *kept);
/* Returns the numbers that were taken last, or NULL. */
const struct image *tracker_seen(const struct gua_tracker *t);

#endif

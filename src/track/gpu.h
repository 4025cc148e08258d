/* The cards while the tree runs. The driver is asked in a thread of its own (sample/worker.h):
 * opening it may take seconds, a call may hang, and neither may delay the tracker or make a
 * short command look longer. What is not answered in time is taken at a later look. */
#ifndef GUA_TRACK_GPU_H
#define GUA_TRACK_GPU_H

#include "base/err.h"
#include "track/tracker.h"
#include "track/tree.h"

struct gpu;

/* Begins to open the driver; whether there is one is known later. */
int gpu_open(struct gpu **g, const struct tracker_options *o, struct err *e);
void gpu_close(struct gpu *g);

/* After tree_look(): takes what the driver has said and asks again. */
void gpu_look(struct gpu *g, struct tree *t, struct track_result *r);
/* The end: waits a moment for what is under way and for the last samples. */
void gpu_stop(struct gpu *g, struct tree *t, struct track_result *r);

/* What was last seen, and what it all came to. */
void gpu_sample(const struct gpu *g, struct track_sample *out);
void gpu_fill(struct gpu *g, struct track_result *r);
/* The same without a driver: nothing is known. */
void gpu_fill_none(struct track_result *r);

#endif

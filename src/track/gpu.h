/* Reads the cards while the tree runs. The driver is asked in a thread of its own
 * (driver/host/worker.h): opening it may take seconds and a call may hang, and neither may
 * delay the tracker or make a short command look longer. An answer that is late is taken at a
 * later look.
 */
#ifndef GUA_TRACK_GPU_H
#define GUA_TRACK_GPU_H

#include "base/err.h"
#include "track/tracker.h"
#include "track/tree.h"

struct gpu;

/* Begins to open the driver. Whether there is a driver is known later. */
int gpu_open(struct gpu **g, const struct tracker_options *o, struct err *e);
void gpu_close(struct gpu *g);

/* Call after tree_look(): takes the driver's answers and asks again. */
void gpu_look(struct gpu *g, struct tree *t, struct track_result *r);
/* Ends the reading: waits a moment for the current job and for the last samples. */
void gpu_stop(struct gpu *g, struct tree *t, struct track_result *r);

/* The latest readings, and the totals. */
void gpu_sample(const struct gpu *g, struct track_sample *out);
void gpu_fill(struct gpu *g, struct track_result *r);
/* The same without a driver: nothing is known. */
void gpu_fill_none(struct track_result *r);

#endif

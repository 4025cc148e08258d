/* The fields of struct gpu, for gpu.c and gpu_result.c. */
#ifndef GUA_TRACK_GPU_PRIVATE_H
#define GUA_TRACK_GPU_PRIVATE_H

#include "base/clock_watch.h"
#include "driver/host/worker.h"
#include "track/gpu.h"
#include "track/gpu_card.h"

enum gpu_state { GPU_OPENING, GPU_OPEN, GPU_ABSENT };

struct gpu {
	const struct tracker_options *o; /* the tracker's */
	struct worker *worker;
	enum gpu_state state;
	char note[256]; /* why there is no driver */
	bool waiting;	/* a job is running */
	enum worker_job job;
	int64_t begun_us; /* when it was begun */
	int64_t start_ms; /* wall time at the start */
	struct clock_watch clock_watch;
	int64_t drained_us, looked_us;	/* when the last one began, or -1 */
	int64_t scan_us, scan_every_us; /* when to look for cards again; 0: no need */
	struct gpu_card *cards;
	size_t n_cards;
	struct ledger ledger; /* one slot for all time */
	struct context_floors contexts;
	double max_sum_pct; /* utilisation of the chosen cards together; NAN */
	int64_t ram[TRACK_GROUPS], max_ram[TRACK_GROUPS]; /* -1 unknown */
	bool ram_unknown[TRACK_GROUPS];	    /* the memory of a member is unknown */
	int64_t used_bytes, max_used_bytes; /* all cards; -1 unknown */
	int64_t context_bytes;		    /* at the peak; -1 unknown */
};

/* Whether the card counts in utilisation. */
bool gpu_counts(const struct gpu *g, const struct gpu_card *c);
/* Whether the card is in the result. */
bool gpu_shows(const struct gpu *g, const struct gpu_card *c);

#endif

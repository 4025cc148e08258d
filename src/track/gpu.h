/* Reads the cards while the tree runs. The driver is asked in a thread of its own
 * (driver/host/worker.h): opening it may take seconds and a call may hang, and neither may
 * delay the tracker or make a short command look longer. An answer that is late is taken at a
 * later look. */
#pragma once

#include "driver/host/worker.h"
#include "classify/account.h"
#include "classify/context.h"
#include "classify/ledger.h"
#include "track/tracker.h"
#include "track/tree.h"

enum gpu_state { GPU_OPENING, GPU_OPEN, GPU_ABSENT };

/* One card while it is tracked: its samples, the processes on it, and the time of the tree. */
struct gpu_card {
	struct track_card shown;
	struct account account;
	bool chosen;		/* named by the owner, or the tree may use it */
	bool touched;		/* a process of the tree was seen on it */
	struct holder *holders; /* at the last look; .user is HOLDER_TREE or HOLDER_STRANGER */
	double *sm_pct;		/* their use since the last drain */
	size_t n_holders, cap;
	bool looked, listed;		/* a look was made; a look had a process list */
	bool tree_unknown;		/* the memory of a process of the tree is unknown */
	int64_t used_bytes, tree_bytes; /* now; -1 unknown */
	int64_t tree_processes;
	double newest_pct;		 /* newest sample, NAN unknown */
	double tree_pct_s, tree_known_s; /* SM use of the tree over time, and that time */
	double energy_mj;		 /* counter at the last drain, NAN */
	int64_t drained_ms;		 /* wall time of the last drain, or -1 */
};

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

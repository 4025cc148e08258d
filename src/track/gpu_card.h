/* One card while it is tracked: its samples, the processes on it, and the time of the tree. */
#ifndef GUA_TRACK_GPU_CARD_H
#define GUA_TRACK_GPU_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "classify/account.h"
#include "classify/context.h"
#include "classify/ledger.h"
#include "track/result.h"
#include "track/tree.h"

/* Values of struct holder's `user`. */
enum { HOLDER_TREE, HOLDER_STRANGER };
/* Which of them a process number of struct holder is. */
uint32_t gpu_card_whose(uint32_t process);

struct gpu_card {
	struct track_card shown;
	struct account account;
	bool chosen;		/* named by the owner, or the tree may use it */
	bool touched;		/* a process of the tree was seen on it */
	struct holder *holders; /* at the last look; .user is HOLDER_TREE or HOLDER_STRANGER */
	uint32_t *pids;		/* their pids */
	double *sm_pct;		/* their use since the last drain */
	size_t n_holders, cap;
	bool looked, listed;		/* a look was made; a look had a process list */
	bool tree_unknown;		/* the memory of a process of the tree is unknown */
	int64_t used_bytes, tree_bytes; /* now; -1 unknown */
	int64_t tree_processes;
	double newest_pct; /* newest sample, NAN unknown */
	double tree_pct;   /* SM use of the tree since the last drain; NAN unknown */
	double tree_pct_s, tree_known_s; /* its sum over time, and that time */
	double energy_mj;		 /* counter at the last drain, NAN */
	int64_t drained_ms;		 /* wall time of the last drain, or -1 */
};

void gpu_card_init(
	struct gpu_card *c, const struct card_reading *r, uint32_t index, int64_t start_ms);
void gpu_card_finish(struct gpu_card *c);

/* Values that are the same for all cards at one moment. */
struct gpu_scene {
	const struct rules *rules;
	struct ledger *ledger;
	struct context_floors *contexts;
	int64_t period_us; /* of the source's samples: see ring_hold_of() */
	int64_t now_ms;
};

/* Call after a drain. */
void gpu_card_drain(struct gpu_card *c, const struct card_reading *r, const struct tree *t,
	const struct gpu_scene *scene);
/* Call after a look; new holders count from `from_ms`. False: out of memory. */
bool gpu_card_look(struct gpu_card *c, const struct card_reading *r, struct tree *t,
	const struct gpu_scene *scene, int64_t from_ms);
/* Brings the account up to date. */
void gpu_card_flush(struct gpu_card *c, const struct gpu_scene *scene);

/* Returns how much of the tree's memory on the card is bare context, if one context takes
 * `floor_bytes`. */
int64_t gpu_card_context(const struct gpu_card *c, int64_t floor_bytes);

#endif

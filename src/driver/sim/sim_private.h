/* The internals of the simulated source, shared by the sim*.c files. */
#ifndef GUA_DRIVER_SIM_SIM_PRIVATE_H
#define GUA_DRIVER_SIM_SIM_PRIVATE_H

#include "driver/sim/scenario_play.h"
#include "driver/source.h"

/* What is kept for one card besides its reading. */
struct sim_card {
	size_t unit;	      /* index into scenario.cards */
	int64_t drained_us;   /* scenario time of the last drain */
	int64_t power_us;     /* of the last reading of power; INT64_MIN: none */
	double integrated_mj; /* energy from power, where the counter fails */
	struct util_sample *samples;
	size_t cap, n_kept; /* of samples; those that glances made for the next drain */
	struct process_util *process_utils;
	struct card_process *processes;
};

enum { SIM_XIDS = 16 }; /* at a drain, at most */

struct sim {
	struct source source;
	struct source_xid xids[SIM_XIDS];
	uint64_t xids_seen; /* as play_xid() counts them */
	struct scenario *scenario;
	struct play *play;
	struct clock *clock;
	int64_t origin_us; /* boot time at scenario time 0 */
	struct sim_card *cards;
	struct play_use *uses; /* scratch, as many as a card has seats */
	struct play_holder *holders;
};

/* Plays that `call` is made: takes the time that the scenario says, returns its code. */
int sim_call(struct sim *sim, const char *call, int unit);

/* sim_metric.c: source_ops.metrics. */
void sim_metrics(struct source *s, const struct metric_request *request, double *values,
	metric_texts texts);
/* sim_metric.c: source_ops.accounts. */
size_t sim_accounts(struct source *s, size_t card, struct process_account *out, size_t max);

#endif

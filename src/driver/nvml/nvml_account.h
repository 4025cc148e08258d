/* Processes that have ended, by the driver's own records (accounting mode): the only way to
 * see a process that started and ended between two looks. Root switches the mode on with
 * `nvidia-smi -am 1`. */
#ifndef GUA_DRIVER_NVML_NVML_ACCOUNT_H
#define GUA_DRIVER_NVML_NVML_ACCOUNT_H

#include "driver/nvml/nvml_job.h"

/* A pid that the driver has a record of, and what is known about it. */
struct nvml_life {
	uint32_t pid;
	bool ended;
	unsigned asked_look; /* how many looks there were when its record was read */
	int64_t start_us;
};

/* The records of a card. */
struct nvml_accounts {
	struct nvml_buffer pids;	/* of uint32_t: what the driver lists */
	struct nvml_buffer lives, next; /* of struct nvml_life, by pid; next: being made */
	size_t n_lives;
	struct nvml_buffer ended; /* of struct ended_process: since the last drain */
};

/* Whether the mode is on (1), off (0) or unknown (-1). */
int nvml_read_accounting(struct nvml_source *s, void *handle);
/* A card's part of a drain: fills the reading's ended[]. */
void nvml_drain_ended(struct nvml_source *s, size_t card);
/* source_ops.accounts */
size_t nvml_read_accounts(
	struct source *base, size_t card, struct process_account *out, size_t max);

#endif

/* Jobs and the ways to do them, best first: a way that a card does not support is not tried
 * again. The way in use is remembered for the log and for `gua doctor`. */
#pragma once

#include "driver/nvml/nvml_lib.h"
#include "driver/source.h"

struct nvml_card;
struct nvml_source;

enum nvml_job {
	NVML_JOB_UTIL,
	NVML_JOB_PROCESS_UTIL,
	NVML_JOB_ENERGY,
	NVML_JOB_POWER,
	NVML_JOB_MEMORY,
	NVML_JOB_LISTS, /* three jobs, in the order of enum nvml_list */
	NVML_JOBS = NVML_JOB_LISTS + NVML_LISTS,
};
enum { NVML_WAYS = 3 };

/* How a job is done on a card. */
struct nvml_way {
	int way;       /* index into the job's ways; NVML_WAY_NONE or NVML_WAY_UNTRIED */
	int code;      /* why the first way is not used; NVML_OK when it is */
	unsigned dead; /* bits: ways that are not supported and not asked again until re-init */
};
enum { NVML_WAY_NONE = -1, NVML_WAY_UNTRIED = -2 };

/* One attempt at a job by one of its ways; returns the driver's code. */
typedef int (*nvml_attempt)(struct nvml_source *s, size_t card, int way, void *out);

/* A job to do now. */
struct nvml_task {
	enum nvml_job job;
	nvml_attempt attempt;
	void *out; /* for `attempt` */
};

/* Tries each way of the job until one works; returns NVML_OK or the first way's code. The card
 * must have a handle; afterwards it may have lost it. */
int nvml_job_do(struct nvml_source *s, size_t card, const struct nvml_task *task);
/* Tries one way only; the way in use does not change. */
int nvml_job_try(struct nvml_source *s, size_t card, const struct nvml_task *task, int way);
/* Uses a later way for the job from now on: the earlier ones work but report wrong values. */
void nvml_job_turn_to(struct nvml_source *s, size_t card, enum nvml_job job, int way, int code);
/* Whether the first two ways of a job are not supported: it has no others, or only a
 * substitute. */
bool nvml_job_is_unsupported(const struct nvml_card *c, enum nvml_job job);
/* Whether a code means that the call will never work. */
bool nvml_job_is_for_good(int code);
/* Whether no other call will succeed. */
bool nvml_job_is_fatal(int code);
bool nvml_job_is_lost(int code);
/* Handles a code that says more than that a call failed: the card or driver may be lost. */
void nvml_job_heed(struct nvml_source *s, size_t card, int code);
/* Marks all ways as untried; for an instance, except those only for whole cards. */
void nvml_job_forget_ways(struct nvml_card *c, bool is_instance);
/* source_ops.facilities */
size_t nvml_job_facilities(struct source *base, struct facility *rows, size_t max);

/* A buffer that is kept from call to call and grown when necessary. */
struct nvml_buffer {
	void *data;
	size_t cap; /* entries */
};
bool nvml_reserve(struct nvml_buffer *b, size_t entries, size_t size);

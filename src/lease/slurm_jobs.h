/* The jobs that have cards of a host, from what scontrol prints: all jobs as JSON, or one job
 * as text. A user chooses the name of a job and the paths in its text, and may have written
 * other fields into them: only JSON tells them apart among several jobs. In the text of one job
 * what stands behind such a path is not read, and a job with a field twice is left out. */
#pragma once

#include "lease/lease_file.h"

struct slurm_jobs {
	const char *node; /* Slurm's name of the host */
	/* Called with each job that has cards here; its texts live until the call returns. */
	void (*take)(void *context, const struct lease_file *job);
	void *context;
};

/* These change the bytes, after which there must be room for one more. ERR_WORLD: it is not
 * such an answer, or it is doubtful. */

/* Reads the answer of `scontrol -d show job --json`. */
int slurm_jobs_json(const struct slurm_jobs *j, char *bytes, size_t len, struct err *e);
/* Reads that of `scontrol -d show job ID`. */
int slurm_jobs_text(
	const struct slurm_jobs *j, const char *id, char *bytes, size_t len, struct err *e);

/* Runs a command under a tracker: its start, its signals, its end. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "track/tracker.h"

struct track_job {
	char **argv; /* the command; NULL: follow `pid` */
	pid_t pid;
	bool until_exit;		/* with a pid: only its end ends the tracking */
	struct tracker_options options; /* pid and subreaper are set here */
	/* Called when the tracker is open and the command still waits. If it fails, the command
	 * is not started. */
	int (*on_start)(void *context, struct tracker *tracker, struct err *e);
	/* Called after every sample; may be NULL. */
	void (*on_sample)(void *context, const struct track_sample *sample);
	void *context;
};

/* The result of a job. */
struct track_outcome {
	struct tracker *tracker; /* stopped; the caller closes it; NULL: never started */
	int exit_status;	 /* for gua: the command's, 128 + signal, 126 or 127 */
};

/* Runs the job to its end. On error nothing was started, or the command could not be executed
 * (outcome->exit_status is then 126 or 127). */
int track_run(const struct track_job *job, struct track_outcome *outcome, struct err *e);

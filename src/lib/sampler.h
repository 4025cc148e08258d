/* Passes a tracker's numbers from the sampler (a thread or a child process) to the caller,
 * through a shared mapping and a lock that stays usable if either of them dies. */
#ifndef GUA_LIB_SAMPLER_H
#define GUA_LIB_SAMPLER_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "track/tracker.h"

/* Samples that are kept for a caller that reads each one: ten seconds at the shortest interval.
 */
enum { IMAGE_CARDS = 64, IMAGE_SAMPLES = 1024 };

struct image {
	pthread_mutex_t lock; /* shared between processes, robust */
	bool done;	      /* the numbers are final */
	struct err err;	      /* why there are no numbers */
	int64_t number;	      /* of the sample */
	struct track_sample sample;
	struct track_sample samples[IMAGE_SAMPLES]; /* the last ones: number N is at N % size */
	struct track_result result; /* its pointers are not valid: the rows are below */
	size_t n_cards, n_processes;
	struct track_card cards[IMAGE_CARDS];
	struct track_process processes[TRACK_PROCESSES_MAX];
};

struct image *image_new(struct err *e);
void image_free(struct image *im);
void image_lock(struct image *im);
void image_unlock(struct image *im);
/* Copies the used part of an image; both must be whole images. */
void image_copy(struct image *to, struct image *from);
/* Finds the first kept sample from `number` on; returns its number, or 0: there is none yet. */
int64_t image_sample(struct image *im, int64_t number, struct track_sample *out);

/* Adds a warning to the result. */
void image_warn(struct image *im, const char *text);

/* Writes a tracker's numbers into the image. */
void image_publish(struct image *im, struct tracker *t, bool done);

/* Samples until `stop_fd` is readable, or until the process of the pidfd `parent_fd` (or -1)
 * has ended: then it returns false. */
bool sampler_run(struct tracker *t, struct image *im, int stop_fd, int parent_fd);

/* Forks a child that tracks with the options `o`. Writes a number to `ready_fd` when the image
 * has the first sample or an error. Returns the child's pid, or -1 with errno. */
pid_t sampler_fork(
	const struct tracker_options *o, struct image *im, int stop_fd, int ready_fd);

#endif

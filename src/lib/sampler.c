/* The shared image of a tracker's numbers, and the sampling loop that fills it. */
#include "lib/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "track/tracker_private.h"

/* The child process that samples. It is forked from the caller's program without an exec, so it
 * closes the program's files, runs none of its handlers, and ends when the program ends. */

/* Keeps `n` files, moved to 3, 4 ...; standard input and output become /dev/null. */
static void keep_files(int *keep, int n)
{
	enum { ABOVE = 64 };
	for (int i = 0; i < n; i++)
		if (keep[i] >= 0)
			keep[i] = fcntl(keep[i], F_DUPFD, ABOVE);
	int null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		if (null >= 0)
			dup2(null, i);
	for (int i = 0; i < n; i++)
		if (keep[i] >= 0)
			keep[i] = dup2(keep[i], 3 + i);
	syscall(SYS_close_range, 3U + (unsigned)n, ~0U, 0U); /* the function needs glibc 2.34 */
}

static void tell(int fd)
{
	uint64_t one = 1;
	if (write(fd, &one, sizeof(one)) < 0)
		return; /* the caller does not wait any more */
}

static void child(const struct tracker_options *given, struct image *im, int *files)
{
	struct tracker_options o = *given;
	struct tracker *t = NULL;
	pid_t self = getpid();
	prctl(PR_SET_NAME, TRACK_HELPER_NAME);
	keep_files(files, 3);
	o.excluded = &self;
	o.n_excluded = 1;
	o.source.clock = NULL;
	int rc = tracker_open(&t, &o, &im->err);
	if (!rc)
		image_publish(im, t, false);
	tell(files[1]);
	if (!rc && sampler_run(t, im, files[0], files[2])) {
		tracker_stop(t);
		image_publish(im, t, true);
	}
	/* Run no exit handlers: they belong to the program. */
	syscall(SYS_exit_group, 0);
}

pid_t sampler_fork(const struct tracker_options *o, struct image *im, int stop_fd, int ready_fd)
{
	sigset_t all, before;
	/* PR_SET_PDEATHSIG would report the end of the forking thread, not of the process. */
	int parent_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0) {
		int files[] = { stop_fd, ready_fd, parent_fd };
		child(o, im, files);
	}
	int saved = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (parent_fd >= 0)
		close(parent_fd);
	errno = saved;
	return pid;
}

struct image *image_new(struct err *e)
{
	pthread_mutexattr_t attributes;
	struct image *im = mmap(NULL, sizeof(*im), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (im == MAP_FAILED) {
		err_memory(e);
		return NULL;
	}
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&im->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return im;
}

void image_free(struct image *im)
{
	if (!im)
		return;
	/* The lock is not destroyed: a forked copy of the caller frees its own mapping of it
	 * too. */
	munmap(im, sizeof(*im));
}

void image_lock(struct image *im)
{
	/* A sampler that died with the lock may have left half-written numbers; the next
	 * publication replaces all of them. */
	if (pthread_mutex_lock(&im->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&im->lock);
}

void image_unlock(struct image *im)
{
	pthread_mutex_unlock(&im->lock);
}

void image_copy(struct image *to, struct image *from)
{
	image_lock(from);
	to->done = from->done;
	to->err = from->err;
	to->number = from->number;
	to->sample = from->sample;
	to->result = from->result;
	to->n_cards = from->n_cards;
	to->n_processes = from->n_processes;
	memcpy(to->cards, from->cards, from->n_cards * sizeof(to->cards[0]));
	memcpy(to->processes, from->processes, from->n_processes * sizeof(to->processes[0]));
	image_unlock(from);
}

int64_t image_sample(struct image *im, int64_t number, struct track_sample *out)
{
	image_lock(im);
	int64_t oldest = im->number - IMAGE_SAMPLES + 1, found = number < 1 ? 1 : number;
	found = found < oldest ? oldest : found;
	if (found > im->number)
		found = 0;
	else
		*out = im->samples[found % IMAGE_SAMPLES];
	image_unlock(im);
	return found;
}

void image_warn(struct image *im, const char *text)
{
	image_lock(im);
	tracker_warn(&im->result, "%s", text);
	image_unlock(im);
}

void image_publish(struct image *im, struct tracker *t, bool done)
{
	const struct track_result *r = tracker_result(t);
	image_lock(im);
	im->result = *r;
	im->n_cards = r->n_cards < IMAGE_CARDS ? r->n_cards : IMAGE_CARDS;
	im->n_processes =
		r->n_processes < TRACK_PROCESSES_MAX ? r->n_processes : TRACK_PROCESSES_MAX;
	if (im->n_cards)
		memcpy(im->cards, r->cards, im->n_cards * sizeof(im->cards[0]));
	if (im->n_processes)
		memcpy(im->processes, r->processes, im->n_processes * sizeof(im->processes[0]));
	im->done = done;
	image_unlock(im);
}

static bool take_sample(struct tracker *t, struct image *im)
{
	struct track_sample sample;
	bool goes_on = tracker_sample(t, &sample);
	image_lock(im);
	im->sample = sample;
	im->number++;
	im->samples[im->number % IMAGE_SAMPLES] = sample;
	image_unlock(im);
	image_publish(im, t, false);
	return goes_on;
}

bool sampler_run(struct tracker *t, struct image *im, int stop_fd, int parent_fd)
{
	struct clock clock;
	bool goes_on = true;
	clock_init_real(&clock);
	for (;;) {
		struct pollfd fds[] = { { .fd = stop_fd, .events = POLLIN },
			{ .fd = parent_fd, .events = POLLIN } };
		/* When all processes have ended there is nothing more to sample. */
		int64_t until_us =
			goes_on ? tracker_next_us(t)
				: clock_now(&clock).boot_us + 3600 * INT64_C(1000000);
		int ready = clock_wait(&clock, until_us, fds, 2);
		if (ready > 0 && fds[0].revents)
			return true;
		if (ready > 0 && fds[1].revents)
			return false;
		if (ready == 0 && goes_on)
			goes_on = take_sample(t, im);
	}
}
